"""Reasons for rejections: what counted against whom, in whose words."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.decide.reasons import THRESHOLD, read_wording, reasons
from fairall.errors import FairAllError
from fairall.models.fairness import FairThresholds


class Made:
    """A policy of income and debt, features 0 and 1, with a stricter threshold for S = −1 where asked."""

    threshold = 0.5

    def __init__(self, stricter: float = 0.0) -> None:
        self.stricter = stricter
        self.reader = SimpleNamespace(names=["income", "debt", "age"], sensitive=None, n_groups=2)
        self.learner: Any = FairThresholds.__new__(FairThresholds) if stricter else None

    def encoded_propensity(self, x: Tensor, s: Tensor) -> np.ndarray:
        score = 0.5 + 0.3 * x[:, 0] - 0.2 * x[:, 1] - self.stricter * (s < 0)
        return score.clamp(0, 1).numpy()[None]

    def combined(self, values: np.ndarray, by: str = "mean") -> np.ndarray:
        return values.mean(0)


X = torch.tensor([[1.0, 0.0, 0.3], [0.8, -0.5, 0.1], [-1.0, 0.0, 5.0], [1.0, 3.0, -5.0], [-0.5, 1.0, 0.0]])
S = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])
ACCEPTED = np.array([True, True, False, False, False])


def said(policy: Made, most: int, **wording: str) -> list[str]:
    return reasons(policy, X, S, ACCEPTED, most, wording, "mean").tolist()  # type: ignore[arg-type]


def test_what_counted_most_comes_first_and_nothing_else_is_named() -> None:
    assert said(Made(), 4) == ["", "", "income; debt", "debt", "income; debt"]
    assert said(Made(), 1) == ["", "", "income", "debt", "income"]


def test_in_the_words_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text('feature,words\ndebt,"you owe too much"\n')
    assert said(Made(), 1, **read_wording(str(path)))[3] == "you owe too much"
    assert read_wording(None) == {}
    for text in ("a,b\n1,2\n", ""):
        path.write_text(text)
        with pytest.raises(FairAllError, match="columns feature and words"):
            read_wording(str(path))


def test_the_threshold_of_the_group_is_said_where_it_decided() -> None:
    policy, s = Made(stricter=0.3), torch.tensor([1.0, 1.0, 1.0, -1.0, 1.0])
    x = X.clone()
    x[3] = torch.tensor([0.5, 0.0, 0.0])  # accepted with S = +1
    found = reasons(policy, x, s, ACCEPTED, 2, {}, "mean").tolist()  # type: ignore[arg-type]
    assert found[3] == THRESHOLD
    assert found[2] == "income; debt"


def test_nobody_to_compare_with() -> None:
    nobody = np.zeros(5, dtype=bool)
    assert set(reasons(Made(), X, S, nobody, 2, {}, "mean")) == {""}  # type: ignore[arg-type]
