"""Rows of a table of comparable runs: a column per measure, the best marked, with tests of differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairall.display.format import mean_interval, mean_std
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
    names: Mapping[str, str],
    baseline: str,
    printed: Printed = lambda run, measure, mean: ("", {}),
    untested: Sequence[str] = (),
    at_last: bool = False,
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Rows of comparable runs and a record per value; last, rows of the references that a run measured.

    Args:
        group: title of the group.
        runs: by name; not compared where their numbers may not be interpreted.
        measures: one column each, after the number of seeds.
        names: of the runs, as shown.
        baseline: name of the run that the others are compared with.
        printed: what stands beside each value.
        untested: names of runs that are not compared.
        at_last: whether values are those at the last time step, not of the whole run.
    """
    read = Result.last if at_last else Result.values
    compared = all(run.interpretable for run in runs.values())
    columns: dict[str, dict[str, dict[str, Any]]] = {}
    for measure in measures:
        values = {name: read(run, measure.name) for name, run in runs.items()}
        known = {name: series for name, series in values.items() if len(series)}
        columns[measure.name] = standings(known, measure, baseline, untested if compared else tuple(runs))
    rows, records = [], []
    for name, run in runs.items():
        cells = [Cell(str(len(run.seeds)))]
        for measure in measures:
            standing = columns[measure.name].get(name)
            mean = standing["mean"] if standing else None
            beside, further = printed(run, measure, mean) if compared else ("", {})
            cells.append(_judged(standing, beside))
            if standing:
                who = {"model": run.name("model"), "run": run.identity, "measure": measure.name}
                records.append(who | standing | further)
        rows.append(Row(group, names[name], cells))
    for policy in WITH_ROW:
        keys = {one.name: f"mean_{one.name}" if at_last else one.name for one in measures}
        found = {name: first_reference(runs.values(), policy, key) for name, key in keys.items()}
        if any(found.values()):
            shown = [Cell(mean_std(one.mean, one.std) if one else "") for one in found.values()]
            rows.append(Row(group, REFERENCES[policy], [Cell(), *shown]))
            who = {"model": policy, "run": policy}
            for name, one in found.items():
                records += [who | {"measure": name, "mean": one.mean, "std": one.std}] if one else []
    return rows, records


def with_references(note: str, rows: Iterable[Row]) -> str:
    """A note on rows, with a sentence on each reference that has a row."""
    names = {row.name for row in rows}
    said = [text for policy, text in REFERENCE_NOTES.items() if REFERENCES[policy] in names]
    return " ".join([note, *said])


def first_reference(runs: Iterable[Result], policy: str, measure: str) -> Spread | None:
    """A measure of a reference policy from the first of some comparable runs that has it."""
    return next((found for run in runs if (found := run.reference(policy, measure)) is not None), None)


def _judged(standing: Mapping[str, Any] | None, beside: str) -> Cell:
    """A cell with a standing, of `statistics.standings`, beside a printed value."""
    if standing is None:
        return Cell(beside=beside)
    marks, tests = [], []
    for letter, role in (("F", "baseline"), ("R", "rival")):
        p = standing.get(f"p_{role}")
        if p is not None:
            better = standing[f"better_than_{role}"]
            apart = Spread(
                standing[f"difference_{role}"], None, (standing[f"low_{role}"], standing[f"high_{role}"])
            )
            said = f"{'better' if better else 'worse'} than {standing[role]}"
            tests.append(f"{said}, difference {mean_interval(apart)}, p = {p:.3g}")
            marks += [f"{letter}{'+' if better else '−'}"] if p < LEVEL else []
    shown = mean_std(standing["mean"], standing["std"])
    return Cell(shown, beside, standing["best"], " ".join(marks), "; ".join(tests))
