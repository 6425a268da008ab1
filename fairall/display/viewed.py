"""What Python and notebooks show of an object: a short text, a table, a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from fairall.errors import FairAllError, count

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_LINES = 10  # of a repr
MOST_COLUMNS, WIDE = 6, 1000  # of its table, which is not wrapped


class Viewed(ABC):
    """An object with a table to look at, and figures.

    Attributes:
        view: module with `draw(one, what, axes)`, which draws on matplotlib's axes, and `PANELS`, what
            notebooks show of it by default. It is imported by its name when it is needed, since it imports
            the class.
    """

    view: ClassVar[str]

    @property
    @abstractmethod
    def title(self) -> str:
        """One line that says what it is."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Everything that it holds, a row per value or person."""

    @abstractmethod
    def summary(self) -> pd.DataFrame:
        """The table to look at, in plain units."""

    def plot(self, what: str | None = None, *, axes: Axes | None = None) -> Axes:
        """Draw a figure; the last line of a notebook's cell shows it.

        Args:
            what: one of the names in the documentation of the class; the first of them by default.
            axes: to draw on; by default of a new figure of `matplotlib.pyplot`.

        Returns:
            The axes, to change titles or limits; `plot().figure.savefig("curve.png")` keeps the figure.

        Raises:
            FairAllError: where there is no figure of that name.
        """
        view = import_module(self.view)
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(figsize=(5, 3), layout="constrained")[1]
        view.draw(self, view.PANELS[0] if what is None else what, axes)
        return axes

    def __repr__(self) -> str:
        """At most `MOST_LINES` lines: the title, whether there are warnings, and the head of `summary`."""
        try:
            lines = [f"{type(self).__name__}: {' '.join(self.title.split())}"]
            numbers = self.summary().select_dtypes("number").dropna(axis="columns", how="all")
            numbers = numbers.iloc[:, :MOST_COLUMNS]
        except FairAllError as error:  # a repr must not fail
            return f"{type(self).__name__}: {error}"
        if warnings := getattr(self, "warnings", ()):
            lines.append(f"{count(len(warnings), 'warning')}: .warnings")
        most = MOST_LINES - len(lines) - 2  # the heading, and what is left out
        told = numbers.iloc[: most + 1] if len(numbers) <= most + 1 else numbers.iloc[:most]
        table = told.to_string(line_width=WIDE, float_format="{:.3f}".format, na_rep="")
        lines += [line.rstrip() for line in table.splitlines()]
        return "\n".join(
            lines + [f"… {len(numbers) - most} more rows: .summary()"] * (len(told) < len(numbers))
        )

    def _repr_html_(self) -> str:
        """Title, warnings, figures and table for notebooks, all texts escaped; the repr where that fails."""
        try:
            html: str = import_module("fairall.display.notebook").to_html(self, import_module(self.view))
        except FairAllError:
            return f"<pre>{escape(repr(self))}</pre>"
        return html
