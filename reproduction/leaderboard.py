"""The leaderboard: all methods on all data sets, the runs of sweeps/leaderboard_*.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairall import load_results
from fairall.display import Item
from fairall.report import UNTESTED
from reproduction.board import BASELINE, RIVAL, Board, cpu_seconds
from reproduction.figures import curve_figures
from reproduction.leaderboard_figures import board_figures
from reproduction.leaderboard_tables import (
    WORDS,
    care_table,
    method_table,
    standings_table,
    task_table,
    versus_table,
)
from reproduction.pages import publish, refuse
from reproduction.plan import LEADERBOARD, VARIANTS, grid, interpretable, plan, runs_of, with_runs
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
    planned = with_runs(planned, load_results(outputs / "runs").results)
    reasons, cpu = {one.key: reason for one, reason in failures}, cpu_seconds(outputs / "reproduction.csv")
    plain = [one for one in planned if one.sweep not in VARIANTS]
    every, own = (Board(some, reasons, cpu) for some in (planned, plain))
    sections: dict[str, Sequence[Item]] = {}
    opening = WORDS["opening"].format(
        methods=len(own.methods),
        tasks=len(own.runs),
        further=len(every.methods) - len(own.methods),
        finished=len(runs_of(planned)),
        runs=len(planned),
    )
    if not interpretable(config.preset):
        opening += f" {UNTESTED} Standings and ranks are left out."
    else:
        short, standings = (standings_table(own, f"leaderboard{of}") for of in ("_short", ""))
        sections["All tasks"] = [short, standings, *board_figures(own)]
        sections["Rows that decide alike"] = [standings_table(every, "leaderboard_alike")]
        sections["FairAll and AdOpt"] = [versus_table(own, BASELINE, RIVAL)]
    sections |= {
        "Data sets": [task_table(every, dataset) for dataset in every.runs],
        "Runs to read with care": [care_table(every)],
        "Methods over time": curve_figures(plain, **WORDS["curve"]),
        "Methods": [method_table(own, name) for name in own.methods],
    }
    axes = {"leaderboard": grid(LEADERBOARD[0]).dataset, "method": grid(LEADERBOARD[0]).model}
    publish(
        "leaderboard",
        WORDS["title"],
        sections,
        config,
        folder=folder,
        into=into,
        known=lambda: [f"{key}_{name}" for key, axis in axes.items() for name in axis.split(",")],
        runs=planned,
        opening=[opening],
    )
    return not failures
