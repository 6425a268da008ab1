"""Reasons for rejections: what counted against whom, in whose words."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.decide.reasons import PLACES, THRESHOLD, read_wording, reasons, typical
from fairall.errors import FairAllError
from fairall.models.fairness import FairThresholds
from fairall.tables.features import Kind
from fairall.tables.people import LearntFeature


class Made:
    """A policy of income and debt, features 0 and 1, with a stricter threshold for S = −1 where asked."""

    threshold = 0.5

    def __init__(self, stricter: float = 0.0) -> None:
        self.stricter = stricter
        names = ["income", "debt", "age"]
        self.reader = SimpleNamespace(names=names, sensitive=None, n_groups=2)
        numbers: dict[str, Any] = {"mean": 0.0, "scale": 1.0, "lowest": -3.0, "highest": 3.0}
        self.reader.features = tuple(LearntFeature(name, Kind.REAL, **numbers) for name in names)
        self.learner: Any = None
        if stricter:
            self.learner = FairThresholds.__new__(FairThresholds)
            vars(self.learner)["bound"] = "a bound"

    def encoded_propensity(self, x: Tensor, s: Tensor) -> np.ndarray:
        score = 0.5 + 0.3 * x[:, 0] - 0.2 * x[:, 1] - self.stricter * (s < 0)
        return score.clamp(0, 1).numpy()[None]

    def combined(self, values: np.ndarray, by: str = "mean") -> np.ndarray:
        return values.mean(0)


X = torch.tensor([[-1.0, 0.0, 0.3], [1.0, 3.0, -0.5], [-0.5, 1.0, 0.0]])
S = torch.tensor([1.0, -1.0, 1.0])
NOBODY = np.zeros(3, dtype=bool)


def said(
    policy: Made,
    most: int,
    x: Tensor = X,
    s: Tensor = S,
    crowded: np.ndarray = NOBODY,
    wording: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    return reasons(policy, x, s, crowded[: len(x)], most, wording, "mean").tolist()  # type: ignore[arg-type]


def test_what_counted_most_comes_first_and_nothing_else_is_named() -> None:
    assert said(Made(), 4) == ["income", "debt", "debt; income"]
    assert said(Made(), 1) == ["income", "debt", "debt"]
    assert said(Made(), 4, X[:0], S[:0]) == []


def test_the_same_person_has_the_same_reasons_in_any_table() -> None:
    people = torch.tensor(np.random.default_rng(0).normal(size=(50, 3)), dtype=torch.float32)
    s = torch.ones(50)
    whole = said(Made(), 3, people, s, np.zeros(50, dtype=bool))
    assert said(Made(), 3, people.flip(0), s, np.zeros(50, dtype=bool)) == whole[::-1]
    assert said(Made(), 3, people[7:8], s[7:8]) == whole[7:8]


def test_who_found_no_place_is_told_so() -> None:
    crowded = np.array([False, True, False])
    assert said(Made(), 1, crowded=crowded) == ["income", PLACES, "debt"]
    assert (
        said(Made(), 1, crowded=crowded, wording={PLACES: "all places are taken"})[1]
        == "all places are taken"
    )


def test_in_the_words_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text('feature,words\ndebt,"you owe too much"\n')
    assert said(Made(), 1, wording=read_wording(str(path)))[1] == "you owe too much"
    assert read_wording(None) == {}
    for text in ("a,b\n1,2\n", ""):
        path.write_text(text)
        with pytest.raises(FairAllError, match="columns feature and words"):
            read_wording(str(path))


def test_the_threshold_of_the_group_is_said_where_it_decided() -> None:
    x = X.clone()
    x[1] = torch.tensor([0.5, 0.0, 0.0])  # accepted with S = +1
    assert said(Made(stricter=0.3), 2, x) == ["income", THRESHOLD, "debt; income"]


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
