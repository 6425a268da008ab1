"""Cells of DataFrames and Parquet files as the text that a CSV file of the same table holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairall.errors import FairAllError

UNNAMED_INDEX = "__index_level_"  # as pandas names the index of a filtered table: no column of the table
NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_boolean, pa.types.is_null)


def of_frame(people: pd.DataFrame, missing: Collection[str]) -> pd.DataFrame:
    """All cells as text without surrounding blanks, None where missing, shape (N, D).

    Whole numbers have no decimals, other numbers as many as they need; truth values are True and False; times
    are ISO 8601. The texts in `missing` mean a missing value.

    Raises:
        FairAllError: if a column holds lists or other nested values.
    """
    columns = {}
    for name in people:
        try:
            codes, distinct = pd.factorize(people[name])
        except TypeError as error:
            raise _nested(str(name)) from error
        columns[str(name)] = _texts(codes, pd.Series(distinct), frozenset(missing))
    return pd.DataFrame(columns, dtype=object)


def parquet_parts(path: Path, rows: int | None) -> Iterator[pa.Table]:
    """The columns of a Parquet file, in parts of `rows` rows at most, or whole; one part if it has no row."""
    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        named = [i for i, name in enumerate(names) if not name.startswith(UNNAMED_INDEX)]  # may be repeated
        if rows is None or not file.metadata.num_rows:
            yield file.read().select(named)
            return
        for batch in file.iter_batches(rows):
            yield pa.Table.from_batches([batch]).select(named)
    except pa.ArrowException as error:
        reason = str(error).strip().split("\n")[0]
        raise FairAllError(f"dataset.path={path}: cannot be read as Parquet ({reason})") from error


def of_arrow(table: pa.Table, missing: Collection[str]) -> Iterator[np.ndarray]:
    """Cells as of `of_frame`, an array (N,) for each column; raises as that, and for binary values."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield _of_arrow(column, name, frozenset(missing))


def _of_arrow(column: pa.ChunkedArray, name: str, missing: frozenset[str]) -> np.ndarray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not any(is_one(column.type) for is_one in (*NUMBERS, *TEXTS, pa.types.is_temporal)):
        raise _nested(name)
    if pa.types.is_null(column.type) or not len(column):
        return np.full(len(column), None, dtype=object)
    if pa.types.is_float16(column.type):  # which pyarrow cannot encode
        codes, numbers = pd.factorize(column.to_pandas())
        return _texts(codes, pd.Series(np.asarray(numbers, np.float16)), missing)
    # Distinct values have no nulls, for which pandas would turn whole numbers into decimal ones.
    encoded = pa.chunked_array(column.dictionary_encode()).unify_dictionaries().combine_chunks()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return _texts(codes, encoded.dictionary.to_pandas(), missing)


def _texts(codes: np.ndarray, distinct: pd.Series, missing: frozenset[str]) -> np.ndarray:
    """The texts of distinct values, spread over the rows by their codes (N,), −1 where missing."""
    given = distinct.notna().to_numpy()
    if isinstance(distinct.dtype, pd.CategoricalDtype):
        distinct = distinct.astype(distinct.cat.categories.dtype)
    if distinct.dtype == np.float64:
        texts = pd.Series([*map(repr, distinct.tolist())], dtype=object)  # as astype(str), in half the time
    else:
        texts = distinct.astype(str).str.strip().astype(object)
    cells = np.concatenate([texts.to_numpy(), np.array([None])])
    cells[:-1][~given | texts.isin(missing).to_numpy()] = None
    return cells[codes]


def _nested(name: str) -> FairAllError:
    return FairAllError(
        f"column {name!r} holds nested or binary values: a cell must be a number, a text, a truth value or a "
        "time; turn it into columns of these, or remove it"
    )
