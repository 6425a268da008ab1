"""Comparison of runs: measures, configuration keys that differ, and curves over time."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fairall.config.choices import flattened
from fairall.display.page import PageFigure, write_page
from fairall.display.style import COLUMN, GREY, PALETTE, handles_of, legend_below
from fairall.display.table import PageTable, frame_of, records_of
from fairall.errors import FairAllError
from fairall.metrics import Quantity
from fairall.report.groups import (
    RULE,
    UNTESTED,
    WITH_ROW,
    Runs,
    as_table,
    first_reference,
    group_rows,
    grouped,
    with_references,
)
from fairall.report.labels import measures, method_label
from fairall.report.statistics import LEVEL
from fairall.results.figures import band, level
from fairall.results.result import Result
from fairall.results.runs import load_result, run_folder
from fairall.storage.files import sha256_of_text
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
SHOWN = measures("utility", "dpu")  # over time
CURVES = (
    "Test utility and DPU over time: mean over seeds; the band is one standard deviation. Grey, where they "
    "were measured: levels of the reference policies."
)
LIBRARIES = ("fairall", "torch", "numpy", "pandas", "scipy", "matplotlib")


def chosen_runs(chosen: Sequence[str], runs_folder: Path) -> dict[str, Result]:
    """Results by the name under which they are shown.

    Args:
        chosen: folders of runs, or beginnings of their ids. Lock files, which lie beside the folders and
            match a shell's `*` too, are ignored.
        runs_folder: where ids are looked for, outputs/runs.

    Raises:
        FairAllError: where there are fewer than two different ones, or one is not usable.
    """
    folders = dict.fromkeys(run_folder(word, runs_folder) for word in chosen if not word.endswith(".lock"))
    if len(folders) < 2:
        raise FairAllError("compare needs at least two runs: folders, or ids of outputs/runs")
    runs = map(load_result, folders)
    return {f"{i} {method_label(run.name('model'))}, {run.identity}": run for i, run in enumerate(runs, 1)}


def place(out: Path | None, default: Path, runs: Runs) -> Path:
    """The folder to write a page about some runs to, which never replaces a page about others.

    Args:
        out: by `-o`, if it was.
        default: the folder without `-o`; a hash of the ids is appended to its name.
        runs: in order.

    Raises:
        FairAllError: where the folder of `-o` has a page.
    """
    if out is None:
        identities = " ".join(run.identity for run in runs.values())
        return default.with_name(f"{default.name}_{sha256_of_text(identities)[:8]}")
    if (out / "index.html").exists():
        raise FairAllError(f"-o {out}: it has a page already; give another folder, or delete it")
    return out


def compare(
    runs: Runs,
    folder: Path,
    *,
    title: str = "runs side by side",
    quantities: Sequence[Quantity] = MEASURES,
    figures: Sequence[PageFigure] = (),
) -> list[PageTable]:
    """Write index.html, tables/ and figures/ on some runs; return the tables.

    The best is marked, and tests are made, within a group of comparable runs, unless their numbers may not be
    interpreted: then the title of the group says so. Each group has a figure.

    Args:
        runs: by name.
        folder: to write to.
        title: of the page.
        quantities: measures of the first table. The second has the temporal means of the policy's other
            measures.
        figures: further figures.

    Raises:
        FairAllError: where `folder` cannot be written.
    """
    temporal = (measure.mean() for run in runs.values() for measure in run.measures if measure.of == "policy")
    further = {measure.name: measure for measure in temporal if measure not in quantities}
    looks = {
        name: {"label": name, "color": color, "ls": style}
        for name, color, style in zip(runs, cycle(PALETTE), cycle(STYLES), strict=False)
    }
    curves = group_figures("curves", CURVES, runs, lambda members: draw_over_time(members, SHOWN, looks))
    tables = [
        _side_by_side("measures", "Runs side by side", runs, quantities),
        _side_by_side("further", "Further measures", runs, [*further.values()]),
        _configurations(runs),
    ]
    write_page(folder, f"FairAll: {title}", {"": [*tables, *figures, *curves]}, made=made())
    return tables


def group_figures(key: str, note: str, runs: Runs, draw: Callable[[Runs], Figure]) -> list[PageFigure]:
    """A figure of each group of comparable runs, which has the group's title.

    Args:
        key: name of their files; the number of the group is appended.
        note: on what they show.
        runs: by name.
        draw: draws the runs of a group.
    """
    return [
        PageFigure(key=f"{key}_{i}", title=title, note=note, draw=partial(draw, members))
        for i, (title, members) in enumerate(grouped(runs).items(), start=1)
    ]


def made() -> str:
    """Versions; no time, so that a page of the same runs has the same bytes."""
    versions = [f"{name} {version(name)}" for name in LIBRARIES]
    return "; ".join([f"Python {platform.python_version()}", *versions])


def _side_by_side(key: str, title: str, runs: Runs, quantities: Sequence[Quantity]) -> PageTable:
    """A table of the measures that a run has values of."""
    known = [measure for measure in quantities if any(len(run.values(measure.name)) for run in runs.values())]
    rows, records = [], []
    for group, members in grouped(runs).items():
        of_group, values = group_rows(group, members, known)
        rows += of_group
        records += [{"group": group} | record for record in values]
    tests = MARKS if any(run.interpretable for run in runs.values()) else UNTESTED
    return PageTable(
        key=key,
        title=title,
        note=with_references(f"×100, mean ± standard deviation over seeds. {tests} {RULE}", rows),
        frame=frame_of(["seeds", *(measure.heading for measure in known)], rows),
        records=records_of(records).rename(columns=TESTS),
    )


def _configurations(runs: Runs) -> PageTable:
    """A table of the configuration keys that differ between runs."""
    table = as_table(runs, lambda run: flattened(determining(run.config.to_plain())))
    differing = table.loc[:, table.nunique() > 1].T
    ids = [run.identity for run in runs.values()]
    return PageTable(
        key="configuration",
        title="Differences in configuration",
        note="Keys of the configuration that are not the same in all; empty where a run has no such key.",
        frame=differing.set_index([[""] * len(differing), differing.index]),
        records=differing.set_axis(ids, axis="columns").reset_index(names="key"),
    )


def draw_over_time(
    runs: Runs,
    quantities: Sequence[Quantity],
    looks: Mapping[str, Mapping[str, Any]],
    *,
    lines: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """Draw measures of comparable runs over time: mean over seeds, and a band of one standard deviation.

    Grey lines are the levels of the references that a run has measured.

    Args:
        runs: by name.
        quantities: measures, one panel each.
        looks: `label`, `color` and `ls` of each run.
        lines: further levels by label and measure, plain units.
    """
    rows = math.ceil(len(quantities) / 2)
    figure = Figure(figsize=(COLUMN, 1.35 * rows + 0.35), layout="constrained")
    for k, measure in enumerate(quantities, start=1):
        axes = figure.add_subplot(rows, min(2, len(quantities)), k)
        for name, run in runs.items():
            if len(curve := run.curve(measure.name)):
                band(axes, curve, bounds=(measure.bounds[0], math.inf), **looks[name])
        for style, (label, heights) in zip(cycle(STYLES[1:]), (lines or {}).items(), strict=False):
            axes.axhline(100 * heights.get(measure.name, math.nan), color=GREY, ls=style, lw=1, label=label)
        for policy in WITH_ROW:
            if spread := first_reference(runs.values(), policy, measure.mean().name):
                level(axes, policy, measure, spread.mean)
        axes.set(title=measure.heading, ylabel="×100", xlabel="time step t")
    legend_below(figure, handles_of(figure.axes), 3)
    return figure
