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

COLUMNS = ["words", "overrides", "model", "dataset", "wall_seconds", "cpu_seconds"]


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
        """Append one measurement to the file."""
        names = planned.name("model"), planned.name("dataset")
        line = [" ".join(planned.words), self._overrides, *names, round(wall, 1), round(cpu, 1)]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        one = pd.DataFrame([line], columns=COLUMNS)
        one.to_csv(self._path, mode="a", header=not self._path.exists(), index=False)

    def expected(self, planned: Iterable[Planned]) -> dict[str, float]:
        """Expected elapsed seconds by key: the mean of such runs, else the reference duration scaled."""
        measured = read(self._path)
        measured = measured[measured["overrides"] == self._overrides]
        seconds = measured.groupby(["model", "dataset"])["wall_seconds"]
        there = sum(self._reference_seconds(*names) * len(own) for names, own in seconds)
        ratio = measured["wall_seconds"].sum() / there if there else 1.0
        means = seconds.mean().to_dict()
        names = {one.key: (one.name("model"), one.name("dataset")) for one in planned}
        return {key: means.get(pair, self._reference_seconds(*pair) * ratio) for key, pair in names.items()}

    def _reference_seconds(self, model: str, dataset: str) -> float:
        """Reference duration; the longest one for an unknown method or data set."""
        longest = max(seconds for times in self._reference.values() for seconds in times.values())
        return self._reference.get(model, {}).get(dataset, longest)


def read(path: Path) -> pd.DataFrame:
    """All measurements of a file; none where it does not exist. Lines cut off by a crash are left out."""
    with path.open(newline="") if path.exists() else io.StringIO() as file:
        table = pd.DataFrame(csv.DictReader(file, restkey="more")).reindex(columns=[*COLUMNS, "more"])
    for column in ("wall_seconds", "cpu_seconds"):
        table[column] = pd.to_numeric(table[column], errors="coerce")
    return table[table["more"].isna()].drop(columns="more").dropna()
