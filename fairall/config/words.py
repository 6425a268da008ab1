"""Words of the command line: quoted for Hydra and for a shell, and compared with known names.

Hydra is imported where it has to read a word: completion and `list` need the rest of this module.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from fairall.config.checks import plain_number
from fairall.errors import FairAllError
from fairall.runtime.reading import why_no_file

SHORTEST = 3  # letters of an abbreviation
TABLE_ENDINGS = (".csv", ".parquet", ".pq")
# Names of keys in other packages, by the key here. Those of a data set are keys of dataset=csv.
ALSO_CALLED = {
    "dataset.sensitive": "sensitive_feature sensitive_features sensitive_attribute protected "
    "protected_attribute",
    "dataset.label": "target outcome y y_true",
    "dataset.positive": "favorable_label pos_label",
    "dataset.advantaged": "privileged privileged_group favored_group",
    "dataset.propensity": "weight ips pscore",
    "dataset.path": "sample file data",
    "dataset.drop": "exclude ignore",
    "dataset.missing": "na_values missing_values",
    "dataset.separator": "sep delimiter",
    "dataset.text_encoding": "encoding",
    "model.learning_rate": "lr",
    "seeds": "n_seeds replicates",
}
MEANT = {name: key for key, names in ALSO_CALLED.items() for name in (key.rpartition(".")[2], *names.split())}
UNREADABLE = object()
PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_][a-z0-9_]*", re.IGNORECASE | re.ASCII)
# A path that needs no quotation marks.
PATH = re.compile(r"(?!(?:null|true|false|nan|inf)$)[./]*[a-z_][\w./-]*", re.IGNORECASE | re.ASCII)
# What Hydra takes for a word's value without quotation marks, and the parts of its lists and mappings.
READABLE = re.compile(r"[\w\s.+/\\$%*@?|-]*|'.*'|\".*\"", re.ASCII)
PART = re.compile(r"[^\[\]{}:,\s](?:[^\[\]{}:,]*[^\[\]{}:,\s])?")

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


def override(key: str, value: str | Sequence[str]) -> str:
    """The word `key=value` by which Hydra gives a key this text, or this list of texts."""
    read = quoted(value) if isinstance(value, str) else f"[{','.join(map(quoted, value))}]"
    return f"{key}={read}"


def words_of(values: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """The words `key=value` of Python values by key; a mapping has the keys below its own.

    Args:
        values: texts, paths, numbers, truth values, None, sequences of them, or mappings.
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
            yield f"{within}{key}={_literal_of(value, within + key)}"


def _literal_of(value: Any, key: str) -> str:
    """A value of Python as Hydra reads it on a command line."""
    if isinstance(value, str | Path):
        return quoted(str(value))
    if isinstance(value, list | tuple | range):
        return f"[{','.join(_literal_of(one, key) for one in value)}]"
    if value is None:
        return "null"
    value = value.item() if getattr(value, "ndim", None) == 0 else value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bool):
        return str(value).lower()
    if (equal := plain_number(value)) is not None:
        return str(int(equal) if equal % 1 == 0 else equal)  # 3 for 3.0
    kind = type(value).__name__
    raise FairAllError(
        f"{key}: a {kind} is no text, number, truth value, None, or sequence or mapping of them"
    )


def typed(key: str, value: str | Sequence[str]) -> str:
    """The same as it is typed in a shell."""
    return shlex.quote(override(key, value))


def typed_entry(key: str, name: str, value: str) -> str:
    """The word that adds an entry to a mapping, as it is typed in a shell.

    Names that Hydra cannot read on a command line, which has no quotes for them, are shown as in a YAML file.
    """
    if PLAIN.fullmatch(name):
        return shlex.quote(f"{key}={{{name}: {value}}}")
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
    # Backslashes count as escapes before quotation marks only.
    escaped = re.sub(
        r'(\\*)("|$)', lambda found: 2 * found[1] + "\\" * len(found[2]) + found[2], literal(text)
    )
    return f'"{escaped}"'


def respelt(word: str) -> str | None:
    """`KEY=VALUE` in quotation marks, as it is typed in a shell; None where Hydra cannot read that either."""
    key, _, value = (part.strip() for part in word.partition("="))
    value = os.path.expanduser(value)  # noqa: PTH111  as it is where there is no such user
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
    """As `nearest` for a dotted key, by its last part: the key of `MEANT`, else the most similar one.

    Keys of the same node come first.
    """
    parent, _, name = key.rpartition(".")
    ordered = sorted(known, key=lambda other: other.rpartition(".")[0] != parent)
    by_name = {other.rpartition(".")[2].lower(): other for other in reversed(ordered)}
    similar = difflib.get_close_matches(name.lower(), by_name, n=1)
    found = [_meant(parent, name, ordered), *(by_name[close] for close in similar)]
    return next((f", did you mean {key}?" for key in found if key), "")


def _meant(parent: str, name: str, known: Sequence[str]) -> str:
    """The known key that a name of `MEANT` stands for, or the key of dataset=csv; empty if there is none."""
    meant = MEANT.get(name.lower(), "")
    last = meant.rpartition(".")[2]
    for key in [f"{parent}.{last}"] if parent else [meant, last]:
        if key in known:
            return key
    if not meant.startswith("dataset.") or parent not in ("", "dataset") or "dataset" not in known:
        return ""
    for key in known:
        node, _, own = key.rpartition(".")
        # raw_file of another data set for file, dataset for data
        if node == parent and (own.endswith(f"_{name}") or own.startswith(name)):
            return key
    return f"{meant} of dataset=csv"


def table_file(name: str) -> bool:
    """Whether a name is that of a table of people: by its ending, or a file that is there but no YAML."""
    return name.lower().endswith(TABLE_ENDINGS) or (
        Path(name).suffix != ".yaml" and why_no_file(Path(name)) is None
    )
