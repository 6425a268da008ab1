"""`fairall list` and `fairall show`: choices and runs, and one run.

Lists import neither Hydra nor what computes.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairall.cli.verbs import Words, outputs_dir, tell, with_own
from fairall.config.choices import choices, description
from fairall.config.words import nearest
from fairall.errors import FairAllError
from fairall.storage.stored import Plain

# What `list` has, by the word that picks it: groups, and runs.
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
}
UNKNOWN = "not known, as for runs of a sweep; config.yaml has every value"


def show_list(names: Words, words: Words, config_dir: Path | None, **_: Any) -> Plain:
    """Print choices and runs, a line each; of data sets by their name also where each is."""
    groups, outputs, document = choices(config_dir), outputs_dir(words), Plain()
    for name in names or [*LISTS, "runs"]:
        if name == "runs":
            document[name] = _runs(outputs / "runs")
        elif name not in LISTS:
            raise FairAllError(
                f"list {name}: no such list{nearest(name, LISTS)}; there are {', '.join(LISTS)}"
            )
        else:
            group = LISTS[name]
            document[name] = {choice: description(path) for choice, path in groups[group].items()}
            if names == ["datasets"]:
                from fairall.data.describe import list_known

                list_known(with_own(config_dir, words), config_dir)
            else:
                lines = (f"  {choice:<24}{text}" for choice, text in document[name].items())
                print(f"{group}=", *lines, "", sep="\n")
    return document


def _runs(folder: Path) -> list[Plain]:
    """Print the runs in a folder, the newest last."""
    from fairall.display.format import CAUTION, QUICK, mean_std
    from fairall.results.runs import MEASURES, outlines

    runs = [
        dict(zip(("method", "dataset", "id"), run.path.parts[-3:], strict=True))
        | vars(run)
        | {"path": str(run.path), "differs": "" if run.reason else _differs(run.path)}
        for run in outlines(folder)
    ]
    if not runs:
        print(f"runs\n  none in {folder} yet; python -m fairall preset=quick makes one in seconds\n")
        return runs
    import pandas as pd

    from fairall.display.table import print_frame

    rows = {
        run["id"]: {name: run[name] for name in ("method", "dataset", "state")}
        | {"when": time.strftime("%Y-%m-%d %H:%M", time.localtime(run["time"]))}
        | {name: mean_std(*run["measures"].get(name, (None, None)), digits=2) for name in MEASURES}
        | {"differs": run["reason"] or run["differs"]}
        for run in runs
    }
    title = f"runs in {folder} (×100, mean ± standard deviation over seeds)"
    caution = CAUTION if any(row["state"] == QUICK for row in rows.values()) else ""
    print_frame(pd.DataFrame.from_dict(rows, orient="index"), title=title, first="id", caption=caution)
    return runs


def _differs(path: Path) -> str:
    """What a run has otherwise than by default; empty where its configuration cannot be read."""
    from fairall.results.differences import differences
    from fairall.storage.stored import read_stored

    with suppress(FairAllError, OSError):
        return differences(read_stored(path / "config.yaml"))
    return ""


def show(run: str, words: Words, **_: Any) -> Plain:
    """Print what a run has left, or how far it has come."""
    from fairall.display.progress import Display
    from fairall.experiment import show_result
    from fairall.online.training import progress_of
    from fairall.results.result import run_title
    from fairall.results.runs import load_result, run_folder
    from fairall.storage.files import holder
    from fairall.storage.run_folder import Origin, RunFolder
    from fairall.tracking.store import how_to_look

    path = run_folder(run, outputs_dir(words) / "runs")
    folder = RunFolder(path.parent if path.name == "policy" else path)
    path, config, command = folder.path, folder.read_config(), Origin.read(folder.path).command or UNKNOWN
    document: Plain = {"id": path.name, "path": str(path), "command": command}
    if config is None or folder.done:
        result = load_result(path)
        for note in result.notes:
            print(f"Note: {note}.")
        show_result(result, Display())
        document |= {"state": "finished", "figures": sorted(map(str, path.glob("figures/*")))}
        # Outputs may have been moved since: MLflow's database is beside the runs.
        look = how_to_look(replace(result.config, outputs_dir=str(path.parents[3])))
        logged = look or "not logged: python -m fairall mlflow sync"
        tell(document | {"mlflow": logged if result.config.tracking.enabled else "not logged"})
        return document | {"title": result.title, "config": result.config.to_plain()} | result.to_plain()
    saved, lock = folder.checkpoint(seconds=0.0, log=print).load(), path.with_suffix(".lock")
    epochs, steps = (0, 0) if saved is None else progress_of(saved)
    running = holder(lock)
    document |= {"state": "interrupted" if running is None else "running", "process": running}
    document |= {"title": run_title(config), "warm_up_epochs": epochs, "time_steps": steps}
    return tell(document) | {"config": config.to_plain()}
