"""Decisions beside the rows of a file of people."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairall.tables.declared import Declared
from fairall.tables.files import PARQUET_ENDINGS

ROWS = 10_000  # that are converted at once


def write_rows(
    rows: pa.Table, columns: Mapping[str, Any], file: IO[bytes], name: str, declared: Declared
) -> None:
    """Write N rows, and further columns of shape (N,) after their own; NaN becomes an empty cell.

    Args:
        rows: of a table.
        columns: by name.
        file: to write to.
        name: of the file, by whose ending it is Parquet, else CSV.
        declared: how CSV is written.
    """
    further = pd.DataFrame({**columns})
    if name.lower().endswith(PARQUET_ENDINGS):
        for column, values in further.items():
            rows = rows.append_column(column, pa.array(values, from_pandas=True))
        pq.write_table(rows, file)
        return
    text = io.TextIOWrapper(file, encoding=declared.text_encoding, newline="")
    try:
        for start in range(0, max(len(rows), 1), ROWS):
            part = slice(start, start + ROWS)
            frame = rows[part].to_pandas(integer_object_nulls=True).set_index(further.index[part])
            frame = frame.assign(**further[part])
            frame.to_csv(text, sep=declared.separator, header=not start, index=False, lineterminator="\n")
    finally:
        text.detach()
