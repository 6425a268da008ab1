"""Durations of runs: measured here, else reference durations scaled to this machine."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path

import pandas as pd
import yaml

from fairall.report.plan import Planned

COLUMNS = ["words", "overrides", "model", "dataset", "seeds", "wall_seconds", "cpu_seconds"]
REFERENCE_SEEDS = 10  # of run_seconds.yaml

Kind = tuple[str, str, int]
"""Method, data set and number of seeds of a run."""


class Durations:
    """Measured durations, kept in a file with a line per run, and expected ones.

    Args:
        path: CSV, created with the first measurement.
        overrides: those of the user's words that change every run; durations are compared within equal ones.
    """

    def __init__(self, path: Path, overrides: Sequence[str]) -> None:
        self._path = path
        self._overrides = " ".join(overrides)
        self._reference = yaml.safe_load(files("fairall.report").joinpath("run_seconds.yaml").read_text())

    def add(self, planned: Planned, wall: float, cpu: float) -> None:
        """Append one measurement to the file; begin the file anew where it has other columns."""
        line = [" ".join(planned.words), self._overrides, *_kind(planned), round(wall, 1), round(cpu, 1)]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        goes_on = self._path.exists() and self._path.read_text().startswith(",".join(COLUMNS))
        one = pd.DataFrame([line], columns=COLUMNS)
        one.to_csv(self._path, mode="a" if goes_on else "w", header=not goes_on, index=False)

    def expected(self, planned: Iterable[Planned]) -> dict[str, float]:
        """Expected elapsed seconds by key: the mean of such runs, else the reference duration scaled.

        Such runs have the same method, data set and number of seeds. Reference durations are proportional to
        the number of seeds.
        """
        measured = read(self._path)
        measured = measured[measured["overrides"] == self._overrides]
        seconds = measured.groupby(["model", "dataset", "seeds"])["wall_seconds"]
        there = sum(self._reference_seconds(*kind) * len(own) for kind, own in seconds)
        ratio = measured["wall_seconds"].sum() / there if there else 1.0
        means = seconds.mean().to_dict()
        kinds = {one.key: _kind(one) for one in planned}
        return {key: means.get(kind, self._reference_seconds(*kind) * ratio) for key, kind in kinds.items()}

    def _reference_seconds(self, model: str, dataset: str, seeds: int) -> float:
        """Reference duration; the longest one for an unknown method or data set."""
        longest = max(seconds for times in self._reference.values() for seconds in times.values())
        return self._reference.get(model, {}).get(dataset, longest) * seeds / REFERENCE_SEEDS


def _kind(planned: Planned) -> Kind:
    return planned.model, planned.dataset, planned.config["seeds"]


def read(path: Path) -> pd.DataFrame:
    """All measurements of a file; none where it does not exist. Lines cut off by a crash are left out."""
    with path.open(newline="") if path.exists() else io.StringIO() as file:
        table = pd.DataFrame(csv.DictReader(file, restkey="more")).reindex(columns=[*COLUMNS, "more"])
    for column in ("seeds", "wall_seconds", "cpu_seconds"):
        table[column] = pd.to_numeric(table[column], errors="coerce")
    return table[table["more"].isna()].drop(columns="more").dropna()
