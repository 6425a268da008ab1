"""Decisions beside the rows of a file of people."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fairall.tables.files import PARQUET_ENDINGS, File

Write = Callable[[pa.Table, Mapping[str, np.ndarray]], None]
"""Writes N rows of a table, with further columns of shape (N,) after its own; NaN becomes an empty cell."""


@contextmanager
def writer(table: File, file: IO[bytes], name: str) -> Iterator[Write]:
    """Write rows of a table to another: Parquet by the ending of its name, else CSV as the table is."""
    with ExitStack() as stack:
        if name.lower().endswith(PARQUET_ENDINGS):
            yield _parquet_writer(file, stack)
        else:
            text = io.TextIOWrapper(file, encoding=table.declared.text_encoding, newline="")
            stack.callback(text.detach)
            headers = itertools.chain([True], itertools.repeat(False))  # above the first rows alone

            def write(rows: pa.Table, columns: Mapping[str, np.ndarray]) -> None:
                rows.to_pandas(integer_object_nulls=True).assign(**columns).to_csv(
                    text,
                    sep=table.declared.separator,
                    header=next(headers),
                    index=False,
                    lineterminator="\n",
                )

            yield write


def _parquet_writer(file: IO[bytes], stack: ExitStack) -> Write:
    writer: pq.ParquetWriter | None = None

    def write(rows: pa.Table, columns: Mapping[str, np.ndarray]) -> None:
        nonlocal writer
        for name, values in columns.items():
            rows = rows.append_column(name, pa.array(values, from_pandas=True))
        if writer is None:
            writer = stack.enter_context(pq.ParquetWriter(file, rows.schema))
        writer.write_table(rows)

    return write
