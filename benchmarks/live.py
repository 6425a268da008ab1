"""CPU seconds of a ledger's commands beside those of `decide`, and the size of its file."""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.machine import run_alone
from benchmarks.tables import MEANING, applicants

BATCH = 10_000  # people of a table
PAST = 3000  # whom the run learns from
RUN = "model=greedy preset=quick seeds=1 tracking.enabled=false dataset=csv".split()
RUN += [f"dataset.{key}={value}" for key, value in MEANING.items()]


def measured(rows: int, columns: int) -> pd.DataFrame:
    """CPU seconds of all calls of each command, and megabytes of the ledger beside those of its tables.

    Args:
        rows: people to decide on, in tables of `BATCH`.
        columns: as of `tables.applicants`.
    """
    used: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as name:
        folder = Path(name)
        past, ledger = folder / "past.csv", folder / "loans.db"
        people, outcomes, decided = (folder / f"{what}.csv" for what in ("people", "outcomes", "decided"))

        def call(verb: str, *words: object) -> None:
            command = [sys.executable, "-m", "fairall", *verb.split(), *map(str, words)]
            used[verb] += run_alone(command).cpu_seconds

        everybody = applicants(PAST + rows, columns)
        everybody[:PAST].to_csv(past, index=False, float_format="%.4f")
        call("run", *RUN, f"dataset.path={past}", f"outputs_dir={folder}")
        (run,) = (path.parent for path in folder.rglob("policy"))
        call("live start", ledger, run)
        everybody = everybody[PAST:].assign(id=np.arange(rows))
        read = 0
        for start in range(0, rows, BATCH):
            own = everybody[start : start + BATCH]
            own.drop(columns=["granted", "repaid", "propensity"]).to_csv(
                people, index=False, float_format="%.4f"
            )
            call("decide", run, people, "-o", decided)
            call("live decide", ledger, people, "-o", decided)
            accepted = pd.read_csv(decided)["decision"].to_numpy() == 1
            words = np.where(own.loc[accepted, "real 0"] > 0, "good", "bad")
            pd.DataFrame({"id": own.loc[accepted, "id"], "repaid": words}).to_csv(outcomes, index=False)
            call("live outcomes", ledger, outcomes)
            read += people.stat().st_size + outcomes.stat().st_size
        call("live learn", ledger)
        call("live status", ledger)
        used["megabytes of the tables"] = read / 1e6
        used["megabytes of the ledger"] = ledger.stat().st_size / 1e6
    return pd.Series(used).to_frame(f"{rows} x {columns}")
