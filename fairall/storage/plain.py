"""JSON files of this package, and plain containers, read as data that may be damaged or a stranger's."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import EnumType
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fairall.runtime.reading import DamagedFileError, read_bytes

T = TypeVar("T")
Plain = dict[str, Any]
"""A JSON document, a configuration or a part of one, as plain containers."""
MOST_SHOWN = 60  # characters of a value in a message


def read_json(path: Path, kind: type[T]) -> T:
    """The content of a JSON file, of a type: a dataclass, or as in `of_plain`.

    Raises:
        OSError: where it cannot be read; FileNotFoundError where there is none.
        DamagedFileError: where it is no such file.
    """
    content = read_bytes(path)
    try:
        plain = json.loads(content, parse_constant=_number, parse_float=_number, parse_int=_whole)
        if b"\\u" in content:
            json.dumps(plain, ensure_ascii=False).encode()  # fails for half of a character
        return of_plain(kind, plain)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, str(error).split("\n")[0][:200]) from error


def strict(plain: Any) -> Any:
    """Plain containers for strict JSON: None for a number that JSON has not, infinite or NaN.

    Examples:
        >>> strict({"low": -math.inf, "values": (0.5, math.nan)})
        {'low': None, 'values': [0.5, None]}
    """
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else None
    if isinstance(plain, Mapping):
        return {key: strict(value) for key, value in plain.items()}
    return [strict(value) for value in plain] if isinstance(plain, list | tuple) else plain


def of_plain(kind: Any, plain: Any, place: str = "") -> Any:
    """A value out of JSON as one of a type.

    Args:
        kind: a dataclass, of which keys that it lacks are left out; str, bool, int, float (finite), None,
            Any; an enumeration, by the names of its members; unions, literals, sequences, tuples and
            mappings by names of these.
        plain: the value.
        place: where it stands, for messages.

    Raises:
        ValueError: naming the place, where it is of another type.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or (origin is Literal and plain in arguments and type(plain) is str):
        return plain
    if kind is float and type(plain) in (int, float) and math.isfinite(plain):
        return float(plain)
    if isinstance(kind, EnumType) and type(plain) is str and plain in kind.__members__:
        return kind[plain]
    if kind in (str, bool, int, NoneType) and type(plain) is kind:
        return plain
    if origin in (Union, UnionType):
        for one in arguments:
            with suppress(ValueError):
                return of_plain(one, plain, place)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(plain, dict):
        hints = get_type_hints(kind)
        for one in fields(kind):
            if one.name not in plain and one.default is one.default_factory is MISSING:
                raise ValueError(f"{place or 'it'} lacks {one.name}")
        known = [one.name for one in fields(kind) if one.name in plain]
        return kind(**{name: of_plain(hints[name], plain[name], _below(place, name)) for name in known})
    if isinstance(plain, list) and origin in (list, tuple, Sequence):
        kinds = arguments if origin is tuple else arguments * len(plain)
        if len(kinds) == len(plain):
            values = [
                of_plain(own, value, _below(place, i))
                for i, (own, value) in enumerate(zip(kinds, plain, strict=True))
            ]
            return tuple(values) if origin is tuple else values
    if isinstance(plain, dict) and origin in (dict, Mapping):
        return {name: of_plain(arguments[1], value, _below(place, name)) for name, value in plain.items()}
    shown = json.dumps(plain)
    shown = shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}..."
    raise ValueError(f"{place or 'it'} cannot be {shown}")


def _below(place: str, name: object) -> str:
    return f"{place}.{str(name)[:MOST_SHOWN]}".lstrip(".")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:MOST_SHOWN]} is no finite number")
    return value


def _whole(text: str) -> int:
    _number(text[:400])
    return int(text)
