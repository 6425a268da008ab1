"""One run in MLflow: a parent run with means over seeds, a nested run per seed, and the policy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import requires
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from fairall.errors import FairAllError
from fairall.policy import load_reader
from fairall.results.differences import differences
from fairall.results.interpretable import marked
from fairall.results.result import Result
from fairall.runtime.credentials import hidden
from fairall.storage.identity import flattened
from fairall.storage.run_folder import CARD, DECISIONS, FILES
from fairall.tables.people import PeopleReader
from fairall.tracking.page import DIFFERS_TAG, MAX_NOTE, NOTE_TAG, PRESET_TAG, SWEEP_TAG, note_of_run
from fairall.tracking.store import RUN_TAG, Store, equal, run_tags

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.models import ModelSignature

MODEL = "policy"  # name of the logged model
MOST_NAME = 150  # characters of a run's name before its id
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
        self._client, self.experiment = store.client, store.experiment
        self._config, self._run_id = config, run_id
        # Nested runs have them too, so that MLflow's search compares seeds as well.
        groups = ("model", "dataset", "initial_policy", "protocol")
        self._tags = {f"fairall.{group}": config[group]["name"] for group in groups}
        self._tags["fairall.cost"] = str(config["cost"]["value"])
        self._differs = differences(config)
        self._tags[DIFFERS_TAG] = shorten(self._differs or "nothing", MAX_NOTE, placeholder=" ...")
        if config["preset"]:
            self._tags[PRESET_TAG] = config["preset"]
        if config["sweep"]["name"]:
            self._tags[SWEEP_TAG] = config["sweep"]["name"]

    def begin(self, command: str, source: Mapping[str, str]) -> str:
        """Create a parent run, RUNNING, with the parameters; return its MLflow id.

        What killed processes logged of the same run in part is deleted.

        Args:
            command: command line of the user.
            source: tags of the command's program and commit, see `source_tags`.
        """
        for run in list(self._search("attributes.status != 'FINISHED'")):
            if run.data.metrics and run.info.status != "RUNNING":
                self._store.delete(run)
        words = f"{self._tags['fairall.model']} {self._tags['fairall.dataset']} {self._differs}".strip()
        name = f"{shorten(words, MOST_NAME, placeholder=' ...')} {self._run_id}"
        tags = run_tags(marked(name, self._config), "command") | {
            RUN_TAG: self._run_id,
            "fairall.command": command,
        }
        parent = self._client.create_run(self.experiment, tags={**source, **tags, **self._tags}).info.run_id
        self._store.log(parent, parameters=flattened(self._config))
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
            logged = next(self._search("attributes.status = 'FINISHED'"), None)
            return self.begin(command, source) if logged is None else None
        if not begun.data.metrics:
            return begun.info.run_id
        if begun.info.status == "FINISHED":
            return None
        self._store.delete(begun)
        return self.begin(command, source)

    def _search(self, where: str) -> Iterator[Run]:
        """Parent runs of this run of ours that match an MLflow filter, newest first."""
        return self._store.search(f"{equal(f'tags.`{RUN_TAG}`', self._run_id)} and {where}")

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
        finished = self._search("attributes.status = 'FINISHED'")
        parent = next((run for run in finished if run.outputs and run.outputs.model_outputs), None)
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

    def log_result(self, parent: str, result: Result, folder: Path, cpu_seconds: float | None) -> None:
        """Log a result: its curves as means over seeds, measures of the whole run, files, data and policy.

        The curves of each seed are in metrics.csv alone.

        Args:
            parent: MLflow id, see `to_log`.
            result: of the run.
            folder: with its files.
            cpu_seconds: that the process took to compute the result, if known.
        """
        means, stds = (
            {(f"summary.{name}.{part}", 0): value for name, value in result.aggregate[part].items()}
            for part in ("mean", "std")
        )
        self._store.log(parent, means | {("cpu_seconds", 0): cpu_seconds})
        for seed in reversed(result.seeds):  # MLflow lists the newest first
            tags = run_tags(marked(f"seed {seed}", self._config), "seed") | {"mlflow.parentRunId": parent}
            nested = self._client.create_run(self.experiment, tags=tags | self._tags).info.run_id
            values = {(f"summary.{name}", 0): value for name, value in result.per_seed.loc[seed].items()}
            self._store.log(nested, values, {"seed": seed})
            self._client.set_terminated(nested, "FINISHED")
        for name in (*FILES, DECISIONS):
            if (folder / name).exists():
                self._client.log_artifact(parent, str(folder / name))
        self._store.log_folder(parent, folder / "figures", "figures")
        self._client.set_tag(parent, NOTE_TAG, note_of_run(result, self.experiment, parent))
        self._log_data(parent, result.fingerprint)
        self._log_policy(parent, folder, result.seeds)
        # After the policy, since MLflow reads the history of every metric to give the model its values.
        curves = result.steps.drop(columns="seed").groupby("time_step").mean()
        values = {(name, step): value for name in curves for step, value in curves[name].items()}
        self._store.log(parent, stds | values)

    def _log_data(self, run: str, fingerprint: str) -> None:
        """Log name, digest and source of the data as an input of the run; the people are not logged."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        node = self._config["dataset"]
        source_type, source = data_source(node)
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
        with self._store.mlflow.start_run(run_id=run):
            self._store.mlflow.pyfunc.log_model(
                name=MODEL,
                python_model=str(Path(__file__).with_name("model.py")),
                # MLflow reads a path as an address, in which %20 is a space.
                artifacts={name: path.resolve().as_uri() for name, path in files.items() if path.exists()},
                model_config={"modules": [self._config["model"]["_target_"].rpartition(".")[0]]},
                signature=_signature(reader, seeds),
                input_example=reader.example(),
                # As of runs that MLflow's client makes; otherwise the name that the server is signed in with.
                tags={"mlflow.user": "unknown"},
                # Without this package, which is on no index and has to be installed.
                pip_requirements=[r for r in requires("fairall") or [] if "extra ==" not in r],
            )


def data_source(node: dict[str, Any]) -> tuple[str, dict[str, Any]]:
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
