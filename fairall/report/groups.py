"""Groups of comparable runs, and their rows in a table: a column per measure, the best marked, with tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from fairall.config.choices import flattened
from fairall.display.format import CAUTION, marked, mean_std
from fairall.display.table import Cell, Row
from fairall.metrics import Quantity, Spread
from fairall.report.labels import dataset_label
from fairall.report.statistics import LEVEL, standings
from fairall.results.paper import REFERENCES
from fairall.results.result import Result
from fairall.storage.identity import defines_problem, determining

RULE = (
    "A group has the same data set, split, cost, initial policy, number of applicants and time steps, "
    "evaluation and preset; its runs may differ in method, protocol, exploration, training, features used "
    "and seeds. Nothing is compared across groups; tests pair the seeds that both runs have."
)
UNTESTED = f"{CAUTION}; nothing is compared or tested."
# Keys of the problem in which compared runs may differ. The cost and the initial policy in use have keys of
# their own.
FREE = ("seed.", "seeds.", "dataset.cost.", "dataset.initial_policies.", "dataset.observed.")
FEATURES = ("dataset.drop.", "dataset.kinds.", "dataset.max_categories.", "dataset.max_count.")
# Reference policies with a row; accepting nobody has 0 in every column.
WITH_ROW = ("accept_all", "oracle", "oracle_fair")
REFERENCE_NOTES = {
    "accept_all": "Accept everybody: a policy with π = 1 on the same people at the same cost, for reference, "
    "not tested; accepting nobody has 0 in every column by definition.",
    "oracle": "Knows every label: a logistic regression or boosted trees on the labels of all training rows, "
    "accepted or not, but no person's own; it accepts where p ≥ c, or, with parity, at one rate in both "
    "groups.",
}

Runs = Mapping[str, Result]  # by name
Printed = Callable[[Result, Quantity, "float | None"], "tuple[str, dict[str, Any]]"]
"""What stands beside the mean of a run and a measure: as shown, and as fields of a record."""


def as_table(runs: Runs, values: Callable[[Result], Mapping[str, object]]) -> pd.DataFrame:
    """Values of runs as text: a row per run, a column per key, empty where a run has none."""
    return pd.DataFrame(map(values, runs.values()), [*runs], dtype=object).fillna("").map(str)


def conditions(run: Result) -> dict[str, object]:
    """The values that two runs must share to be comparable.

    All that defines the problem except `FREE`: data set and split (a CSV by its path), cost, initial policy,
    preset, `schedule.warm_up_applicants`, `schedule.applicants`, `schedule.time_steps`, `evaluation.split`,
    `evaluation.window`, and `protocol.effective`, which defines the effective measures. `FEATURES` too where
    propensities, and so the weights of labels, are estimated from the features.

    Returns:
        By dotted key; the first, `setting`, is a title.
    """
    config, dataset = run.config, dataset_label(run.name("dataset"))
    flat = flattened(determining(config.to_plain()))
    estimated = flat.get("dataset.decision") and not flat.get("dataset.propensity")
    free = FREE if estimated else (*FREE, *FEATURES)
    shared = {key: flat[key] for key in flat if defines_problem(key) and not f"{key}.".startswith(free)}
    setting = f"{dataset}, {config.worth}, {run.name('initial_policy')} initial policy"
    return {"setting": marked(setting, config.preset), **shared, "dataset.path": config.dataset.get("path")}


def grouped(runs: Runs) -> dict[str, Runs]:
    """Comparable runs by name, by title of their group, in the order of each group's first run.

    A title has data set, cost, initial policy, and the keys in which groups with the same of these differ.
    """
    table, groups = as_table(runs, conditions), dict[str, Runs]()
    for _, members in table.groupby(list(table), sort=False):
        values = members.iloc[0]
        alike = table[table["setting"] == values["setting"]]
        further = [f"{key} {values[key] or 'none'}" for key in table if alike[key].nunique() > 1]
        groups[", ".join([values["setting"], *further])] = {name: runs[name] for name in members.index}
    return groups


def group_rows(
    group: str,
    runs: Runs,
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
    read, prefix = (Result.last, "mean_") if at_last else (Result.values, "")
    compared = all(run.interpretable for run in runs.values())
    columns = {}
    for measure in measures:
        values = {name: series for name, run in runs.items() if len(series := read(run, measure.name))}
        left_out = untested if compared else [*runs]
        columns[measure] = standings(values, measure, baseline or next(iter(runs)), left_out)
        for policy in WITH_ROW:
            if spread := first_reference(runs.values(), policy, prefix + measure.name):
                columns[measure][REFERENCES[policy]] = {"mean": spread.mean, "std": spread.std}
    keys = {name: {"model": run.name("model"), "run": run.identity} for name, run in runs.items()}
    keys |= {REFERENCES[policy]: {"model": policy, "run": policy} for policy in WITH_ROW}
    rows, records = [], []
    for name, key in keys.items():
        run = runs.get(name)
        cells = [Cell(str(len(run.seeds)) if run else "")]
        for measure, column in columns.items():
            standing = column.get(name, {})
            beside, further = printed(run, measure, standing.get("mean")) if run and compared else ("", {})
            cells.append(_cell(standing, beside))
            if standing:
                records.append(key | {"measure": measure.name} | standing | further)
        if any(cell.text for cell in cells):
            rows.append(Row(group, (names or {}).get(name, name), cells))
    return rows, records


def with_references(note: str, rows: Iterable[Row]) -> str:
    """A note on rows, with a sentence on each reference that has a row."""
    names = [row.name for row in rows]
    return " ".join([note, *(text for key, text in REFERENCE_NOTES.items() if REFERENCES[key] in names)])


def first_reference(runs: Iterable[Result], policy: str, measure: str) -> Spread | None:
    """A measure of a reference policy from the first of some comparable runs that has it."""
    return next(filter(None, (run.reference(policy, measure) for run in runs)), None)


def _cell(standing: Mapping[str, Any], beside: str) -> Cell:
    """A cell with a standing, of `statistics.standings`, beside a printed value."""
    marks = [
        f"{letter}{'+' if standing[f'better_than_{role}'] else '−'}"
        for letter, role in (("F", "baseline"), ("R", "rival"))
        if (p := standing.get(f"p_{role}")) is not None and p < LEVEL
    ]
    shown = mean_std(standing.get("mean"), standing.get("std"))
    return Cell(shown, beside, standing.get("best", False), " ".join(marks))
