"""`fairall list`: what there is to choose from, and the runs and studies there are.

It imports neither Hydra nor what computes.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from fairall.cli.verbs import Done, outputs_dir
from fairall.config.choices import choices, description
from fairall.config.words import nearest
from fairall.errors import FairAllError
from fairall.storage.stored import Plain

# What `list` has, by the word that picks it: groups, runs and studies.
LISTS = {
    "models": "model",
    "datasets": "dataset",
    "initial_policies": "initial_policy",
    "fairness": "fairness",
    "explorations": "exploration",
    "worlds": "world",
    "costs": "cost",
    "protocols": "protocol",
    "presets": "preset",
    "sweeps": "sweeps",
    "runs": "runs",
    "studies": "studies",
}
FEW = 10  # runs that are listed where everything is


def show_list(given: Namespace) -> Done:
    """Print what there is, a line each."""
    for name in given.names:
        if name not in (*LISTS, *LISTS.values()):
            raise FairAllError(
                f"list {name}: no such list{nearest(name, [*LISTS])}; there are {', '.join(LISTS)}"
            )
    outputs, found = outputs_dir(given.words), choices(given.config_dir)
    document: Plain = {}
    for word in given.names or LISTS:
        name = LISTS.get(word, word)
        if name == "runs":
            document[word] = _runs(outputs / "runs", None if given.names else FEW)
        elif name == "studies":
            document[word] = _studies(outputs)
        else:
            document[word] = {choice: description(path) for choice, path in found[name].items()}
            _print(f"{'--multirun ' * (name == 'sweeps')}{name}=", [*document[word].items()])
    return Done(document)


def _runs(folder: Path, most: int | None) -> list[Plain]:
    """Print the runs in a folder, the last `most`; return all."""
    from fairall.display.console import say
    from fairall.display.format import CAUTION, QUICK, mean_std
    from fairall.results.runs import MEASURES, outlines

    runs = outlines(folder)
    if not runs:
        say(f"runs\n  none in {folder} yet; python -m fairall preset=quick makes one in seconds\n")
    sound = [run for run in runs if not run["reason"]]
    shown = sound if most is None else sound[-most:]
    more = f"; the last {len(shown)} of {len(sound)}, `list runs` has all" if len(shown) < len(sound) else ""
    rows = []
    for run in shown:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["time"]))
        measures = [mean_std(*run["measures"].get(name, (None, None)), digits=2) for name in MEASURES]
        words = run["command"].removeprefix("python -m fairall ")
        rows.append((run["id"], run["method"], run["dataset"], run["state"], when, *measures, words))
    _print(
        f"runs in {folder} (×100, mean ± standard deviation over seeds{more})",
        rows,
        ("id", "method", "data set", "state", "when", *MEASURES, "command"),
    )
    if any(run["state"] == QUICK for run in shown):
        say(f"  {CAUTION}\n")
    for run in runs:
        if run["reason"]:
            say(f"  damaged: {run['path']}: {run['reason']}; the same command makes it again")
    return runs


def _studies(outputs: Path) -> dict[str, str]:
    """Print the studies, and return the progress of each."""
    if not (outputs / "sweeps" / "studies.db").exists():
        from fairall.display.console import say

        say(f"studies\n  none in {outputs} yet; python -m fairall tune NAME begins one")
        return {}
    from fairall.tuning.study import progress_of_studies  # slow

    progress = progress_of_studies(outputs)
    _print(f"studies in {outputs / 'sweeps'}", [*progress.items()])
    return progress


def _print(title: str, rows: Sequence[Sequence[str]], headings: Sequence[str] = ()) -> None:
    """Print a table, if it has rows."""
    from rich.table import Table

    from fairall.display.console import AnyConsole

    if not rows:
        return
    table = Table(box=None, padding=(0, 0, 0, 2), show_header=bool(headings), header_style="dim")
    for heading in headings or rows[0]:  # those of a table without headings are not shown
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    console = AnyConsole()
    console.print(title, style="bold", soft_wrap=True)
    console.print_table(table)
    print()
