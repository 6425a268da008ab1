"""What holds for every method whose classifiers are fitted anew, with its own or any of scikit-learn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from fairall.runtime.randomness import SeedStreams
from tests.conftest import as_saved
from tests.models.conftest import swayed
from tests.models.rivals.test_rivals import built

STREAMS = SeedStreams([0, 1], "any")
FOREST = {"_target_": "sklearn.ensemble.RandomForestClassifier", "n_estimators": 5, "max_depth": 3}
NEIGHBOURS = {"_target_": "sklearn.neighbors.KNeighborsClassifier"}
INFERENCE = "accepted_only reweighting parcelling fuzzy_augmentation heckman basl".split()
METHODS = [
    ("stacked", {}),
    ("estimator", {}),
    *((name, keys) for name in INFERENCE for keys in ({}, {"estimator": FOREST})),
    ("fuzzy_augmentation", {"imputations": 3}),
]
NEW = swayed(50, 99)


def odds_of(learner: Any, *decided: Any) -> torch.Tensor:
    """Log odds of `NEW` after updates."""
    for one in decided:
        learner.update(one)
    found: torch.Tensor = learner.log_odds(NEW.x, NEW.s, STREAMS)
    return found


@pytest.mark.parametrize(("method", "keys"), METHODS)
@pytest.mark.parametrize("label", [0.0, 1.0, None])
def test_labels_that_are_all_the_same_or_none_give_one_probability(
    method: str, keys: dict[str, Any], label: float | None
) -> None:
    learner, people = built(method, [0, 1], **keys), swayed(40, 0)
    known = (people.accepted & (label is not None)).double()
    ones, cost = known * (label or 0.0), learner.setting.cost
    odds = odds_of(learner, replace(people, accepted=known > 0, label=ones.float()))
    expected = ((ones.sum(-1) + 2 * cost) / (known.sum(-1) + 2)).logit()
    torch.testing.assert_close(odds, expected.unsqueeze(-1).expand_as(odds))
    assert (learner.propensity(NEW.x, NEW.s, STREAMS) == float(label != 0.0)).all()


@pytest.mark.parametrize("method", INFERENCE)
def test_nobody_rejected_leaves_nothing_to_infer(method: str) -> None:
    people = swayed(300, 0)
    people = replace(people, accepted=torch.ones_like(people.accepted))
    found = [odds_of(built(name, [0, 1]), people) for name in (method, "accepted_only")]
    assert torch.equal(*found) or method == "heckman"  # which has one more input, that is 0
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("method", ["stacked", "parcelling"])
def test_it_is_fitted_when_the_people_seen_have_grown(method: str) -> None:
    learner = built(method, [0, 1], growth=0.5)
    before, changes = odds_of(learner, swayed(100, 0)), []
    for step in range(1, 9):
        after = odds_of(learner, swayed(25, step))
        changes.append(not torch.equal(before, after))
        assert learner.unchanged != changes[-1]
        before = after
    assert changes == [False, True, False, False, True, False, False, False]


def test_estimates_are_kept_of_the_same_people_by_the_same_classifiers() -> None:
    learner = built("accepted_only", [0, 1])
    first, saved = odds_of(learner, swayed(100, 0)), as_saved(learner.training_state())
    assert odds_of(learner).data_ptr() == first.data_ptr()
    others = [learner.log_odds(x, s, STREAMS) for x, s in ((NEW.x, -NEW.s), (NEW.x + 1, NEW.s))]
    others.append(odds_of(learner, swayed(400, 3)))
    assert not any(torch.equal(first, other) for other in others)
    learner.load_training_state(saved)
    assert torch.equal(odds_of(learner), first)
    for start in range(9):  # and of a few groups of people alone
        learner.log_odds(swayed(5, start).x, swayed(5, start).s, STREAMS)
    assert len(learner.fitted.known) == 4


@pytest.mark.parametrize(
    ("method", "keys", "model"),
    [
        ("accepted_only", {}, LogisticRegression(tol=1e-10, max_iter=1000)),
        ("estimator", {}, HistGradientBoostingClassifier(random_state=0)),
        ("stacked", {"linear_c": [0.1]}, LogisticRegression(C=0.1, tol=1e-10)),
    ],
)
def test_without_inference_it_is_the_classifier_of_the_accepted(
    method: str, keys: dict[str, Any], model: Any
) -> None:
    people, learner = swayed(400, 0), built(method, [0, 1], **keys)
    odds_of(learner, people)
    found = expit(learner.of_classifiers(NEW.x, NEW.s)[..., 0].numpy())
    for e in range(2):
        columns, asked = (np.column_stack([of.x[e], of.s[e]]).astype(float) for of in (people, NEW))
        known = people.accepted[e].numpy()
        of = columns[known] if method == "stacked" else columns  # of whom the mean is 0
        columns, asked = ((some - of.mean(0)) / of.std(0) for some in (columns, asked))
        model.fit(columns[known], people.label[e].numpy()[known])
        np.testing.assert_allclose(found[e], model.predict_proba(asked)[:, 1], atol=1e-4)


@pytest.mark.parametrize(
    ("method", "keys"), [("stacked", {"linear_c": [1e6]}), ("accepted_only", {"linear_c": 1e6})]
)
def test_a_label_of_weight_two_counts_twice(method: str, keys: dict[str, Any]) -> None:
    people = swayed(200, 0)
    twice = replace(people, **{name: torch.cat([of, of[:, :80]], 1) for name, of in vars(people).items()})
    weight = 1.0 + (torch.arange(200) < 80).expand(2, -1)
    linear = []
    for given in (replace(people, weight=weight), twice):
        learner = built(method, [0, 1], **keys)
        odds_of(learner, given)
        linear.append(learner.of_classifiers(NEW.x, NEW.s)[..., 0])
    torch.testing.assert_close(*linear, rtol=1e-3, atol=1e-3)


def test_people_of_weight_0_are_left_out() -> None:
    people, weight = swayed(60, 0), (torch.arange(60) < 40).float().expand(2, -1)
    learner = built("accepted_only", [0, 1], estimator=NEIGHBOURS)  # which takes no weights that differ
    odds_of(learner, replace(people, weight=weight))
    n = [one.n_samples_fit_ for one in learner.fitted.read()]
    assert n == people.accepted[:, :40].sum(-1).tolist()
