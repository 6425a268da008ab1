"""Finished runs, read from their folders and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fairall.errors import FairAllError
from fairall.metrics import Quantity
from fairall.storage.identity import configuration_key
from fairall.storage.run_folder import RunFolder

GROUPS = ("model", "dataset", "initial_policy", "protocol")
COLUMNS = ("seed", "time_step", "utility", "dpu", "effective_utility", "effective_dpu")  # required
NO_RUN = "not the folder of a run, which is outputs/runs/METHOD/DATASET/ID"
TOLERANCE = 1e-5  # metrics.csv has seven digits


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        path: its folder.
        config: as plain containers.
        summary: content of summary.json; plain units.
        table: metrics.csv, a row per seed and time step.
        finished: time of completion, seconds since the epoch.
    """

    path: Path
    config: dict[str, Any]
    summary: dict[str, Any]
    table: pd.DataFrame
    finished: float

    @cached_property
    def key(self) -> str:
        """Equal for runs of equal configurations."""
        return configuration_key(self.config)

    def name(self, group: str) -> str:
        """Name of the chosen file of a group of the configuration."""
        return self.config[group]["name"]

    @property
    def cost(self) -> float:
        """Cost c of a positive decision."""
        return float(self.config["cost"]["value"])

    @property
    def seeds(self) -> list[int]:
        """Seeds in the order of the summary."""
        return [seed["seed"] for seed in self.summary["per_seed"]]

    @cached_property
    def measures(self) -> list[Quantity]:
        """The measures in metrics.csv."""
        return [Quantity.from_plain(name, plain) for name, plain in self.summary["measures"].items()]

    def per_seed(self, measure: str) -> pd.Series:
        """A measure of summary.json by seed, plain units; seeds without a value are left out."""
        values = {seed["seed"]: seed.get(measure) for seed in self.summary["per_seed"]}
        return pd.Series(values, dtype=float).dropna()

    def reference(self, policy: str, measure: str) -> dict[str, Any] | None:
        """Mean, std and interval of a measure for a policy of `references.REFERENCES`, plain units.

        None where the data do not allow it.
        """
        return self.summary["references"].get(policy, {}).get(measure)

    def last(self, measure: str) -> pd.Series:
        """A column of metrics.csv at the last time step by seed; empty where it has no values."""
        curve = self.curve(measure)
        return curve.iloc[-1] if len(curve) else pd.Series(dtype=float)

    def curve(self, measure: str) -> pd.DataFrame:
        """A column of metrics.csv: a row per time step, a column per seed; empty where it has no values."""
        if measure not in self.table:
            return pd.DataFrame()
        return self.table.pivot(index="time_step", columns="seed", values=measure).dropna(how="all")


@dataclass(frozen=True)
class Collection:
    """Usable runs, and the folders of others with the reason.

    Attributes:
        runs: finished and undamaged.
        left_out: folder and reason of each of the others.
    """

    runs: list[Run]
    left_out: list[tuple[Path, str]]


def collect(folder: Path) -> Collection:
    """All runs in a folder of `<model>/<dataset>/<id>/`, for instance outputs/runs."""
    runs, left_out = [], []
    for path in sorted(child for child in folder.glob("*/*/*") if child.is_dir()):
        try:
            runs.append(read_run(path))
        except FairAllError as error:
            left_out.append((path, str(error)))
    return Collection(runs, left_out)


def run_folder(word: str, runs_folder: Path) -> Path:
    """The folder of a run by its path or the beginning of its id.

    Raises:
        FairAllError: where there is none, or more than one.
    """
    if not word:  # Path would take it for the current folder
        raise FairAllError("an empty name is no run: give its folder or the beginning of its id")
    if Path(word).is_dir():
        return Path(word).resolve()
    if Path(word).exists():
        raise FairAllError(f"{word}: a file, not the folder of a run")
    matches = [path for path in runs_folder.glob(f"*/*/{word}*") if path.is_dir()] if "/" not in word else []
    if not matches:
        raise FairAllError(f"{word}: no such run, neither a folder nor an id in {runs_folder}")
    if len(matches) > 1:
        raise FairAllError(f"{word}: {len(matches)} runs have ids that begin so; give more of the id")
    return matches[0].resolve()


def read_named(path: Path) -> Run:
    """The run in a folder that the user named; raises as `read_run`, with the folder."""
    if not any((path / name).exists() for name in ("config.yaml", "DONE")):
        raise FairAllError(f"{path}: {NO_RUN}")
    try:
        return read_run(path)
    except FairAllError as error:
        raise FairAllError(f"{path}: {error}") from error


def read_run(path: Path) -> Run:
    """Read a run's folder.

    Raises:
        FairAllError: where it is unfinished, or a file is missing, broken or inconsistent with another.
    """
    done = path / "DONE"
    if not done.exists():
        raise FairAllError("unfinished: the same command goes on with it")
    damage = RunFolder(path).damage()
    if damage is not None:
        raise FairAllError(f"{damage}; the same command makes it again")
    try:
        config = RunFolder(path).read_config()
        if config is None:
            raise FairAllError("config.yaml is missing, damaged or of an earlier version of fairall")
        summary = json.loads((path / "summary.json").read_text())
        table = pd.read_csv(path / "metrics.csv")
        run = Run(path, config, summary, table, done.stat().st_mtime)
        problem = _problem(run)
    except FileNotFoundError as error:
        raise FairAllError(f"{Path(error.filename).name} is missing; run it anew with force=true") from error
    except FairAllError as error:  # of the configuration
        raise FairAllError(f"{error}; run it anew with force=true") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = str(error).strip().split("\n")[0][:120]
        raise FairAllError(f"cannot be read ({reason}); run it anew with force=true") from error
    if problem is not None:
        raise FairAllError(f"{problem}; run it anew with force=true")
    return run


def _problem(run: Run) -> str | None:
    """What is inconsistent in a run whose files can be read; None for nothing."""
    lacking = [name for name in COLUMNS if name not in run.table]
    if lacking:
        return f"metrics.csv lacks the column {lacking[0]}"
    for group in GROUPS:
        run.name(group)
    time_steps, seeds = run.config["schedule"]["time_steps"], run.seeds
    if len(seeds) != run.config["seeds"]:
        return f"summary.json has {len(seeds)} seeds, config.yaml {run.config['seeds']}"
    expected = {(seed, step) for seed in seeds for step in range(time_steps + 1)}
    present = list(zip(run.table["seed"], run.table["time_step"], strict=True))
    if set(present) != expected or len(present) != len(expected):
        return (
            f"metrics.csv has {len(present)} rows, not one for each of {len(seeds)} seeds and "
            f"{time_steps + 1} time steps"
        )
    last = run.table[run.table["time_step"] == time_steps].set_index("seed")["effective_utility"]
    if not ((last - run.per_seed("effective_utility")).abs().dropna() < TOLERANCE).all():
        return "metrics.csv and summary.json are of different results"
    return None
