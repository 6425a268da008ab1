"""Words KEY=VALUE about the columns of a table, read without Hydra."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from fairall.config.words import nearest
from fairall.errors import FairAllError
from fairall.tables.declared import LISTS

PREFIX = "dataset."  # of the keys of a run
NUMBERS = ("cost", "max_categories", "max_count")


def keywords(words: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Values by key, None for `null`; texts, lists of texts, `kinds` as a dict, and `NUMBERS`.

    Args:
        words: KEY=VALUE or `dataset.`KEY=VALUE. A value is a text, [A,B] or {A: B} of YAML; quotation marks
            are needed around a part that has one of `,[]{}:` or blanks at its ends.
        known: keys that there are.

    Raises:
        FairAllError: where a key is unknown, or a value cannot be read or is of another type.
    """
    values: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.removeprefix(PREFIX).partition("=")
        if not equals or key not in known:
            hint = nearest(key, known) or f"; there are {', '.join(known)}"
            raise FairAllError(f"{word}: no such key{hint}")
        try:
            values[key] = _value(key, value.strip())
        except (ValueError, yaml.YAMLError) as error:
            raise FairAllError(
                f"cannot read {word!r}: give a text, [A,B], {{COLUMN: KIND}} or a number, as the key needs, "
                "with quotation marks in pairs"
            ) from error
    return values


def _value(key: str, value: str) -> Any:
    """A value of the type of its key; raises ValueError or YAMLError where it has another one."""
    if value == "null":
        return None
    if key in NUMBERS:
        return float(value)
    if key != "kinds" and not value.startswith(("'", '"', "[", "{")):
        return value
    # Hydra has backslashes as escapes before quotation marks only.
    read = yaml.load(re.sub(r'(\\+)(?![\\"])', r"\1\1", value), Loader=yaml.BaseLoader)
    if isinstance(read, dict) != (key == "kinds") or (isinstance(read, list) and key not in LISTS):
        raise ValueError(value)
    return read
