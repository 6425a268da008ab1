"""What an analysis of a log is: a table, a figure, a sentence, and what is shown of one or two policies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from fairall.display.format import interval, number
from fairall.display.table import PageTable, records_of, without_empty
from fairall.evaluate.comparison import Difference
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimates import Interval
from fairall.evaluate.judgement import Judgement
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.display.page import PageFigure

Judged: TypeAlias = Judgement | Difference
Record = dict[str, Any]
"""A row of the table of an analysis: what it is about, by key, and its `value`.

The value is an `Interval` or `Limits`, shown ×100, a number or text, shown as it is, or None in a row for the
files alone, whose further keys hold numbers.
"""
# Sections of the page, in the order of a model validation.
DATA, DISCRIMINATION, CALIBRATION, STABILITY, FAIRNESS, VALUE, CHOICES, LIMITS = SECTIONS = (
    "Data and selection",
    "Discrimination",
    "Calibration",
    "Stability",
    "Fairness",
    "Value",
    "Thresholds and costs",
    "Limits",
)
INTERVALS = "with 95 % intervals"
NO_ASSUMPTION = "no assumption: 95 % interval of what is possible, whatever the missing labels are."


@dataclass
class Shown:
    """One policy, or two that are compared.

    Attributes:
        evaluations: by the name shown.
        difference: of two policies; None for one.
    """

    evaluations: Mapping[str, Judgement]
    difference: Difference | None = None

    @property
    def judged(self) -> dict[str, Judged]:
        """The policies and their difference, if any, by the name shown."""
        difference = {} if self.difference is None else {"B − A": self.difference}
        return {**self.evaluations, **difference}

    @property
    def first(self) -> Judgement:
        """The first policy, for what all of them share."""
        return next(iter(self.evaluations.values()))

    @property
    def log(self) -> DecisionLog:
        """The log."""
        return self.first.log


@dataclass(frozen=True)
class Picture:
    """The figure of an analysis.

    Attributes:
        key: name of its files.
        title: one line.
        note: caption.
        draw: from what is shown.
        there: whether there is something to draw.
        wide: whether it takes the whole width of the page.
        section: of the page, "" beside the verdict; that of the table by default.
    """

    key: str
    title: str
    note: str
    draw: Callable[[Shown], Figure]
    there: Callable[[Shown], bool] = lambda _: True
    wide: Callable[[Shown], bool] = lambda _: True
    section: str | None = None


@dataclass(frozen=True)
class Analysis:
    """A question about a log, and how its answer is shown.

    Attributes:
        key: name of the files of its table, and of this in evaluation.json.
        section: of the page.
        title: of the table.
        note: below it; where it depends on the log, a function.
        records: rows of the table, none where nothing can be said.
        line: key of a record that names its line of the page's table.
        column: key that names its column there.
        lines: names of lines as they are shown, in order; others are shown as they are.
        columns: names of columns, in order; records of other columns are in the files alone. None shows all.
        picture: the figure, if any.
        told: sentences for the basis of the verdict.
    """

    key: str
    section: str
    title: str
    note: str | Callable[[Shown], str]
    records: Callable[[Shown], Iterable[Record]]
    line: str
    column: str
    lines: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] | None = None
    picture: Picture | None = None
    told: Callable[[Shown], Iterator[str]] = lambda _: iter(())

    def table(self, shown: Shown) -> PageTable | None:
        """The table of what is shown; None without records."""
        records, reasons = [*self.records(shown)], dict[str, int]()
        if not records:
            return None
        columns = self.columns or {record[self.column]: record[self.column] for record in records}
        cells = defaultdict[tuple[str, str], dict[str, str]](dict)
        for record in records:
            if record["value"] is not None and record[self.column] in columns:
                group = record.get("policy", "") if shown.difference else ""
                line = self.lines.get(record[self.line], record[self.line])
                cells[group, line][columns[record[self.column]]] = text(record["value"], reasons)
        note = self.note if isinstance(self.note, str) else self.note(shown)
        frame = pd.DataFrame(cells, [*columns.values()], dtype=object).T
        return PageTable(
            key=self.key,
            section=self.section,
            title=self.title,
            note=note + "".join(f" [*{mark}] {reason}." for reason, mark in reasons.items()),
            frame=without_empty(frame.fillna("")),
            records=records_of(map(flat, records)),
        )

    def figure(self, shown: Shown) -> PageFigure | None:
        """The figure of what is shown; None without one."""
        from fairall.display.page import PageFigure  # imports matplotlib

        picture = self.picture
        if picture is None or not picture.there(shown):
            return None
        return PageFigure(
            key=picture.key,
            title=picture.title,
            note=picture.note,
            section=self.section if picture.section is None else picture.section,
            wide=picture.wide(shown),
            draw=partial(picture.draw, shown),
        )


def of_each(compute: Callable[[Judgement], Iterable[Record]]) -> Callable[[Shown], Iterator[Record]]:
    """`Analysis.records` of an analysis that treats each policy alone.

    Args:
        compute: gives the records of a policy, to which its name is added as `policy`; called once for each.
    """

    def records(shown: Shown) -> Iterator[Record]:
        for policy, judgement in shown.evaluations.items():
            yield from ({"policy": policy} | record for record in judgement.once(compute))

    return records


def text(value: Any, reasons: dict[str, int] | None = None) -> str:
    """A value in words, with a probability that is never certain.

    Args:
        value: of a record.
        reasons: by reason why an interval lacks the number of its mark, to be added to; None for no marks.

    Examples:
        >>> text(Interval(0.2, 0.1, 0.3, probability=0.99999))
        '20.0 [10.0, 30.0], P = 99.9 %'
    """
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    if isinstance(value, Limits):
        value = value.interval
    if not isinstance(value, Interval):
        return str(value)
    estimate, ends = number(value.estimate), interval(value.low, value.high)
    if not ends:
        ends = "without interval" if estimate else "not known"
        if reasons is not None:
            why = value.why or "nobody whom the rate is about"
            ends = f"[*{reasons.setdefault(why, len(reasons) + 1)}]"
    elif value.probability is not None:
        ends += f", P = {100 * min(max(value.probability, 0.001), 0.999):.1f} %"
    return f"{estimate} {ends}".strip()


def flat(record: Record) -> Record:
    """A record as the files hold it: an interval by its ends, of limits `bound_low` and `bound_high` too."""
    fields = {**record}
    value = fields.pop("value")
    if isinstance(value, Limits):
        fields |= {"bound_low": value.low, "bound_high": value.high}
        value = value.interval
    return {**plain(fields), **plain(value if isinstance(value, Interval) else {"value": value})}
