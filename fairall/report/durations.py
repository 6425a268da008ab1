"""Durations of runs: measured here, else reference durations scaled to this machine."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml

COLUMNS = ("words", "overrides", "model", "dataset", "wall_seconds", "cpu_seconds")


@dataclass(frozen=True)
class Duration:
    """One finished command.

    Attributes:
        words: of its command line.
        overrides: those words that change every run; durations are compared within equal ones only.
        model: name of the method.
        dataset: name of the data set.
        wall_seconds: elapsed time.
        cpu_seconds: of its process.
    """

    words: str
    overrides: str
    model: str
    dataset: str
    wall_seconds: float
    cpu_seconds: float


class Durations:
    """Measured durations, kept in a file with a line per run, and expected ones.

    Args:
        path: CSV, created with the first measurement.
        overrides: those of the user's words that change every run.
    """

    def __init__(self, path: Path, overrides: Sequence[str]) -> None:
        self._path = path
        self._overrides = " ".join(overrides)
        self._reference = yaml.safe_load(files("fairall.report").joinpath("run_seconds.yaml").read_text())
        self.measured = [one for one in read(path) if one.overrides == self._overrides]

    def add(self, words: Sequence[str], model: str, dataset: str, wall: float, cpu: float) -> None:
        """Add one measurement."""
        one = Duration(" ".join(words), self._overrides, model, dataset, round(wall, 1), round(cpu, 1))
        self.measured.append(one)
        new = not self._path.exists()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(COLUMNS)
            writer.writerow([getattr(one, column) for column in COLUMNS])

    def expected(self, model: str, dataset: str) -> float:
        """Expected elapsed seconds of a run of a method on a data set."""
        own = [one.wall_seconds for one in self.measured if (one.model, one.dataset) == (model, dataset)]
        if own:
            return sum(own) / len(own)
        return self._reference_seconds(model, dataset) * self._ratio()

    def _reference_seconds(self, model: str, dataset: str) -> float:
        """Reference duration; the longest one for an unknown method or data set."""
        longest = max(seconds for times in self._reference.values() for seconds in times.values())
        return self._reference.get(model, {}).get(dataset, longest)

    def _ratio(self) -> float:
        """Duration here relative to the reference."""
        there = sum(self._reference_seconds(one.model, one.dataset) for one in self.measured)
        return sum(one.wall_seconds for one in self.measured) / there if there else 1.0


def read(path: Path) -> list[Duration]:
    """All measurements of a file; none where it does not exist. Lines cut off by a crash are left out."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    durations = []
    for line in lines:
        try:
            wall, cpu = float(line["wall_seconds"]), float(line["cpu_seconds"])
        except (KeyError, TypeError, ValueError):
            continue
        durations.append(
            Duration(line["words"], line["overrides"], line["model"], line["dataset"], wall, cpu)
        )
    return durations
