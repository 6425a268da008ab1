"""Ranges that fields declare: what is refused, and by which key."""

import re
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
from omegaconf import OmegaConf

from fairall.config import checks
from fairall.errors import FairAllError


@dataclass
class Part:
    size: int = checks.at_least(1)


@dataclass
class Own:
    rate: float | None = checks.positive()
    kinds: dict[str, str] = checks.one_of(["real", "count"])
    parts: dict[str, Part] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({"rate": 0.0}, "node.rate=0.0 is not possible: it must be positive"),
        ({"rate": float("inf")}, "node.rate=inf is not possible: it must be a finite number"),
        ({"kinds": {"sex": "word"}}, "node.kinds.sex=word is not possible: it must be real or count"),
        ({"parts": {"a": {"size": -1}}}, "node.parts.a.size=-1 is not possible: it must be at least 1"),
        ({"rate": None, "kinds": {}, "parts": {"a": {"size": 1}}}, ""),
    ],
)
def test_a_value_out_of_its_range_is_refused_by_its_key(values: dict[str, Any], refused: str) -> None:
    usual = {"rate": 3.0, "kinds": {"age": "real"}}
    made = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Own), usual, values))
    with pytest.raises(FairAllError, match=f"^{re.escape(refused)}$") if refused else nullcontext():
        checks.check_values(made, "node")


@pytest.mark.parametrize(
    ("declared", "possible", "impossible"),
    [
        (checks.at_least(2), [2], [1]),
        (checks.between(0, 1), [0, 1], [-0.1, 1.1]),
        (checks.positive_share(), [1e-9, 1], [0, 1.1]),
        (checks.below_one(), [0, 0.9], [-0.1, 1]),
        (checks.even(), [2, 64], [0, 7, -2]),
        (checks.hidden_sizes(least=0), [[], [64]], [[64, 0]]),
        (checks.numpy_seed(), [0, 2**32 - 1], [-1, 2**32]),
        (checks.plain_name(), ["a b", "run-1.2"], ["", "../a", ".a", "a/b"]),
    ],
)
def test_ends_of_ranges(declared: Any, possible: list[Any], impossible: list[Any]) -> None:
    for value in possible:
        checks.check_values(value, "key", declared)
    for value in impossible:
        with pytest.raises(FairAllError, match=r"^key=.* is not possible: it must be [^\n]+$"):
            checks.check_values(value, "key", declared)
