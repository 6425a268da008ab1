"""What Python and notebooks show of an object: a short text, a table, a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from fairall.errors import FairAllError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST = 6  # rows and columns of a repr
LOOK: dict[str, Any] = {"float_format": "{:.3f}".format, "na_rep": ""}  # of numbers in tables
PANEL = 3.4  # inches, the width of a figure in a notebook


class Viewed(ABC):
    """An object with a table to look at, and figures.

    Attributes:
        panels: names of the figures that a notebook shows.
        warnings: where numbers need care, a line each.
    """

    panels: ClassVar[tuple[str, ...]]

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures that `plot` draws."""
        return self.panels

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

    @abstractmethod
    def _draw(self, what: str, axes: Axes) -> None:
        """Draw the figure of this name on matplotlib's axes."""

    def plot(self, what: str | None = None, *, axes: Axes | None = None) -> Axes:
        """Draw a figure; the last line of a notebook's cell shows it.

        Args:
            what: one of `figures`; the first of `panels` by default.
            axes: to draw on; by default of a new figure of `matplotlib.pyplot`.

        Returns:
            The axes, to change titles or limits; `plot().figure.savefig("curve.png")` keeps the figure.

        Raises:
            FairAllError: where there is no figure of that name.
        """
        what = self.panels[0] if what is None else what
        if what not in self.figures:
            raise FairAllError(f"plot {what!r}: the figures are {', '.join(self.figures)}")
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(figsize=(5, 3), layout="constrained")[1]
        self._draw(what, axes)
        return axes

    def __repr__(self) -> str:
        """The title, and the first and last numbers of `summary`."""
        try:
            numbers = self.summary().select_dtypes("number").dropna(axis="columns", how="all")
            shown = numbers.to_string(max_rows=MOST, max_cols=MOST, **LOOK)
            return f"{type(self).__name__}: {self.title}\n{shown}"
        except FairAllError as error:  # a repr must not fail
            return f"{type(self).__name__}: {error}"

    def _repr_html_(self) -> str:
        """Title, warnings, table and figures; the repr where that fails."""
        import matplotlib as mpl
        from matplotlib.figure import Figure

        from fairall.display.style import STYLE, png

        try:
            table = self.summary().dropna(axis="columns", how="all").to_html(**LOOK)
            with mpl.rc_context(STYLE):
                figure = Figure(figsize=(PANEL * len(self.panels), 2.4), layout="constrained")
                for k, what in enumerate(self.panels, start=1):
                    self._draw(what, figure.add_subplot(1, len(self.panels), k))
                picture = b64encode(png(figure)).decode()
        except FairAllError:
            return f"<pre>{escape(repr(self))}</pre>"
        lines = [f"{type(self).__name__}: {self.title}", *getattr(self, "warnings", ())]
        paragraphs = "".join(f"<p>{escape(line)}</p>" for line in lines)
        return f'{paragraphs}{table}<img src="data:image/png;base64,{picture}">'
