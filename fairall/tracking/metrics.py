"""Metric histories: written to MLflow's database directly where it is a file of ours, else by its client."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from fairall.tracking.client import Store

BATCH = 1000  # the most metrics MLflow takes in one call
TABLES = ("metrics", "latest_metrics")  # every value, and the last one of each metric
COLUMNS = ("key", "value", "timestamp", "step", "is_nan", "run_uuid")  # of both
LARGEST = sys.float_info.max  # MLflow keeps it in place of infinity

Point = tuple[str, float, int]
"""Name, value and step of a metric, unique by name and step."""


def log_points(store: Store, run: str, points: Sequence[Point], now: int) -> None:
    """Log values of metrics to a run that has none of these metrics yet.

    MLflow's client takes 0.1 ms a value, a thousand times what its database does: for a run of ten seeds
    longer than the training of a small method. So rows are inserted into its database where that is a file
    of ours with the tables known here. Other stores get the values through the client.

    Args:
        store: of the run.
        run: MLflow id.
        points: the values.
        now: time of logging, milliseconds since 1970.
    """
    if store.database is None or not _inserted(store.database, run, points, now):
        _by_client(store, run, points, now)


def _inserted(database: Path, run: str, points: Sequence[Point], now: int) -> bool:
    """Insert the values in one transaction; False if the tables are not as known here."""
    rows = [(name, max(-LARGEST, min(value, LARGEST)), now, step, False, run) for name, value, step in points]
    last: dict[str, tuple[str, float, int, int, bool, str]] = {}
    for row in rows:
        name, step = row[0], row[3]
        if name not in last or step > last[name][3]:
            last[name] = row
    # Other processes may be writing: wait as long for them as MLflow does.
    with closing(sqlite3.connect(database, timeout=20.0)) as connection, connection:
        for table in TABLES:
            if {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} != {*COLUMNS}:
                return False
        for table, of_table in zip(TABLES, (rows, last.values()), strict=True):
            connection.executemany(
                f"INSERT INTO {table} ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)", of_table
            )
    return True


def _by_client(store: Store, run: str, points: Sequence[Point], now: int) -> None:
    from mlflow.entities import Metric

    metrics = [Metric(name, value, now, step) for name, value, step in points]
    for start in range(0, len(metrics), BATCH):
        store.client.log_batch(run, metrics=metrics[start : start + BATCH])
