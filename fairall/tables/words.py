"""Words KEY=VALUE about the columns of a table, with values as Hydra writes them, read without Hydra."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fairall.config.words import nearest
from fairall.errors import FairAllError
from fairall.tables.declared import LISTS, PREFIX

QUOTED = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
TEXT = rf"{QUOTED}|(?:\\.|[^\\\[\]{{}},])+"
ITEM = re.compile(rf"\s*({TEXT})\s*(?:,|$)")
ENTRY = re.compile(rf"\s*({QUOTED}|(?:\\.|[^\\\[\]{{}},:])+)\s*:\s*({TEXT})\s*(?:,|$)")
NUMBERS = {"cost": float, "max_categories": int, "max_count": int}


def keywords(
    words: Sequence[str], known: Sequence[str], hints: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Values by key, None for `null`; texts, lists of texts, `kinds` as a dict, and `NUMBERS`.

    Args:
        words: KEY=VALUE or `dataset.`KEY=VALUE. A value is a text, [A,B] or {A: B}; quotation marks are
            needed around a part that has one of `,[]{}:` or blanks at its ends.
        known: keys that there are.
        hints: what to give instead of a key that there is not.

    Raises:
        FairAllError: where a key is unknown, or a value cannot be read or is of another type.
    """
    found: dict[str, Any] = {}
    for word in words:
        typed, equals, value = word.partition("=")
        key = typed.removeprefix(PREFIX)
        if not equals or key not in known:
            hint = nearest(key, known) or f"; there are {', '.join(known)}"
            hint = f": give {hints[key]} {value or 'COLUMN'}" if key in hints else hint
            raise FairAllError(f"{word}: no such key{hint}")
        try:
            found[key] = _value(key, value.strip())
        except ValueError as error:
            raise FairAllError(f"cannot read {word!r}: {typed} takes {error}") from error
    return found


def _value(key: str, value: str) -> Any:
    """A value of the type of its key; raises ValueError with the type in words."""
    if value == "null":
        return None
    if key == "kinds":
        entries = _parts(ENTRY, value, "{}", "{COLUMN: KIND, ...}")
        return {_text(name): _text(kind) for name, kind in entries}
    if key in (*LISTS, "sensitive") and value.startswith("["):
        return tuple(_text(item) for (item,) in _parts(ITEM, value, "[]", "[A,B,...]"))
    if value[:1] in ("'", '"') and not re.fullmatch(QUOTED, value):
        raise ValueError("a text in a pair of quotation marks")
    if value[:1] in ("[", "{"):
        raise ValueError("one text, in quotation marks if it begins with a bracket")
    text = _text(value)
    try:
        return NUMBERS.get(key, str)(text)
    except ValueError:
        raise ValueError("a whole number" if NUMBERS[key] is int else "a number") from None


def _parts(pattern: re.Pattern[str], value: str, brackets: str, form: str) -> Iterator[tuple[str, ...]]:
    """Texts of the parts between brackets."""
    inner, at = value[1:-1].strip(), 0
    if value[:1] + value[-1:] != brackets or len(value) < len(brackets):
        raise ValueError(form)
    while at < len(inner):
        part = pattern.match(inner, at)
        if part is None:
            raise ValueError(form)
        yield part.groups()
        at = part.end()


def _text(part: str) -> str:
    """A text without quotation marks and escapes; inverse of `config.words.quoted`."""
    part = part.strip()
    if part[:1] not in ("'", '"') or part[-1:] != part[:1]:
        return re.sub(r"\\([\\()\[\]{}:=, ])", r"\1", part)
    halved = re.sub(rf"(\\*)({part[0]}|$)", lambda found: "\\" * (len(found[1]) // 2) + found[2], part[1:-1])
    return re.sub(r"(\\+)\$\{", lambda found: "\\" * (len(found[1]) // 2) + "${", halved)
