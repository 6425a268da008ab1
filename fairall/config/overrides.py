"""Words of the command line, quoted as Hydra reads them and, for messages, as a shell does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException

PLAIN = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_][a-z0-9_]*", re.IGNORECASE | re.ASCII)


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
