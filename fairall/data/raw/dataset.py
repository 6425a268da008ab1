"""Base class of data sets built by a recipe from a raw file, and readers of such files."""

from __future__ import annotations

import warnings
import zipfile
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import pandas as pd
from omegaconf import MISSING

from fairall.config.checks import check, limited, one_of, require
from fairall.data.cells import listed, refuse
from fairall.data.dataset import TableDataset
from fairall.data.features import Feature, Kind
from fairall.data.raw.files import RawTableConfig, find, raw_file
from fairall.data.table import Table
from fairall.errors import FairAllError

SAS_TINY = 1e-78


@dataclass
class GroupsConfig:
    """Raw values of a sensitive attribute that mean S = +1 and S = −1; people with others are left out."""

    advantaged: list[str] = limited("at least one value", len)
    disadvantaged: list[str] = limited("at least one value", len)


@dataclass
class GroupedTableConfig(RawTableConfig):
    """Keys of a data set with a choice of sensitive attribute; `groups` has one entry for each."""

    sensitive: str = MISSING
    groups: dict[str, GroupsConfig] = MISSING

    def validate(self) -> None:
        """Check the sensitive attribute, and that its groups have no value in common."""
        super().validate()
        check("dataset.sensitive", self.sensitive, one_of(self.groups))
        for name, groups in self.groups.items():
            both = sorted(set(groups.advantaged) & set(groups.disadvantaged))
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
        return read_columns(path, self.columns)

    def fetch(self) -> Path:
        """The verified raw file, downloaded if not found; raises as `raw_file`."""
        return raw_file(self.config)

    def load(self) -> Table:
        """The result of `recipe`, whose number of rows is verified."""
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
            raise FairAllError(f"{path}: {error}; was the file edited?") from error
        if self.config.rows is not None and len(table) != self.config.rows:
            raise FairAllError(
                f"{path}: its recipe leaves {len(table)} rows instead of {self.config.rows}: truncated or "
                "edited? Get the file again, or accept it with dataset.rows=null"
            )
        return table


def of_groups(raw: pd.DataFrame, config: GroupedTableConfig) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """The rows of the two groups, S of each, shape (N,), and its raw column."""
    groups = config.groups[config.sensitive]
    column = raw[config.sensitive].astype(str)
    for side, values in vars(groups).items():
        for value in values:
            if not (column == value).any():
                raise FairAllError(
                    f"dataset.groups.{config.sensitive}.{side}: no row has {value!r}; there are "
                    f"{listed(sorted(column.unique()), 'value')}"
                )
    kept = column.isin([*groups.advantaged, *groups.disadvantaged])
    return raw[kept], np.where(column[kept].isin(groups.advantaged), 1, -1), column[kept]


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
