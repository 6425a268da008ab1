import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from fairall.models.learner import Learner
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
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
    training, learner = fitted(*f"model={model} seeds=5".split())
    measured = training.evaluation.measure(learner)
    found = [measured[name].mean().item() for name in ("utility", "ground_truth_utility", "dpu")]
    assert found == pytest.approx([utility, ground_truth_utility, dpu], abs=0.015)
    assert measured["cfu"].max() == 0 if dpu == 0.0 else measured["cfu"].min() > 0.25


def test_each_seed_fits_an_unpenalised_logistic_regression_on_people_of_its_own() -> None:
    words = "model.decision=sample", "model.fit_rows=3000", "seeds=4", "cost.value=0.3"
    training, learner = fitted("model=opt_unfair", *words)
    seeds, test = [0, 1, 2, 3], training.data.test
    x, s = test.x.expand(4, -1, -1), test.s.expand(4, -1)
    propensity = learner.propensity(x, s, SeedStreams(seeds, "none"))
    assert not torch.equal(propensity[0], propensity[3])
    own = training.data.applicants(3000, seeds, "optimal").next()
    given, asked = (torch.cat([x, s.unsqueeze(-1)], -1)[3] for x, s in ((own.x, own.s), (x, s)))
    fit = LogisticRegression(C=1e9, max_iter=10_000).fit(given, own.label[3])
    np.testing.assert_allclose(propensity[3], fit.predict_proba(asked)[:, 1], atol=0.02)
