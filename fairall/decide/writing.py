"""Decisions beside the rows of a file of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

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
    for column, values in columns.items():
        rows = rows.append_column(column, pa.array(values, from_pandas=True))
    if name.lower().endswith(PARQUET_ENDINGS):
        pq.write_table(rows, file)
        return
    form: Any = {"sep": declared.separator, "encoding": declared.text_encoding, "lineterminator": "\n"}
    for start in range(0, max(len(rows), 1), ROWS):
        frame = rows[start : start + ROWS].to_pandas(integer_object_nulls=True)
        frame.to_csv(file, header=not start, index=False, **form)
