"""The leaderboard: all methods on all data sets, the runs of sweeps/leaderboard_*.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairall.config.compose import PLACES
from fairall.report.board import BASELINE, RIVAL, board, cpu_seconds
from fairall.report.build import copy_figures, made, refuse_page
from fairall.report.curves import curves
from fairall.report.leaderboard_figures import board_figures
from fairall.report.leaderboard_tables import (
    care_table,
    in_words,
    standings_table,
    task_table,
    versus_in_words,
    versus_table,
)
from fairall.report.plan import LEADERBOARD, added, plan
from fairall.report.reproduce import make
from fairall.results.finished import collect
from fairall.results.interpretable import interpretable, marked, own_name
from fairall.results.page import cautioned, rendered, write, write_page
from fairall.results.table import Item
from fairall.results.terminal import print_table

ALL, VERSUS = "All tasks", "FairAll and AdOpt"  # sections that compare methods


def leaderboard(overrides: Sequence[str], folder: Path | None, page: Path | None, jobs: int | None) -> bool:
    """Make the runs that are missing, and write a page of them; return whether all runs are there.

    Args:
        overrides: words that pick from the axes of the sweeps, or are added to every command.
        folder: of the page; None: `leaderboard` in outputs_dir.
        page: Markdown file to write too, with its figures in the folder `figures` beside it.
        jobs: number of runs at once; None: one per core.
    """
    planned = plan(LEADERBOARD, overrides)
    config = planned[0].config
    refuse_page(page, config)
    failures = make(planned, overrides, jobs=jobs)
    outputs = Path(config["outputs_dir"])
    folder = folder or outputs / own_name("leaderboard", config)
    finished = sorted(collect(outputs / "runs").runs, key=lambda run: run.finished)
    by_key = {run.key: run for run in finished}
    own = board(
        [replace(one, run=by_key.get(one.key)) for one in planned],
        {one.key: reason for one, reason in failures},
        cpu_seconds(outputs / "reproduction.csv"),
    )
    opening = in_words(own, added(overrides))
    main, versus, care = standings_table(own), versus_table(own, BASELINE, RIVAL), care_table(own)
    figures = [item for item in board_figures(own) if item.shown]
    over_time = [item for item in curves(own.planned) if item.shown]
    of_tasks = [task_table(own, name) for name in dict.fromkeys(task.dataset for task in own.tasks)]
    sections: dict[str, list[Item]] = {
        ALL: [main, *figures],
        VERSUS: [versus],
        "Data sets": [*of_tasks],
        "Runs to read with care": [care],
        "Methods over time": [*over_time],
    }
    if not interpretable(config):
        del sections[ALL], sections[VERSUS]
    shown = {
        name: cautioned([item for item in some if item.shown], config) for name, some in sections.items()
    }
    title = marked("FairAll: the leaderboard", config)
    write_page(
        folder, title, {name: some for name, some in shown.items() if some},
        opening=opening, made=made(),
    )  # fmt: skip
    for table in [main] if interpretable(config) else of_tasks:
        print_table(table)
    print(f"Page: {folder / 'index.html'}")
    if page is not None:
        copy_figures([*figures, *over_time], folder, page)
        values = {
            "opening": opening, "main": main, "figures": figures, "versus": versus,
            "counts": versus_in_words(versus), "tables": of_tasks, "care": care, "made": made(),
            "whole": all(word.startswith(PLACES) for word in overrides),
        }  # fmt: skip
        text = rendered("leaderboard.md.jinja", values, "fairall.report")
        write(page, text.rstrip() + "\n")
        print(f"Results: {page}")
    return not failures
