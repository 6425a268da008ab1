"""A table of the report as data, whatever it is written as in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairall.report.statistics import Comparison


@dataclass(frozen=True)
class Cell:
    """One figure.

    Attributes:
        ours: as shown, for instance "20.3 (0.5)"; empty where there is nothing to show.
        paper: the printed one as shown; None where none is printed.
        difference: ours less the printed one, in its deviations, as shown; None where that is not defined.
        best: whether no other row of the same group is better.
        baseline: against FairLog.
        rival: against the best of the other methods.
        missing: whether the run is not there.
    """

    ours: str
    paper: str | None = None
    difference: str | None = None
    best: bool = False
    baseline: Comparison | None = None
    rival: Comparison | None = None
    missing: bool = False

    @property
    def marks(self) -> str:
        """F+ or F−: significantly better or worse than FairLog; R+ or R−: than the best rival."""
        found = []
        for letter, comparison in (("F", self.baseline), ("R", self.rival)):
            if comparison is not None and comparison.significant:
                found.append(f"{letter}{'+' if comparison.better else '−'}")
        return " ".join(found)

    @property
    def beside(self) -> str:
        """The printed figure and how far it is, as shown beside ours."""
        return ", ".join(part for part in (self.paper, self.difference) if part)


def plus_minus(mean: float, std: float | None) -> str:
    """A figure and its deviation ×100, as the paper prints them."""
    return f"{_plain(100 * mean)}" + ("" if std is None else f" ({_plain(100 * std)})")


def _plain(value: float) -> str:
    return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")


@dataclass(frozen=True)
class Row:
    """One line.

    Attributes:
        group: what lines of the same group share, for instance a data set.
        name: whose line it is.
        cells: one per column.
    """

    group: str
    name: str
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        key: name of its files.
        title: in one line.
        note: units, and what the cells hold.
        columns: headings of the cells.
        rows: in order, groups together.
        records: the same and more, a plain dict per figure, for the CSV.
        commands: that make the runs it lacks.
        section: of the page.
        setting: initial policy and protocol, where its figures stand beside printed ones of the same kind.
    """

    key: str
    title: str
    note: str
    columns: list[str]
    rows: list[Row]
    section: str
    setting: str = ""
    records: list[dict[str, Any]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether all of its runs are missing."""
        return all(cell.missing or not cell.ours for row in self.rows for cell in row.cells)
