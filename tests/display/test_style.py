"""The style of figures."""

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairall.display.style import date_axis


@pytest.mark.parametrize("seconds", [0, 60, 7000, 2.2 * 86400, 40 * 86400, 1000 * 86400])
def test_an_axis_of_any_range_of_dates(seconds: float) -> None:
    figure = Figure(figsize=(7, 2))
    axes, first = figure.subplots(), pd.Timestamp("2025-01-01")
    axes.plot([first, first + pd.Timedelta(seconds=seconds)], [0, 1])
    date_axis(axes)
    figure.canvas.draw()
    assert 2 <= len(axes.get_xticks()) <= 9
