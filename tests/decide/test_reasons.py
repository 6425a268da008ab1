"""Reasons for rejections: what counted against whom, in whose words; and referrals by conflict."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.decide.reasons import PLACES, contributions, elsewhere, read_wording, reasons, typical
from fairall.decide.refer import Refer
from fairall.errors import FairAllError
from fairall.tables.features import Kind
from fairall.tables.people import LearntFeature


class Made:
    """A policy of income and debt, features 0 and 1, and of the group."""

    threshold = 0.5

    def __init__(self, of_group: float = 0.0) -> None:
        self.of_group = of_group
        names = ["income", "debt", "age"]
        self.reader = SimpleNamespace(names=names, sensitive=None, n_groups=2)
        numbers: dict[str, Any] = {"mean": 0.0, "scale": 1.0, "lowest": -3.0, "highest": 3.0}
        self.reader.features = tuple(LearntFeature(name, Kind.REAL, **numbers) for name in names)

    def encoded_propensity(self, x: Tensor, s: Tensor) -> np.ndarray:
        score = 0.5 + 0.3 * x[:, 0] - 0.2 * x[:, 1] + self.of_group * s
        return score.clamp(0, 1).numpy()[None]

    def encoded_margin(self, x: Tensor, s: Tensor) -> np.ndarray:
        return self.encoded_propensity(x, s) - self.threshold

    def combined(self, values: np.ndarray, by: str = "mean", *, decimals: int = 6) -> np.ndarray:
        return values.mean(0).round(decimals)


X = torch.tensor([[-1.0, 0.0, 0.3], [1.0, 3.0, -0.5], [-0.5, 1.0, 0.0]])
S = torch.tensor([1.0, -1.0, 1.0])
MADE: Any = Made()


def said(most: int, x: Tensor = X, *, policy: Any = MADE, **options: Any) -> list[str]:
    crowded = np.arange(len(x)) == options.pop("crowded", None)
    return reasons(policy, x, S[: len(x)], crowded, most, options.get("wording", {}), "mean").tolist()


def test_what_counted_most_comes_first_in_the_words_of_the_user_and_nothing_else_is_named(
    tmp_path: Path,
) -> None:
    assert said(4) == ["income", "debt", "debt; income"]
    assert said(1) == ["income", "debt", "debt"]
    assert said(4, X[:0]) == []
    # The group, which counts more than anything else against the second person, is no reason.
    assert said(4, policy=Made(0.4)) == ["income", "debt", "debt; income"]
    words = tmp_path / "words.csv"
    words.write_text(f'feature,words\ndebt,"you owe too much"\n{PLACES},"all places are taken"\n')
    told = said(1, crowded=0, wording=read_wording(str(words)))
    assert told == ["all places are taken", "you owe too much", "you owe too much"]
    assert read_wording(None) == {}
    for text in ("a,b\n1,2\n", ""):
        words.write_text(text)
        with pytest.raises(FairAllError, match="columns feature and words"):
            read_wording(str(words))


def test_the_same_person_has_the_same_contributions_in_any_table() -> None:
    x = torch.tensor(np.random.default_rng(0).normal(size=(50, 3)), dtype=torch.float32)
    whole = contributions(MADE, x, torch.ones(50), "mean")
    # Of a policy that is nearly additive, with typical people of mean 0.
    assert np.corrcoef(whole[:, 0], x[:, 0])[0, 1] > 0.9 > 0.01 > np.abs(whole[:, 2]).max()
    np.testing.assert_array_equal(contributions(MADE, x.flip(0), torch.ones(50), "mean"), whole[::-1])
    np.testing.assert_array_equal(contributions(MADE, x[7:8], torch.ones(1), "mean"), whole[7:8])


def test_the_probability_elsewhere_is_that_of_the_group_of_the_greatest() -> None:
    for s in (S, -S):
        probability = elsewhere(Made(0.2), X[[0, 2]], s[[0, 2]], "mean")  # type: ignore[arg-type]
        np.testing.assert_allclose(probability, [0.5 - 0.3 + 0.2, 0.5 - 0.15 - 0.2 + 0.2], atol=1e-6)


@pytest.mark.parametrize(
    ("refer", "threshold", "who"),
    [
        (Refer(3), None, [1, 2, 5]),
        (Refer(0.5), None, [1, 2, 5]),
        (Refer(1), 0.9, [3]),
        (Refer(9), None, [0, 1, 2, 3, 4, 5]),
        (Refer(band=(0.35, 0.5)), None, [1, 5]),
        (Refer(2, by_conflict=True), None, [3, 5]),
    ],
)
def test_who_is_referred(refer: Refer, threshold: float | None, who: list[int]) -> None:
    income = torch.tensor([-1.5, 0.0, 0.2, 3.0, 1.5, 2.0])
    debt = torch.tensor([0.0, 0.0, 0.0, 3.0, -0.5, 3.0])
    x, s = torch.stack([income, debt, income], dim=1), torch.ones(6)
    probability = MADE.combined(MADE.encoded_propensity(x, s))
    np.testing.assert_allclose(probability, [0.05, 0.5, 0.56, 0.8, 1, 0.5], atol=1e-6)
    referred = refer.people(MADE, x, s, probability, threshold=threshold)
    assert np.flatnonzero(referred).tolist() == who


def test_equal_people_are_referred_by_lot_and_nearer_margins_first() -> None:
    x, s, equal = torch.zeros(200, 3), torch.ones(200), np.full(200, 0.8)
    referred = Refer(60).people(MADE, x, s, equal)
    assert referred.sum() == 60
    assert 3 < referred[:60].sum() < 33  # not by position: some 18, standard deviation 3
    x[::2, 0] = torch.linspace(-1, 1, 100)  # margins, where all have the same share of seeds
    assert not Refer(100).people(MADE, x, s, equal)[::2].any()


def test_impossible_referrals_are_refused() -> None:
    for band in ((0.6, 0.4), (-0.1, 0.5), (0.5, 1.1)):
        with pytest.raises(FairAllError, match=r"^refer=.* is not possible"):
            Refer(band=band)
    for most in (0, 1.5, None):
        with pytest.raises(FairAllError, match=r"^refer=.* is not possible"):
            Refer(most).people(MADE, X, S, S.numpy())


def test_people_to_compare_with_are_as_those_of_training() -> None:
    reader: Any = Made().reader
    reader.features = (
        LearntFeature("income", Kind.REAL, mean=100.0, scale=10.0, lowest=90.0, highest=130.0),
        LearntFeature("debt", Kind.COUNT, mean=2.0, scale=1.0, lowest=0.0, highest=9.0),
        LearntFeature("age", Kind.BINARY, (3, 5), mean=4.0, scale=1.0),
    )
    rows = typical(reader, 500, np.random.default_rng(0)).numpy()
    assert rows.shape == (500, 4)
    assert -1.001 < rows[:, 0].min() < 0 < rows[:, 0].max() < 3.001  # scaled
    assert set(rows[:, 2]) == {3, 5}
    assert set(rows[:, 3]) == {-1, 1}
    assert (rows[:, 1] == rows[:, 1].round()).all()
