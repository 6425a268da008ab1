"""Data sets made by a recipe from a raw file that has to be found or fetched first."""

from __future__ import annotations

import zipfile
from abc import abstractmethod
from pathlib import Path
from typing import IO, ClassVar

import pandas as pd

from fairall.config import RawTableConfig
from fairall.data.dataset import FixedTableDataset
from fairall.data.raw_files import raw_file
from fairall.data.table import Table
from fairall.errors import FairAllError

SAS_TINY = 1e-78


class RawTableDataset(FixedTableDataset):
    """Finds the file, reads the columns that the recipe needs, and counts what the recipe leaves.

    Attributes:
        columns: names of the raw columns that `recipe` reads.
    """

    config: RawTableConfig
    columns: ClassVar[list[str]]

    @abstractmethod
    def recipe(self, raw: pd.DataFrame) -> Table:
        """The data set as made from the raw rows."""

    def whole(self) -> Table:
        """See `FixedTableDataset.whole`."""
        path = raw_file(self.config)
        table = self.recipe(read_columns(path, self.columns))
        if self.config.rows is not None and len(table) != self.config.rows:
            raise FairAllError(
                f"{path}: its recipe leaves {len(table)} rows instead of {self.config.rows}: truncated or "
                "edited? Get the file anew, or use it all the same with dataset.rows=null"
            )
        return table


def read_columns(path: Path, columns: list[str]) -> pd.DataFrame:
    """Some columns of a raw file: .csv, SAS transport (.ssp, .xpt), or a .zip that holds one of these.

    Raises:
        FairAllError: where the file cannot be read as what its name says, or a column is not in it.
    """
    try:
        raw = _read(path, columns)
    except (OSError, ValueError, zipfile.BadZipFile, pd.errors.ParserError) as error:
        reason = str(error).strip().split("\n")[0]
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
