"""Words of the command line: quoted for Hydra, and compared with known names. Hydra is not imported."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairall.errors import FairAllError

PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_]\w*", re.IGNORECASE | re.ASCII)
Words = Sequence[str]
"""KEY=VALUE of a command line, one by one."""

# What a file of somebody else's must not say: where something is written or sent, which code is imported, and
# what is read from the environment.
NOT_FROM_FILES = re.compile(
    r"[+~]*(?:outputs_dir|tracking|hydra|evaluation\.measures)\b|.*(?:_target_|\$\{)", re.DOTALL
)


def refuse_places(words: Iterable[str], place: str) -> None:
    """Raise FairAllError where a word that a file at `place` holds is one of `NOT_FROM_FILES`."""
    for word in filter(NOT_FROM_FILES.match, words):
        raise FairAllError(
            f"{place}: {word:.60}: says where something is written or which code is run, and no file may: "
            "give it as your own word"
        )


def override(key: str, value: Any) -> str:
    """The word `key=value` by which Hydra gives a key a value of Python.

    Args:
        key: dotted.
        value: a text, path, number, truth value, None, or a sequence of them.

    Raises:
        FairAllError: where a value is none of these.
    """
    return f"{key}={_literal_of(value, key)}"


def words_of(values: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """The words `key=value` of Python values by key; a mapping has the keys below its own.

    Args:
        values: values as of `override`, or mappings.
        within: begins every key, with a dot at its end.

    Raises:
        FairAllError: where a value is none of these.

    Examples:
        >>> [*words_of({"model": "greedy", "seeds": 3, "schedule": {"time_steps": 8}})]
        ['model=greedy', 'seeds=3', 'schedule.time_steps=8']
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from words_of(value, f"{within}{key}.")
        else:
            yield override(within + key, value)


def _literal_of(value: Any, key: str) -> str:
    """A value of Python as Hydra reads it on a command line."""
    value = value.item() if getattr(value, "ndim", None) == 0 else value
    if isinstance(value, str | Path):
        return quoted(str(value))
    if isinstance(value, list | tuple | range):
        return f"[{','.join(_literal_of(item, key) for item in value)}]"
    if value is None or isinstance(value, int | float):
        return json.dumps(value).removesuffix(".0")  # keys of whole numbers refuse 3.0
    raise FairAllError(f"{key}: {type(value).__name__} is no text, number, truth value, None or sequence")


def literal(text: str) -> str:
    """The same text as the value of a configuration, where `${` would begin a reference."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", text)


def unescaped(text: Any) -> Any:
    """Inverse of `literal`; what is no text as it is."""
    if not isinstance(text, str):
        return text
    return re.sub(r"(\\*)\$\{", lambda found: found[1][: len(found[1]) // 2] + "${", text)


def quoted(text: str) -> str:
    """A text as Hydra reads it on a command line, in quotation marks if needed."""
    if PLAIN.fullmatch(text):
        return text
    # Backslashes count as escapes before quotation marks only.
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', literal(text))
    return '"' + re.sub(r"(\\+)$", r"\1\1", escaped) + '"'


def nearest(name: str, names: Iterable[str]) -> str:
    """`, did you mean ...?` with the most similar of dotted names and their nodes; empty without one."""
    nodes = [node for known in names for node in itertools.accumulate(known.split("."), "{}.{}".format)]
    close = difflib.get_close_matches(name, nodes, 1)
    return "".join(f", did you mean {node}?" for node in close if not name.startswith(f"{node}."))
