"""Folder of a benchmark: measurements, and the setting they were made in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.usage import Usage

MEASURED = tuple(field.name for field in fields(Usage))


class Records:
    """measurements.csv, one row per part of a measurement, and setting.json.

    Args:
        path: the folder; where it has records of the same setting, they are gone on with.
        labels: names of the columns that say what was measured.
        setting: what all measurements have in common: benchmark, overrides, machine.

    Raises:
        BenchmarkError: where the folder has records of another setting.
    """

    def __init__(self, path: Path, labels: Sequence[str], setting: Mapping[str, Any]) -> None:
        self.labels = list(labels)
        self._measurements, settings = path / "measurements.csv", path / "setting.json"
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BenchmarkError(f"--out {path}: {error.strerror}") from error
        if settings.exists():
            kept = json.loads(settings.read_text())
            other = [key for key in setting if kept.get(key) != setting[key]]
            if other:
                raise BenchmarkError(f"--out {path}: has measurements with another {', '.join(other)}")
        else:
            settings.write_text(json.dumps(setting, indent=1) + "\n")
            self._write([[*self.labels, "repeat", "part", *MEASURED]])
        with self._measurements.open(newline="") as file:
            self._known = {self._key(row, row["repeat"]) for row in csv.DictReader(file)}

    def has(self, labels: Mapping[str, Any], repeat: int) -> bool:
        """Whether this case has been measured."""
        return self._key(labels, repeat) in self._known

    def append(self, labels: Mapping[str, Any], repeat: int, parts: Mapping[str, Usage]) -> None:
        """Append one measurement."""
        known = self._key(labels, repeat)
        self._write(
            [[*known, part, *(f"{value:.6g}" for value in astuple(used))] for part, used in parts.items()]
        )
        self._known.add(known)

    def _key(self, labels: Mapping[str, Any], repeat: int | str) -> tuple[str, ...]:
        return (*(str(labels[name]) for name in self.labels), str(repeat))

    def _write(self, rows: Sequence[Sequence[str]]) -> None:
        # In one go: an interruption leaves a measurement whole or leaves it out.
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(rows)
        with self._measurements.open("a") as file:
            file.write(lines.getvalue())
