"""Words of the command line: quoted for Hydra and for a shell, and compared with known names.

Hydra is imported where it has to read a word: completion and `list` need the rest of this module.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

SHORTEST = 3  # letters of an abbreviation
UNREADABLE = object()
PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_][a-z0-9_]*", re.IGNORECASE | re.ASCII)
# A path that needs no quotation marks.
PATH = re.compile(r"(?!(?:null|true|false|nan|inf)$)[./]*[a-z_][\w./-]*", re.IGNORECASE | re.ASCII)
# What Hydra takes for a word's value without quotation marks, and the parts of its lists and mappings.
READABLE = re.compile(r"[\w\s.+/\\$%*@?|-]*|'.*'|\".*\"", re.ASCII)
PART = re.compile(r"[^\[\]{}:,\s](?:[^\[\]{}:,]*[^\[\]{}:,\s])?")


def override(key: str, value: str | Sequence[str]) -> str:
    """The word `key=value` by which Hydra gives a key this text, or this list of texts."""
    read = quoted(value) if isinstance(value, str) else f"[{','.join(map(quoted, value))}]"
    return f"{key}={read}"


def typed(key: str, value: str | Sequence[str]) -> str:
    """The same as it is typed in a shell."""
    return shlex.quote(override(key, value))


def typed_entry(key: str, name: str, value: str) -> str:
    """The word that adds an entry to a mapping, as it is typed in a shell.

    Names that Hydra cannot read on a command line, which has no quotes for them, are shown as in a YAML file.
    """
    escaped = re.sub(r"([\\()\[\]{}:=,])", r"\\\1", name)
    word = f"{key}={{{escaped}: {value}}}"
    if _read(word) == {name: value}:
        return shlex.quote(word)
    in_yaml = name.replace("'", "''")
    *_, node = key.rpartition(".")
    return f"in the YAML file of the data set {node}: {{'{in_yaml}': {value}}}"


def literal(text: str) -> str:
    """The same text as the value of a configuration, where `${` would begin a reference."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", text)


def quoted(text: str) -> str:
    """A text as Hydra reads it on a command line, in quotation marks if needed."""
    if PLAIN.fullmatch(text):
        return text
    from hydra.core.override_parser.types import Quote, QuotedString

    return QuotedString(literal(text), Quote.double).with_quotes()


def respelt(word: str) -> str | None:
    """`KEY=VALUE` in quotation marks, as it is typed in a shell; None where Hydra cannot read that either."""
    key, _, value = (part.strip() for part in word.partition("="))
    value = str(Path(value).expanduser()) if value.startswith("~") else value
    parts = PART if value[:1] in ("[", "{") else re.compile(".+")
    meant = parts.sub(lambda part: part[0] if READABLE.fullmatch(part[0]) else quoted(part[0]), value)
    return None if _read(f"{key}={meant}") is UNREADABLE else shlex.quote(f"{key}={meant}")


def _read(word: str) -> object:
    """The value of `KEY=VALUE` as Hydra reads it, or `UNREADABLE`."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(word).value()
    except HydraException:
        return UNREADABLE


def closest(name: str, names: Iterable[str]) -> list[str]:
    """The name itself, else the names that begin so, else the most similar one; upper case is ignored."""
    by_name = {other.lower(): other for other in names}
    name = name.lower()
    if name in by_name:
        return [by_name[name]]
    longer = [other for other in by_name if len(name) >= SHORTEST and other.startswith(name)]
    return [by_name[other] for other in longer or difflib.get_close_matches(name, by_name, n=1)]


def nearest(name: str, names: Iterable[str]) -> str:
    """`, did you mean ...?` with the `closest` names; nothing if there are none."""
    found = closest(name, names)
    return f", did you mean {' or '.join(found)}?" if found else ""


def nearest_key(key: str, known: Iterable[str]) -> str:
    """As `nearest` for a dotted key, compared by its last part; keys of the same node come first."""
    parent, _, name = key.rpartition(".")
    by_name: dict[str, str] = {}
    for other in sorted(known, key=lambda other: other.rpartition(".")[0] != parent):
        by_name.setdefault(other.rpartition(".")[2].lower(), other)
    close = difflib.get_close_matches(name.lower(), by_name, n=1)
    return f", did you mean {by_name[close[0]]}?" if close else ""
