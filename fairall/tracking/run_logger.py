"""One run in MLflow: a parent run per command, a nested run per seed."""

from __future__ import annotations

import json
import time
from importlib.metadata import requires
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairall.data.people_reader import PeopleReader
from fairall.errors import FairAllError
from fairall.policy import load_reader
from fairall.results.summary import MEASURES
from fairall.runtime.process import this_process
from fairall.storage.identity import flattened
from fairall.storage.run_folder import FILES
from fairall.tracking.client import KIND_TAG, PROCESS_TAG, Store, allowed

if TYPE_CHECKING:
    from mlflow.models import ModelSignature

BATCH = 1000  # the most metrics MLflow takes in one call
COMMAND = "command"  # `KIND_TAG` of a parent run
RUN_TAG = "fairall.run_id"


class RunTracker:
    """What MLflow is told of a run.

    Args:
        store: where.
        config: of the run, as plain containers.
        run_id: identity of the run, a tag by which its records are found again.
    """

    def __init__(self, store: Store, config: dict[str, Any], run_id: str) -> None:
        self._store = store
        self._mlflow, self._client, self._experiment = store.mlflow, store.client, store.experiment
        self._config, self._run_id = config, run_id
        self._names = {
            group: config[group]["name"] for group in ("model", "dataset", "initial_policy", "protocol")
        }
        # A nested run has them too, so that the page's search finds and compares seeds as well.
        self._what = {f"fairall.{group}": name for group, name in self._names.items()}
        self._what["fairall.cost"] = str(config["cost"]["value"])
        if preset := config.get("preset"):  # runs of older versions have no such key
            self._what["fairall.preset"] = preset

    def begin(self, command: str) -> str:
        """Makes a parent run, RUNNING, with the parameters; returns its MLflow id.

        Args:
            command: what the user typed.
        """
        from mlflow.entities import Param

        tags = {
            "mlflow.runName": f"{self._names['model']} {self._names['dataset']} {self._run_id}",
            RUN_TAG: self._run_id,
            "fairall.command": command,
            KIND_TAG: COMMAND,
            PROCESS_TAG: this_process(),
        }
        parent = self._client.create_run(self._experiment, tags=tags | self._what).info.run_id
        values = flattened(self._config).items()
        parameters = [Param(allowed(name), str(value)[:500]) for name, value in values]
        self._client.log_batch(parent, params=parameters)
        return parent

    def end(self, parent: str, status: str) -> None:
        """Closes a parent run as FINISHED, FAILED or KILLED."""
        self._client.set_terminated(parent, status)

    def to_tell(self, parent: str | None, command: str) -> str | None:
        """The parent run that is to be told the result: the one begun, or a new one; None where it knows.

        One that was told half of it is deleted, since MLflow would keep both halves' curves.

        Args:
            parent: MLflow id of the run's record, if one was begun, in this store or another.
            command: what the user typed.
        """
        begun = None if parent is None else self._store.run(parent)
        if begun is None:
            return None if self._is_told() else self.begin(command)
        if begun.info.status == "FINISHED":
            return None
        if not begun.data.metrics:
            return begun.info.run_id
        for run in (*self._store.nested(begun.info.run_id), begun):
            self._client.delete_run(run.info.run_id)
        return self.begin(command)

    def _is_told(self) -> bool:
        told = f"tags.`{RUN_TAG}` = '{self._run_id}' and attributes.status = 'FINISHED'"
        return any(self._store.search(told))

    def log_result(self, parent: str, folder: Path, cpu_seconds: float | None) -> None:
        """Curves and figures, aggregated on the parent and per seed on nested runs, and the run's files.

        Args:
            parent: MLflow id, see `to_tell`.
            folder: the run's folder, finished.
            cpu_seconds: of the process that made it, where that is known.
        """
        table = pd.read_csv(folder / "metrics.csv")
        summary = json.loads((folder / "summary.json").read_text())
        now = int(time.time() * 1000)
        curves = table.groupby("time_step")[MEASURES].mean().reset_index()
        figures = {
            f"summary.{name}.{part}": values[part]
            for name, values in summary["aggregate"].items()
            if values is not None
            for part in ("mean", "std")
        }
        self._log_metrics(parent, curves, figures | {"cpu_seconds": cpu_seconds}, now)
        for of_seed in summary["per_seed"]:
            seed = of_seed["seed"]
            tags = {
                "mlflow.parentRunId": parent,
                "mlflow.runName": f"seed {seed}",
                KIND_TAG: "seed",
                PROCESS_TAG: this_process(),
            }
            nested = self._client.create_run(self._experiment, tags=tags | self._what).info.run_id
            self._client.log_param(nested, "seed", seed)
            own = {f"summary.{name}": value for name, value in of_seed.items() if name != "seed"}
            self._log_metrics(nested, table[table["seed"] == seed], own, now)
            self._client.set_terminated(nested, "FINISHED")
        for name in FILES:
            self._client.log_artifact(parent, str(folder / name))
        self._client.log_artifacts(parent, str(folder / "figures"), "figures")
        self._log_policy(parent, folder / "policy", [of_seed["seed"] for of_seed in summary["per_seed"]])

    def _log_policy(self, run: str, folder: Path, seeds: list[int]) -> None:
        """Logs the policy as a model, unless another version of this package saved it."""
        try:
            reader = load_reader(folder)
        except FairAllError:
            return
        with self._mlflow.start_run(run_id=run):
            self._mlflow.pyfunc.log_model(
                name="policy",
                python_model=str(Path(__file__).with_name("mlflow_policy.py")),
                artifacts={"policy": str(folder)},
                signature=_signature(reader, seeds),
                input_example=reader.example(),
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


def _signature(reader: PeopleReader, seeds: list[int]) -> ModelSignature:
    """What the model takes and gives.

    The types of columns are free and none is required for MLflow, since the policy itself checks them, with
    messages of one line, and takes numbers as text and codes as numbers too.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    return ModelSignature(
        inputs=Schema([ColSpec(AnyType(), name, required=False) for name in reader.columns]),
        outputs=Schema([ColSpec(DataType.float, f"seed_{seed}") for seed in seeds]),
        params=ParamSchema([ParamSpec("strict", DataType.boolean, False)]),
    )
