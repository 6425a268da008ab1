"""Rows of questions that compare tools in several settings: means, and the first tool of each setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from fairall import Result
from fairall.metrics import Quantity
from fairall.report import LEVEL, paired_difference, standings
from fairall.results import Cell, Row, mean_interval


class Setting(Protocol):
    """Where tools are compared, a NamedTuple of the values that settings differ in."""

    @property
    def label(self) -> str:
        """The values in words."""

    def _asdict(self) -> dict[str, Any]: ...


S = TypeVar("S", bound=Setting)
Found = Mapping[S, Mapping[str, Result]]  # runs by setting and tool
Rows = tuple[list[Row], list[dict[str, Any]]]  # rows as shown, and records


def mean_rows(found: Found[S], measures: Iterable[Quantity], digits: Mapping[str, int] | None = None) -> Rows:
    """A row per setting and tool: means over seeds ×100 with 95 % intervals. A record per seed and measure.

    Args:
        found: runs by setting and tool.
        measures: a column each.
        digits: decimals by name of a measure; 1 by default.
    """
    measures, digits = list(measures), digits or {}
    rows, records = [], []
    for setting, runs in found.items():
        for tool, run in runs.items():
            cells = [mean_interval(run.spread(one.name), digits=digits.get(one.name, 1)) for one in measures]
            rows.append(Row(setting.label, tool, cells))
            records += [
                setting._asdict() | {"tool": tool, "measure": one.name, "seed": seed, "value": value}
                for one in measures
                for seed, value in run.values(one.name).items()
            ]
    return rows, records


def first_rows(
    found: Found[S], measures: Iterable[Quantity], digits: Mapping[str, int] | None = None
) -> Rows:
    """A row per setting: the first tool by each measure, and by how much it is before the next.

    Bold where the two differ at `LEVEL`, corrected for all pairs of tools of the setting.

    Args:
        found: runs by setting and tool.
        measures: a column each.
        digits: decimals by name of a measure; 1 by default.
    """
    measures, digits = list(measures), digits or {}
    rows, records = [], []
    for setting, runs in found.items():
        cells = []
        for measure in measures:
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
    return rows, records
