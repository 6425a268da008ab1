"""Tables of people in CSV or Parquet files, read and written in parts."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairall.config.checks import require
from fairall.config.compose import PLACES, compose_config
from fairall.config.words import nearest_key
from fairall.data.csv.config import ONE_CHARACTER
from fairall.data.csv.reader import PARQUET_ENDINGS, read_parts
from fairall.errors import FairAllError
from fairall.storage.files import sha256, why_no_file

READING = ("separator", "text_encoding")  # keys of dataset=csv
ROWS = 10_000  # in memory at a time; another number may change the last decimal of probabilities


@dataclass(frozen=True)
class Part:
    """Some rows of a table.

    Attributes:
        text: cells as text, None where empty; the index is the position in the table.
        typed: of a Parquet file, the same rows as they are.
    """

    text: pd.DataFrame
    typed: pa.Table | None


Write = Callable[[Part, Mapping[str, np.ndarray]], None]
"""Writes rows, with further columns of shape (N,) after those of the table; NaN becomes an empty cell."""


@dataclass(frozen=True)
class Table:
    """A file of people.

    Attributes:
        path: CSV or, by its ending, Parquet.
        separator: between cells of a CSV file, one character.
        encoding: of a CSV file.
    """

    path: Path
    separator: str
    encoding: str

    def parts(self) -> Iterator[Part]:
        """The rows, `ROWS` at a time; raises as `read_text`."""
        read = read_parts(self.path, ROWS, separator=self.separator, encoding=self.encoding, missing=("",))
        for text, typed in read:
            yield Part(text, typed)

    def row(self, number: int) -> pd.DataFrame:
        """One row, counted from 1; raises FairAllError where the table ends before, and as `parts`."""
        n = 0
        for part in self.parts():
            if number <= n + len(part.text):
                return part.text.iloc[[number - n - 1]]
            n += len(part.text)
        raise FairAllError(f"{self.path}: there is no row {number}, only {n}")

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """A block that reads the file more than once.

        Raises:
            FairAllError: when the block ends or fails, if the file is no longer as it was at its start.
        """
        before, failed = self._sum(), None
        try:
            yield
        except Exception as error:
            failed = error
        if self._sum() != before:
            raise FairAllError(
                f"{self.path} was changed while it was read, so nothing is decided; decide on a copy that "
                "nobody writes to"
            ) from failed
        if failed is not None:
            raise failed

    def _sum(self) -> str | None:
        try:
            return sha256(self.path)
        except OSError:  # reading it tells what is wrong
            return None

    @classmethod
    def of(cls, path: Path, words: Sequence[str]) -> Table:
        """The table in a file.

        Args:
            path: of the file.
            words: KEY=VALUE of `READING`, as in `dataset=csv`; those of `PLACES` are ignored.

        Raises:
            FairAllError: where there is no such file, key or value.
        """
        if wrong := why_no_file(path):
            raise FairAllError(f"{path}: {wrong}; give the CSV or Parquet file of the people")
        overrides = []
        for word in (word.removeprefix("dataset.") for word in words if not word.startswith(PLACES)):
            key, known = word.partition("=")[0], [*READING, "outputs_dir", "tracking.uri"]
            if key not in READING:
                near = nearest_key(key, known)
                raise FairAllError(f"{word}: no such key{near}; there are {', '.join(known)}")
            overrides.append(f"dataset.{word}")
        config = compose_config("dataset=csv", *overrides).dataset
        separator = str(config.separator)
        require(len(separator) == 1, "dataset.separator", separator, ONE_CHARACTER)
        return cls(path, separator, str(config.text_encoding))

    @contextmanager
    def writer(self, file: IO[bytes], name: str) -> Iterator[Write]:
        """Write rows of this table to another: Parquet by the ending of its name, else CSV as this one is."""
        with ExitStack() as stack:
            if name.lower().endswith(PARQUET_ENDINGS):
                yield _parquet_writer(file, stack)
            else:
                encoding = self.encoding if self.path.suffix.lower() not in PARQUET_ENDINGS else "utf-8"
                text = io.TextIOWrapper(file, encoding=encoding, newline="")
                stack.callback(text.detach)
                yield _csv_writer(text, self.separator)


def _csv_writer(file: IO[str], separator: str) -> Write:
    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    header_written = False

    def write(part: Part, columns: Mapping[str, np.ndarray]) -> None:
        nonlocal header_written
        if not header_written:
            writer.writerow([*part.text, *columns])
            header_written = True
        given = (part.text[name].tolist() for name in part.text)
        further = ([None if x != x else x for x in values.tolist()] for values in columns.values())
        writer.writerows(zip(*given, *further, strict=True))

    return write


def _parquet_writer(file: IO[bytes], stack: ExitStack) -> Write:
    writer: pq.ParquetWriter | None = None

    def write(part: Part, columns: Mapping[str, np.ndarray]) -> None:
        nonlocal writer
        table = part.typed
        if table is None:
            table = pa.table({name: pa.array(part.text[name], pa.string()) for name in part.text})
        for name, values in columns.items():
            table = table.append_column(name, pa.array(values, from_pandas=True))
        if writer is None:
            writer = stack.enter_context(pq.ParquetWriter(file, table.schema))
        writer.write_table(table)

    return write
