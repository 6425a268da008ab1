"""MLflow, and nothing else that touches it: a parent run per command, a nested run per seed."""

from __future__ import annotations

import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import requires
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from fairall.errors import FairAllError
from fairall.files import locked
from fairall.processes import is_gone, this_process
from fairall.summary import MEASURES

BATCH = 1000  # the most metrics MLflow takes in one call
MAX_NAME = 250  # characters of a metric or a parameter
PROCESS_TAG = "fairall.process"  # who writes the run: host:pid
KIND_TAG, COMMAND = "fairall.kind", "command"  # what a run records: a command, one seed of it, a report
RUN_FILES = ("config.yaml", "metrics.csv", "summary.json")
Connected = TypeVar("Connected")


def store_uri(config: dict[str, Any]) -> str:
    """Where the records are: `tracking.uri`, or sqlite inside `outputs_dir`."""
    return config["tracking"]["uri"] or f"sqlite:///{_database(config)}"


def how_to_look(config: dict[str, Any]) -> str | None:
    """The address or the command that shows the records; None where there are none."""
    if config["tracking"]["uri"]:
        return config["tracking"]["uri"]
    if not _database(config).exists():
        return None
    return f"mlflow ui --host 127.0.0.1 --backend-store-uri {store_uri(config)}"


class Store:
    """An MLflow store, its experiment made where it was not there.

    Attributes:
        mlflow: the module, quiet and pointed at the store.
        client: of the store.
        experiment: the id of `tracking.experiment`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        # A server that is away should be noticed in seconds; MLflow's own patience is minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        warnings.filterwarnings("ignore", module="mlflow")
        import mlflow

        # They tell of every table created, every model logged and every second try.
        for name in ("alembic", "mlflow", "urllib3"):
            logging.getLogger(name).setLevel(logging.ERROR)
        mlflow.set_tracking_uri(store_uri(config))
        self.mlflow = mlflow
        outputs = Path(config["outputs_dir"]).resolve()
        # Making a client creates the database; two processes that did so at once would corrupt it.
        with locked(outputs, outputs / "mlflow.lock"):
            self.client = mlflow.MlflowClient()
            self.experiment = self._experiment_id(config, outputs)
            self._close_dead_runs()

    def _experiment_id(self, config: dict[str, Any], outputs: Path) -> str:
        known = self.client.get_experiment_by_name(config["tracking"]["experiment"])
        if known is not None:
            return known.experiment_id
        artifacts = None if config["tracking"]["uri"] else (outputs / "mlartifacts").as_uri()
        return self.client.create_experiment(config["tracking"]["experiment"], artifact_location=artifacts)

    def _close_dead_runs(self) -> None:
        """Closes runs that a process of this machine left RUNNING when it was killed."""
        running = self.client.search_runs([self.experiment], "attributes.status = 'RUNNING'")
        for run in running:
            if is_gone(run.data.tags.get(PROCESS_TAG, "")):
                self.client.set_terminated(run.info.run_id, "KILLED")


class Tracker:
    """One parent run in MLflow.

    Args:
        config: of the run, as plain containers.
        run_id: identity of the run, a tag by which its records are found again.
        command: what the user typed.
    """

    def __init__(self, config: dict[str, Any], run_id: str, command: str) -> None:
        store = Store(config)
        self._mlflow, self._client, self._experiment = store.mlflow, store.client, store.experiment
        names = {group: config[group]["name"] for group in ("model", "dataset", "initial_policy", "protocol")}
        tags = {
            "mlflow.runName": f"{names['model']} {names['dataset']} {run_id}",
            "fairall.run_id": run_id,
            "fairall.command": command,
            KIND_TAG: COMMAND,
            PROCESS_TAG: this_process(),
        }
        # A nested run has them too, so that the page's search finds and compares seeds as well.
        self._what = {f"fairall.{group}": name for group, name in names.items()}
        self._what["fairall.cost"] = str(config["cost"]["value"])
        self.run_id = self._client.create_run(self._experiment, tags=tags | self._what).info.run_id
        self._log_parameters(config)

    @classmethod
    @contextmanager
    def following(cls, config: dict[str, Any], run_id: str, command: str) -> Iterator[Tracker | None]:
        """The records of one run, closed as FINISHED, FAILED or KILLED; None where tracking is off."""
        if not config["tracking"]["enabled"]:
            yield None
            return
        tracker = reaching(config, lambda: cls(config, run_id, command))
        try:
            yield tracker
        except BaseException as error:
            status = "FAILED" if isinstance(error, Exception) else "KILLED"
            tracker._client.set_terminated(tracker.run_id, status)
            raise
        tracker._client.set_terminated(tracker.run_id, "FINISHED")

    def log_result(
        self, table: pd.DataFrame, summary: dict[str, Any], folder: Path, cpu_seconds: float
    ) -> None:
        """Curves and figures, aggregated on the parent and per seed on nested runs, and the run's files.

        Args:
            table: of `summary.measure_table`.
            summary: of `summary.summarise`.
            folder: the run's folder.
            cpu_seconds: of this process.
        """
        now = int(time.time() * 1000)
        curves = table.groupby("time_step")[MEASURES].mean().reset_index()
        spread = {
            f"summary.{name}.{part}": values[part]
            for name, values in summary["aggregate"].items()
            if values is not None
            for part in ("mean", "std")
        }
        self._log_metrics(self.run_id, curves, spread | {"cpu_seconds": cpu_seconds}, now)
        for figures in summary["per_seed"]:
            seed = figures["seed"]
            tags = {
                "mlflow.parentRunId": self.run_id,
                "mlflow.runName": f"seed {seed}",
                KIND_TAG: "seed",
                PROCESS_TAG: this_process(),
            }
            nested = self._client.create_run(self._experiment, tags=tags | self._what).info.run_id
            self._client.log_param(nested, "seed", seed)
            own = {f"summary.{name}": value for name, value in figures.items() if name != "seed"}
            self._log_metrics(nested, table[table["seed"] == seed], own, now)
            self._client.set_terminated(nested, "FINISHED")
        for name in RUN_FILES:
            self._client.log_artifact(self.run_id, str(folder / name))
        self._client.log_artifacts(self.run_id, str(folder / "figures"), "figures")
        with self._mlflow.start_run(run_id=self.run_id):
            self._mlflow.pyfunc.log_model(
                name="policy",
                python_model=str(Path(__file__).with_name("mlflow_policy.py")),
                artifacts={"policy": str(folder / "policy")},
                # What the policy runs on; this package itself is on no index and has to be installed.
                pip_requirements=[r for r in requires("fairall") or [] if "extra ==" not in r],
            )

    def _log_metrics(self, run: str, curves: pd.DataFrame, figures: dict[str, Any], now: int) -> None:
        from mlflow.entities import Metric

        batch = [
            Metric(name, float(value), now, int(step))
            for name in MEASURES
            for step, value in zip(curves["time_step"], curves[name], strict=True)
            if value == value
        ]
        batch += [
            Metric(allowed(name), float(value), now, 0)
            for name, value in figures.items()
            if value is not None
        ]
        for start in range(0, len(batch), BATCH):
            self._client.log_batch(run, metrics=batch[start : start + BATCH])

    def _log_parameters(self, config: Any) -> None:
        from mlflow.entities import Param

        parameters = [Param(allowed(name), str(value)[:500]) for name, value in flat(config)]
        self._client.log_batch(self.run_id, params=parameters)


def log_report(config: dict[str, Any], folder: Path, title: str, command: str) -> None:
    """Keeps a report's folder, its page, tables and figures, as a run of its own.

    Raises:
        FairAllError: where there is no MLflow to be reached.
    """

    def keep() -> None:
        store = Store(config)
        tags = {
            "mlflow.runName": title,
            "fairall.command": command,
            KIND_TAG: "report",
            PROCESS_TAG: this_process(),
        }
        run_id = store.client.create_run(store.experiment, tags=tags).info.run_id
        store.client.log_artifacts(run_id, str(folder))
        store.client.set_terminated(run_id, "FINISHED")

    reaching(config, keep)


def fetch_runs(config: dict[str, Any], folder: Path) -> None:
    """Lays the finished runs of a store out beneath a folder as they lie in outputs/runs, without figures.

    Of several records of one run the last is taken. A run that lacks a file is laid out as far as it goes.

    Raises:
        FairAllError: where there is no MLflow to be reached.
    """
    reaching(config, lambda: _fetch(Store(config), folder))


def _fetch(store: Store, folder: Path) -> None:
    from mlflow.exceptions import MlflowException

    token = None
    while True:
        found = store.client.search_runs(
            [store.experiment],
            "attributes.status = 'FINISHED'",
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        for run in found:
            tags = run.data.tags
            if "fairall.run_id" not in tags:
                continue  # of one seed, or a report
            path = folder / tags["fairall.model"] / tags["fairall.dataset"] / tags["fairall.run_id"]
            path.mkdir(parents=True, exist_ok=True)
            for name in RUN_FILES:
                try:
                    store.client.download_artifacts(run.info.run_id, name, str(path))
                except (MlflowException, OSError):
                    continue  # reading the run will tell what it lacks
            (path / "DONE").touch()
            os.utime(path / "DONE", (run.info.end_time / 1000,) * 2)
        token = found.token
        if not token:
            return


def reaching(config: dict[str, Any], connect: Callable[[], Connected]) -> Connected:
    """What `connect` gives; FairAllError where there is no MLflow to be reached."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        return connect()
    except (MlflowException, SQLAlchemyError, OSError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise FairAllError(
            f"tracking.uri: cannot use {store_uri(config)} ({reason}); "
            "give another with tracking.uri=URI or go without: tracking.enabled=false"
        ) from error


def allowed(name: str) -> str:
    """A name as MLflow takes it: what else a column's name may hold is spelt in hexadecimal."""
    return re.sub(r"[^\w. /-]", lambda found: f"_{ord(found[0]):x}_", name, flags=re.ASCII)[:MAX_NAME]


def _database(config: dict[str, Any]) -> Path:
    return Path(config["outputs_dir"]).resolve() / "mlflow.db"


def flat(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of plain containers, each with its key, `model.alpha`."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from flat(value, f"{prefix}{key}.")
    else:
        yield prefix.removesuffix("."), node
