"""What holds for every method whose classifiers are fitted anew, with its own or any of scikit-learn."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from fairall.data.people import Decided
from fairall.models.refitted import Refitted
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakeSetting, as_saved
from tests.models.conftest import same

STREAMS = SeedStreams([0, 1], "any")
FOREST = {"_target_": "sklearn.ensemble.RandomForestClassifier", "n_estimators": 5, "max_depth": 3}
INFERENCE = "accepted_only reweighting parcelling fuzzy_augmentation heckman basl".split()
METHODS = [
    ("stacked", {}),
    ("estimator", {}),
    *((name, keys) for name in INFERENCE for keys in ({}, {"estimator": FOREST})),
    ("fuzzy_augmentation", {"imputations": 3}),
]
Make = Callable[..., Refitted]


@pytest.fixture
def make(compose_config: ComposeConfig, two_features: MakeSetting) -> Make:
    """A learner of two seeds for people with two real features, keys of whose configuration are given."""

    def made(method: str, keys: dict[str, Any], *words: str, seeds: tuple[int, ...] = (0, 1)) -> Refitted:
        config = replace(compose_config(f"model={method}", *words).model, **keys)
        learner = config.build(two_features(list(seeds), *words))
        assert isinstance(learner, Refitted)
        return learner

    return made


def decided(n: int, start: int = 0, rate: float = 0.7) -> Decided:
    """People of two seeds whose label depends on the first feature and on s; the first sways acceptance."""
    draw = torch.Generator().manual_seed(start)
    x, s = torch.randn(2, n, 2, generator=draw), 2.0 * (torch.rand(2, n, generator=draw) < 0.6) - 1.0
    label = torch.rand(2, n, generator=draw) < (x[..., 0] + 0.5 * s).sigmoid()
    p = (torch.tensor(rate).logit() + 0.5 * x[..., 0]).sigmoid()
    accepted = torch.rand(2, n, generator=draw) < p
    return Decided(x, s, p, accepted, torch.where(accepted, label.float(), 0.0))


@pytest.mark.parametrize(("method", "keys"), METHODS)
def test_it_goes_on_from_what_was_saved_with_the_same_bytes(
    method: str, keys: dict[str, Any], make: Make
) -> None:
    learner, twin = make(method, keys), make(method, keys)
    for step in range(3):
        learner.update(decided(200, step))
    saved = as_saved(learner.training_state())
    twin.load_training_state(saved)
    assert same(twin.training_state(), saved)
    for one in (learner, twin):
        one.update(decided(400, 9))
    assert not learner.unchanged
    assert same(learner.training_state(), twin.training_state())
    new = decided(50, 99)
    assert torch.equal(*(one.log_odds(new.x, new.s, STREAMS) for one in (learner, twin)))


@pytest.mark.parametrize(("method", "keys"), METHODS)
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_labels_that_are_all_the_same_give_one_probability(
    method: str, keys: dict[str, Any], label: float, make: Make
) -> None:
    learner, people = make(method, keys), decided(40)
    people = replace(people, label=torch.where(people.accepted, label, 0.0))
    learner.warm_up_epoch(people, 0)
    n = people.accepted.sum(-1, keepdim=True)
    score = learner.score(people.x, people.s, STREAMS)
    torch.testing.assert_close(score, ((n * label + 1.0) / (n + 2.0)).expand_as(score))


@pytest.mark.parametrize(("method", "keys"), METHODS)
def test_without_any_label_it_accepts_everybody(method: str, keys: dict[str, Any], make: Make) -> None:
    learner, people = make(method, keys), decided(20)
    learner.warm_up_epoch(replace(people, accepted=torch.zeros_like(people.accepted)), 0)
    assert (learner.propensity(people.x, people.s, STREAMS) == 1.0).all()


@pytest.mark.parametrize(("method", "keys"), METHODS)
def test_a_seed_does_not_depend_on_others(method: str, keys: dict[str, Any], make: Make) -> None:
    both, alone = make(method, keys), make(method, keys, seeds=(1,))
    for step in range(3):
        one = decided(150, step)
        both.update(one)
        alone.update(Decided(*(values[1:] for values in vars(one).values() if values is not None)))
    new = decided(40, 50)
    together, apart = both.log_odds(new.x, new.s, STREAMS), alone.log_odds(new.x[1:], new.s[1:], STREAMS)
    torch.testing.assert_close(together[1], apart[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", INFERENCE)
def test_nobody_rejected_leaves_nothing_to_infer(method: str, make: Make) -> None:
    learner, plain, people = make(method, {}), make("accepted_only", {}), decided(300)
    people = replace(people, accepted=torch.ones_like(people.accepted))
    for one in (learner, plain):
        one.warm_up_epoch(people, 0)
    new = decided(50, 1)
    found = [one.log_odds(new.x, new.s, STREAMS) for one in (learner, plain)]
    assert torch.equal(*found) or method == "heckman"  # which has one more input, that is 0
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("method", ["stacked", "parcelling"])
def test_it_is_fitted_when_the_people_seen_have_grown(method: str, make: Make) -> None:
    learner, new = make(method, {"growth": 0.5}), decided(30, 99)
    learner.warm_up_epoch(decided(100), 0)
    changes = []
    for step in range(1, 9):
        before = learner.log_odds(new.x, new.s, STREAMS)
        learner.update(decided(25, step))
        changes.append(not torch.equal(before, learner.log_odds(new.x, new.s, STREAMS)))
        assert learner.unchanged != changes[-1]
    assert changes == [False, True, False, False, True, False, False, False]


def test_estimates_of_other_people_in_the_same_place_are_their_own(make: Make) -> None:
    learner, one, other = make("accepted_only", {}), decided(30, 1), decided(30, 2)
    learner.warm_up_epoch(decided(100), 0)
    expected = [learner.log_odds(people.x, people.s, STREAMS) for people in (one, other)]
    for _ in range(2):
        found = [learner.log_odds(people.x.clone(), people.s, STREAMS) for people in (one, other)]
        assert all(map(torch.equal, found, expected))
    assert not torch.equal(learner.log_odds(one.x, -one.s, STREAMS), expected[0])
    before = as_saved(learner.training_state())
    learner.update(decided(400, 3))
    after = learner.log_odds(one.x, one.s, STREAMS)
    assert not torch.equal(after, expected[0])
    learner.load_training_state(before)
    assert torch.equal(learner.log_odds(one.x, one.s, STREAMS), expected[0])


@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("decision", ["deterministic", "sample"])
def test_it_accepts_from_the_cost_on_or_with_its_probability(cost: float, decision: str, make: Make) -> None:
    learner = make("stacked", {"decision": decision}, f"cost.value={cost}")
    learner.update(decided(300))
    new = decided(100, 50)
    score = learner.score(new.x, new.s, STREAMS)
    expected = score if decision == "sample" else (score >= cost).float()
    assert torch.equal(learner.propensity(new.x, new.s, STREAMS), expected)


def test_without_inference_it_is_the_classifier_of_the_accepted(make: Make) -> None:
    people, new = decided(400), decided(50, 1)
    for method, model in (
        ("accepted_only", LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)),
        ("estimator", HistGradientBoostingClassifier(random_state=0)),
    ):
        learner = make(method, {})
        learner.warm_up_epoch(people, 0)
        for e in range(2):
            columns, asked = (np.column_stack([of.x[e], of.s[e]]).astype(float) for of in (people, new))
            mean, scale, known = columns.mean(0), columns.std(0), people.accepted[e].numpy()
            model.fit(((columns - mean) / scale)[known], people.label[e].numpy()[known])
            expected = model.predict_proba((asked - mean) / scale)[:, 1]
            found = expit(learner.log_odds(new.x, new.s, STREAMS)[e].numpy())
            np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_label_of_weight_two_counts_twice(make: Make) -> None:
    people, new = decided(200), decided(50, 1)
    twice = Decided(*(torch.cat([of, of[:, :80]], 1) for of in vars(people).values() if of is not None))
    weight = torch.ones_like(people.s)
    weight[:, :80] = 2.0
    learners = []
    for given in (replace(people, weight=weight), twice):
        learners.append(make("stacked", {"linear_c": [1e6], "optimism": 0.0}))
        learners[-1].warm_up_epoch(given, 0)
    linear = [one.of_classifiers(new.x, new.s)[..., 0] for one in learners]
    torch.testing.assert_close(*linear, rtol=1e-3, atol=1e-3)
