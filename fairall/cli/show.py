"""`fairall show RUN`: the table of a run again, its files, its command, or how far it has come."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from fairall.cli.verbs import Done, outputs_dir
from fairall.errors import FairAllError
from fairall.storage.stored import Plain

UNKNOWN = "not known, as for runs of a sweep; config.yaml has every value"


def show(given: Namespace) -> Done:
    """Print what a run has left."""
    from fairall.results.runs import run_folder

    path = run_folder(given.run, outputs_dir(given.words) / "runs")
    path = path.parent if path.name == "policy" else path
    show_run = _finished if (path / "DONE").exists() else _unfinished
    return Done({"id": path.name, "path": str(path), **show_run(path)})


def _finished(path: Path) -> Plain:
    from fairall.display.progress import Display
    from fairall.experiment import show_result
    from fairall.results.runs import load_result
    from fairall.storage.run_folder import CARD, Origin
    from fairall.tracking.store import how_to_look

    result, command = load_result(path), Origin.read(path).command
    for note in result.notes:
        print(f"Note: {note}.")
    show_result(result, Display())
    if result.config.tracking.enabled:
        # Outputs may have been moved since: MLflow's database is beside the runs.
        look = how_to_look(replace(result.config, outputs_dir=str(path.parents[3])))
        print(f"MLflow:  {look or 'not logged yet: python -m fairall mlflow sync'}")
    else:
        print("MLflow:  not logged, by tracking.enabled=false")
    figures = sorted(map(str, path.glob("figures/*")))
    for figure in figures:
        print(f"Figure:  {figure}")
    print(f"Card:    {path / CARD}")
    print(f"Policy:  {path / 'policy'}")
    print(f"Command: {command or UNKNOWN}")
    return {
        "state": "finished",
        "title": result.title,
        "command": command,
        "figures": figures,
        "config": result.config.to_plain(),
        **result.to_plain(),
    }


def _unfinished(path: Path) -> Plain:
    from fairall.online.training import progress_of
    from fairall.results.result import run_title
    from fairall.results.runs import NO_RUN
    from fairall.storage.files import holder
    from fairall.storage.run_folder import Origin, RunFolder

    folder = RunFolder(path)
    config = folder.read_config()
    if config is None:
        missing = not (path / "config.yaml").exists()
        raise FairAllError(f"{path}: {NO_RUN if missing else 'config.yaml is damaged; start the run anew'}")
    lock, command = path.with_suffix(".lock"), Origin.read(path).command
    running = holder(lock)
    print(run_title(config))
    print("Interrupted." if running is None else f"Running: {running}")
    saved, epochs, steps = folder.checkpoint(seconds=0.0, log=print).load(), 0, 0
    if saved is None:
        print("Saved:   nothing of the warm-up or Phase II yet")
    else:
        epochs, steps = progress_of(saved)
        of = config.schedule.time_steps
        print(f"Saved:   {epochs} epochs of the warm-up, {steps} of {of} time steps of Phase II")
    print(f"Folder:  {path}")
    print(f"Go on:   {command or UNKNOWN}")
    return {
        "state": "interrupted" if running is None else "running",
        "title": run_title(config),
        "process": running,
        "warm_up_epochs": epochs,
        "time_steps": steps,
        "command": command,
        "config": config.to_plain(),
    }
