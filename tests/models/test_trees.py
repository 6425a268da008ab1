"""Boosted trees as tensors beside scikit-learn's."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from fairall.models.trees import TREES, BoostedTrees
from fairall.nn import native
from tests.conftest import as_saved


def people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of which one has few values, and labels that depend on an interaction."""
    draw = np.random.default_rng(seed)
    x = np.column_stack([draw.normal(size=(n, 3)), draw.integers(0, 4, n)]).astype(np.float32)
    label = x[:, 0] * x[:, 1] + (x[:, 3] == 2) + 0.5 * draw.normal(size=n) > 0.3
    return x, label.astype(np.float64)


@pytest.mark.parametrize("compiled", [True, False])
def test_sums_of_leaves_are_those_of_scikit_learn(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(native.functions, "takes", lambda *_: False)
    trees = BoostedTrees(3)
    new = torch.tensor(np.stack([people(500, seed)[0] for seed in (10, 11, 12)]))
    theirs = np.zeros((3, 500))
    for e, n in enumerate((900, 60)):
        x, label = people(n, e)
        trees.fit(e, x, label)
        model = HistGradientBoostingClassifier(**TREES, early_stopping=False).fit(x, label)
        theirs[e] = model.decision_function(new[e].numpy())
    np.testing.assert_allclose(trees(new).numpy(), theirs, atol=1e-12)
    np.testing.assert_allclose(trees(new[1:2], slice(1, 2)).numpy(), theirs[1:2], atol=1e-12)
    # At a bound itself, where rounding would send people to the other side.
    at_bounds = new[0].clone()
    at_bounds[:, 0] = trees.bound[0][trees.feature[0] == 0].float()[:500].repeat(5)[:500]
    known = HistGradientBoostingClassifier(**TREES, early_stopping=False).fit(*people(900, 0))
    expected = known.decision_function(at_bounds.numpy())
    np.testing.assert_allclose(trees(at_bounds[None], slice(0, 1))[0].numpy(), expected, atol=1e-12)


def test_a_second_fit_leaves_nothing_of_the_first() -> None:
    again, fresh = BoostedTrees(1), BoostedTrees(1)
    again.fit(0, *people(900, 0))
    for one in (again, fresh):
        one.fit(0, *people(45, 1))
    x = torch.tensor(people(200, 2)[0]).unsqueeze(0)
    assert torch.equal(again(x), fresh(x))


def test_few_people_have_the_log_odds_of_their_share() -> None:
    trees = BoostedTrees(1)
    x, _ = people(20, 0)
    trees.fit(0, x, np.arange(20.0) < 5)
    np.testing.assert_allclose(trees(torch.tensor(x).unsqueeze(0)).sigmoid().numpy(), 0.25, atol=1e-12)


def test_they_are_saved() -> None:
    trees, twin = BoostedTrees(1), BoostedTrees(1)
    trees.fit(0, *people(300, 0))
    twin.load_state_dict(as_saved(trees.state_dict()))
    x = torch.tensor(people(200, 2)[0]).unsqueeze(0)
    assert torch.equal(trees(x), twin(x))
