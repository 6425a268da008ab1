"""Comparison of runs: measures, configuration keys that differ, and curves over time."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.config.choices import flattened
from fairall.display.format import CAUTION, interpretable, marked
from fairall.display.page import PageFigure, cautioned, write_page
from fairall.display.style import COLUMN, GREY, PALETTE, handles_of, legend_below
from fairall.display.table import Cell, PageTable, Row, frame_of, records_of
from fairall.errors import FairAllError
from fairall.metrics import Quantity
from fairall.report.comparable import RULE, UNTESTED, Comparable, difference, grouped
from fairall.report.labels import measures, method_label
from fairall.report.side_by_side import WITH_ROW, first_reference, group_rows, with_references
from fairall.report.statistics import LEVEL
from fairall.results.figures import band, has_level, level
from fairall.results.result import Result
from fairall.results.runs import load_result, run_folder
from fairall.storage.identity import determining

MEASURES = measures(
    *"effective_utility effective_dpu tv_utility mean_utility tv_dpu mean_dpu mean_cfu".split(),
    "mean_ground_truth_utility",
)
MARKS = (
    "Bold: best of its group. F: against the group's first run (two-sided Wilcoxon signed-rank test, "
    "Holm-corrected over the runs of a group and measure), R: against the best of its others (sign-flip "
    "test, corrected over all pairs of them, since the same seeds say which is the best); + significantly "
    f"better, − significantly worse (paired over seeds, p < {LEVEL:g})."
)
TESTS = {"p_baseline": "p_against_first", "p_rival": "p_against_best_other"}  # columns of the CSV
STYLES = ("-", "--", "-.", ":", (0, (4, 1, 1, 1, 1, 1)))  # of lines, for readers who see no colours
TITLE = 42  # bold characters in a line of a figure's column
LIBRARIES = ("fairall", "torch", "numpy", "pandas", "scipy", "matplotlib")


def chosen_runs(chosen: Sequence[str], runs_folder: Path) -> tuple[dict[str, Result], list[str]]:
    """Results by the number under which they are shown, and a line for each that is left out.

    Runs whose numbers may not be interpreted are left out where there are others.

    Args:
        chosen: folders of runs, or beginnings of their ids. Lock files, which lie beside the folders and
            match a shell's `*` too, are ignored.
        runs_folder: where ids are looked for, outputs/runs.

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
    runs = [load_result(path) for path in paths]
    sound = [run for run in runs if run.interpretable]
    left_out = [f"{run.path}: {CAUTION}" for run in runs if sound and not run.interpretable]
    if len(sound) == 1:
        raise FairAllError(f"compare needs at least two runs that can be compared; {left_out[0]}")
    return {str(i): run for i, run in enumerate(sound or runs, start=1)}, left_out


def compare(runs: Mapping[str, Result], left_out: Sequence[str], folder: Path) -> list[PageTable]:
    """Write index.html, tables/ and figures/ on some runs; return the tables.

    Runs are grouped by `comparable.conditions`. The best is marked, and tests are made, within a group,
    unless their numbers may not be interpreted.

    Args:
        runs: by number, the first of `chosen_runs`.
        left_out: its second.
        folder: to write to.

    Raises:
        FairAllError: where `folder` cannot be written.
    """
    preset = next(iter(runs.values())).config.preset
    names = {
        number: f"{number} {method_label(run.name('model'))}, {run.identity}" for number, run in runs.items()
    }
    groups = grouped(runs)
    # Temporal means of the policy's other measures.
    listed = {one.name: one.mean() for run in runs.values() for one in run.measures if one.of == "policy"}
    further = [one for one in listed.values() if one.name not in {known.name for known in MEASURES}]
    tables = [
        _side_by_side(key, title, groups, names, known)
        for key, title, of in (
            ("measures", "Runs side by side", MEASURES),
            ("further", "Further measures", further),
        )
        if (known := [one for one in of if any(len(run.values(one.name)) for run in runs.values())])
    ]
    tables.append(_configurations(runs, names))
    looks = {
        number: {"label": name, "color": PALETTE[i % len(PALETTE)], "ls": STYLES[i % len(STYLES)]}
        for i, (number, name) in enumerate(names.items())
    }
    figure = PageFigure(
        key="curves",
        title="Over time",
        note="Test utility and DPU, a row per group of comparable runs. Mean over seeds; the band is one "
        "standard deviation. Grey, where they were measured: levels of the reference policies.",
        draw=lambda: draw_over_time(runs, measures("utility", "dpu"), looks),
    )
    items = cautioned([*tables, figure], preset)
    title = marked("FairAll: runs side by side", preset)
    opening = [] if interpretable(preset) else [UNTESTED]
    write_page(folder, title, {"": items}, opening=opening, left_out=left_out, made=made())
    return [item for item in items if isinstance(item, PageTable)]


def made() -> str:
    """Versions; no time, so that a page of the same runs has the same bytes."""
    versions = [f"{name} {version(name)}" for name in LIBRARIES]
    return "; ".join([f"Python {platform.python_version()}", *versions])


def _side_by_side(
    key: str, title: str, groups: Sequence[Comparable], names: Mapping[str, str], of: Sequence[Quantity]
) -> PageTable:
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for group in groups:
        first = next(iter(group.runs))
        own_rows, own_records = group_rows(group.title, group.runs, of, names=names, baseline=first)
        rows += own_rows
        for own in own_records:
            records.append({"group": group.title} | {TESTS.get(name, name): v for name, v in own.items()})
    compared = all(run.interpretable for group in groups for run in group.runs.values())
    tests = MARKS if compared else UNTESTED
    note = f"{difference(groups)} ×100, mean ± standard deviation over seeds. {tests} {RULE}"
    columns = ["seeds", *(one.heading for one in of)]
    note = with_references(note.strip(), rows)
    return PageTable(
        key=key, title=title, note=note, frame=frame_of(columns, rows), records=records_of(records)
    )


def _configurations(runs: Mapping[str, Result], names: Mapping[str, str]) -> PageTable:
    """PageTable of the configuration keys that differ between runs."""
    flat = {number: flattened(determining(run.config.to_plain())) for number, run in runs.items()}
    rows, records = [], []
    for key in dict.fromkeys(key for values in flat.values() for key in values):
        values = [own.get(key) for own in flat.values()]
        if len({repr(value) for value in values}) > 1:
            shown = ["" if value is None else str(value) for value in values]
            rows.append(Row("", key, [Cell(text) for text in shown]))
            ids = [run.identity for run in runs.values()]
            records.append({"key": key} | dict(zip(ids, shown, strict=True)))
    return PageTable(
        key="configuration",
        title="Differences in configuration",
        note="Keys of the configuration that are not the same in all; empty where a run has no such key.",
        frame=frame_of(list(names.values()), rows),
        records=records_of(records),
    )


def draw_over_time(
    runs: Mapping[str, Result],
    of: Sequence[Quantity],
    looks: Mapping[str, Mapping[str, Any]],
    *,
    lines: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """Draw measures over time steps: mean over seeds, and a band of one standard deviation.

    Runs that are not comparable have separate panels. Grey lines are the levels of the references that a run
    has measured.

    Args:
        runs: by name.
        of: measures, one panel each.
        looks: `label`, `color` and `ls` of each run.
        lines: further levels by label and measure, plain units.
    """
    groups = grouped(runs)
    titles = [textwrap.wrap(group.title, TITLE) for group in groups] if len(groups) > 1 else []
    rows, columns = (len(of) + 1) // 2, min(2, len(of))
    height = 1.35 * rows * len(groups) + 0.15 * sum(map(len, titles)) + 0.35
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    shown: list[Axes] = []
    parts = figure.subfigures(len(groups), 1, squeeze=False)[:, 0]
    for part, words in zip(parts, titles, strict=False):
        part.suptitle("\n".join(words), fontweight="bold")
    for part, group in zip(parts, groups, strict=True):
        panels = part.subplots(rows, columns, squeeze=False).ravel()
        for axes, measure in zip(panels, of, strict=False):
            for name, run in group.runs.items():
                curve = run.curve(measure.name)
                if len(curve):
                    band(axes, curve, bounds=(measure.bounds[0], float("inf")), **looks[name])
            for i, (label, heights) in enumerate((lines or {}).items()):
                if measure.name in heights:
                    style = STYLES[1 + i % (len(STYLES) - 1)]
                    axes.axhline(100 * heights[measure.name], color=GREY, ls=style, lw=1, label=label)
            for policy in WITH_ROW:
                reference = first_reference(group.runs.values(), policy, f"mean_{measure.name}")
                if reference is not None and has_level(policy, measure):
                    level(axes, policy, reference.mean)
            axes.set(title=measure.heading, ylabel="×100", xlabel="time step t")
        shown.append(panels[0])
    handles = handles_of(shown)
    of_runs = {look["label"]: handles[look["label"]] for look in looks.values() if look["label"] in handles}
    legend_below(figure, of_runs | handles, 3)
    return figure
