from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairall.config.compose import typed_config
from fairall.config.schema import Config
from fairall.data.dataset import dataset
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.models.learner import Setting
from fairall.models.oracle import Optimal
from fairall.online.evaluation import Evaluator
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import no_cache, training_of

SEEDS = [0, 1, 2, 3, 4]


def fitted(*words: str) -> tuple[Config, Optimal, PreparedData]:
    config = typed_config("dataset=synthetic", *words)
    data = dataset(config.dataset).prepare()
    learner = Optimal(config.model, Setting.of(data.schema, config))
    learner.pretrain(data, no_cache(), lambda **_: None)
    return config, learner, data


@pytest.mark.whole
@pytest.mark.parametrize(
    ("model", "utility", "ground_truth_utility", "dpu"),
    [("opt_unfair", 0.24, 0.17, 0.31), ("opt_fair", 0.17, 0.24, 0.0)],
)
def test_the_mean_of_five_fits_is_the_papers_optimum(
    model: str, utility: float, ground_truth_utility: float, dpu: float
) -> None:
    measures = []
    for state in (0, 1, 2, 3):
        config, learner, data = fitted(f"model={model}", f"dataset.random_state={state}")
        seeds = list(learner.setting.seeds)
        assert seeds == SEEDS
        measured = Evaluator(data.test, config.cost.value, seeds).measure(learner)
        measures.append([measured[n].mean().item() for n in ("utility", "ground_truth_utility", "dpu")])
        if model == "opt_fair":
            assert measured["cfu"].abs().max() == 0
        else:
            assert measured["cfu"].min() > 0.25
    expected = [utility, ground_truth_utility, dpu]
    assert np.mean(measures, axis=0) == pytest.approx(expected, abs=0.015)
    # The state of conf/dataset/synthetic.yaml.
    assert measures[3] == pytest.approx(expected, abs=0.015)


def test_a_reference_learns_nothing_online_and_is_not_explored_for(tmp_path: Path) -> None:
    words = "model=opt_unfair", "dataset=synthetic", "exploration=epsilon", "evaluation.decisions=true"
    training = training_of(*words)
    assert not training.learner.learns
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "none", seconds=float("inf"))
    training.run(checkpoint, no_cache(), Display(progress_only=True))
    assert set(training.history.propensity.unique().tolist()) == {0.0, 1.0}


def test_a_label_that_is_the_same_for_all_is_one_line() -> None:
    with pytest.raises(FairAllError, match="everybody has the same label"):
        fitted("model=opt_unfair", "dataset.structural_model.threshold=100")


def test_each_seed_fits_an_unpenalised_logistic_regression_on_people_of_its_own() -> None:
    _, learner, data = fitted("model=opt_unfair", "model.decision=sample", "model.fit_rows=3000")
    x, s = data.test.x, data.test.s
    streams = SeedStreams(SEEDS, "none")
    propensity = learner.propensity(x.expand(5, -1, -1), s.expand(5, -1), streams)
    assert len({tuple(row) for row in learner.logistic.weight.flatten(1).tolist()}) == 5
    own = data.applicants(3000, [3], "optimal").next()
    design = np.column_stack([own.x[0].numpy(), own.s[0].numpy()])
    fit = LogisticRegression(C=1e9, max_iter=10_000).fit(design, own.label[0].numpy())
    expected = expit(np.column_stack([x, s]) @ fit.coef_[0] + fit.intercept_[0])
    np.testing.assert_allclose(propensity[3], expected, atol=0.02)


def test_a_deterministic_policy_accepts_where_the_label_is_worth_its_cost() -> None:
    words = ("model=opt_fair", "cost.value=0.3", "seeds=2")
    sampled = fitted(*words, "model.decision=sample")[1]
    deterministic = fitted(*words)[1]
    x = torch.linspace(-3, 3, 50).reshape(1, -1, 1).expand(2, -1, -1)
    s, streams = torch.ones(2, 50), SeedStreams([0, 1], "none")
    decisions = deterministic.propensity(x, s, streams)
    assert (decisions == (sampled.propensity(x, s, streams) >= 0.3)).all()
    assert 0 < decisions.mean() < 1


def test_on_a_finite_table_it_fits_the_training_people() -> None:
    data = load_dataset("credit").prepare()
    config = typed_config("dataset=credit", "model=opt_unfair", "seeds=2")
    learner = Optimal(config.model, Setting.of(data.schema, config))
    learner.pretrain(data, no_cache(), lambda **_: None)
    measured = Evaluator(data.test, 0.5, [0, 1]).measure(learner)
    assert (measured["utility"] > 0.18).all()
