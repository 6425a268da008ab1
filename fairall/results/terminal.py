"""Terminal output of a run: a progress bar per phase, and a table of results."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from fairall.results.format import interval, mean_std, number
from fairall.results.table import print_frame
from fairall.runtime.console import AnyConsole
from fairall.runtime.steps import steps_told

CELL, REFRESHED = 100, 0.2  # columns of a notebook's cell, and seconds between two texts there
# Time of a unit of a phase, in epochs of Phase I. Measured for FairAll and FairLab on three data sets: 0.4 to
# 6 in the warm-up, 2.6 to 6 in Phase II.
EPOCHS = {"Phase I": 1, "Warm-up": 2, "Phase II": 4}

if TYPE_CHECKING:  # they import torch, and other commands show their progress too
    from fairall.models.learner import ProgressCallback
    from fairall.results.result import Result


class InCell:
    """Progress in the output of a notebook's cell, as one text that changes and is gone at the end.

    Rich's own needs ipywidgets.

    Args:
        progress: of rich, whose console is the notebook's.
    """

    def __init__(self, progress: Progress) -> None:
        from IPython.display import display

        self.progress, self.told = progress, time.monotonic()
        self.handle = display(self.text(), raw=True, display_id=True)

    def text(self) -> dict[str, str]:
        """The bars as they are now."""
        console = Console(file=io.StringIO(), force_jupyter=False, width=CELL, color_system=None)
        console.print(self.progress.get_renderable())
        assert isinstance(console.file, io.StringIO)
        return {"text/plain": console.file.getvalue().rstrip()}

    def update(self) -> None:
        """Show the bars, unless they were shown a moment ago."""
        if time.monotonic() - self.told >= REFRESHED:
            self.told = time.monotonic()
            self.handle.update(self.text(), raw=True)

    def clear(self) -> None:
        """Show nothing more: a notebook that is saved has no times."""
        self.handle.update({"text/plain": ""}, raw=True)


class Display:
    """Progress on standard error or in a notebook's cell, silent where there is neither; results on stdout.

    Args:
        progress_only: show no results, for one trial of many.
        terminal: for progress; standard error by default.
    """

    def __init__(self, *, progress_only: bool = False, terminal: Console | None = None) -> None:
        # Where FORCE_COLOR is set, as in notebooks, rich would take any stream for a terminal.
        self._progress_console = terminal or Console(stderr=True, force_terminal=sys.stderr.isatty())
        self._in_cell = terminal is None and self._progress_console.is_jupyter
        self._console = AnyConsole(quiet=progress_only)
        self._run: dict[str, int] = {}  # epochs of Phase I that the phases take as long as

    def run_of(self, units: dict[str, int]) -> None:
        """Set the phases of a run in order, with the units of each, so that its end can be estimated."""
        self._run = {name: EPOCHS[name] * number for name, number in units.items()}

    @contextmanager
    def phase(self, name: str, total: int, *, done: int = 0) -> Iterator[ProgressCallback]:
        """A bar of `total` units, `done` of them by an earlier process; yields its `ProgressCallback`.

        Beside it is what `runtime.steps.doing` says. Below it is a bar of the run, in epochs of Phase I, if
        the phase is one of `run_of`.
        """
        progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=10),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[measures]}", table_column=Column(no_wrap=True)),
            console=self._progress_console,
            disable=not self._progress_console.is_terminal,
            speed_estimate_period=math.inf,
        )
        names, epochs = list(self._run), EPOCHS.get(name, 0)
        before = sum(self._run[past] for past in names[: names.index(name)]) if name in names else 0
        of_run, behind = sum(self._run.values()), before + epochs * done
        with progress if not self._in_cell else nullcontext():
            task = progress.add_task(name, total=total, completed=done, measures="")
            run = progress.add_task("Run", visible=name in names, total=of_run, completed=behind, measures="")
            cell = InCell(progress) if self._in_cell else None

            def advance(*, resumed: int | None = None, **measures: float) -> None:
                shown = "  ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in measures.items())
                for one, units in ((task, 1), (run, epochs)):
                    if resumed is None:
                        progress.advance(one, units)
                    else:  # of an earlier process, which tell nothing about the speed
                        progress.reset(one, completed=int(progress.tasks[one].completed) + units * resumed)
                progress.update(task, measures=shown)
                if cell is not None:
                    cell.update()

            with steps_told(lambda what: progress.update(task, measures=what)):
                yield advance
            if progress.tasks[task].completed < total:
                progress.update(task, measures="stopped early")
            if cell is not None:
                cell.clear()

    def say(self, text: str) -> None:
        """Print one line of plain text."""
        self._console.print(text, soft_wrap=True)

    def result(self, result: Result) -> None:
        """Print the measures of a result, beside those of accepting everybody and the paper's."""
        if self._console.quiet:
            return
        rows = result.rows()
        latent = ", latent_* in plain units" if any(name.startswith("latent_") for name in rows.index) else ""
        drawn = "; _sampled: from drawn decisions, as the paper's mean_ and tv_ are"
        caption = (
            f"×100{latent}. mean_ and tv_: mean and temporal variation over t in {list(result.window)}"
            f"{drawn if any(name.endswith('_sampled') for name in rows.index) else ''}. 95 % interval: of "
            "the mean over seeds, by Student's t. accept all: of accepting everybody of the same people; "
            f"accepting nobody gives 0. {known_labels(result)}{noise(result)}"
        )
        frame = shown_measures(rows).drop(columns=["knows every label", "with parity"], errors="ignore")
        frame = frame.rename(columns={"accept all": "accept\nall"})
        print_frame(frame, title=result.title, caption=caption, first="measure")
        if len(result.named_groups) > 2:
            print_frame(by_group(result), title=f"By {result.sensitive_column}, ×100", first="group")


def shown_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The measures of `Result.rows` as text, ×100, those of a latent in plain units."""
    shown = {}
    for name, row in rows.iterrows():
        scale = 1 if name.startswith("latent_") else 100
        shown[name] = {
            "mean ± std": mean_std(row["mean"], row["std"], scale=scale, digits=2),
            "95 % interval": interval(row["low"], row["high"], scale=scale, digits=2),
            "accept all": number(row["accept_all"], scale, 2),
            "knows every label": number(row["oracle"], scale, 2),
            "with parity": number(row["oracle_fair"], scale, 2),
            "paper": mean_std(row["paper_mean"], row["paper_std"], scale=scale),
        }
    return pd.DataFrame.from_dict(shown, orient="index")


def by_group(result: Result) -> pd.DataFrame:
    """People, base rate and acceptance of each group and of everybody."""
    rows = {}
    for name, group in result.all_groups.items():
        rates = group.accepted, group.accepted_in_window
        of_all, in_window = ("" if one is None else mean_std(one.mean, one.std) for one in rates)
        rows[name] = {
            "people": str(sum(group.people.values())),
            f"{result.evaluation.split} people": str(group.people[result.evaluation.split]),
            "base rate": number(group.base_rate),
            "accepted applicants": of_all,
            f"over t in {list(result.window)}": in_window,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def known_labels(result: Result) -> str:
    """A sentence on the classifier that knows every label, empty where it was not measured."""
    said = []
    for policy in ("oracle", "oracle_fair"):
        found = {name: result.reference(policy, name) for name in ("mean_utility", "mean_dpu")}
        if not all(found.values()):  # no DPU where a group is absent
            return ""
        said.append(
            " and ".join(f"{name} {number(one.mean, digits=2)}" for name, one in found.items() if one)
        )
    return (
        f"A classifier fitted to every training label has {said[0]}, with parity of the training people "
        f"{said[1]}. "
    )


def noise(result: Result) -> str:
    """A sentence on the noise of the evaluation people, which intervals over seeds of one split leave out."""
    of, splits = result.evaluation, result.config.splits
    if of.utility_standard_error is None:
        return f"Measured on {of.people} {of.split} people."
    worth = ""
    if of.labelled < of.people:
        worth = f" ({of.labelled} labels, worth {of.effective_sample_size:.0f} equally weighted ones)"
    left_out = ", which these intervals leave out" if splits == 1 else f" of one of {splits} splits"
    said = (
        f"Noise of the evaluation people{left_out}: {of.people} {of.split} people{worth} give the utility a "
        f"standard error of {number(of.utility_standard_error)}"
    )
    if of.dpu_standard_error is None:
        return f"{said}."
    groups = result.named_groups
    if len(groups) > 2:
        sizes = ", ".join(f"{one.people[of.split]} {name}" for name, one in groups.items())
    else:
        sizes = " and ".join(f"{one.people[of.split]} with {name}" for name, one in reversed(groups.items()))
    return (
        f"{said} and the DPU one of {number(of.dpu_standard_error)}, from {sizes}: a policy with parity on "
        "other people need not have it on these."
    )
