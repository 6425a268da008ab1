"""Messages about the cells of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairall.errors import FairAllError, count

FIRST = 1000  # rows looked at before all


def many_values(column: pd.Series, most: int) -> bool:
    """Whether a column has more than `most` distinct values, judged by the first rows if they suffice."""
    return column.head(FIRST).nunique() > most or column.nunique() > most


def refuse(column: pd.Series, wrong: np.ndarray | pd.Series, why: str) -> None:
    """Raise FairAllError with column, row and value of the first cell that is `wrong` (N,), if any.

    Rows are counted from 1, before any filtering.
    """
    if wrong.any():
        position = int(np.asarray(wrong).argmax())
        cell = column.iloc[position]
        told = repr(shown(cell)) if isinstance(cell, str) else "an empty cell" if pd.isna(cell) else str(cell)
        raise FairAllError(f"column {column.name!r}, row {row_number(column, position)}: {told} {why}")


def row_number(column: pd.Series, position: int) -> int:
    """Number of a row counted from 1, before any filtering; by position where the index has other labels."""
    label = column.index[position]
    return int(label if isinstance(label, int | np.integer) else position) + 1


def shown(text: str, at_most: int = 40) -> str:
    """A text on one line, truncated to `at_most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= at_most else f"{line[:at_most]}..."


def listed(values: list[str], thing: str) -> str:
    """Number of values, and the first five in alphabetical order."""
    some = ", ".join(shown(value, 20) for value in sorted(values)[:5]) + (", ..." if len(values) > 5 else "")
    return f"{count(len(values), thing)} ({some})"
