"""Tables and figures of runs, with the commands of those that are missing, and grids of panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall.display import COLUMN, PageFigure, PageTable, Row, frame_of, records_of
from fairall.metrics import Spread
from fairall.report import STYLES
from reproduction.plan import METHODS, Planned, missing_runs, runs_of

# Distinct lines, beside the colours of conf/model/, for readers who see none.
LINES: dict[str, Any] = dict(zip(METHODS, STYLES, strict=True))


def table_of(
    columns: Iterable[str],
    rows: Iterable[Row],
    records: Iterable[Mapping[str, Any]] | None,
    planned: Sequence[Planned] = (),
    **shown: Any,
) -> PageTable:
    """A table of some runs.

    Args:
        columns: headings of the cells.
        rows: what is shown.
        records: for the CSV file; None: a row per cell, as shown.
        planned: its runs, finished or missing.
        shown: key, title and note, and further fields of `PageTable`.
    """
    frame = frame_of([*columns], rows)
    known = as_shown(frame) if records is None else records_of(records)
    return PageTable(frame=frame, records=known, **{"lacking": missing_runs(planned)} | shown)


def as_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per cell, as on a terminal: `*` is behind the best value, a printed one in brackets."""
    cells = frame.map(str).rename_axis(columns="measure").stack(future_stack=True)
    return cells.rename("shown").reset_index()


def figure_of(
    key: str,
    title: str,
    note: str,
    draw: Callable[[], Figure],
    planned: Sequence[Planned],
    *,
    besides: Sequence[Planned] = (),
    drawn: bool = True,
    **shown: Any,
) -> PageFigure:
    """A figure of some runs, at least one of which has to be there.

    Args:
        key: of the figure.
        title: of the figure.
        note: its caption.
        draw: draws it.
        planned: its runs, finished or missing.
        besides: further ones, without which it can be drawn.
        drawn: False where the runs that are there do not suffice.
        shown: further fields of `PageFigure`.
    """
    lacking = missing_runs([*planned, *besides])
    able = draw if drawn and runs_of(planned) else None
    return PageFigure(key=key, title=title, note=note, draw=able, lacking=lacking, **shown)


def grid_of(
    rows: int, columns: int, height: float, *, width: float = 2 * COLUMN, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of panels.

    Args:
        rows: of panels.
        columns: of panels.
        height: of the figure, inches.
        width: of the figure, inches.
        shared: `sharex` and `sharey` of matplotlib.

    Returns:
        The figure, and its panels of shape (rows, columns).
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def difference_of(spread: Spread | None, name: str = "difference") -> dict[str, float | None]:
    """Mean and ends of the 95 % interval, as records have them; None where unknown."""
    low, high = spread.interval if spread and spread.interval else (None, None)
    return {name: spread.mean if spread else None, "low": low, "high": high}
