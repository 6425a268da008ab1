"""Ranges that fields declare: what is refused, by which key, and that a missing value is still missing."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from omegaconf import OmegaConf
from omegaconf.errors import MissingMandatoryValue

from fairall.config import checks
from fairall.config.checks import check_values
from fairall.config.schema import NodeConfig
from fairall.errors import FairAllError


@dataclass
class Part:
    size: int = checks.at_least(1)


@dataclass
class Own(NodeConfig):
    rate: float | None = checks.positive()
    kinds: dict[str, str] = checks.one_of(["real", "count"])
    parts: dict[str, Part] = field(default_factory=dict)
    part: Part | None = field(default_factory=Part)
    share: float = checks.limited("at most 1", lambda share: share <= 1, default=0.5)


@dataclass
class Narrower(Own):
    rate: float | None = checks.between(1, 2)


USUAL = {"rate": 3.0, "kinds": {"age": "real"}, "part": {"size": 2}}


def made(of: type = Own, **values: Any) -> Any:
    return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(of), {"_target_": "x.Y"}, USUAL, values))


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({"rate": 0.0}, "node.rate=0.0 is not possible: it must be positive"),
        ({"rate": float("inf")}, "node.rate=inf is not possible: it must be a finite number"),
        ({"share": 2.0}, "node.share=2.0 is not possible: it must be at most 1"),
        ({"kinds": {"sex": "word"}}, "node.kinds.sex=word is not possible: it must be real or count"),
        ({"part": {"size": 0}}, "node.part.size=0 is not possible: it must be at least 1"),
        ({"parts": {"a": {"size": -1}}}, "node.parts.a.size=-1 is not possible: it must be at least 1"),
    ],
)
def test_a_value_out_of_its_range_is_refused_by_its_key(values: dict[str, Any], refused: str) -> None:
    with pytest.raises(FairAllError) as raised:
        check_values(made(**values), "node")
    assert str(raised.value) == refused


def test_values_in_their_ranges_and_none_are_possible() -> None:
    for config in (made(), made(rate=None, part=None, kinds={}, parts={"a": {"size": 1}})):
        check_values(config, "node")
        assert config.share == 0.5


def test_a_derived_class_can_declare_another_range() -> None:
    assert [*vars(made(Narrower))][:3] == ["_target_", "rate", "kinds"]
    with pytest.raises(FairAllError, match=r"^rate=3\.0 is not possible: it must be from 1 to 2$"):
        check_values(made(Narrower))


def test_a_missing_value_is_missing() -> None:
    with pytest.raises(MissingMandatoryValue, match="rate"):
        OmegaConf.to_object(OmegaConf.structured(Own(_target_="x.Y", kinds={}, part=Part(1))))


@pytest.mark.parametrize(
    ("declared", "possible", "impossible"),
    [
        (checks.not_negative(), [0, 1e9], [-1e-9]),
        (checks.at_least(2), [2], [1]),
        (checks.between(0, 1), [0, 1], [-0.1, 1.1]),
        (checks.copies(2), [2, 1000], [1, 1001]),
        (checks.positive_share(), [1e-9, 1], [0, 1.1]),
        (checks.open_unit(), [0.5], [0, 1]),
        (checks.below_one(), [0, 0.9], [-0.1, 1]),
        (checks.even(), [2, 64], [0, 7, -2]),
        (checks.hidden_sizes(), [[64], [1, 1]], [[], [0], [[1]]]),
        (checks.hidden_sizes(least=0), [[], [64]], [[64, 0]]),
        (checks.numpy_seed(), [0, 2**32 - 1], [-1, 2**32]),
        (checks.plain_name(), ["a b", "run-1.2"], ["", "../a", ".a", "a/b"]),
    ],
)
def test_ends_of_ranges(declared: Any, possible: list[Any], impossible: list[Any]) -> None:
    for value in possible:
        checks.check("key", value, declared)
    for value in impossible:
        with pytest.raises(FairAllError, match=r"^key=.* is not possible: it must be [^\n]+$"):
            checks.check("key", value, declared)
