"""Logging of one run to MLflow: a parent run per command, a nested run per seed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import requires
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairall.data.people_reader import PeopleReader
from fairall.errors import FairAllError
from fairall.policy import load_reader
from fairall.results.interpretable import marked
from fairall.results.result import Result
from fairall.runtime.credentials import hidden
from fairall.runtime.process import this_process
from fairall.storage.identity import flattened
from fairall.storage.run_folder import CARD, DECISIONS, FILES, RunFolder
from fairall.tracking.client import KIND_TAG, PROCESS_TAG, Store, allowed, equal, log_folder
from fairall.tracking.metrics import log_points
from fairall.tracking.page import NOTE_TAG, PRESET_TAG, note_of_run

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.models import ModelSignature

COMMAND = "command"  # `KIND_TAG` of a parent run
RUN_TAG = "fairall.run_id"
MODEL = "policy"  # name of the logged model
DIGEST = 36  # characters of a data set's fingerprint that MLflow keeps


class RunLogger:
    """MLflow runs of one run of ours.

    Args:
        store: to log to.
        config: of the run, as plain containers.
        run_id: identity of the run, a tag of its MLflow runs.

    Attributes:
        experiment: MLflow id.
    """

    def __init__(self, store: Store, config: dict[str, Any], run_id: str) -> None:
        self._store = store
        self._mlflow, self._client, self.experiment = store.mlflow, store.client, store.experiment
        self._config, self._run_id = config, run_id
        self._names = {
            group: config[group]["name"] for group in ("model", "dataset", "initial_policy", "protocol")
        }
        # Nested runs have them too, so that MLflow's search compares seeds as well.
        self._tags = {f"fairall.{group}": name for group, name in self._names.items()}
        self._tags["fairall.cost"] = str(config["cost"]["value"])
        if config["preset"]:
            self._tags[PRESET_TAG] = config["preset"]

    def begin(self, command: str, source: Mapping[str, str]) -> str:
        """Create a parent run, RUNNING, with the parameters; return its MLflow id.

        What killed processes logged of the same run in part is deleted.

        Args:
            command: command line of the user.
            source: tags of the command's program and commit, see `source_tags`.
        """
        from mlflow.entities import Param

        unfinished = f"{equal(f'tags.`{RUN_TAG}`', self._run_id)} and attributes.status != 'FINISHED'"
        for run in list(self._store.search(unfinished)):
            if run.data.metrics and run.info.status != "RUNNING":
                self._store.delete(run)
        tags = {
            "mlflow.runName": marked(
                f"{self._names['model']} {self._names['dataset']} {self._run_id}", self._config
            ),
            RUN_TAG: self._run_id,
            "fairall.command": command,
            KIND_TAG: COMMAND,
            PROCESS_TAG: this_process(),
        }
        parent = self._client.create_run(self.experiment, tags={**source, **tags, **self._tags}).info.run_id
        values = flattened(self._config).items()
        parameters = [Param(allowed(name), str(value)[:500]) for name, value in values]
        self._client.log_batch(parent, params=parameters)
        return parent

    def end(self, parent: str, status: str) -> None:
        """Close a parent run as FINISHED, FAILED or KILLED."""
        self._client.set_terminated(parent, status)

    def to_log(self, parent: str | None, command: str, source: Mapping[str, str]) -> str | None:
        """The parent run to log the result to, begun or new; None where MLflow has the result.

        A half-logged run is deleted, since MLflow would keep its curves beside the new ones.

        Args:
            parent: MLflow id of the parent run, if one was begun, in this store or another.
            command: command line of the user.
            source: see `begin`.
        """
        begun = None if parent is None else self._store.run(parent)
        if begun is None:
            return None if self.logged() else self.begin(command, source)
        if not begun.data.metrics:
            return begun.info.run_id
        if begun.info.status == "FINISHED":
            return None
        self._store.delete(begun)
        return self.begin(command, source)

    def logged(self) -> str | None:
        """MLflow id of the latest parent run that has the result; None where there is none."""
        return next((run.info.run_id for run in self._logged()), None)

    def _logged(self) -> Iterator[Run]:
        logged = f"{equal(f'tags.`{RUN_TAG}`', self._run_id)} and attributes.status = 'FINISHED'"
        return self._store.search(logged)

    def register(self, name: str) -> tuple[str, bool] | None:
        """Make the policy a version of a registered model, unless one has it already.

        Args:
            name: of the registered model, created where there is none.

        Returns:
            The version, and whether it was made now; None where MLflow has no model of the run.
        """
        from mlflow.exceptions import MlflowException

        versions = self._client.search_model_versions(
            f"{equal('name', name)} and {equal(f'tags.`{RUN_TAG}`', self._run_id)}"
        )
        if versions:
            return str(versions[0].version), False
        with_model = (run for run in self._logged() if run.outputs and run.outputs.model_outputs)
        parent = next(with_model, None)
        if parent is None:
            return None
        model = parent.outputs.model_outputs[-1].model_id
        try:
            self._client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        made = self._client.create_model_version(
            name,
            source=f"models:/{model}",
            run_id=parent.info.run_id,
            tags=self._tags | {RUN_TAG: self._run_id},
            description=parent.data.tags.get(NOTE_TAG),
            model_id=model,
        )
        return str(made.version), True

    def log_result(self, parent: str, folder: Path, cpu_seconds: float | None) -> None:
        """Log measures, aggregated on the parent and per seed on nested runs, and the run's files.

        Args:
            parent: MLflow id, see `to_log`.
            folder: the run's folder, finished.
            cpu_seconds: of the process that computed the result, if known.
        """
        result = Result.read(RunFolder(folder))
        table = result.steps
        now = int(time.time() * 1000)
        curves = table.drop(columns="seed").groupby("time_step").mean().reset_index()
        totals = {
            f"summary.{name}.{part}": row[part]
            for name, row in result.aggregate.iterrows()
            for part in ("mean", "std")
        }
        self._log_metrics(parent, curves, totals | {"cpu_seconds": cpu_seconds}, now)
        for seed in reversed(result.seeds):  # MLflow lists the newest first
            tags = {
                "mlflow.parentRunId": parent,
                "mlflow.runName": marked(f"seed {seed}", self._config),
                KIND_TAG: "seed",
                PROCESS_TAG: this_process(),
            }
            nested = self._client.create_run(self.experiment, tags=tags | self._tags).info.run_id
            self._client.log_param(nested, "seed", seed)
            own = {f"summary.{name}": value for name, value in result.per_seed.loc[seed].items()}
            self._log_metrics(nested, table[table["seed"] == seed].drop(columns="seed"), own, now)
            self._client.set_terminated(nested, "FINISHED")
        for name in (*FILES, DECISIONS):
            if (folder / name).exists():
                self._client.log_artifact(parent, str(folder / name))
        log_folder(self._client, parent, folder / "figures", "figures")
        self._client.set_tag(parent, NOTE_TAG, note_of_run(result, self.experiment, parent))
        self._log_data(parent, result.fingerprint)
        self._log_policy(parent, folder, result.seeds)

    def _log_data(self, run: str, fingerprint: str) -> None:
        """Log name, digest and source of the data as an input of the run; the people are not logged."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        node = self._config["dataset"]
        source_type, source = _data_source(node)
        data = Dataset(node["name"], fingerprint[:DIGEST], source_type, json.dumps(source))
        context = InputTag("mlflow.data.context", "training")
        self._client.log_inputs(run, [DatasetInput(data, [context])])

    def _log_policy(self, run: str, folder: Path, seeds: list[int]) -> None:
        """Log the policy, with its card, as a model, unless another version of this package saved it."""
        try:
            reader = load_reader(folder / "policy")
        except FairAllError:
            return
        files = {"policy": folder / "policy", "card": folder / CARD}
        with self._mlflow.start_run(run_id=run):
            self._mlflow.pyfunc.log_model(
                name=MODEL,
                python_model=str(Path(__file__).with_name("policy_model.py")),
                artifacts={name: str(path) for name, path in files.items() if path.exists()},
                model_config={"modules": [self._config["model"]["_target_"].rpartition(".")[0]]},
                signature=_signature(reader, seeds),
                input_example=reader.example(),
                # As of runs that MLflow's client makes; otherwise the name that the server is signed in with.
                tags={"mlflow.user": "unknown"},
                # Without this package, which is on no index and has to be installed.
                pip_requirements=[r for r in requires("fairall") or [] if "extra ==" not in r],
            )

    def _log_metrics(self, run: str, curves: pd.DataFrame, totals: dict[str, Any], now: int) -> None:
        points = [
            (name, float(value), step)
            for name in curves.columns.drop("time_step")
            for step, value in zip(curves["time_step"].tolist(), curves[name].tolist(), strict=True)
            if value == value
        ]
        points += [
            (allowed(name), float(value), 0)
            for name, value in totals.items()
            if value is not None and value == value
        ]
        log_points(self._store, run, points, now)


def _data_source(node: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Type and content of MLflow's dataset source: a file, an address, or the class that makes the people.

    Args:
        node: `dataset` of a configuration, as plain containers.
    """
    file, url = node.get("path") or node.get("raw_file"), (node.get("download") or {}).get("url")
    if file:
        return "local", {"uri": str(file)}
    if url:
        return "http", {"url": hidden(url)}
    return "code", {"tags": {"mlflow.source.name": node["_target_"]}}


def columns(seeds: Iterable[int]) -> list[str]:
    """Columns of what the model predicts: all seeds together, and each of them."""
    return ["probability", *(f"seed_{seed}" for seed in seeds)]


def _signature(reader: PeopleReader, seeds: list[int]) -> ModelSignature:
    """Signature of the model.

    MLflow checks neither types nor presence of columns: the policy does, with messages of one line, and it
    accepts numbers as text and codes as numbers too.
    """
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    return ModelSignature(
        inputs=Schema([ColSpec(AnyType(), name, required=False) for name in reader.columns]),
        outputs=Schema([ColSpec(DataType.float, name) for name in columns(seeds)]),
        params=ParamSchema([ParamSpec("strict", DataType.boolean, False)]),
    )
