"""CPU seconds and memory of reading a wide table of applicants, and of the checks of its columns."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

SOURCES = ("parquet", "frame")
MEASURED = ("cpu_seconds", "peak_gigabytes")  # gigabytes beyond those of the process before
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
    """CPU seconds and peak memory of a process for each of `SOURCES`, a row each."""
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        path = Path(folder) / "applicants.parquet"
        people = applicants(rows, columns)
        people.to_parquet(path)
        found = {}
        for source in SOURCES:
            words = [sys.executable, "-m", "benchmarks.tables", source, str(path)]
            said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            found[source] = [float(word) for word in said.split()]
    table = pd.DataFrame.from_dict(found, orient="index", columns=list(MEASURED))
    return table.assign(frame_gigabytes=people.memory_usage().sum() / 1e9)


def _read(source: str, path: Path) -> None:
    """Read the table and check its columns in this process; print `MEASURED`."""
    from fairall.tables.applicants import read
    from fairall.tables.declared import Declared

    declared = Declared.of(
        label="repaid",
        positive="good",
        sensitive="sex",
        decision="granted",
        accepted="True",
        propensity="propensity",
    )
    given = path if source == "parquet" else pd.read_parquet(path)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins with what is in use now
    memory, start = _peak(), time.process_time()
    people = read(given, declared).checked()
    people.leaks(people.features()[0])
    seconds = time.process_time() - start
    print(seconds, _peak() - memory)


def _peak() -> float:
    """Most memory that this process has used, gigabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


if __name__ == "__main__":
    _read(sys.argv[1], Path(sys.argv[2]))
