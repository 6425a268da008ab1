"""Metric histories in MLflow."""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import mlflow
import pytest

from fairall.tracking.client import Store, UnreachableError, reaching
from fairall.tracking.metrics import log_points

Put = Callable[[Path], str]
POINTS = [("utility", 0.1, 0), ("utility", -0.3, 2), ("utility", 0.2, 1), ("summary.mean", 1.5, 0),
          ("weight", float("inf"), 0), ("gain", float("-inf"), 3)]  # fmt: skip
LARGEST = sys.float_info.max


def config_of(outputs: Path, uri: str | None = None) -> dict[str, Any]:
    return {"tracking": {"uri": uri, "experiment": "fairall"}, "outputs_dir": str(outputs)}


def logged(store: Store, points: list[tuple[str, float, int]]) -> str:
    """A run with these metrics."""
    run = store.client.create_run(store.experiment).info.run_id
    log_points(store, run, points, now=1_700_000_000_000)
    return run


def seen(client: mlflow.MlflowClient, run: str) -> dict[str, Any]:
    """What MLflow shows of the metrics of a run: histories, and the last values."""
    data = client.get_run(run).data
    histories = {
        name: sorted(client.get_metric_history(run, name), key=lambda metric: metric.step)
        for name in data.metrics
    }
    plain = {
        name: [(metric.step, metric.value, metric.timestamp) for metric in history]
        for name, history in histories.items()
    }
    return {"histories": plain, "last": data.metrics}


@pytest.fixture
def store(tmp_path: Path, empty_store: Put) -> Store:
    """A store of ours, inside `tmp_path`."""
    empty_store(tmp_path)
    return Store(config_of(tmp_path))


def test_metrics_of_a_store_of_ours_do_not_go_through_the_client(store: Store) -> None:
    with mock.patch.object(mlflow.MlflowClient, "log_batch", side_effect=AssertionError):
        run = logged(store, POINTS)
    assert seen(store.client, run)["last"] == {
        "utility": -0.3, "summary.mean": 1.5, "weight": LARGEST, "gain": -LARGEST,
    }  # fmt: skip


def test_the_database_has_the_rows_that_the_client_writes(store: Store, tmp_path: Path) -> None:
    ours = logged(store, POINTS)
    same = Store(config_of(tmp_path, f"sqlite:///{tmp_path / 'mlflow.db'}"))
    theirs = logged(same, POINTS)
    assert seen(store.client, ours) == seen(store.client, theirs)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        for table in ("metrics", "latest_metrics"):
            columns = "key, value, typeof(value), timestamp, step, is_nan, typeof(is_nan)"
            rows = [
                connection.execute(
                    f"SELECT {columns} FROM {table} WHERE run_uuid = ? ORDER BY key, step", (run,)
                ).fetchall()
                for run in (ours, theirs)
            ]
            assert rows[0] == rows[1] != []


@pytest.mark.parametrize("table", ["metrics", "latest_metrics"])
def test_tables_of_another_version_are_left_to_the_client(table: str, store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection, connection:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN unheard_of INTEGER DEFAULT 0")
    with mock.patch.object(mlflow.MlflowClient, "log_batch", autospec=True) as log_batch:
        logged(store, POINTS)
    assert log_batch.call_count == 1
    assert seen(store.client, logged(store, POINTS))["last"]["utility"] == -0.3


def test_a_database_that_cannot_be_written_is_one_line(store: Store, tmp_path: Path) -> None:
    run = store.client.create_run(store.experiment).info.run_id
    (tmp_path / "mlflow.db").write_bytes(b"no database" * 1000)
    with pytest.raises(UnreachableError, match=r"cannot use sqlite:.*file is not a database"):
        reaching(config_of(tmp_path), lambda: log_points(store, run, POINTS, now=0))
