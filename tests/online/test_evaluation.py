"""How sure measures are that were made on few people."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from fairall.config.compose import checked_node, compose_config
from fairall.data.dataset import dataset
from fairall.data.people import People
from fairall.online.evaluation import DPU_ERROR, UTILITY_ERROR, Evaluator
from tests.data.test_selective_labels import RECORDED, load, population, selective

SPLITS = 150
HELD_OUT = 0.15  # share of test people in a table
COST = 0.5


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def by_x_and_s(x: Tensor, s: Tensor) -> Tensor:
    return torch.sigmoid(2 * x[..., 0] + s)


@pytest.mark.whole
@pytest.mark.parametrize("name", ["selective labels", "synthetic"])
def test_standard_errors_are_deviations_over_test_people(name: str) -> None:
    if name == "synthetic":  # people are drawn anew
        words = ["dataset=synthetic", "dataset.rows={pool: 2000, validation: 50, test: 200}"]
        drawn = checked_node(compose_config(*words), "dataset")
        sources = (dataset(replace(drawn, random_state=state)) for state in range(SPLITS))
    else:  # with other random states of its split
        own = load(selective(population(1000, 7)), *RECORDED)
        sources = (own.resplit(number) for number in range(1, 1 + SPLITS))
    tests = (source.prepare().test for source in sources)
    found = pd.DataFrame([Evaluator(one, COST, [0]).measure_by(by_x_and_s) for one in tests]).map(Tensor.item)
    # Parts of one finite table differ by less than samples of its population do (Cochran 1977, section 2.6).
    part = HELD_OUT * (name != "synthetic")
    for measure, error in (("utility", UTILITY_ERROR), ("dpu", DPU_ERROR)):
        of_population = found[measure].std(ddof=0) / np.sqrt(1 - part)
        assert found[error].mean() == pytest.approx(of_population, rel=0.1)


def test_a_split_by_label_and_group_leaves_accepting_everybody_without_noise() -> None:
    data = load(population(1000, 7), "dataset.drop=[decision,propensity]").prepare()
    for people in (data.validation, data.test):
        measured = Evaluator(people, COST, [0, 1]).measure_by(lambda x, s: torch.ones_like(s))
        assert measured[UTILITY_ERROR].tolist() == [0.0, 0.0]
        assert measured["utility"][0].item() == pytest.approx(float(data.train.label.mean()) - COST, abs=0.01)
    # A stratum of one person counts with its distance from the mean: −½, of the mean 1/6.
    label, s = torch.tensor([[1.0, 1.0, 0.0], [1.0, -1.0, 1.0]])
    alone = People(torch.zeros(3, 1), s, label, stratum=torch.tensor([1, 1, 0]))
    error = Evaluator(alone, COST, [0]).measure_by(lambda x, s: torch.ones_like(s))[UTILITY_ERROR]
    assert error.item() == pytest.approx((2 / 3) / 3)
