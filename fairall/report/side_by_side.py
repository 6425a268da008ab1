"""Rows of a table of comparable runs: a column per measure, the best marked, with tests of differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairall.display.format import mean_std
from fairall.display.table import Cell, Row
from fairall.metrics import Quantity, Spread
from fairall.report.statistics import LEVEL, standings
from fairall.results.paper import REFERENCES
from fairall.results.result import Result

# Reference policies with a row; accepting nobody has 0 in every column.
WITH_ROW = ("accept_all", "oracle", "oracle_fair")
REFERENCE_NOTES = {
    "accept_all": "Accept everybody: a policy with π = 1 on the same people at the same cost, for reference, "
    "not tested; accepting nobody has 0 in every column by definition.",
    "oracle": "Knows every label: a logistic regression or boosted trees on the labels of all training rows, "
    "accepted or not, but no person's own; it accepts where p ≥ c, or, with parity, at one rate in both "
    "groups.",
}

Printed = Callable[[Result, Quantity, "float | None"], "tuple[str, dict[str, Any]]"]
"""What stands beside the mean of a run and a measure: as shown, and as fields of a record."""


def group_rows(
    group: str,
    runs: Mapping[str, Result],
    measures: Sequence[Quantity],
    *,
    names: Mapping[str, str] | None = None,
    baseline: str | None = None,
    printed: Printed = lambda run, measure, mean: ("", {}),
    untested: Sequence[str] = (),
    at_last: bool = False,
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Rows of comparable runs and a record per value; last, rows of the references that a run measured.

    Args:
        group: title of the group.
        runs: by name; not compared where their numbers may not be interpreted.
        measures: one column each, after the number of seeds.
        names: of the runs, as shown; their keys by default.
        baseline: name of the run that the others are compared with; the first by default.
        printed: what stands beside each value.
        untested: names of runs that are not compared.
        at_last: whether values are those at the last time step, not of the whole run.
    """
    read = Result.last if at_last else Result.values
    compared = all(run.interpretable for run in runs.values())
    shown = {name: (run.name("model"), run.identity, str(len(run.seeds))) for name, run in runs.items()}
    shown |= {REFERENCES[policy]: (policy, policy, "") for policy in WITH_ROW}
    columns = {}
    untested = untested if compared else [*runs]
    for measure in measures:
        key = f"mean_{measure.name}" if at_last else measure.name
        values = {name: series for name, result in runs.items() if len(series := read(result, measure.name))}
        columns[measure] = standings(values, measure, baseline or next(iter(runs)), untested)
        for policy in WITH_ROW:
            if spread := first_reference(runs.values(), policy, key):
                columns[measure][REFERENCES[policy]] = {"mean": spread.mean, "std": spread.std}
    rows, records = [], []
    for name, (model, identity, seeds) in shown.items():
        cells = [Cell(seeds)]
        for measure, column in columns.items():
            standing, run = column.get(name, {}), runs.get(name)
            beside, further = printed(run, measure, standing.get("mean")) if run and compared else ("", {})
            cells.append(_cell(standing, beside))
            if standing:
                records.append(
                    {"model": model, "run": identity, "measure": measure.name} | standing | further
                )
        rows += [Row(group, (names or {}).get(name, name), cells)] if any(cell.text for cell in cells) else []
    return rows, records


def with_references(note: str, rows: Iterable[Row]) -> str:
    """A note on rows, with a sentence on each reference that has a row."""
    names = {row.name for row in rows}
    return " ".join([note, *(text for key, text in REFERENCE_NOTES.items() if REFERENCES[key] in names)])


def first_reference(runs: Iterable[Result], policy: str, measure: str) -> Spread | None:
    """A measure of a reference policy from the first of some comparable runs that has it."""
    return next((spread for run in runs if (spread := run.reference(policy, measure)) is not None), None)


def _cell(standing: Mapping[str, Any], beside: str = "") -> Cell:
    """A cell with a standing, of `statistics.standings`, beside a printed value."""
    marks = [
        f"{letter}{'+' if standing[f'better_than_{role}'] else '−'}"
        for letter, role in (("F", "baseline"), ("R", "rival"))
        if (p := standing.get(f"p_{role}")) is not None and p < LEVEL
    ]
    shown = mean_std(standing.get("mean"), standing.get("std"))
    return Cell(shown, beside, standing.get("best", False), " ".join(marks))
