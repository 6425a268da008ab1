"""Tables and figures of runs, with the commands of those that are missing, and grids of panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.display import COLUMN, PageFigure, PageTable, Row, frame_of, records_of
from fairall.metrics import Spread
from reproduction.plan import Planned, missing_runs, runs_of


def table_of(
    columns: Sequence[str],
    rows: Iterable[Row],
    records: Iterable[Mapping[str, Any]] | None,
    planned: Sequence[Planned] = (),
    **shown: Any,
) -> PageTable:
    """A table of some runs.

    Args:
        columns: headings of the cells.
        rows: what is shown.
        records: for the CSV file; None: a row per row, as shown.
        planned: its runs, finished or missing.
        shown: key, title and note, and further fields of `PageTable`.
    """
    missing, frame = {"lacking": missing_runs(planned)} | shown, frame_of(columns, rows)
    known = frame.map(str).reset_index() if records is None else records_of(records)
    return PageTable(frame=frame, records=known, **missing)


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


def label_grid(
    panels: np.ndarray, xlabel: str, *, titles: Iterable[str] = (), ylabels: Iterable[str] = ()
) -> None:
    """Label the panels of a grid at its edges.

    Args:
        panels: shape (rows, columns).
        xlabel: below the last row.
        titles: above the first row, one per column.
        ylabels: left of the first column, one per row.
    """
    for axes in panels[-1]:
        axes.set_xlabel(xlabel)
    for axes, title in zip(panels[0], titles, strict=False):
        axes.set_title(title)
    for axes, label in zip(panels[:, 0], ylabels, strict=False):
        axes.set_ylabel(label)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a panel, the first one at the bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)


def difference_of(spread: Spread | None, name: str = "difference") -> dict[str, float | None]:
    """Mean and ends of the 95 % interval, as records have them; None where unknown."""
    low, high = spread.interval if spread and spread.interval else (None, None)
    return {name: spread.mean if spread else None, "low": low, "high": high}
