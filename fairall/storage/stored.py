"""Files of runs, JSON and the YAML of configurations, read as what may be damaged or a stranger's."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields
from io import BufferedReader
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from fairall.errors import FairAllError

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
# What a path can be instead of a file; reading most of these blocks or never ends.
NO_FILES = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a pipe, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
}

# Most bytes of a file that runs write, by its suffix, and of any other. A larger one is damage.
MOST_BYTES = {
    ".yaml": 2**18,  # a configuration has 4 KiB, and names of columns in addition
    ".csv": 2**34,
    ".safetensors": 2**32,
    ".pt": 2**34,
}
MOST_BYTES_OF_OTHERS = 2**26
# Whether there is a folder at a path; False too where its name is too long, or it may not be seen.
is_folder = os.path.isdir


class DamagedFileError(FairAllError):
    """The content of a file differs from what was written to it, or it is no file."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason})")
        self.path = path
        self.reason = reason


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A file that a run has written, to read it: a regular one, or a link to one, within `MOST_BYTES`.

    Raises:
        OSError: with the path, where the system does not give it; FileNotFoundError where there is none.
        DamagedFileError: where it is no such file.
    """
    try:
        status = path.stat()
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise DamagedFileError(path, str(error.strerror)) from error
    most = MOST_BYTES.get(path.suffix, MOST_BYTES_OF_OTHERS)
    if wrong := NO_FILES.get(stat.S_IFMT(status.st_mode)):
        raise DamagedFileError(path, wrong)
    if status.st_size > most:
        raise DamagedFileError(path, f"{status.st_size} bytes, of at most {most}")
    with path.open("rb") as file:
        yield file


def read_bytes(path: Path) -> bytes:
    """The content of a file that a run has written, of the size that it has now; raises as `opened`."""
    with opened(path) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_text(path: Path) -> str:
    """The content of a text file that a run has written, UTF-8; raises as `opened`."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise DamagedFileError(path, "no UTF-8") from error


def why_no_file(path: Path) -> str | None:
    """Why `path` cannot be read as a file; None if it is one."""
    try:
        return NO_FILES.get(stat.S_IFMT(path.stat().st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file"
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"


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
