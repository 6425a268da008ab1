"""Comparison of runs: measures, configuration keys that differ, and curves over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairall.errors import FairAllError
from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.build import made
from fairall.report.comparable import RULE, UNTESTED, Group, difference, grouped
from fairall.report.figures import BAND, LEVELS, UTILITY_AND_DPU, draw_over_time
from fairall.report.statistics import LEVEL
from fairall.report.tables import group_rows, with_references
from fairall.results.finished import Run, read_named, run_folder
from fairall.results.interpretable import CAUTION, interpretable, marked
from fairall.results.page import PageFigure, cautioned, write_page
from fairall.results.table import Cell, Row, Table
from fairall.storage.identity import determining, flattened

MEASURES = (*labels.EFFECTIVE, *labels.TEMPORAL, *labels.measures("mean_cfu", "mean_ground_truth_utility"))
MARKS = (
    "Bold: best of its group. F: against the group's first run, R: against the best of its others; "
    "+ significantly better, − significantly worse (two-sided Wilcoxon signed-rank test, paired over seeds, "
    f"Holm-corrected over the runs of a group and measure, p < {LEVEL:g})."
)
TESTS = {"p_baseline": "p_against_first", "p_rival": "p_against_best_other"}  # columns of the CSV


def chosen_runs(chosen: Sequence[str], runs_folder: Path) -> tuple[dict[str, Run], list[str]]:
    """Runs by the number under which they are shown, and a line for each that is left out.

    Runs whose numbers may not be interpreted are left out where there are others.

    Args:
        chosen: folders of runs, or ids beneath `runs_folder`, of which a beginning is enough. Lock files,
            which lie beside the folders and match a shell's `*` too, are ignored.
        runs_folder: outputs/runs.

    Raises:
        FairAllError: where there are fewer than two, or one is not usable.
    """
    words = [word for word in chosen if not (word.endswith(".lock") and Path(word).is_file())]
    if len(words) < 2:
        raise FairAllError("compare needs at least two runs: folders, or ids of outputs/runs")
    paths = [run_folder(word, runs_folder) for word in words]
    repeated = next((path for path in paths if paths.count(path) > 1), None)
    if repeated is not None:
        raise FairAllError(f"{repeated} is named twice")
    runs = [read_named(path) for path in paths]
    sound = [run for run in runs if interpretable(run.config)]
    left_out = [f"{run.path}: {CAUTION}" for run in runs if sound and not interpretable(run.config)]
    if len(sound) == 1:
        raise FairAllError(f"compare needs at least two runs that can be compared; {left_out[0]}")
    return {str(i): run for i, run in enumerate(sound or runs, start=1)}, left_out


def compare(runs: Mapping[str, Run], left_out: Sequence[str], folder: Path) -> list[Table]:
    """Write index.html, tables/ and figures/ on some runs; return the tables.

    Runs are grouped by `comparable.conditions`. The best is marked, and tests are made, within a group,
    unless their numbers may not be interpreted.

    Args:
        runs: by number, and
        left_out: of `chosen_runs`.
        folder: to write to.

    Raises:
        FairAllError: where `folder` cannot be written.
    """
    config = next(iter(runs.values())).config
    names = {
        number: f"{number} {labels.method(run.name('model'))}, {run.path.name}"
        for number, run in runs.items()
    }
    groups = grouped(runs)
    # Temporal means of the policy's other measures.
    listed = {one.name: one.mean() for run in runs.values() for one in run.measures if one.of == "policy"}
    further = [one for one in listed.values() if one.name not in {known.name for known in MEASURES}]
    tables = [
        _side_by_side(key, title, groups, names, known)
        for key, title, measures in (
            ("measures", "Runs side by side", MEASURES),
            ("further", "Further measures", further),
        )
        if (known := [one for one in measures if any(len(run.per_seed(one.name)) for run in runs.values())])
    ]
    tables.append(_configurations(runs, names))
    text = f"Test utility and DPU, a row per group of comparable runs. {BAND} {LEVELS}"
    figure = PageFigure(
        key="curves", title="Over time", note=text,
        draw=lambda: draw_over_time(runs, UTILITY_AND_DPU, labels=names),
    )  # fmt: skip
    items = cautioned([*tables, figure], config)
    title = marked("FairAll: runs side by side", config)
    opening = [] if interpretable(config) else [UNTESTED]
    write_page(folder, title, {"": items}, opening=opening, left_out=left_out, made=made())
    return [item for item in items if isinstance(item, Table)]


def _side_by_side(
    key: str, title: str, groups: Sequence[Group], names: Mapping[str, str], measures: Sequence[Quantity]
) -> Table:
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for group in groups:
        first = next(iter(group.runs))
        own_rows, own_records = group_rows(group.title, group.runs, measures, names=names, baseline=first)
        rows += own_rows
        for own in own_records:
            records.append({"group": group.title} | {TESTS.get(name, name): v for name, v in own.items()})
    compared = all(interpretable(run.config) for group in groups for run in group.runs.values())
    note = (
        f"{difference(groups)} ×100, mean (standard deviation over seeds). {MARKS if compared else UNTESTED} "
        f"{RULE}"
    )
    note, columns = with_references(note.strip(), rows), ["seeds", *(one.heading for one in measures)]
    return Table(key=key, title=title, note=note, columns=columns, rows=rows, records=records)


def _configurations(runs: Mapping[str, Run], names: Mapping[str, str]) -> Table:
    """Table of the configuration keys that differ between runs."""
    flat = {number: flattened(determining(run.config)) for number, run in runs.items()}
    rows, records = [], []
    for key in dict.fromkeys(key for values in flat.values() for key in values):
        values = [own.get(key) for own in flat.values()]
        if len({repr(value) for value in values}) > 1:
            shown = ["" if value is None else str(value) for value in values]
            rows.append(Row("", key, [Cell(text) for text in shown]))
            ids = [run.path.name for run in runs.values()]
            records.append({"key": key} | dict(zip(ids, shown, strict=True)))
    return Table(
        key="configuration",
        title="Differences in configuration",
        note="Keys of the configuration that are not the same in all; empty where a run has no such key.",
        columns=list(names.values()),
        rows=rows,
        records=records,
    )
