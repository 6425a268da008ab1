"""Data sets made by a recipe from a raw file that has to be found or fetched first."""

from __future__ import annotations

import warnings
import zipfile
from abc import abstractmethod
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import pandas as pd

from fairall.data.cells import refuse
from fairall.data.dataset import FixedTableDataset
from fairall.data.features import Feature, Kind
from fairall.data.raw.config import RawTableConfig
from fairall.data.raw.files import find, raw_file
from fairall.data.table import Table
from fairall.errors import FairAllError

SAS_TINY = 1e-78


class RawTableDataset(FixedTableDataset):
    """Finds the file, reads the columns that the recipe needs, and counts what the recipe leaves.

    Attributes:
        columns: names of the raw columns that `recipe` reads.
        words: those of them that hold words; the others must hold numbers.
    """

    config: RawTableConfig
    config_type = RawTableConfig
    columns: ClassVar[list[str]]
    words: ClassVar[list[str]] = []

    @abstractmethod
    def recipe(self, raw: pd.DataFrame) -> Table:
        """The data set as made from the raw rows; FairAllError for a value it cannot have."""

    @classmethod
    def location(cls, config: Any) -> str:
        """See `Dataset.location`; the command that fetches the raw file where it is not found."""
        found = find(config)
        terms = " dataset.accept_terms=true" if config.download.terms else ""
        return str(found) if found else f"not here: python -m fairall.data fetch {config.name}{terms}"

    def fetch(self) -> Path:
        """See `Dataset.fetch`."""
        return raw_file(self.config)

    def whole(self) -> Table:
        """See `FixedTableDataset.whole`."""
        path = self.fetch()
        raw = read_columns(path, self.columns)
        try:
            for name in self.columns:
                if name not in self.words:
                    raw[name] = numbers(raw[name])
            table = self.recipe(raw)
        except FairAllError as error:
            raise FairAllError(f"{path}: {error}; is the file edited?") from error
        if self.config.rows is not None and len(table) != self.config.rows:
            raise FairAllError(
                f"{path}: its recipe leaves {len(table)} rows instead of {self.config.rows}: truncated or "
                "edited? Get the file anew, or use it all the same with dataset.rows=null"
            )
        return table


def label_of(column: pd.Series) -> np.ndarray:
    """A label in {0, 1}, shape (N,).

    Raises:
        FairAllError: naming column and row of another value, or of none.
    """
    return Feature(str(column.name), Kind.BINARY, (0.0, 1.0)).encode(column).astype(int)


def numbers(column: pd.Series) -> pd.Series:
    """A column as numbers, NaN where a cell is empty.

    Raises:
        FairAllError: naming column and row of what is no number.
    """
    parsed = pd.to_numeric(column, errors="coerce")
    refuse(column, parsed.isna() & column.notna(), "is no number")
    return parsed


def read_columns(path: Path, columns: list[str]) -> pd.DataFrame:
    """Some columns of a raw file: .csv, SAS transport (.ssp, .xpt), or a .zip that holds one of these.

    Raises:
        FairAllError: where the file cannot be read as what its name says, or a column is not in it.
    """
    try:
        with warnings.catch_warnings():
            # What pandas only warns of where a transport file ends too early.
            warnings.filterwarnings("error", "xport file may be corrupted")
            raw = _read(path, columns)
    except Exception as error:  # of whatever kind the readers of three formats raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise FairAllError(f"{path}: cannot be read ({reason}): truncated? Get the file anew") from error
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
    """Those of the columns that the file has."""
    if suffix in (".ssp", ".xpt"):
        raw = pd.read_sas(file, format="xport").filter(columns)
        # pandas reads zero as the smallest number of the format, 5.4e-79.
        return raw.mask(raw.abs() < SAS_TINY, 0.0)
    if suffix == ".csv":
        return pd.read_csv(file, low_memory=False).filter(columns)
    raise ValueError(f"of unknown kind {suffix!r}; it must be .csv, .ssp, .xpt or a .zip of one")
