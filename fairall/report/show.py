"""`python -m fairall show RUN`: the table of a run again, its files, its command, or how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairall.config.compose import places
from fairall.errors import FairAllError
from fairall.experiment import show_result
from fairall.online.training import progress_of
from fairall.report.listing import names_and_places
from fairall.results.finished import NO_RUN, read_named, run_folder
from fairall.results.terminal import Display
from fairall.results.title import run_title
from fairall.storage.files import held
from fairall.storage.run_folder import CARD, RunFolder
from fairall.tracking.outbox import Sent

UNKNOWN = "not known, as for trials of a sweep; config.yaml has every value"


def show(words: Sequence[str]) -> None:
    """Print what a run has left.

    Args:
        words: the folder of a run or the beginning of its id; `outputs_dir=FOLDER` and the like.

    Raises:
        FairAllError: where there is no such run, or it is damaged.
    """
    names, overrides = names_and_places("show", words)
    if len(names) != 1:
        raise FairAllError(
            "show takes one run: python -m fairall show RUN, its folder or the beginning of its id"
        )
    path = run_folder(names[0], Path(places(overrides)["outputs_dir"]) / "runs")
    path = path.parent if path.name == "policy" else path
    display, folder = Display(), RunFolder(path)
    if folder.done:
        _finished(folder, display)
    else:
        _unfinished(folder, display)


def _finished(folder: RunFolder, display: Display) -> None:
    path = folder.path
    run = read_named(path)
    for note in run.summary["notes"]:
        display.say(f"Note: {note}.")
    # Outputs may have been moved since: MLflow's database is beside the runs.
    show_result(run.config | {"outputs_dir": str(path.parents[3])}, run.summary, path, display)
    sent = Sent.read(path)
    if sent.result:
        display.say(f"         run {sent.parent}, experiment {run.config['tracking']['experiment']}")
    elif run.config["tracking"]["enabled"]:
        display.say("MLflow:  not logged yet: python -m fairall.tracking sync")
    else:
        display.say("MLflow:  not logged, by tracking.enabled=false")
    for figure in sorted(path.glob("figures/*")):
        display.say(f"Figure:  {figure}")
    display.say(f"Card:    {path / CARD}")
    display.say(f"Policy:  {path / 'policy'}")
    display.say(f"Command: {sent.command or UNKNOWN}")


def _unfinished(folder: RunFolder, display: Display) -> None:
    path, config = folder.path, folder.read_config()
    if config is None:
        missing = not (path / "config.yaml").exists()
        raise FairAllError(f"{path}: {NO_RUN if missing else 'config.yaml is damaged; start the run anew'}")
    display.say(run_title(config))
    lock = path.with_suffix(".lock")
    display.say(f"Running: {lock.read_text()}" if held(lock) else "Interrupted.")
    state = folder.checkpoint(seconds=0.0, log=display.say).load()
    if state is None:
        display.say("Saved:   nothing of the warm-up or Phase II yet")
    else:
        epochs, steps = progress_of(state)
        of = config["schedule"]["time_steps"]
        display.say(f"Saved:   {epochs} epochs of the warm-up, {steps} of {of} time steps of Phase II")
    display.say(f"Folder:  {path}")
    display.say(f"Go on:   {Sent.read(path).command or UNKNOWN}")
