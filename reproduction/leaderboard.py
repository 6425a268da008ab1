"""The leaderboard: all methods on all data sets, the runs of sweeps/leaderboard_*.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairall import load_results
from fairall.display import Item, print_table
from fairall.report import UNTESTED
from reproduction.board import BASELINE, RIVAL, board, cpu_seconds
from reproduction.figures import curve_figures
from reproduction.leaderboard_figures import board_figures
from reproduction.leaderboard_tables import (
    alike_table,
    care_table,
    method_table,
    short_table,
    standings_table,
    task_table,
    versus_table,
)
from reproduction.pages import publish, refuse
from reproduction.plan import LEADERBOARD, VARIANTS, grid, interpretable, plan
from reproduction.runs import make


def leaderboard(
    overrides: Sequence[str], folder: Path | None = None, into: Sequence[Path] = (), jobs: int | None = None
) -> bool:
    """Make the runs that are missing, and write a page of them; return whether all runs are there.

    Args:
        overrides: words that pick from the axes of the sweeps, or are added to every command.
        folder: of the page; None: `leaderboard` in outputs_dir.
        into: pages of the documentation with blocks to fill.
        jobs: number of runs at once; None: one per core.
    """
    planned = plan(LEADERBOARD, overrides)
    config = planned[0].config
    refuse(into, config)
    failures = make(planned, overrides, jobs=jobs)
    outputs = Path(config.outputs_dir)
    finished = sorted(load_results(outputs / "runs").results, key=lambda run: run.finished)
    by_key = {run.key: run for run in finished}
    planned = [replace(one, run=by_key.get(one.key)) for one in planned]
    reasons, cpu = {one.key: reason for one, reason in failures}, cpu_seconds(outputs / "reproduction.csv")
    every, own = (
        board(some, reasons, cpu) for some in (planned, [one for one in planned if one.sweep not in VARIANTS])
    )
    tables = [task_table(every, name) for name in dict.fromkeys(task.dataset for task in every.tasks)]
    standings = standings_table(own)
    sections: dict[str, list[Item]] = {
        "All tasks": [short_table(own), standings, *board_figures(own)],
        "Rows that decide alike": [alike_table(every)],
        "FairAll and AdOpt": [versus_table(own, BASELINE, RIVAL)],
        "Data sets": [*tables],
        "Runs to read with care": [care_table(every)],
        "Methods over time": [*curve_figures(own.planned)],
        "Methods": [method_table(own, name) for name in own.methods],
    }
    n = sum(one.run is not None for one in planned)
    opening = [
        f"{len(own.methods)} methods on {len(own.tasks)} tasks, a task being a data set with an initial "
        f"policy, and {len(every.methods) - len(own.methods)} of them with other words. "
        f"Finished runs: {n} of {len(planned)}."
    ]
    compared = interpretable(config.preset)
    if not compared:
        for of_comparisons in ("All tasks", "Rows that decide alike", "FairAll and AdOpt"):
            del sections[of_comparisons]
        opening.append(f"{UNTESTED} Standings and ranks are left out.")
    for table in [standings] if compared else tables:
        print_table(table)
    publish(
        "leaderboard",
        "FairAll: the leaderboard",
        sections,
        config,
        folder=folder,
        into=into,
        known=lambda: [
            f"{kind}_{name}"
            for axes in map(grid, LEADERBOARD)
            for kind, names in (
                ("leaderboard", axes.dataset),
                ("method", axes.model),
            )
            for name in names.split(",")
        ],
        runs=planned,
        opening=opening,
    )
    return not failures
