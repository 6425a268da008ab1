"""JSON files that may be damaged."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from fairall.runtime.reading import DamagedFileError
from fairall.storage.stored import of_plain, read_json, strict


@dataclass
class Inner:
    share: float
    name: str | None = None


@dataclass
class Outer:
    count: int
    side: Literal["left", "right"]
    inner: Mapping[str, Inner | None]
    pairs: Sequence[tuple[float, bool]]


WHOLE = {
    "count": 3,
    "side": "left",
    "inner": {"a": {"share": 1, "name": "é"}, "b": None},
    "pairs": [[0.5, True], [2, False]],
    "more": "is left out",
}


def test_a_file_becomes_an_object_of_its_type(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(WHOLE))
    made = read_json(path, Outer)
    assert made == Outer(3, "left", {"a": Inner(1.0, "é"), "b": None}, [(0.5, True), (2.0, False)])


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("count", 3.0, "count cannot be 3.0"),
        ("count", True, "count cannot be true"),
        ("count", None, "count cannot be null"),
        ("side", "up", 'side cannot be "up"'),
        ("side", ["left"], "side cannot be"),
        ("inner", [], r"inner cannot be \[\]"),
        ("inner", {"a": {}}, "inner.a"),
        ("inner", {"a": {"share": "1"}}, "inner.a"),
        ("pairs", [[1.0]], "pairs.0"),
        ("pairs", [[1.0, 1]], "pairs.0.1 cannot be 1"),
        ("pairs", {}, "pairs cannot be"),
    ],
)
def test_a_value_of_another_type_is_named(key: str, value: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        of_plain(Outer, WHOLE | {key: value})
    with pytest.raises(ValueError, match=f"lacks {key}"):
        of_plain(Outer, {name: of for name, of in WHOLE.items() if name != key})


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b"[]", b"1", b"\xff", b"[" * 100_000, b'{"a": NaN}', b'{"a": Infinity}',
        b'{"a": 1e999}', b'{"a": -1e999}', b'{"a": ' + b"9" * 400 + b"}", b'{"a": ' + b"9" * 9000 + b"}",
        rb'{"a": "\ud800"}', b'{"a": 1} x', b'{"a": "\x00"}',
    ],
)  # fmt: skip
def test_what_is_no_strict_json_is_damage(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"file\.json is damaged") as told:
        read_json(path, dict[str, Any])
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 500 + len(str(path))


def test_numbers_that_json_has_not_are_null() -> None:
    plain = {"a": [math.inf, -math.inf, math.nan, 1.5, 2, None, "NaN"], "b": ({"c": math.nan},)}
    text = json.dumps(strict(plain), allow_nan=False)
    assert json.loads(text) == {"a": [None, None, None, 1.5, 2, None, "NaN"], "b": [{"c": None}]}
