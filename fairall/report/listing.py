"""`python -m fairall list`: what there is to choose from, and the runs and studies there are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from fairall.config.choices import LISTS, choices, description
from fairall.config.compose import PLACES, places
from fairall.config.words import nearest
from fairall.errors import FairAllError
from fairall.results.interpretable import CAUTION, QUICK
from fairall.results.numbers import mean_and_std
from fairall.results.outline import MEASURES, Outline, outlines
from fairall.runtime.console import AnyConsole

FEW = 10  # runs that are listed where everything is


def show_list(words: Sequence[str], own: str | None = None) -> None:
    """Print what there is, a line each.

    Args:
        words: names of what to list, everything without any; `outputs_dir=FOLDER` and the like.
        own: a folder of the user's configurations (`-cd`).

    Raises:
        FairAllError: where a word is neither.
    """
    names, overrides = names_and_places("list", words)
    for name in names:
        if name not in (*LISTS, *LISTS.values()):
            raise FairAllError(
                f"list {name}: no such list{nearest(name, [*LISTS])}; there are {', '.join(LISTS)}"
            )
    found = choices(own)
    for name in [LISTS.get(name, name) for name in names or LISTS]:
        if name == "runs":
            _print_runs(Path(places(overrides)["outputs_dir"]) / "runs", None if names else FEW)
        elif name == "studies":
            _print_studies(overrides)
        else:
            prefix = "--multirun " if name == "sweeps" else ""
            rows = [(choice, description(path)) for choice, path in found[name].items()]
            _print(f"{prefix}{name}=", rows)


def names_and_places(command: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words without and with `=`; raises FairAllError for one that says nothing about where outputs are."""
    places = [word for word in words if "=" in word]
    wrong = [word for word in places if not word.startswith(PLACES)]
    if wrong:
        raise FairAllError(f"{command} {wrong[0]}: not possible; {command} takes outputs_dir=FOLDER only")
    return [word for word in words if "=" not in word], places


def _print_runs(folder: Path, most: int | None) -> None:
    runs = outlines(folder)
    if not runs:
        _say(f"runs\n  none in {folder} yet; python -m fairall preset=quick makes one in seconds\n")
        return
    sound = [run for run in runs if not run.reason]
    shown = sound if most is None else sound[-most:]
    more = f"; the last {len(shown)} of {len(sound)}, `list runs` has all" if len(shown) < len(sound) else ""
    headings = ("id", "method", "data set", "state", "when", *MEASURES)
    if shown:
        title = f"runs in {folder} (×100, mean ± standard deviation over seeds{more})"
        _print(title, [_row(run) for run in shown], headings)
    if any(run.state == QUICK for run in shown):
        _say(f"  {CAUTION}\n")
    for run in runs:
        if run.reason:
            _say(f"  damaged: {run.path}: {run.reason}; the same command makes it again")


def _row(run: Outline) -> tuple[str, ...]:
    model, dataset, identity = run.path.parts[-3:]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.time))
    measures = (mean_and_std(*run.measures[name]) if name in run.measures else "" for name in MEASURES)
    return identity, model, dataset, run.state, when, *measures


def _print_studies(overrides: Sequence[str]) -> None:
    from fairall.tuning.report import standings  # slow

    place, rows = standings(overrides)
    if rows:
        _print(f"studies in {place}", rows)
    else:
        _say(f"studies\n  none in {place} yet; python -m fairall --multirun sweeps=NAME begins one")


def _print(title: str, rows: Sequence[Sequence[str]], headings: Sequence[str] = ()) -> None:
    """Print a table."""
    table = Table(box=None, padding=(0, 0, 0, 2), show_header=bool(headings), header_style="dim")
    for place in range(len(rows[0])):
        table.add_column(headings[place] if headings else "")
    for row in rows:
        table.add_row(*row)
    _say(title, style="bold")
    AnyConsole().print_table(table)
    print()


def _say(text: str, style: str | None = None) -> None:
    AnyConsole().print(text, style=style, soft_wrap=True)
