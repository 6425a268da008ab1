"""Stored files, JSON and the YAML of configurations, read as data that may be damaged or a stranger's."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from fairall.errors import FairAllError
from fairall.runtime.reading import DamagedFileError, read_bytes, read_text

if TYPE_CHECKING:
    from fairall.config.schema import Config

T = TypeVar("T")
Plain = dict[str, Any]
"""A JSON document, a configuration or a part of one, as plain containers."""
MOST_SHOWN = 60  # characters of a value or a key in a message
MOST_REASON = 500  # characters of a message
DEEPEST = 20  # nested containers of a configuration
# Values of `model.phase1` that were no keys up to 0.3.0.
BEFORE_PHASE1 = {"share": 1.0, "annealed": False}


def read_json(path: Path, kind: type[T]) -> T:
    """The content of a JSON file, of a type: a dataclass, or as in `of_plain`.

    Raises:
        OSError: where it cannot be read; FileNotFoundError where there is none.
        DamagedFileError: where it is no such file, or has infinite numbers, NaN or half of a character.
    """
    content = read_bytes(path)
    try:
        plain = json.loads(content)
        json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()
        return of_plain(kind, plain)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, str(error).split("\n")[0][:MOST_REASON]) from error


def read_stored(path: Path) -> Config:
    """The stored configuration of a run or a policy, of the types of `Config.stored`.

    Runs store resolved values, so interpolations, anchors and tags are nothing that they wrote, and are
    refused: an interpolation could read the environment, and anchors can expand to any size. No code of the
    classes that it names is imported. Where an earlier version stored it, Phase I has the values that were no
    keys then.

    Raises:
        FairAllError: where it is not such a file, or has other keys or impossible values.
        OSError: where it cannot be read.
    """
    from fairall.config.checks import check_values
    from fairall.config.choices import LOADER, flattened
    from fairall.config.schema import Config

    text = read_text(path)
    try:
        _refuse_expansions(text, LOADER)
        plain = yaml.load(text, Loader=LOADER)
        json.dumps(plain)  # TypeError for dates, sets and bytes
        for group in ("model", "dataset", "initial_policy"):
            of_plain(_Node, of_plain(Plain, plain).get(group), group)
        if isinstance(phase1 := plain["model"].get("phase1"), dict):
            plain["model"]["phase1"] = BEFORE_PHASE1 | phase1
        config = of_plain(Config, plain)
        for key in sorted(flattened(plain).keys() ^ flattened(config.to_plain()).keys()):
            raise ValueError(f"it has or lacks {key[:MOST_SHOWN]}")
        check_values(config)
    except (yaml.YAMLError, ValueError, TypeError, FairAllError) as error:
        reason = str(getattr(error, "problem", None) or error).split("\n")[0][:MOST_REASON]
        raise FairAllError(f"{path}: {reason}; this version of fairall stores nothing like it") from error
    return config


@dataclass
class _Node:
    """Keys of every node of a class."""

    name: str
    _target_: str


def _refuse_expansions(text: str, loader: Any) -> None:
    """Raise ValueError for constructs of YAML that `read_stored` refuses before parsing the text."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        further = [getattr(event, name, None) for name in ("anchor", "tag")]  # aliases have an anchor too
        if depth > DEEPEST or any(further) or "${" in getattr(event, "value", ""):
            refused = f"an anchor, a tag, an interpolation, or more than {DEEPEST} nested containers"
            raise ValueError(f"line {event.start_mark.line + 1} has {refused}")


def strict(plain: Any) -> Any:
    """Plain containers as they are read from strict JSON: None for infinite numbers and NaN.

    Other objects, such as dataclasses, become mappings of their attributes.

    Examples:
        >>> strict({"low": -float("inf"), "values": (0.5, float("nan"))})
        {'low': None, 'values': [0.5, None]}
    """
    return json.loads(json.dumps(plain, default=vars), parse_constant=lambda _: None)


def of_plain(kind: Any, plain: Any, place: str = "") -> Any:
    """A value out of JSON as one of a type.

    Args:
        kind: a dataclass, of which keys that it lacks are left out; str, bool, int, float (finite), None,
            Any; an enumeration, by the names or the texts of its members; unions, literals, sequences, tuples
            and mappings by names of these.
        plain: the value.
        place: where it stands, for messages.

    Raises:
        ValueError: naming the place, where it is of another type.
    """
    origin, arguments = get_origin(kind), get_args(kind)

    def within(member: Any, name: Any) -> Any:
        return of_plain(member, plain[name], f"{place}.{str(name)[:MOST_SHOWN]}".lstrip("."))

    if kind is Any or (kind in (str, bool, NoneType) and type(plain) is kind):
        return plain
    if kind in (int, float) and type(plain) in (int, kind) and abs(plain) <= sys.float_info.max:
        return kind(plain)
    if origin is Literal and plain in arguments:
        return plain
    for member in getattr(kind, "__members__", {}).values() if type(plain) is str else ():
        if plain in (member.name, member.value):
            return member
    for member in arguments if origin in (Union, UnionType) else ():
        with suppress(ValueError):
            return of_plain(member, plain, place)
    if isinstance(plain, dict) and origin in (dict, Mapping):
        return {name: within(arguments[1], name) for name in plain}
    if isinstance(plain, dict) and hasattr(kind, "__dataclass_fields__"):
        for field in fields(kind):
            if field.name not in plain and field.default is field.default_factory is MISSING:
                raise ValueError(f"{place or 'it'} lacks {field.name}")
        hints = get_type_hints(kind)
        return kind(**{name: within(hints[name], name) for name in hints if name in plain})
    if isinstance(plain, list) and origin in (list, Sequence, tuple):
        members = arguments[:1] * len(plain) if arguments[1:] in ((), (...,)) else arguments
        if len(members) == len(plain):
            return (tuple if origin is tuple else list)(map(within, members, range(len(plain))))
    raise ValueError(f"{place or 'it'} cannot be {json.dumps(plain)[:MOST_SHOWN]}")
