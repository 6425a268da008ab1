"""A finished run in MLflow: a run with means over seeds, a nested run per seed, and the policy as a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from fairall.config.choices import flattened
from fairall.config.schema import Config
from fairall.display.format import marked
from fairall.errors import FairAllError
from fairall.policy import load_reader
from fairall.results.differences import differences
from fairall.results.result import Result
from fairall.runtime import signals
from fairall.storage.files import sha256, sha256_of_text
from fairall.storage.run_folder import CARD, DECISIONS, FILES, Origin, RunFolder, source_tags
from fairall.tracking import page
from fairall.tracking.store import RUN_TAG, Store, equal, parameters_of, reaching

RESULT_TAG = "fairall.result"  # digest of the result that was logged
MOST_NAME = 150  # characters of a run's name before its id


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

    def once() -> tuple[str, bool, str | None]:
        store, complete = Store(config), None
        for run in store.search(equal(f"tags.`{RUN_TAG}`", path.name)):
            same = run.data.tags.get(RESULT_TAG, digest) == digest  # earlier versions logged no digest
            if complete is None and same and run.info.status == "FINISHED":
                complete = run.info.run_id
            else:
                store.delete(run)
        run_id = complete or _write(store, result, {RUN_TAG: path.name, RESULT_TAG: digest})
        version = _register(store, run_id, name, _tags(result) | {RUN_TAG: path.name}) if name else None
        return store.experiment, complete is None, version

    with signals.deferred():  # a signal waits until everything has been logged
        experiment, is_new, version = reaching(config, once)
    if name and version is None:
        raise FairAllError(
            f"tracking.register={name}: MLflow has no model of {path}; run it anew with force=true"
        )
    line = f"Registered: version {version} of {name}: models:/{name}/{version}"
    return Logged(experiment, is_new, [line] if name else [])


def _write(store: Store, result: Result, identity: dict[str, str]) -> str:
    """Log a result, as its files have it, as an MLflow run that is FINISHED when complete; return its id.

    The curves of each seed are in metrics.csv alone. `identity` are the tags by which `log` finds the run.
    """
    client, config, origin = store.client, result.config, Origin.read(result.path)
    tags, ended = _tags(result), int(1000 * result.finished)
    words = f"{result.name('model')} {result.name('dataset')} {differences(config)}".strip()
    run_id = client.create_run(
        store.experiment,
        start_time=int(1000 * origin.began) if origin.began else ended,
        run_name=marked(f"{shorten(words, MOST_NAME, placeholder=' ...')} {result.identity}", config.preset),
        tags=origin.source | tags | identity | {page.KIND_TAG: "command", "fairall.command": origin.command},
    ).info.run_id
    parameters = parameters_of(flattened(config.to_plain()))
    policy, model = result.path / "policy", None
    with suppress(FairAllError):  # a policy of another version
        paths = [path for path in (policy, result.path / CARD) if path.exists()]
        model = store.log_model(run_id, paths, load_reader(policy), config, tags, parameters)
    means, stds = (
        {(f"summary.{measure}.{part}", 0): value for measure, value in result.aggregate[part].items()}
        for part in ("mean", "std")
    )
    store.log(run_id, means | {("cpu_seconds", 0): origin.cpu_seconds}, parameters, model)
    curves = result.steps.drop(columns="seed").groupby("time_step").mean()
    store.log(run_id, stds | {(one, step): value for one in curves for step, value in curves[one].items()})
    store.log_files(run_id, result.path, *FILES, DECISIONS, "figures/*")
    client.set_tag(run_id, page.NOTE_TAG, page.note_of_run(result, store.experiment, run_id))
    tags |= {"mlflow.parentRunId": run_id, page.KIND_TAG: "seed"}
    for seed in reversed(result.seeds):  # MLflow lists the newest first
        nested = client.create_run(
            store.experiment, run_name=marked(f"seed {seed}", config.preset), tags=tags
        )
        values = {(f"summary.{measure}", 0): value for measure, value in result.per_seed.loc[seed].items()}
        store.log(nested.info.run_id, values, {"seed": str(seed)})
        client.set_terminated(nested.info.run_id)
    client.set_terminated(run_id, end_time=ended)
    return run_id


def _tags(result: Result) -> dict[str, str]:
    """Tags by which MLflow's search finds runs, seeds and models."""
    config, differs = result.config, differences(result.config) or "nothing"
    groups = ("model", "dataset", "initial_policy", "protocol")
    tags = {f"fairall.{group}": result.name(group) for group in groups} | {
        "fairall.cost": str(config.cost.value),
        "fairall.fingerprint": result.fingerprint,
        page.DIFFERS_TAG: shorten(differs, page.MAX_NOTE, placeholder=" ..."),
        page.PRESET_TAG: config.preset,
        page.SWEEP_TAG: config.sweep.name,
    }
    return {tag: value for tag, value in tags.items() if value}


def _register(store: Store, run_id: str, name: str, tags: dict[str, str]) -> str | None:
    """Make the policy of a run a version of a registered model, unless one has it already.

    Returns:
        The version; None where MLflow has no model of the run.
    """
    from mlflow.exceptions import MlflowException

    client, run = store.client, store.client.get_run(run_id)
    versions = client.search_model_versions(f"{equal('name', name)} and {equal('run_id', run_id)}")
    if versions:
        return str(versions[0].version)
    if not (run.outputs and run.outputs.model_outputs):
        return None
    model = run.outputs.model_outputs[-1].model_id
    with suppress(MlflowException):  # where it is there; another error comes again
        client.create_registered_model(name)
    note = run.data.tags.get(page.NOTE_TAG)
    made = client.create_model_version(
        name, f"models:/{model}", run_id, tags, description=note, model_id=model
    )
    return str(made.version)


def log_report(
    config: Config,
    folder: Path,
    title: str,
    command: str,
    *,
    metrics: Mapping[str, float] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Log a report's folder, with its page, tables and figures, as a run of its own.

    Args:
        config: with `outputs_dir` and `tracking`.
        folder: of the report.
        title: name of the run.
        command: command line of the user.
        metrics: numbers by name.
        parameters: further values by name.

    Raises:
        UnreachableError: where MLflow is not installed or cannot be reached.
    """

    def keep() -> None:
        store = Store(config)
        tags = source_tags() | {page.KIND_TAG: "report", "fairall.command": command}
        run_id = store.client.create_run(store.experiment, run_name=title, tags=tags).info.run_id
        numbers = {(name, 0): value for name, value in (metrics or {}).items()}
        store.log(run_id, numbers, parameters_of(parameters or {}))
        store.log_files(run_id, folder, "**/*")
        store.client.set_tag(run_id, page.NOTE_TAG, page.note_of_report(folder, store.experiment, run_id))
        store.client.set_terminated(run_id)

    reaching(config, keep)
