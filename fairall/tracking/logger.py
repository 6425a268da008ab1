"""A finished run in MLflow: its configuration, metrics, files, and the policy as a model."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from fairall.config.choices import flattened
from fairall.config.compose import places
from fairall.config.schema import Config
from fairall.config.words import Words
from fairall.display.format import marked
from fairall.errors import FairAllError, count
from fairall.results.result import Result
from fairall.results.runs import load, load_results
from fairall.runtime import signals
from fairall.storage.files import sha256, sha256_of_text
from fairall.storage.run_folder import CARD, DECISIONS, FILES, Origin, RunFolder
from fairall.tracking.page import KIND_TAG, NOTE_TAG
from fairall.tracking.store import RUN_TAG, allowed, connected, experiment_of, named_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient

RESULT_TAG = "fairall.result"  # digest of the result that was logged
COMMAND_TAG = "fairall.command"
MAX_TAG = 8000  # characters of a tag that MLflow takes


class Logged(NamedTuple):
    """What MLflow has of a result."""

    experiment: str  # MLflow id
    is_new: bool  # whether it was written now
    registered: list[str]  # the line that says as which version the policy is registered, if it is


def log(path: Path, config: Config) -> Logged:
    """Have MLflow hold the result of a finished run once; the caller holds the lock of its folder.

    A complete MLflow run of the same result stays as it is. All others of this run's id, which killed
    processes left in part or which have another result, are deleted.

    Args:
        path: folder of the run.
        config: with `outputs_dir` and `tracking`: where to log, and the name to register.

    Raises:
        UnreachableError: where MLflow is not installed or cannot be reached.
        FairAllError: where the policy is to be registered and MLflow has no model of it.
    """
    result, name = Result.read(RunFolder(path)), config.tracking.register
    digest = sha256_of_text(sha256(path / "metrics.csv") + sha256(path / "summary.json"))
    complete, version = None, None
    with signals.deferred(), connected(config) as client:  # a signal waits until everything has been logged
        experiment = experiment_of(client, config)
        for run in client.search_runs([experiment], f"tags.`{RUN_TAG}` = '{path.name}'"):
            same = run.data.tags.get(RESULT_TAG, digest) == digest  # earlier versions logged no digest
            if complete is None and same and run.info.status == "FINISHED":
                complete = run.info.run_id
            else:
                _delete(client, experiment, run.info.run_id)
        run_id = complete or _write(client, experiment, result, digest)
        if name:
            version = register(client, name, run_id, _tags(result))
    if name and version is None:
        raise FairAllError(
            f"tracking.register={name}: MLflow has no model of {path}; run it anew with force=true"
        )
    line = f"Registered: version {version} of {name}: models:/{name}/{version}"
    return Logged(experiment, complete is None, [line] if name else [])


def _delete(client: MlflowClient, experiment: str, run_id: str) -> None:
    """Delete the models of a run that are not registered, and then the run, so that it can be repeated."""
    registered = {version.model_id for version in client.search_model_versions(f"run_id = '{run_id}'")}
    for model in client.search_logged_models([experiment], f"source_run_id = '{run_id}'"):
        if model.model_id not in registered:
            client.delete_logged_model(model.model_id)
    client.delete_run(run_id)


def _write(client: MlflowClient, experiment: str, result: Result, digest: str) -> str:
    """Log a result as an MLflow run that is FINISHED when complete; return its id.

    The curves of each seed are in metrics.csv alone.
    """
    import mlflow
    from mlflow.entities import Metric

    from fairall.tracking.model import log_policy

    config, path, origin = result.config, result.path, Origin.read(result.path)
    title = f"{result.name('model')} {result.name('dataset')} {result.identity}"
    note = (path / CARD).read_text(encoding="utf-8")[:MAX_TAG]
    tags = origin.source | _tags(result) | {RESULT_TAG: digest, KIND_TAG: "command", NOTE_TAG: note}
    tags[COMMAND_TAG] = origin.command
    began, finished = (int(1000 * seconds) for seconds in (origin.began or result.finished, result.finished))
    run_id = client.create_run(experiment, began, tags, marked(title, config.preset)).info.run_id
    spreads = result.aggregate[["mean", "std"]].stack().items()
    summary = {f"summary.{measure}.{part}": value for (measure, part), value in spreads}
    totals = pd.DataFrame([summary | {"cpu_seconds": origin.cpu_seconds}])
    curves = result.steps.drop(columns="seed").groupby("time_step").mean()
    seeds = result.per_seed.add_prefix("seeds.")
    with mlflow.start_run(run_id, nested=True):  # in a program that has an active run
        parameters = flattened(config.to_plain())
        mlflow.log_params({allowed(key): str(value)[:500] for key, value in parameters.items()})
        metrics = [
            Metric(allowed(name), float(value), finished, step)
            for name, values in pd.concat([totals, curves, seeds], axis=1).items()
            for step, value in values.dropna().items()
        ]
        client.log_batch(run_id, metrics)  # as many at a time as servers take
        with suppress(FairAllError):  # a policy of another version
            log_policy(path / "policy", config, tags)
        for name in (*FILES, DECISIONS, "figures"):
            if (path / name).exists():
                mlflow.log_artifact(str(path / name))
    client.set_terminated(run_id, end_time=finished)
    return run_id


def _tags(result: Result) -> dict[str, str]:
    """Tags by which MLflow's search finds runs and models."""
    config = result.config
    groups = ("model", "dataset", "initial_policy", "protocol")
    tags = {f"fairall.{group}": result.name(group) for group in groups} | {
        RUN_TAG: result.identity,
        "fairall.cost": str(config.cost.value),
        "fairall.fingerprint": result.fingerprint,
        "fairall.sweep": config.sweep.name,
        "fairall.preset": config.preset,
    }
    return {tag: value for tag, value in tags.items() if value}


def register(client: MlflowClient, name: str, run_id: str, tags: dict[str, str]) -> str | None:
    """Make the policy of a run a version of a registered model, unless one has it already.

    Args:
        client: of the store.
        name: of the registered model, which is created if need be.
        run_id: MLflow id of the run.
        tags: of the version.

    Returns:
        The number of the version; None where MLflow has no model of the run.
    """
    from mlflow.exceptions import MlflowException

    for version in client.search_model_versions(f"run_id = '{run_id}'"):
        if version.name == name:
            return str(version.version)
    run = client.get_run(run_id)
    if not (run.outputs and run.outputs.model_outputs):
        return None
    model = run.outputs.model_outputs[-1].model_id
    with suppress(MlflowException):  # where it is there; another error comes again
        client.create_registered_model(name)
    made = client.create_model_version(name, f"models:/{model}", run_id, tags, model_id=model)
    return str(made.version)


def sync(overrides: Words) -> int:
    """Log the finished runs in `outputs_dir` that MLflow does not have.

    Args:
        overrides: `KEY=VALUE` words. Without `tracking.` ones a run is logged to the store in `outputs_dir`,
            or to the `tracking.uri` that it was made with if MLFLOW_TRACKING_URI is that address: the folder
            of a run may be a stranger's.

    Returns:
        The exit code, 1 if a run could not be logged.

    Raises:
        FairAllError: where MLflow is not installed, or a name to register is given.
    """
    here = places(overrides)
    if here.tracking.register is not None:
        raise FairAllError(
            "tracking.register: `sync` registers nothing; to register a run, repeat its command with "
            "tracking.register=NAME"
        )
    moved = any(word.startswith("tracking") for word in overrides)
    collection = load_results(Path(here.outputs_dir) / "runs")
    for path, reason in collection.left_out:
        print(f"Left out: {path}: {reason}")
    logged: list[bool] = []
    tracked = [run for run in collection.results if run.config.tracking.enabled]
    for run in tracked:
        target = here.tracking if moved else replace(run.config.tracking, register=None)
        try:
            if target.uri not in (None, named_uri(here)):
                raise FairAllError(
                    f"it was made with tracking.uri={target.uri}: repeat that word to log it there, or give "
                    "the address of another store"
                )
            with RunFolder(run.path).locked(log=print):
                load(run.path)  # another process may have restarted it
                logged.append(log(run.path, replace(here, tracking=target)).is_new)
        except FairAllError as error:
            print(f"fairall: {run.path}: {error}", file=sys.stderr)
    print(f"Logged {count(sum(logged), 'run')} to MLflow; {logged.count(False)} were already there.")
    return int(len(logged) < len(tracked))
