"""CPU seconds and memory of `fairall data describe` on a wide table of applicants."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.machine import run_alone

SOURCES = ("csv", "parquet")
MEASURED = ("cpu_seconds", "peak_gigabytes")  # of the process of the command
MEANING = {
    "label": "repaid",
    "positive": "good",
    "sensitive": "sex",
    "advantaged": "m",
    "decision": "granted",
    "accepted": "True",
    "propensity": "propensity",
}
KINDS = {
    "count": lambda draw, n: draw.integers(0, 6, n),
    "word": lambda draw, n: draw.choice(["a", "b", "c"], n),
}
FEW = 8  # columns of other kinds, each, for every hundred


def applicants(rows: int, columns: int) -> pd.DataFrame:
    """People with real features, some counts and words, a recorded propensity, and labels of the accepted."""
    draw = np.random.default_rng(0)
    made = {
        f"{name} {k}": make(draw, rows) for name, make in KINDS.items() for k in range(FEW * columns // 100)
    }
    made |= {f"real {k}": draw.normal(size=rows) for k in range(columns - len(made) - 4)}
    propensity = draw.uniform(0.2, 0.8, rows)
    accepted = draw.random(rows) < propensity
    label = pd.Series(np.where(draw.random(rows) < 0.6, "good", "bad")).where(accepted)
    meaning = {"sex": draw.choice(["f", "m"], rows), "granted": accepted, "repaid": label}
    return pd.DataFrame(made | meaning | {"propensity": propensity})


def measured(rows: int, columns: int) -> pd.DataFrame:
    """`MEASURED` of the command on the table as each of `SOURCES`, a row each, and the size of its frame.

    The peak is at least that of this process, which starts the command.
    """
    people, figures = applicants(rows, columns), {}
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        for source in SOURCES:
            path = Path(folder) / f"applicants.{source}"
            people.to_csv(path, index=False) if source == "csv" else people.to_parquet(path)
            words = [f"dataset.{key}={value}" for key, value in MEANING.items()]
            command = [sys.executable, "-m", "fairall", "data", "describe", str(path), *words]
            used = run_alone(command)
            figures[source] = [used.cpu_seconds, used.peak_mib * 2**20 / 1e9]
    table = pd.DataFrame.from_dict(figures, orient="index", columns=list(MEASURED))
    return table.assign(frame_gigabytes=people.memory_usage().sum() / 1e9)
