"""CPU seconds and memory of `evaluate` on a large log."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from benchmarks.machine import run_alone
from benchmarks.tables import applicants

WORDS = (
    "label=repaid positive=good sensitive=sex decision=granted accepted=True propensity=propensity cost=0.6"
)


def measured(rows: int, columns: int) -> pd.DataFrame:
    """CPU seconds, time and peak memory of the command on `tables.applicants`, a row."""
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        path = Path(folder) / "log.csv"
        applicants(rows, columns).to_csv(path, index=False, float_format="%.4f")
        used = run_alone([sys.executable, "-m", "fairall", "evaluate", str(path), *WORDS.split()])
    return pd.DataFrame([asdict(used)], index=[f"{rows} x {columns}"])
