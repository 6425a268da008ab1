"""Figure of a table of people."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fairall.display.style import BLUE, GREY

WIDTH = 0.4  # of a bar


def draw_rates(rows: pd.DataFrame, axes: Axes) -> None:
    """Draw base rate and share of accepted people by group; `rows` are those of `Table.summary`."""
    known = [name for name in ("base_rate", "accepted") if rows[name].notna().any()]
    for k, (name, colour) in enumerate(zip(known, (BLUE, GREY), strict=False)):
        place = np.arange(len(rows)) + WIDTH * (k - (len(known) - 1) / 2)
        axes.bar(place, rows[name], WIDTH, color=colour, label=name.replace("_", " "))
    axes.set_xticks(range(len(rows)), [str(name) for name in rows.index])
    axes.set(ylabel="share of people", ylim=(0, 1))
    if known:
        axes.legend()
