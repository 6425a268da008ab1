"""What a user says about the columns of a table, and how messages spell that."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from fairall.config.checks import whole_number
from fairall.config.choices import configuration_root, load_yaml
from fairall.config.words import nearest, override
from fairall.errors import FairAllError
from fairall.tables.features import Kind

# Keys whose defaults are in conf/dataset/csv.yaml.
DEFAULTS = ("accepted", "missing_by_default", "max_categories", "max_count", "separator", "text_encoding")
# Keys that are options of `fairall evaluate`.
OPTIONS = {"intersections": "--groups ", "decision_maker": "--decision-maker ", "time": "--monitor time="}
PREFIX = "dataset."
# Keys with several texts.
LISTS = ("groups", "intersections", "drop", "not_features", "missing", "missing_by_default")

# Quoted twice: for the shell and for Hydra.
ONE_CHARACTER = """one character, quoted as in 'dataset.separator=";"'"""


ColumnName = str | None  # None where a table has no such column


@dataclass(frozen=True)
class Spelling:
    """How the caller writes keys.

    Attributes:
        python: as keywords of a function; else as words of a command line.
        bare: `label=` of a log; else `dataset.label=` of a run.
    """

    python: bool = False
    bare: bool = False

    def key(self, name: str) -> str:
        """The key, as `dataset.label` or `label`."""
        if self.python or self.bare:
            return "groups" if name == "intersections" else name
        return f"{PREFIX}{name}"

    def given(self, name: str, value: object) -> str:
        """`KEY=VALUE` with the value as it is."""
        option = OPTIONS.get(name) if self.bare else None
        return f"{option or f'{self.key(name)}='}{value}"

    def word(self, name: str, value: str | Sequence[str]) -> str:
        """`KEY=VALUE` to be typed or pasted."""
        if self.python:
            return f"{self.key(name)}={value if isinstance(value, str) else list(value)!r}"
        return shlex.quote(override(self.key(name), value))

    def kind(self, column: str, kind: str) -> str:
        """The word that declares the kind of a column, to be typed or pasted."""
        if self.python:
            return f"kinds={ {column: str(kind)} }"
        escaped = re.sub(r"([\\()\[\]{}:=,])", r"\\\1", column)
        return shlex.quote(f"{self.key('kinds')}={{{escaped}: {kind}}}")


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
        person, time, policy_version, decision_maker: columns of who was decided on, when, by which policy,
            and by whom.
        gain, loss: columns of what a positive label brings, and of what a negative one costs.
        drop, not_features: columns that are no features; the second are, if there are such columns.
        kinds: kind by name of a feature.
        missing, missing_by_default: words that mean no value.
        max_categories: most levels of a categorical feature.
        max_count: largest whole number of a count.
        separator, text_encoding: of a CSV file.
        spelling: of keys in messages.
    """

    path: str = "the table"
    label: ColumnName = None
    positive: str | None = None
    sensitive: str | tuple[str, ...] | None = None
    advantaged: str | None = None
    groups: Sequence[str] | None = None
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
    kinds: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    missing_by_default: Sequence[str]
    max_categories: int
    max_count: int
    separator: str
    text_encoding: str
    spelling: Spelling = field(default_factory=Spelling)

    @classmethod
    def of(cls, **keys: Any) -> Declared:
        """Meanings with the defaults of conf/dataset/csv.yaml; a key that is None counts as not given.

        Raises:
            FairAllError: if a key is unknown, or a limit is no whole number.
        """
        known = [one.name for one in fields(cls)]
        for key in keys:
            if key not in known:
                hint = nearest(key, known) or f"; there are {', '.join(known)}"
                raise FairAllError(f"{key}=...: no such keyword{hint}")
        given = {name: _as_texts(name, value) for name, value in keys.items() if value is not None}
        return cls(**({name: csv_defaults()[name] for name in DEFAULTS} | given))

    def checked(self) -> Declared:
        """The same; raises FairAllError for a value that is not possible."""
        kinds = list(Kind)
        if not isinstance(self.kinds, Mapping):
            told = self.spelling.given("kinds", repr(self.kinds))
            raise FairAllError(f"{told} is not possible: it must be a kind by column, {{COLUMN: KIND}}")
        limits = [
            *(
                (f"kinds.{name}", kind, kind in kinds, " or ".join(kinds))
                for name, kind in self.kinds.items()
            ),
            ("separator", self.separator, len(self.separator) == 1, ONE_CHARACTER),
            ("max_categories", self.max_categories, self.max_categories >= 2, "at least 2"),
        ]
        for key, value, possible, allowed in limits:
            if not possible:
                raise FairAllError(f"{self.spelling.given(key, value)} is not possible: it must be {allowed}")
        return self

    @property
    def no_value(self) -> tuple[str, ...]:
        """Texts of cells, without surrounding blanks, that mean a missing value."""
        return tuple(
            dict.fromkeys(["", *(word.strip() for word in (*self.missing_by_default, *self.missing))])
        )

    @property
    def grouping(self) -> list[str]:
        """Columns whose values are the groups."""
        own = (self.sensitive,) if isinstance(self.sensitive, str) else self.sensitive or ()
        return list(dict.fromkeys(self.intersections or filter(None, own)))

    @property
    def named(self) -> list[tuple[str, str]]:
        """Keys and names of the columns that are no features, and of those with a declared kind."""
        keys = ("decision", "propensity", "decision_maker", "time", "policy_version", "person")
        of_groups = "intersections" if self.intersections else "sensitive"
        pairs = [
            ("label", self.label),
            *((of_groups, name) for name in self.grouping),
            *((key, getattr(self, key)) for key in keys),
            ("split.column", self.part),
            *(("drop", name) for name in self.drop),
            *(("kinds", name) for name in self.kinds),
        ]
        return [(key, name) for key, name in pairs if name]

    @property
    def as_text(self) -> set[str]:
        """Names of the columns whose numbers are read as they are written."""
        return {name for _, name in self.named} | {*self.not_features, self.gain or "", self.loss or ""}

    def dropped(self, name: str) -> str:
        """The word that leaves out a further column."""
        return self.spelling.word("drop", [*self.drop, name])

    def kept(self, *words: str) -> str:
        """The word of the command line by which texts that mean no value become values."""
        key = "missing_by_default" if words[0] in self.missing_by_default else "missing"
        return self.spelling.word(key, [other for other in getattr(self, key) if other.strip() not in words])


def _as_texts(key: str, value: Any) -> Any:
    """The value of a key, where names and words are texts, and one of several may stand alone."""
    if key == "sensitive" and isinstance(value, list | tuple):
        return tuple(map(str, value))
    if key in LISTS:
        alone = isinstance(value, str) or not isinstance(value, Iterable)
        return (str(value),) if alone else tuple(map(str, value))
    if key in ("max_categories", "max_count"):
        return whole_number(key, value)
    return value if key in ("accepts_all", "kinds", "spelling") else str(value)


@functools.cache
def csv_defaults() -> dict[str, Any]:
    """Content of conf/dataset/csv.yaml."""
    return dict(load_yaml(configuration_root() / "conf" / "dataset" / "csv.yaml"))
