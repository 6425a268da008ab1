from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairall.display.progress import Display
from fairall.models.learner import Learner
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import no_cache, training_of


def fitted(*words: str) -> tuple[Training, Learner]:
    training = training_of("dataset=synthetic", *words)
    training.learner.pretrain(training.data, no_cache(), lambda **_: None)
    return training, training.learner


@pytest.mark.whole
@pytest.mark.parametrize(
    ("model", "utility", "ground_truth_utility", "dpu"),
    [("opt_unfair", 0.24, 0.17, 0.31), ("opt_fair dataset.observed=[K]", 0.17, 0.24, 0.0)],
)
def test_the_mean_of_five_fits_is_the_papers_optimum(
    model: str, utility: float, ground_truth_utility: float, dpu: float
) -> None:
    measures = []
    for state in (0, 1, 2, 3):
        words = f"model={model} seeds=5 dataset.random_state={state}"
        training, learner = fitted(*words.split())
        measured = training.evaluation.measure(learner)
        measures.append([measured[n].mean().item() for n in ("utility", "ground_truth_utility", "dpu")])
        cfu = measured["cfu"]
        assert cfu.max() == 0 if dpu == 0.0 else cfu.min() > 0.25
    expected = [utility, ground_truth_utility, dpu]
    assert np.mean(measures, axis=0) == pytest.approx(expected, abs=0.015)
    # The state of conf/dataset/synthetic.yaml.
    assert measures[3] == pytest.approx(expected, abs=0.015)


def test_a_reference_is_not_explored_for(tmp_path: Path) -> None:
    training, _ = fitted("model=opt_unfair", "exploration=epsilon", "evaluation.decisions=true")
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "none", seconds=float("inf"))
    training.run(checkpoint, no_cache(), Display(progress_only=True))
    assert set(training.history.steps["propensity"].unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("decision", ["sample", "deterministic"])
def test_each_seed_fits_an_unpenalised_logistic_regression_on_people_of_its_own(decision: str) -> None:
    training, learner = fitted(
        "model=opt_unfair", f"model.decision={decision}", "model.fit_rows=3000", "seeds=4", "cost.value=0.3"
    )
    data, seeds = training.data, [0, 1, 2, 3]
    x, s = data.test.x.expand(4, -1, -1), data.test.s.expand(4, -1)
    propensity = learner.propensity(x, s, SeedStreams(seeds, "none"))
    assert not torch.equal(propensity[0], propensity[3])
    own = data.applicants(3000, seeds, "optimal").next()
    designs = torch.cat([own.x, own.s.unsqueeze(-1)], -1), torch.cat([x, s.unsqueeze(-1)], -1)
    given, asked = (design[3].numpy() for design in designs)
    fit = LogisticRegression(C=1e9, max_iter=10_000).fit(given, own.label[3].numpy())
    expected = expit(asked @ fit.coef_[0] + fit.intercept_[0])
    if decision == "sample":
        np.testing.assert_allclose(propensity[3], expected, atol=0.02)
    else:
        sure = abs(expected - 0.3) > 0.02
        np.testing.assert_array_equal(propensity[3][sure], expected[sure] >= 0.3)
