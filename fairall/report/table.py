"""Tables of the report as data, independent of the format written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairall.report.statistics import Comparison


@dataclass(frozen=True)
class Cell:
    """One value.

    Attributes:
        ours: as shown, for instance "20.3 (0.5)"; empty for no value.
        paper: the printed value as shown; None where none is printed.
        difference: ours less the printed value, in its deviations, as shown; None where not defined.
        best: whether no other row of the same group is better.
        baseline: against FairLog.
        rival: against the best of the other methods.
        missing: whether the run is missing.
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
        marks = []
        for letter, comparison in (("F", self.baseline), ("R", self.rival)):
            if comparison is not None and comparison.significant:
                marks.append(f"{letter}{'+' if comparison.better else '−'}")
        return " ".join(marks)

    @property
    def beside(self) -> str:
        """The printed value and the difference, as shown beside ours."""
        return ", ".join(part for part in (self.paper, self.difference) if part)


def plus_minus(mean: float, std: float | None) -> str:
    """A mean and its deviation ×100, as the paper prints them.

    Examples:
        >>> plus_minus(0.203, 0.005)
        '20.3 (0.5)'
    """
    return f"{_plain(100 * mean)}" + ("" if std is None else f" ({_plain(100 * std)})")


def _plain(value: float) -> str:
    return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        group: shared by rows of a group, for instance a data set.
        name: of the row, for instance a method.
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
        title: one line.
        note: units, and the meaning of cells.
        columns: headings of the cells.
        rows: in order, groups together.
        records: a plain dict per value, with more detail, for the CSV.
        commands: to make the missing runs.
        section: of the page.
        setting: initial policy and protocol, where its values stand beside printed ones of the same kind.
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
