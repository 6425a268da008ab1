"""Tables of questions that compare tools in several settings: means, and the first tool of each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fairall import Result
from fairall.display import Cell, PageTable, Row, mean_interval
from fairall.metrics import Quantity
from fairall.report import LEVEL, paired_difference, standings
from reproduction.items import means_of, table_of
from reproduction.plan import Planned


class Setting(Protocol):
    """Where tools are compared, a NamedTuple of the values that settings differ in."""

    @property
    def label(self) -> str:
        """The values in words."""

    def _asdict(self) -> dict[str, Any]: ...


S = TypeVar("S", bound=Setting)
Found = Mapping[S, Mapping[str, Result]]  # runs by setting and tool


def means_table(
    found: Found[S],
    measures: Mapping[str, Quantity],
    planned: Sequence[Planned] = (),
    digits: Mapping[str, int] | None = None,
    **shown: str,
) -> PageTable:
    """A row per setting and tool: means over seeds ×100 with 95 % intervals. A record per seed and measure.

    Args:
        found: runs by setting and tool.
        measures: by heading of their column.
        planned: all runs, finished or missing.
        digits: decimals by name of a measure; 1 by default.
        shown: key, title and note.
    """
    rows, records = [], []
    for setting, runs in found.items():
        for tool, run in runs.items():
            cells, values = means_of(run, measures.values(), digits)
            rows.append(Row(setting.label, tool, cells))
            records += [setting._asdict() | {"tool": tool} | one for one in values]
    return table_of([*measures], rows, records, planned, **shown)


def first_table(
    found: Found[S],
    measures: Mapping[str, Quantity],
    planned: Sequence[Planned] = (),
    digits: Mapping[str, int] | None = None,
    **shown: str,
) -> PageTable:
    """A row per setting: the first tool by each measure, and by how much it is before the next.

    Bold where the two differ at `LEVEL`, corrected for all pairs of tools of the setting.

    Args:
        found: runs by setting and tool.
        measures: by heading of their column.
        planned: all runs, finished or missing.
        digits: decimals by name of a measure; 1 by default.
        shown: key, title and note.
    """
    digits = digits or {}
    rows, records = [], []
    for setting, runs in found.items():
        cells = []
        for measure in measures.values():
            values = {tool: run.values(measure.name) for tool, run in runs.items()}
            values = {tool: own for tool, own in values.items() if len(own)}
            judged = standings(values, measure, baseline="") if len(values) > 1 else {}
            first = next((tool for tool, one in judged.items() if one["best"]), None)
            if first is None:
                cells.append(Cell(""))
                continue
            one = judged[first]
            apart = paired_difference(values[first], values[one["rival"]])
            ahead = mean_interval(apart, digits=digits.get(measure.name, 1))
            differs = one["p_rival"] is not None and one["p_rival"] < LEVEL
            cells.append(Cell(f"{first}, {ahead} from {one['rival']}", best=differs))
            records.append(
                setting._asdict()
                | {"measure": measure.name, "first": first, "next": one["rival"], "p": one["p_rival"]}
                | {key: one[f"{key}_rival"] for key in ("difference", "low", "high")}
            )
        rows.append(Row("", setting.label, cells))
    return table_of([*measures], rows, records, planned, **shown)
