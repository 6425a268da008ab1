"""The page of a ledger: its card, and acceptance and value over its batches and versions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.display.page import PageFigure, write_page
from fairall.display.style import BLUE, ORANGE, PALETTE, date_axis
from fairall.display.table import PageTable, escaped, to_markdown
from fairall.storage.files import write_text

NOT_COMPARED = {"low": 0.0, "estimate": 0.0, "high": 0.0}
NOTE = (
    "Above, by date of application: share of the people of each batch who were accepted, with 95 % "
    "intervals, and the version that decided. Below, by date of making: value of each version less "
    "that of the policy then on duty, with intervals that hold together. Crosses: outcomes were "
    "doubtful, or (at 0) no comparison was possible."
)
BASIS = ["This is what the ledger has recorded. Nothing here checks any law."]


def write(
    found: dict[str, Any],
    lines: Sequence[str],
    tables: Sequence[PageTable],
    *,
    folder: Path,
    title: str,
    made: str,
) -> None:
    """Write index.html, with a file for each table and figure, and the same as card.md.

    Args:
        found: by `status`.
        lines: of it.
        tables: of it.
        folder: to write to.
        title: of the page.
        made: the last line.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    figure = PageFigure(key="courses", title="Over time", note=NOTE, draw=partial(draw_courses, found))
    figures = [figure] if found["courses"] else []
    write_page(folder, title, {"": [*figures, *tables]}, opening=lines, basis=BASIS, made=made)
    pictures = [f"![{one.title}: {one.note}](figures/{one.key}.png)" for one in figures]
    told = "\n".join(f"- {escaped(line)}" for line in [*lines, *BASIS])
    parts = [f"# {escaped(title)}", told, *pictures, *map(to_markdown, tables), escaped(made)]
    write_text(folder / "card.md", "\n\n".join(parts) + "\n")


def draw_courses(found: dict[str, Any]) -> Figure:
    """Acceptance rates of the groups over batches, and differences in value of versions."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    above, below = figure.subplots(2)
    draw_acceptance(found, above)
    draw_value(found, below)
    return figure


def draw_acceptance(found: dict[str, Any], axes: Axes) -> None:
    """Acceptance rates of the groups over batches, with 95 % intervals."""
    rows = pd.DataFrame(found["courses"], columns=["group", "date", "version", "acceptance"])
    rows["date"] = pd.to_datetime(rows["date"], format="ISO8601")
    for colour, (group, own) in zip(PALETTE, rows.groupby("group"), strict=False):
        rate, low, high = np.array(own["acceptance"].tolist()).T
        axes.plot(own["date"], rate, color=colour, label=group, marker=".")
        axes.fill_between(own["date"], low, high, color=colour, alpha=0.2, lw=0)
    for own in rows[rows["version"].diff() != 0].itertuples():
        axes.axvline(own.date, color="0.5", lw=0.7, ls=":")
        axes.annotate(f" version {own.version}", (own.date, 1.0))
    axes.set(ylabel="acceptance rate", ylim=(0, 1))
    date_axis(axes)
    if len(rows):
        axes.legend()


def draw_value(found: dict[str, Any], axes: Axes) -> None:
    """Differences in value of versions from the policy then on duty, with intervals, by dates."""
    scale, unit = (1, " (money per person)") if found["money"] else (100, "")
    for one in found["versions"][1:]:
        value, made = one["value"] or NOT_COMPARED, pd.Timestamp(one["until"])
        low, middle, high = (scale * value[name] for name in ("low", "estimate", "high"))
        fmt, color = ("x", ORANGE) if one["doubt"] else ("o", BLUE)
        axes.errorbar(made, middle, [[middle - low], [high - middle]], fmt=fmt, color=color)
        axes.annotate(f" {one['version']}", (made, middle))
    axes.axhline(0, color="0.5", lw=0.5)
    axes.set(ylabel=f"difference in value{unit}")
    date_axis(axes)
