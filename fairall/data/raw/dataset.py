"""Base class of data sets built by a recipe from a raw file, and readers of such files."""

from __future__ import annotations

import warnings
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import pandas as pd
from omegaconf import MISSING

from fairall.config.checks import check_values, groups, limited, one_of, optional, require
from fairall.data.dataset import TableDataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.raw.files import RawTableConfig, find, raw_file
from fairall.data.table import Table
from fairall.errors import FairAllError, count
from fairall.tables.cells import refuse, shown
from fairall.tables.groups import CROSS, crossed, join, sides

SAS_TINY = 1e-78


RACE_AND_SEX = "race+sex"
BY_BOTH = limited(f"{RACE_AND_SEX} or null", lambda value: value in (RACE_AND_SEX, None))


@dataclass
class RaceConfig(RawTableConfig):
    """Keys of a data set of groups by race, or with `sensitive` RACE_AND_SEX by both."""

    sensitive: str | None = optional(BY_BOTH)


@dataclass
class GroupsConfig:
    """Raw values of a sensitive attribute that mean S = +1 and S = −1; people with others are left out."""

    advantaged: list[str] = limited("at least one value", len)
    disadvantaged: list[str] = limited("at least one value", len)


@dataclass
class GroupedTableConfig(RawTableConfig):
    """Keys of a data set with a choice of sensitive attribute.

    `groups`: words of it, a group each, or in place of the `two_groups` of some attributes others, by
    attribute. A `sensitive` of several attributes, a+b, has groups of words such as x+y; by default all
    combinations of the words of `two_groups`.
    """

    sensitive: str = MISSING
    groups: Any = optional()
    two_groups: dict[str, GroupsConfig] | None = optional()

    def __post_init__(self) -> None:
        """Complete `groups` by `two_groups`, unless it is a list of words."""
        if isinstance(self.groups, list):
            self.groups = [str(word) for word in self.groups]
            return
        pairs = {name: vars(own) for name, own in (self.two_groups or {}).items()}
        try:
            for name, own in (self.groups or {}).items():
                if not all(isinstance(values, list) for values in own.values()):
                    raise TypeError
                pairs[name] = pairs.get(name, {}) | {key: [*map(str, own[key])] for key in own}
            self.groups = {name: GroupsConfig(**own) for name, own in pairs.items()}
        except (AttributeError, TypeError) as error:
            allowed = "a list of words, as [A,B,C], or lists `advantaged` and `disadvantaged` by attribute"
            raise FairAllError(
                f"dataset.groups={self.groups} is not possible: it must be {allowed}"
            ) from error
        if CROSS in self.sensitive and {*self.sensitive.split(CROSS)} <= self.groups.keys():
            sides_of = [self.groups[name] for name in self.sensitive.split(CROSS)]
            words = product(*([*own.advantaged, *own.disadvantaged] for own in sides_of))
            self.groups = [CROSS.join(combination) for combination in words]
            return
        self.two_groups = None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.groups) if isinstance(self.groups, list) else 2

    def schema(self, features: Sequence[Feature]) -> Schema:
        """The features, beside the groups."""
        return Schema(features, n_groups=self.n_groups, crossed=crossed(self.sensitive, self.groups))

    def validate(self) -> None:
        """Check the sensitive attribute, and that its groups have no value in common."""
        super().validate()
        if isinstance(self.groups, list):
            check_values(self.groups, "dataset.groups", groups())
            names = self.sensitive.split(CROSS)
            for name in names:
                check_values(name, "dataset.sensitive", one_of(self.two_groups or {}))
            require(
                len({*names}) == len(names), "dataset.sensitive", self.sensitive, "of different attributes"
            )
            return
        check_values(self.sensitive, "dataset.sensitive", one_of(self.groups))
        for name, own in self.groups.items():
            both = sorted(set(own.advantaged) & set(own.disadvantaged))
            require(not both, f"dataset.groups.{name}.disadvantaged", both, "values that are not advantaged")


class RawTableDataset(TableDataset):
    """A data set built from columns of a raw file; the number of resulting rows is verified.

    Attributes:
        columns: names of the raw columns that `recipe` reads.
        words: the columns of text among them; the others must hold numbers.
    """

    config: RawTableConfig
    config_type = RawTableConfig
    columns: ClassVar[list[str]]
    words: ClassVar[list[str]] = []

    @abstractmethod
    def recipe(self, raw: pd.DataFrame) -> Table:
        """The table built from the raw rows; raises FairAllError for a value it cannot hold."""

    @classmethod
    def location(cls, config: Any) -> str:
        """Path of the raw file, or the command that fetches it."""
        if found := find(config):
            return str(found)
        if config.download.url is None:
            return "not here: dataset.raw_file=FILE"
        terms = " dataset.accept_terms=true" if config.download.terms else ""
        return f"not here: python -m fairall data fetch {config.name}{terms}"

    def read(self, path: Path) -> pd.DataFrame:
        """The raw rows of a file; raises as `read_columns`."""
        further = (getattr(self.config, "sensitive", None) or "").split(CROSS)
        return read_columns(path, [*self.columns, *({*further[1:]} - {*self.columns})])

    def fetch(self) -> Path:
        """The verified raw file, downloaded if not found; raises as `raw_file`."""
        return raw_file(self.config)

    def load(self) -> Table:
        """The result of `recipe`, whose number of rows is verified.

        Raises:
            FairAllError: where the file cannot be read, or the recipe leaves another number of rows than
                published.
        """
        path = self.fetch()
        raw = self.read(path)
        try:
            for name in self.columns:
                if name not in self.words:
                    column = raw[name]
                    raw[name] = pd.to_numeric(column, errors="coerce")
                    refuse(column, raw[name].isna() & column.notna(), "is no number")
            table = self.recipe(raw)
        except FairAllError as error:
            if str(error).startswith(("dataset.", "dataset=")):  # about the configuration
                raise
            raise FairAllError(f"{path}: {error}; was the file edited?") from error
        if self.config.rows is not None and len(table) != self.config.rows:
            raise FairAllError(
                f"{path}: its recipe leaves {len(table)} rows instead of {self.config.rows}: truncated or "
                "edited? Get the file again, or accept it with dataset.rows=null"
            )
        return table


def of_groups(raw: pd.DataFrame, config: GroupedTableConfig) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """The rows of the groups, S of each, shape (N,), and its raw column."""
    column = join(raw, config.sensitive)
    if isinstance(config.groups, list):
        kept, s = of_lists(column, [("dataset.groups", [word]) for word in config.groups])
    else:
        sides = vars(config.groups[config.sensitive])
        key = f"dataset.groups.{config.sensitive}"
        kept, s = of_lists(column, [(f"{key}.{side}", values) for side, values in sides.items()])
    return raw[kept], s, column[kept]


def of_lists(column: pd.Series, groups: Sequence[tuple[str, list[str]]]) -> tuple[np.ndarray, np.ndarray]:
    """Mask (N,) of the rows of some groups, and S of these rows.

    Args:
        column: of the sensitive attribute, N texts.
        groups: key and values of each group, in the order of `sides`.

    Raises:
        FairAllError: if no row has one of the values.
    """
    number = np.full(len(column), -1)
    for i, (key, values) in enumerate(groups):
        for value in values:
            rows = (column == value).to_numpy()
            if not rows.any():
                there = sorted(column.unique())
                raise FairAllError(
                    f"{key}: no row has {value!r}; there are {count(len(there), 'value')} of {column.name} "
                    f"({', '.join(map(shown, there))})"
                )
            number[rows] = i
    kept = number >= 0
    return kept, np.array(sides(len(groups)), dtype=int)[number[kept]]


def label_of(column: pd.Series) -> np.ndarray:
    """A column as labels in {0, 1}, shape (N,); raises FairAllError for another or a missing value."""
    return Feature(str(column.name), Kind.BINARY, (0.0, 1.0)).encode(column).astype(int)


def read_columns(path: Path, columns: list[str]) -> pd.DataFrame:
    """Read some columns of a raw file: .csv, SAS transport (.ssp, .xpt), or a .zip of one such file.

    Raises:
        FairAllError: if the file is not in the format of its suffix, or lacks a column.
    """
    try:
        with warnings.catch_warnings():
            # pandas only warns if a transport file is truncated.
            warnings.filterwarnings("error", "xport file may be corrupted")
            raw = _read(path, columns)
    except Exception as error:  # the readers of the three formats raise many types
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise FairAllError(f"{path}: cannot be read ({reason}): truncated? Get the file again") from error
    for name in columns:
        if name not in raw:
            raise FairAllError(f"{path}: column {name!r} is missing: is it another file, or an edited one?")
    return raw


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    if path.suffix.lower() == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(names) != 1:
                raise ValueError(f"{len(names)} files in it instead of one")
            with archive.open(names[0]) as member:
                return _read_format(member, Path(names[0]).suffix.lower(), columns)
    with path.open("rb") as file:
        return _read_format(file, path.suffix.lower(), columns)


def _read_format(file: IO[bytes], suffix: str, columns: list[str]) -> pd.DataFrame:
    """Read the columns that the file has."""
    if suffix in (".ssp", ".xpt"):
        raw = pd.read_sas(file, format="xport").filter(columns)
        # pandas reads zero as 5.4e-79, the smallest number of the format.
        return raw.mask(raw.abs() < SAS_TINY, 0.0)
    if suffix == ".csv":
        return pd.read_csv(file, low_memory=False).filter(columns)
    raise ValueError(f"of unknown kind {suffix!r}; it must be .csv, .ssp, .xpt or a .zip of one")
