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
from tests.conftest import ComposeConfig, MakeSetting, as_saved
from tests.models.conftest import same

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


@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8])
def test_it_accepts_from_the_cost_on(cost: float, config: StackedConfig, two_features: MakeSetting) -> None:
    learner = learnt(Stacked(config, two_features([0, 1], f"cost.value={cost}")), 2)
    new = crowd(100, 50)
    score = learner.score(new.x, new.s, STREAMS)
    assert torch.equal(learner.propensity(new.x, new.s, STREAMS), (score >= cost).float())


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_labels_that_are_all_the_same_give_one_probability(
    label: float, config: StackedConfig, two_features: MakeSetting
) -> None:
    learner = Stacked(config, two_features([0, 1]))
    people = replace(crowd(20, 0), label=torch.full((2, 20), label))
    learner.warm_up_epoch(decided(people), 0)
    score = learner.score(people.x, people.s, STREAMS)
    torch.testing.assert_close(score, torch.full((2, 20), (20 * label + 1.0) / 22.0))


def test_without_any_label_it_accepts(config: StackedConfig, two_features: MakeSetting) -> None:
    learner, people = Stacked(config, two_features([0, 1])), crowd(20, 0)
    learner.warm_up_epoch(decided(people, rate=0.0), 0)
    assert (learner.propensity(people.x, people.s, STREAMS) == 1.0).all()


def test_it_is_fitted_when_the_people_seen_have_grown(
    config: StackedConfig, two_features: MakeSetting
) -> None:
    learner = Stacked(replace(config, growth=0.5), two_features([0, 1]))
    learner.warm_up_epoch(decided(crowd(100, 0)), 0)
    fitted = []
    for step in range(1, 9):
        before = learner.slopes.clone()
        learner.update(decided(crowd(25, step)))
        fitted.append(not torch.equal(before, learner.slopes))
        assert learner.unchanged != fitted[-1]
    assert fitted == [False, True, False, False, True, False, False, False]


def test_it_goes_on_from_what_was_saved(config: StackedConfig, two_features: MakeSetting) -> None:
    learner, twin = (Stacked(config, two_features([0, 1])) for _ in range(2))
    learnt(learner, 4)
    twin.load_training_state(as_saved(learner.training_state()))
    for one in (learner, twin):
        one.update(decided(crowd(300, 77)))
    assert same(learner.training_state(), twin.training_state())


def test_a_seed_does_not_depend_on_others(config: StackedConfig, two_features: MakeSetting) -> None:
    both, alone = Stacked(config, two_features([0, 1])), Stacked(config, two_features([1]))

    def second(people: Decided) -> Decided:
        return Decided(*(values[1:] for values in vars(people).values()))

    for step in range(4):
        one = decided(crowd(150, step))
        both.update(one)
        alone.update(second(one))
    new = crowd(40, 50)
    together, by_itself = both.log_odds(new.x, new.s, STREAMS), alone.log_odds(new.x[1:], new.s[1:], STREAMS)
    torch.testing.assert_close(together[1], by_itself[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrong", ["[]", "[0.1,-1]", "[0]"])
def test_penalties_have_to_be_positive(wrong: str) -> None:
    with pytest.raises(FairAllError, match=r"model\.linear_c.*a list of one or more positive numbers"):
        checked(compose_config("model=stacked", f"model.linear_c={wrong}"))
