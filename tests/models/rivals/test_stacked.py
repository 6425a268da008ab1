from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairall.config.compose import checked, compose_config
from fairall.data.people import Decided, People
from fairall.errors import FairAllError
from fairall.models.rivals.stacked import Stacked, StackedConfig
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakeSetting

STREAMS = SeedStreams([0, 1], "any")


@pytest.fixture
def config(compose_config: ComposeConfig) -> StackedConfig:
    return compose_config("model=stacked").model


def crowd(n: int, start: int, *, interaction: float = 0.0) -> People:
    """People of two seeds with two features, whose label depends on the first, on s, or on a product."""
    draw = torch.Generator().manual_seed(start)
    x = torch.randn(2, n, 2, generator=draw)
    s = 2.0 * (torch.rand(2, n, generator=draw) < 0.6) - 1.0
    odds = (1.0 - interaction) * (x[..., 0] + 0.5 * s) + 4.0 * interaction * x[..., 0] * x[..., 1]
    return People(x, s, (torch.rand(2, n, generator=draw) < odds.sigmoid()).float())


def decided(people: People, *, rate: float = 1.0) -> Decided:
    draw = torch.Generator().manual_seed(9)
    accepted = torch.rand(people.s.shape, generator=draw) < rate
    return Decided.reveal(people, torch.full_like(people.s, rate), accepted)


def learnt(learner: Stacked, steps: int, n: int = 200, **options: float) -> Stacked:
    for step in range(steps):
        one = decided(crowd(n, step, **options), rate=0.8)
        if step == 0:
            learner.warm_up_epoch(one, 0)
        else:
            learner.update(one)
    return learner


def test_linear_models_are_those_of_scikit_learn(config: StackedConfig, two_features: MakeSetting) -> None:
    config = replace(config, linear_c=[0.01, 1.0], growth=1e-9)
    learner, people = Stacked(config, two_features([0, 1])), decided(crowd(300, 0), rate=0.7)
    learner.warm_up_epoch(people, 0)
    new = crowd(50, 1)
    logit = learner.of_classifiers(new.x, new.s)
    for e in range(2):
        known = people.accepted[e]
        columns = np.column_stack([people.x[e, known], people.s[e, known]]).astype(float)
        mean, scale = columns.mean(0), columns.std(0)
        asked = (np.column_stack([new.x[e], new.s[e]]) - mean) / scale
        for i, c in enumerate(config.linear_c):
            model = LogisticRegression(C=c, tol=1e-10).fit((columns - mean) / scale, people.label[e, known])
            np.testing.assert_allclose(logit[e, :, i], model.decision_function(asked), atol=1e-4)


@pytest.mark.parametrize(("interaction", "best"), [(0.0, "linear"), (1.0, "trees")])
def test_the_classifiers_that_foretell_labels_have_the_weight(
    interaction: float, best: str, config: StackedConfig, two_features: MakeSetting
) -> None:
    learner = learnt(Stacked(config, two_features([0, 1])), 15, interaction=interaction)
    assert ((learner.share[:, -1] > 0.5) == (best == "trees")).all()
    torch.testing.assert_close(learner.share.sum(-1), torch.ones(2, dtype=torch.float64))


def test_estimates_converge_to_the_probability(config: StackedConfig, two_features: MakeSetting) -> None:
    learner, new = learnt(Stacked(config, two_features([0, 1])), 40), crowd(2000, 99)
    truth = (new.x[..., 0] + 0.5 * new.s).sigmoid()
    assert (learner.score(new.x, new.s, STREAMS) - truth).abs().mean() < 0.03


def test_evidence_is_the_loss_of_labels_before_they_are_learnt(
    config: StackedConfig, two_features: MakeSetting
) -> None:
    learner = Stacked(replace(config, evidence=50.0, growth=1e9), two_features([0, 1]))
    learner.warm_up_epoch(decided(crowd(200, 0)), 0)
    expected = np.zeros((2, len(config.linear_c) + 1))
    for step in range(1, 4):
        one = decided(crowd(30, step), rate=0.5)
        p, label = expit(learner.of_classifiers(one.x, one.s).numpy()), one.label.numpy()[..., None]
        gained = np.where(label > 0, np.log(p), np.log(1 - p)) * one.accepted.numpy()[..., None]
        kept = np.exp(-one.accepted.sum(-1, keepdim=True).numpy() / 50.0)
        expected = kept * expected + gained.sum(1)
        learner.update(one)
    np.testing.assert_allclose(learner.evidence.numpy(), expected, rtol=1e-9)


def test_optimism_is_the_disagreement_of_classifiers(
    config: StackedConfig, two_features: MakeSetting
) -> None:
    plain, hopeful = (
        learnt(Stacked(replace(config, optimism=optimism), two_features([0, 1])), 3)
        for optimism in (0.0, 2.0)
    )
    new = crowd(100, 50)
    logit, share = plain.of_classifiers(new.x, new.s).numpy(), plain.share.numpy()
    for e in range(2):
        mean = np.average(logit[e], axis=1, weights=share[e])
        deviation = np.sqrt(np.average((logit[e] - mean[:, None]) ** 2, axis=1, weights=share[e]))
        for learner, more in ((plain, 0.0), (hopeful, 2.0)):
            found = learner.log_odds(new.x, new.s, STREAMS)[e]
            np.testing.assert_allclose(found, mean + more * deviation, rtol=1e-9)
        assert deviation.max() > 0.05


@pytest.mark.parametrize("wrong", ["[]", "[0.1,-1]", "[0]"])
def test_penalties_have_to_be_positive(wrong: str) -> None:
    with pytest.raises(FairAllError, match=r"model\.linear_c.*a list of one or more positive numbers"):
        checked(compose_config("model=stacked", f"model.linear_c={wrong}"))
