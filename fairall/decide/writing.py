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

from fairall.tables.files import PARQUET_ENDINGS, Chunk, File

Write = Callable[[Chunk, Mapping[str, np.ndarray]], None]
"""Writes rows, with further columns of shape (N,) after those of the table; NaN becomes an empty cell."""


@contextmanager
def writer(table: File, file: IO[bytes], name: str) -> Iterator[Write]:
    """Write rows of a table to another: Parquet by the ending of its name, else CSV as the table is."""
    with ExitStack() as stack:
        if name.lower().endswith(PARQUET_ENDINGS):
            yield _parquet_writer(file, stack)
        else:
            encoding = "utf-8" if table.is_parquet else table.declared.text_encoding
            text = io.TextIOWrapper(file, encoding=encoding, newline="")
            stack.callback(text.detach)
            headers = itertools.chain([True], itertools.repeat(False))  # above the first rows alone

            def write(part: Chunk, columns: Mapping[str, np.ndarray]) -> None:
                frame = part.frame if table.is_parquet else part.table.to_pandas()
                frame.assign(**columns).to_csv(
                    text,
                    sep=table.declared.separator,
                    header=next(headers),
                    index=False,
                    lineterminator="\n",
                )

            yield write


def _parquet_writer(file: IO[bytes], stack: ExitStack) -> Write:
    writer: pq.ParquetWriter | None = None

    def write(part: Chunk, columns: Mapping[str, np.ndarray]) -> None:
        nonlocal writer
        table = part.table
        for name, values in columns.items():
            table = table.append_column(name, pa.array(values, from_pandas=True))
        if writer is None:
            writer = stack.enter_context(pq.ParquetWriter(file, table.schema))
        writer.write_table(table)

    return write
