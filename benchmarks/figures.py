"""Figures of CPU seconds by part and by size."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.parts import PARTS, TOTAL
from fairall.results.figures import STYLE

# Okabe and Ito's palette, told apart by colour-blind readers too, and one grey for the interpreter's end.
PALETTE = ("#7F7F7F", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#D55E00", "#F0E442", "#BFBFBF")
COLOURS = dict(zip((part for part in PARTS if part != TOTAL), PALETTE, strict=True)) | {TOTAL: "black"}


def draw_stacks(panels: dict[str, pd.DataFrame], path: Path, *, title: str) -> None:
    """Stacked bars of CPU seconds by part, a panel per title, a bar per case.

    Args:
        panels: tables of CPU seconds by panel title, a row per bar, a column per part.
        path: PNG to write.
        title: of the whole.
    """
    with mpl.rc_context(STYLE):
        bars = max(len(table) for table in panels.values())
        figure = Figure(figsize=(1 + 4 * len(panels), 1.6 + 0.35 * bars), layout="constrained")
        row = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (name, table) in zip(row, panels.items(), strict=True):
            left = np.zeros(len(table))
            for part in table.columns.drop(TOTAL):
                width = table[part].fillna(0.0).to_numpy()
                axes.barh(table.index.astype(str), width, left=left, color=COLOURS[part], label=part)
                left += width
            axes.invert_yaxis()
            axes.set(title=name, xlabel="CPU seconds")
        figure.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.suptitle(title)
        figure.savefig(path)


def draw_scaling(table: pd.DataFrame, path: Path) -> None:
    """CPU seconds per unit over the number of units, both logarithmic.

    Args:
        table: CPU seconds, a row per number of units (the index), a column per part.
        path: PNG to write.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        for part in map(str, table):
            axes.loglog(table.index, table[part] / table.index, "o-", color=COLOURS[part], label=part, ms=4)
        axes.set_xticks(table.index, labels=map(str, table.index))
        axes.minorticks_off()
        axes.set(xlabel=table.index.name, ylabel="CPU seconds per unit")
        figure.suptitle("Level: cost is proportional; falling: the next unit costs less")
        figure.legend(loc="outside right center")
        figure.savefig(path)
