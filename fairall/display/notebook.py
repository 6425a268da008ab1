"""What a notebook shows of a result, an evaluation, a ledger or a table of people."""

from __future__ import annotations

import io
from numbers import Integral
from types import ModuleType

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairall.display.format import number
from fairall.display.page import rendered
from fairall.display.style import STYLE
from fairall.display.table import PageTable, Row, frame_of
from fairall.display.viewed import Viewed

PANEL = (3.4, 2.4)  # inches
DIGITS = 3  # of numbers in plain units


def to_html(one: Viewed, view: ModuleType) -> str:
    """Title, warnings, figures and table of an object.

    Args:
        one: the object.
        view: its module, see `Viewed.view`.
    """
    values = {
        "title": f"{type(one).__name__}: {one.title}",
        "warnings": getattr(one, "warnings", ()),
        "table": table_of(one.summary()),
        "picture": picture(one, view),
    }
    return rendered("notebook.html.jinja", values)


def table_of(frame: pd.DataFrame) -> PageTable:
    """A frame as a table of a page: its index, texts, and numbers in plain units; nothing for NaN."""
    filled = frame.dropna(axis="columns", how="all")
    rows = [
        Row("", str(name), [one if isinstance(one, str) else _shown(one) for one in cells])
        for name, *cells in filled.itertuples()
    ]
    columns = [str(name).replace("_", " ") for name in filled.columns]
    return PageTable(key="summary", title="", note="", frame=frame_of(columns, rows), records=filled)


def _shown(value: object) -> str:
    if isinstance(value, Integral):
        return str(value)
    return number(float(value), 1, DIGITS)  # type: ignore[arg-type]


def picture(one: Viewed, view: ModuleType) -> bytes:
    """The figures of `view.PANELS` side by side, as a PNG."""
    with mpl.rc_context(STYLE):
        width, height = PANEL
        figure = Figure(figsize=(width * len(view.PANELS), height), layout="constrained")
        for what, axes in zip(
            view.PANELS, figure.subplots(1, len(view.PANELS), squeeze=False)[0], strict=True
        ):
            view.draw(one, what, axes)
        file = io.BytesIO()
        FigureCanvasAgg(figure).print_png(file)
    return file.getvalue()
