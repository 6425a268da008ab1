"""Words of the command line: quoted for Hydra, and compared with known names. Hydra is not imported."""

from __future__ import annotations

import difflib
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from fairall.config.checks import plain_number
from fairall.errors import FairAllError
from fairall.runtime.reading import why_no_file

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
NO_WORD = "(?!(?:null|true|false|nan|inf)$)"
PLAIN = re.compile(rf"{NO_WORD}[a-z_]\w*", re.IGNORECASE | re.ASCII)
# A path that needs no quotation marks.
PATH = re.compile(rf"{NO_WORD}[./]*[a-z_][\w./-]*", re.IGNORECASE | re.ASCII)
# A name that can be a key of a mapping on the command line, where Hydra has no quotation marks for keys.
ENTRY = re.compile(rf"{NO_WORD}[a-z_][\w .\\()\[\]{{}}:=,%/-]*(?<! )", re.IGNORECASE | re.ASCII)

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
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if (number := plain_number(value)) is not None:
        return str(int(number) if number % 1 == 0 else number)  # 3 for 3.0
    kind = type(value).__name__
    raise FairAllError(
        f"{key}: a {kind} is no text, number, truth value, None, or sequence or mapping of them"
    )


def typed(key: str, value: str | Sequence[str]) -> str:
    """The word `key=value`, as it is typed in a shell."""
    return shlex.quote(override(key, value))


def typed_entry(key: str, name: str, value: str) -> str:
    """The word that adds an entry to a mapping, as it is typed in a shell.

    Names that Hydra cannot read on a command line are shown as in a YAML file.
    """
    if ENTRY.fullmatch(name):
        escaped = re.sub(r"([\\()\[\]{}:=,])", r"\\\1", name)
        return shlex.quote(f"{key}={{{escaped}: {value}}}")
    in_yaml = name.replace("'", "''")
    return f"in the YAML file of the data set {key.rpartition('.')[2]}: {{'{in_yaml}': {value}}}"


def literal(text: str) -> str:
    """The same text as the value of a configuration, where `${` would begin a reference."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", text)


def quoted(text: str) -> str:
    """A text as Hydra reads it on a command line, in quotation marks if needed."""
    if PLAIN.fullmatch(text):
        return text
    # Backslashes count as escapes before quotation marks only.
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', literal(text))
    return '"' + re.sub(r"(\\+)$", r"\1\1", escaped) + '"'


def nearest(name: str, names: Iterable[str], said: Mapping[str, str] | None = None) -> str:
    """`, did you mean ...?` with the most similar name, upper case ignored; nothing if none is similar.

    Args:
        name: that is not known.
        names: that are.
        said: what the message has in place of a name; None: the names.
    """
    by_name = {known.lower(): said[known] if said else known for known in names}
    return "".join(
        f", did you mean {by_name[n]}?" for n in difflib.get_close_matches(name.lower(), by_name, 1)
    )


def nearest_key(key: str, known: Iterable[str]) -> str:
    """As `nearest` for a dotted key, among known keys and their nodes; the key of `MEANT` goes first."""
    nodes = [node for leaf in known for node in itertools.accumulate(leaf.split("."), "{}.{}".format)]
    parent, dot, name = key.lower().rpartition(".")
    meant = MEANT.get(name, "")
    for other in (parent + dot + meant.rpartition(".")[2], meant):
        if other in nodes:
            key = other
    return nearest(key, nodes)


def table_file(name: str) -> bool:
    """Whether a name is that of a table of people: by its ending, or a file that is there but no YAML."""
    return name.lower().endswith(TABLE_ENDINGS) or (
        Path(name).suffix != ".yaml" and why_no_file(Path(name)) is None
    )
