"""Synthetic CSV table of any size, for `dataset=csv`."""

from __future__ import annotations

import csv
import random
from pathlib import Path

OVERRIDES = (
    "dataset=csv",
    "dataset.label=good",
    "dataset.positive=yes",
    "dataset.sensitive=group",
    "dataset.advantaged=a",
)


def write_table(path: Path, n_rows: int, n_features: int) -> None:
    """Write people with real features, a group and a label; the same every time."""
    draw = random.Random(0)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(f"x{i}" for i in range(n_features)), "group", "good"])
        for _ in range(n_rows):
            x = [draw.gauss(0.0, 1.0) for _ in range(n_features)]
            good = x[0] + draw.gauss(0.0, 1.0) > 0
            table.writerow([*(f"{value:.4f}" for value in x), draw.choice("ab"), "yes" if good else "no"])
