"""Terminal output of a run: a progress bar per phase, and a table of results."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column, Table

from fairall.data.table import group_name
from fairall.metrics import Quantity
from fairall.models.learner import ProgressCallback
from fairall.results.latent_quality import BOUNDS
from fairall.results.numbers import interval_text, mean_and_std
from fairall.results.table import Cell, without_empty
from fairall.results.table import Table as Item
from fairall.results.time_left import TimeLeft
from fairall.runtime.console import AnyConsole


class Display:
    """Progress on standard error, silent when that is no terminal; results on standard output.

    Args:
        progress_only: show no results, for one trial of many.
        terminal: for progress; standard error by default.
    """

    def __init__(self, *, progress_only: bool = False, terminal: Console | None = None) -> None:
        # Where FORCE_COLOR is set, as in notebooks, rich would take any stream for a terminal.
        self._progress_console = terminal or Console(stderr=True, force_terminal=sys.stderr.isatty())
        self._console = AnyConsole(quiet=progress_only)
        self._time_left = TimeLeft({})

    def run_of(self, units: dict[str, int]) -> None:
        """Set the phases of a run in order, with the units of each, so that its end can be estimated."""
        self._time_left = TimeLeft(units)

    @contextmanager
    def phase(self, name: str, total: int, *, done: int = 0) -> Iterator[ProgressCallback]:
        """A bar of `total` units, `done` of them by an earlier process; yields its `ProgressCallback`."""
        progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[measures]}", table_column=Column(no_wrap=True)),
            console=self._progress_console,
            disable=not self._progress_console.is_terminal,
        )
        time_left = self._time_left
        time_left.begin(name, total, done)
        with progress:
            task = progress.add_task(name, total=total, completed=done, measures="", left="")

            def advance(*, resumed: int | None = None, **measures: float) -> None:
                time_left.advance(resumed)
                shown = "  ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in measures.items())
                units = 1 if resumed is None else resumed
                progress.update(task, advance=units, measures=shown, left=time_left.in_words())

            yield advance
            if progress.tasks[task].completed < total:
                progress.update(task, left="stopped early")

    def say(self, text: str) -> None:
        """Print one line of plain text."""
        self._console.print(text, soft_wrap=True)

    def result(
        self, title: str, summary: dict[str, Any], paper: dict[str, tuple[float, float]], window: list[int]
    ) -> None:
        """Print the measures of a summary, beside those of accepting everybody and the paper's.

        Drawn decisions (`_sampled`) are shown where the paper prints the measure.
        """
        table = Table(title=title, title_justify="left", caption_justify="left")
        accept_all, rows = summary["references"]["accept_all"], []
        for name in (*shown_measures(summary["measures"], paper), *BOUNDS):
            measure = summary["aggregate"].get(name)
            if measure is not None:
                scale = 1 if name in BOUNDS else 100
                printed, reference = paper.get(name.removesuffix("_sampled")), accept_all.get(name)
                rows.append(
                    [
                        name,
                        mean_and_std(measure["mean"], measure["std"], scale),
                        interval_text(measure["interval"], scale),
                        "" if reference is None else mean_and_std(reference["mean"], None, scale),
                        "" if printed is None else mean_and_std(*printed, scale, digits=1),
                    ]
                )
        names = [row[0] for row in rows]
        latent = ", latent_* in plain units" if any(name in BOUNDS for name in names) else ""
        drawn = "; _sampled: from drawn decisions, as the paper's mean_ and tv_ are"
        table.caption = (
            f"×100{latent}. mean_ and tv_: mean and temporal variation over t in {window}"
            f"{drawn if any(name.endswith('_sampled') for name in names) else ''}. 95 % interval: of the "
            "mean over seeds, by Student's t. accept all: of accepting everybody of the same people; "
            f"accepting nobody gives 0. {_known_labels(summary['references'])}{noise(summary)}"
        )
        columns, rows = without_empty(
            ("measure", "mean ± std", "95 % interval", "accept\nall", "paper"), rows
        )
        for column in columns:
            table.add_column(column, justify="left" if column == "measure" else "right")
        for row in rows:
            table.add_row(*row)
        self._console.print_table(table)


def print_table(table: Item) -> None:
    """Print a table of a page, group by group, with its title and note."""
    console = AnyConsole()
    console.print(table.title, style="bold")
    console.print(f"{table.note.replace('Bold:', '*:')}\n")
    for group, rows in groupby(table.rows, key=attrgetter("group")):
        grid = Table(title=group or None, title_justify="left")
        shown = [[row.name, *map(_in_a_cell, row.cells)] for row in rows]
        columns, shown = without_empty(["", *table.columns], shown)
        for place, column in enumerate(columns):
            grid.add_column(column, justify="right" if place and column != "folder" else "left")
        for row in shown:
            grid.add_row(*row)
        console.print_table(grid)
    if table.lacking.commands:
        console.print(f"{table.lacking}.")
    console.print()


def _in_a_cell(cell: Cell) -> str:
    beside = f"({cell.beside})" if cell.beside else ""
    return " ".join(filter(None, (cell.ours + "*" * cell.best, cell.marks, beside)))


def shown_measures(measures: Mapping[str, Any], paper: Container[str]) -> list[str]:
    """Names of the rows of a run's table: measures of applicants, then the temporal ones of the policy."""
    names = [name for name, plain in measures.items() if plain["of"] == "applicants"]
    for name, plain in measures.items():
        if plain["of"] == "policy":
            measure = Quantity.from_plain(name, plain)
            temporal = [measure.mean().name, measure.variation().name]
            names += [*temporal, *(f"{name}_sampled" for name in temporal if name in paper)]
    return names


def _known_labels(references: Mapping[str, Any]) -> str:
    """A sentence on the classifier that knows every label, empty where it was not measured."""
    said = []
    for policy in ("oracle", "oracle_fair"):
        found = {name: references.get(policy, {}).get(name) for name in ("mean_utility", "mean_dpu")}
        if not all(found.values()):  # no DPU where a group is absent
            return ""
        said.append(" and ".join(f"{name} {100 * one['mean']:.2f}" for name, one in found.items()))
    return (
        f"A classifier fitted to every training label has {said[0]}, with parity of the training people "
        f"{said[1]}. "
    )


def noise(summary: Mapping[str, Any]) -> str:
    """A sentence on the noise of the evaluation people, which intervals over seeds do not include.

    Args:
        summary: of a run.
    """
    evaluation = summary["evaluation"]
    split, people = evaluation["split"], evaluation["people"]
    error = evaluation["utility_standard_error"]
    if error is None:
        return f"Measured on {people} {split} people."
    worth = ""
    if evaluation["labelled"] < people:
        worth = (
            f" ({evaluation['labelled']} labels, worth {evaluation['effective_sample_size']:.0f} equally "
            "weighted ones)"
        )
    said = (
        f"Noise of the evaluation people, which these intervals leave out: {people} {split} people{worth} "
        f"give the utility a standard error of {100 * error:.1f}"
    )
    of_dpu = evaluation["dpu_standard_error"]
    if of_dpu is None:
        return f"{said}."
    groups = [(s, summary["groups"][name]) for s, name in ((-1, "disadvantaged"), (1, "advantaged"))]
    sizes = " and ".join(f"{of['people'][split]} with {group_name(s, of['values'])}" for s, of in groups)
    return (
        f"{said} and the DPU one of {100 * of_dpu:.1f}, from {sizes}: a policy with parity on other people "
        "need not have it on these."
    )
