"""Words of the command line: quoted for Hydra and for a shell, and corrected where they cannot be read."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException

from fairall.config.completion import COMMANDS, FLAGS, WITH_CHOICE, WITH_VALUE

SHORTEST = 3  # letters of an abbreviation
PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_][a-z0-9_]*", re.IGNORECASE | re.ASCII)
# Commands of their own: python -m fairall.data.
MODULES = ("data", "decide", "evaluate", "report", "tracking", "tuning")
# Other names of what there is, by group.
ALIASES = {
    ("model", "fairall"): "fairall_I_II",
    ("model", "fairlab"): "fairlab_I_II",
    ("dataset", "german"): "credit",
    ("dataset", "german_credit"): "credit",
    ("dataset", "propublica"): "compas",
}
# What Hydra takes for a word's value without quotation marks, and its marks of lists and mappings.
READABLE = re.compile(r"[\w\s.+/\\$%*@?|-]*", re.ASCII)
PART = re.compile(r"[^\[\]{}:,\s](?:[^\[\]{}:,]*[^\[\]{}:,\s])?")

FORMER = {"dataset.encoding": "protocol.inputs"}  # keys of earlier versions, and what they have become


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
    try:
        if OverridesParser.create().parse_override(word).value() == {name: value}:
            return shlex.quote(word)
    except HydraException:
        pass
    in_yaml = name.replace("'", "''")
    *_, node = key.rpartition(".")
    return f"in the YAML file of the data set {node}: {{'{in_yaml}': {value}}}"


def literal(text: str) -> str:
    """The same text as the value of a configuration, where `${` would begin a reference."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", text)


def quoted(text: str) -> str:
    """A text as Hydra reads it on a command line: in quotation marks where it needs them."""
    if PLAIN.fullmatch(text):
        return text
    return QuotedString(literal(text), Quote.double).with_quotes()


def nearest(name: str, names: Sequence[str], group: str = "") -> str:
    """`, did you mean ...?` with the nearest of some names, several if equally near; nothing if none is.

    Args:
        name: as given.
        names: as there are.
        group: whose choices they are.
    """
    alias = ALIASES.get((group, name.lower()))
    found = [alias] if alias is not None and alias in names else _closest(name, names, cutoff=0.6)
    return f", did you mean {' or '.join(found)}?" if found else ""


def _closest(word: str, names: Iterable[str], cutoff: float) -> list[str]:
    """The names that begin with a word, else the one most similar to it, as a whole or at its beginning.

    Args:
        word: as given.
        names: as there are.
        cutoff: least ratio of `difflib.SequenceMatcher`.
    """
    word, names = word.lower(), list(names)
    abbreviation = len(word) >= SHORTEST
    longer = [name for name in names if abbreviation and name.lower().startswith(word)]
    if longer:
        return longer
    matcher = difflib.SequenceMatcher(b=word)

    def ratio(text: str) -> float:
        matcher.set_seq1(text)
        return matcher.ratio()

    ends = len(word) if abbreviation else None
    ratios = {name: (ratio(name.lower()[:ends]), ratio(name.lower())) for name in names}
    best = max(names, key=lambda name: (max(ratios[name]), ratios[name]), default="")
    return [best] if best and max(ratios[best]) >= cutoff else []


def nearest_key(key: str, known: Iterable[str]) -> str:
    """As `nearest` for a dotted key, compared by its last part; keys of the same node come first."""
    if key in FORMER:
        return f", it is {FORMER[key]} now"
    parent, _, name = key.rpartition(".")
    by_name: dict[str, str] = {}
    for other in sorted(known, key=lambda other: other.rpartition(".")[0] != parent):
        by_name.setdefault(other.rpartition(".")[2].lower(), other)
    siblings = [name for name, other in by_name.items() if other.rpartition(".")[0] == parent]
    for names in (siblings, list(by_name)):
        if close := difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6):
            return f", did you mean {by_name[close[0]]}?"
    return ""


def not_an_override(word: str, words: Sequence[str], groups: Mapping[str, Sequence[str]]) -> str:
    """One line on a word without `=`.

    Args:
        word: as given.
        words: all of the command line.
        groups: the choices of every group.
    """
    joined = _with_neighbours(word, list(words))
    if joined:
        return f"cannot read {word!r}: write {joined}, without spaces around ="
    if word in groups:
        return f"cannot read {word!r}: give it a choice, {word}=CHOICE; there are {', '.join(groups[word])}"
    if word in MODULES:
        return f"cannot read {word!r}: that is a command of its own, python -m fairall.{word}"
    if word in COMMANDS:
        return f"cannot read {word!r}: that is a command, and comes first: python -m fairall {word}"
    meant = [f"{group}={word}" for group, choices in groups.items() if word in choices]
    if not meant:
        options = (name for option in (*FLAGS, *WITH_VALUE, *WITH_CHOICE) for name in option.split())
        known = {choice: f"{group}={choice}" for group in reversed([*groups]) for choice in groups[group]}
        known |= {module: f"python -m fairall.{module}" for module in MODULES}
        known |= {command: f"python -m fairall {command}" for command in COMMANDS}
        known |= {option.lstrip("-"): option for option in options}
        meant = [known[name] for name in _closest(word, known, cutoff=0.7)]
    multirun = "--multirun " if meant and meant[0].startswith("sweeps=") else ""
    hint = f"did you mean {multirun}{' or '.join(meant)}?" if meant else "it is not KEY=VALUE"
    return f"cannot read {word!r}: {hint}; `python -m fairall list` shows what there is"


def _with_neighbours(word: str, words: list[str]) -> str | None:
    """`KEY=VALUE` out of `KEY = VALUE`, `KEY =VALUE` or `KEY= VALUE`, where `word` is a part of one."""
    if word not in words:
        return None
    at = words.index(word)
    before, after = words[at - 1] if at else "", [*words[at + 1 :], ""]
    if after[0].startswith("="):
        value = after[0][1:] or after[1] or "VALUE"
        return shlex.quote(f"{word}={value}")
    if before.endswith("=") and before != "=":
        return shlex.quote(f"{before}{word}")
    return None


def unreadable(word: str) -> str | None:
    """One line on a word `KEY=VALUE` that Hydra cannot read for its characters; None for other faults."""
    key, _, value = (part.strip() for part in word.partition("="))
    if not (READABLE.fullmatch(key) and _reads(f"{key}=1")):
        hint = "a key on the command line has letters a to z, digits, _ and ."
        return f"cannot read {word!r}: {hint}; others can be given in a file, as preset=NAME with -cd FOLDER"
    if value.startswith("~"):
        value = str(Path(value).expanduser())
    is_text = value[:1] not in ("[", "{")
    read = _as_text(value) if is_text else PART.sub(lambda part: _as_text(part[0]), value)
    if not _reads(f"{key}={read}"):
        return None
    typed = shlex.quote(f"{key}={read}")
    return f"cannot read {word!r}: write {typed}"


def _as_text(value: str) -> str:
    """A value in quotation marks where it needs them."""
    if READABLE.fullmatch(value) or re.fullmatch(r"'.*'|\".*\"", value):
        return value
    return quoted(value)


def _reads(word: str) -> bool:
    try:
        OverridesParser.create().parse_override(word)
    except HydraException:
        return False
    return True
