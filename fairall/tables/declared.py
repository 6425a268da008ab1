"""What a user says about the columns of a table."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import yaml

from fairall.config.checks import at_least, check_values, limited, one_of, whole_number
from fairall.config.choices import configuration_root, load_yaml
from fairall.config.words import nearest, unescaped
from fairall.errors import FairAllError
from fairall.tables.features import Kind

# Keys whose defaults are in conf/dataset/csv.yaml.
DEFAULTS = ("accepted", "missing_by_default", "max_categories", "max_count", "separator", "text_encoding")
# Keys with several texts.
LISTS = ("sensitive", "groups", "intersections", "drop", "not_features", "missing", "missing_by_default")
# Keys of one column each.
COLUMNS = (
    *("label", "decision", "propensity", "decision_maker", "time", "policy_version", "person", "gain"),
    "loss",
)
NUMBERS = ("cost", "max_categories", "max_count")
PREFIX = "dataset."  # of the keys of a run

ColumnName = str | None  # None where a table has no such column


def separator_key() -> Any:
    """A field for the separator of a CSV file."""
    allowed = "one ASCII character, no quotation mark or line break"
    return limited(allowed, lambda text: len(text) == 1 and text.isascii() and text not in '"\r\n')


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Meanings of columns; None or empty where a table has no such column.

    Attributes:
        path: of the table, for messages.
        label, positive: column of the proxy label, and its good value.
        sensitive, advantaged, groups: column of the sensitive attribute, its word of the group S = +1, and
            its words that are the groups. Of several columns, the probabilities of the groups, or values
            whose combinations are the groups.
        intersections: columns whose combinations of values are the groups, instead of `sensitive`.
        decision, accepted, propensity: column of the past decisions, the value of an acceptance, and column
            of their probabilities of acceptance.
        accepts_all: whether everybody may have been accepted; else such a table is refused.
        part: column of the part of the split that each row is in.
        person: column of who was decided on; None where rows of one person are unknown, the empty text where
            there are none.
        time, policy_version, decision_maker: columns of when it was decided, by which policy, and by whom.
        gain, loss: columns of what a positive label brings, and of what a negative one costs.
        drop, not_features: columns that are no features; the second are, if there are such columns.
        kinds: kind by name of a feature.
        missing, missing_by_default: words that mean no value.
        max_categories: most levels of a categorical feature.
        max_count: largest whole number of a count.
        separator, text_encoding: of a CSV file.
    """

    path: str = "the table"
    label: ColumnName = None
    positive: str = ""
    sensitive: Sequence[str] = ()
    advantaged: str | None = None
    groups: Sequence[str] = ()
    intersections: Sequence[str] = ()
    decision: ColumnName = None
    accepted: str
    propensity: ColumnName = None
    accepts_all: bool = False
    part: ColumnName = None
    person: ColumnName = None
    time: ColumnName = None
    policy_version: ColumnName = None
    decision_maker: ColumnName = None
    gain: ColumnName = None
    loss: ColumnName = None
    drop: Sequence[str] = ()
    not_features: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict, metadata=one_of([*Kind]).metadata)
    missing: Sequence[str] = ()
    missing_by_default: Sequence[str]
    max_categories: int = at_least(2)
    max_count: int
    separator: str = separator_key()
    text_encoding: str

    @classmethod
    def of(cls, **keys: Any) -> Declared:
        """Meanings with the defaults of conf/dataset/csv.yaml; a key that is None counts as not given.

        Raises:
            FairAllError: if a key is unknown, or a value is not possible.
        """
        values = {key: csv_defaults()[key] for key in DEFAULTS}
        for key, value in keys.items():
            if key not in cls.__dataclass_fields__:
                raise FairAllError(f"{key}=...: no such keyword{nearest(key, cls.__dataclass_fields__)}")
            if value is not None:
                values[key] = _as_texts(key, value)
        return cls(**values)

    def __post_init__(self) -> None:
        """Raise FairAllError for a value that is not possible."""
        check_values(self)

    @property
    def no_value(self) -> tuple[str, ...]:
        """Texts of cells, without surrounding blanks, that mean a missing value."""
        return tuple(dict.fromkeys(map(str.strip, ["", *self.missing_by_default, *self.missing])))

    @property
    def grouping(self) -> list[str]:
        """Columns whose values are the groups."""
        return list(dict.fromkeys(filter(None, self.intersections or self.sensitive)))

    @property
    def named(self) -> list[tuple[str, str]]:
        """Keys and names of the columns with a role, and of those with a declared kind."""
        names: dict[str, Iterable[str]] = {
            **{key: [getattr(self, key)] for key in COLUMNS},
            "groups" if self.intersections else "sensitive": self.grouping,
            "split.column": [self.part or ""],
            "drop": self.drop,
            "kinds": self.kinds,
        }
        return [(key, name) for key in names for name in names[key] if name]

    @property
    def as_text(self) -> set[str]:
        """Names of the columns whose numbers are read as they are written."""
        return {name for _, name in self.named} | {*self.not_features}


def _as_texts(key: str, value: Any) -> Any:
    """The value of a key, where names and words are texts, and one of several may stand alone."""
    if key in LISTS:
        return tuple(map(str, value if pd.api.types.is_list_like(value) else [value]))
    if key in ("accepts_all", "kinds"):
        return value
    return whole_number(key, value) if key in NUMBERS else str(value)


@functools.cache
def csv_defaults() -> dict[str, Any]:
    """Content of conf/dataset/csv.yaml."""
    return dict(load_yaml(configuration_root() / "conf" / "dataset" / "csv.yaml"))


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
    return [unescaped(text) for text in read] if isinstance(read, list) else unescaped(read)
