"""How sure measures are that were made on few people."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from torch import Tensor

from fairall.config.compose import checked_node, compose_config
from fairall.config.schema import DatasetConfig
from fairall.data.dataset import dataset
from fairall.data.people import People
from fairall.online.evaluation import DPU_ERROR, UTILITY_ERROR, Evaluator

SPLITS = 150
HELD_OUT = 0.15  # share of test people in a table
COST = 0.5
Configs = Callable[[Path], list[DatasetConfig]]


def population(path: Path, *, selective: bool) -> list[str]:
    """Write 1000 people, whose x says much about the label; the words that choose them."""
    generator = np.random.default_rng(7)
    s = generator.choice([-1, 1], 1000)
    x = generator.normal(size=1000)
    label = (generator.random(1000) < expit(2 * x)).astype(float)
    propensity = expit(x + 0.7)
    accepted = generator.random(1000) < propensity
    people = pd.DataFrame({"group": s, "x": x, "label": label})
    words = ["label=label", "positive=1.0", "sensitive=group", "advantaged=1", f"path={path / 'people.csv'}"]
    if selective:
        people = people.assign(
            label=people["label"].where(accepted), decision=1 * accepted, chance=propensity
        )
        words += ["decision=decision", "propensity=chance"]
    people.to_csv(path / "people.csv", index=False)
    return ["dataset=csv", *(f"dataset.{word}" for word in words)]


def splits_of(*words: str) -> list[DatasetConfig]:
    """A data set with other random states of its split."""
    config = checked_node(compose_config(*words), "dataset")
    return [replace(config, split=replace(config.split, random_state=state)) for state in range(SPLITS)]


def draws_of_synthetic(path: Path) -> list[DatasetConfig]:
    """A data set whose people are drawn anew."""
    words = ["dataset=synthetic", "dataset.rows={pool: 2000, validation: 50, test: 200}"]
    config = checked_node(compose_config(*words), "dataset")
    return [replace(config, random_state=state) for state in range(SPLITS)]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("configs", "part_of_table"),
    [
        (lambda path: splits_of(*population(path, selective=False)), HELD_OUT),
        (lambda path: splits_of(*population(path, selective=True)), HELD_OUT),
        (lambda path: splits_of("dataset=credit"), HELD_OUT),
        (draws_of_synthetic, 0.0),
    ],
    ids=["own", "own, selective labels", "credit", "synthetic"],
)
def test_standard_errors_are_deviations_over_test_people(
    configs: Configs, part_of_table: float, tmp_path: Path
) -> None:
    def policy(x: Tensor, s: Tensor) -> Tensor:
        return torch.sigmoid(2 * x[..., 0] + s)

    measures: dict[str, list[float]] = {"utility": [], "dpu": [], UTILITY_ERROR: [], DPU_ERROR: []}
    for config in configs(tmp_path):
        measured = Evaluator(dataset(config).prepare().test, COST, [0]).measure_by(policy)
        for name, values in measures.items():
            values.append(measured[name].item())
    # Parts of one finite table differ by less than samples of its population do (Cochran 1977, section 2.6).
    for name, error in (("utility", UTILITY_ERROR), ("dpu", DPU_ERROR)):
        of_population = np.std(measures[name]) / np.sqrt(1 - part_of_table)
        assert np.mean(measures[error]) == pytest.approx(of_population, rel=0.1)


def test_a_split_by_label_and_group_leaves_accepting_everybody_without_noise(tmp_path: Path) -> None:
    config = checked_node(compose_config(*population(tmp_path, selective=False)), "dataset")
    data = dataset(config).prepare()
    for people in (data.validation, data.test):
        measured = Evaluator(people, COST, [0, 1]).measure_by(lambda x, s: torch.ones_like(s))
        assert measured[UTILITY_ERROR].tolist() == [0.0, 0.0]
        assert measured["utility"][0].item() == pytest.approx(float(data.train.label.mean()) - COST, abs=0.01)


def test_a_stratum_of_one_person_counts_with_its_distance_from_the_mean() -> None:
    label = torch.tensor([1.0, 1.0, 0.0])
    stratum = torch.tensor([1, 1, 0])
    people = People(torch.zeros(3, 1), torch.tensor([1.0, -1.0, 1.0]), label, stratum=stratum)
    error = Evaluator(people, COST, [0]).measure_by(lambda x, s: torch.ones_like(s))[UTILITY_ERROR]
    assert error.item() == pytest.approx((2 / 3) / 3)  # −½, of the mean 1/6
