"""Runs at a glance, finished or not, from config.yaml and summary.json; other files must only be there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaml import YAMLError

from fairall.config.choices import load_yaml
from fairall.results.interpretable import QUICK, interpretable
from fairall.storage.files import held
from fairall.storage.run_folder import RunFolder

MEASURES = ("mean_utility", "mean_dpu")


@dataclass(frozen=True)
class Outline:
    """What is known of a run at a glance.

    Attributes:
        path: its folder, `<model>/<dataset>/<id>`.
        state: `finished`, `quick` for one of preset=quick, `running`, `interrupted`, or `damaged`.
        time: of completion, or of the last sign of life; seconds since the epoch.
        measures: mean and standard deviation over seeds, plain units, by name; of `MEASURES`, those that have
            values.
        reason: of a damaged one.
    """

    path: Path
    state: str
    time: float
    measures: Mapping[str, tuple[float, float | None]]
    reason: str = ""


def outlines(folder: Path) -> list[Outline]:
    """All runs in a folder of `<model>/<dataset>/<id>/`, the newest last."""
    paths = {path.parent for name in ("DONE", "config.yaml") for path in folder.glob(f"*/*/*/{name}")}
    found = [outline(path) for path in paths]
    return sorted(found, key=lambda one: (one.time, one.path))


def outline(path: Path) -> Outline:
    """The run in a folder."""
    done = path / "DONE"
    if not done.exists():
        times = [one.stat().st_mtime for one in (path, *path.glob("checkpoint*.pt")) if one.exists()]
        return Outline(path, "running" if held(path.with_suffix(".lock")) else "interrupted", max(times), {})
    time = done.stat().st_mtime
    try:
        damage = RunFolder(path).damage(among=("config.yaml", "summary.json"))
        if damage is not None:
            return Outline(path, "damaged", time, {}, damage)
        aggregate: dict[str, Any] = json.loads((path / "summary.json").read_text())["aggregate"]
        values = {name: aggregate.get(name) for name in MEASURES}
        measures = {name: (one["mean"], one["std"]) for name, one in values.items() if one is not None}
        state = "finished" if interpretable(load_yaml(path / "config.yaml")) else QUICK
    except (OSError, ValueError, KeyError, TypeError, AttributeError, YAMLError) as error:
        reason = str(error).strip().split("\n")[0][:120]
        return Outline(path, "damaged", time, {}, f"cannot be read ({reason})")
    return Outline(path, state, time, measures)
