"""Medians, Markdown tables and the description of the setting."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.errors import BenchmarkError
from benchmarks.parts import PARTS
from benchmarks.records import MEASURED

ABSENT = "–"  # in a table: there is no such part in the run, or nobody knows


def read_setting(folder: Path) -> dict[str, Any]:
    """What the measurements of a folder have in common.

    Raises:
        BenchmarkError: where the folder holds no benchmark.
    """
    try:
        return json.loads((folder / "setting.json").read_text())
    except OSError as error:
        raise BenchmarkError(f"{folder}: no benchmark has written there") from error


def read_medians(folder: Path, labels: Sequence[str]) -> pd.DataFrame:
    """Medians over repeats of measurements.csv, of every quantity on its own; written to medians.csv too.

    Returns:
        Columns: labels, part, repeats and those of `Usage`, a row per case and part.

    Raises:
        BenchmarkError: where nothing has been measured yet.
    """
    measurements = pd.read_csv(folder / "measurements.csv")
    if measurements.empty:
        raise BenchmarkError(f"{folder}: nothing has been measured yet")
    grouped = measurements.groupby([*labels, "part"], sort=False)
    medians = grouped[list(MEASURED)].median().assign(repeats=grouped.size()).reset_index()
    medians.to_csv(folder / "medians.csv", index=False, float_format="%.6g")
    return medians


def by_part(medians: pd.DataFrame, labels: Sequence[str], quantity: str) -> pd.DataFrame:
    """One quantity: a row per case, a column per part in the order they run, NaN where unknown."""
    table = medians.pivot(index=list(labels), columns="part", values=quantity)
    # A pivot sorts; cases should stay in the order they were asked for.
    table = table.loc[list(dict.fromkeys(medians.set_index(list(labels)).index))]
    return table[[part for part in PARTS if part in table]]


def head(setting: dict[str, Any], medians: pd.DataFrame) -> str:
    """What was measured on what and how often, as a Markdown list."""
    overrides = " ".join(setting["overrides"])
    machine = {name: value for name, value in setting.items() if name not in ("benchmark", "overrides")}
    lines = [f"- {name}: {value}" for name, value in machine.items()]
    fewest, most = medians["repeats"].min(), medians["repeats"].max()
    lines.append(f"- repeats: {most}" if fewest == most else f"- repeats: {fewest} to {most}")
    lines.append(f"- further overrides: `{overrides}`" if overrides else "- no further overrides")
    return "\n".join(lines)


def markdown_table(table: pd.DataFrame, digits: int) -> str:
    """A table with its index as first columns, padded so that it reads in a terminal too.

    Args:
        table: of numbers.
        digits: after the point.
    """
    names = [*map(str, table.index.names), *map(str, table.columns)]
    cells = [names]
    for key, row in zip(table.index, table.to_numpy(dtype=float), strict=True):
        case = key if isinstance(key, tuple) else (key,)
        numbers = [ABSENT if math.isnan(value) else f"{value:.{digits}f}" for value in row]
        cells.append([*map(str, case), *numbers])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    n_labels = table.index.nlevels
    rules = ["-" * width if i < n_labels else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = []
    for line in [cells[0], rules, *cells[1:]]:
        padded = [
            cell.ljust(width) if i < n_labels else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(padded)} |")
    return "\n".join(lines)
