"""The MLflow store: its addresses, connection and errors; reports in it, and finished runs out of it."""

from __future__ import annotations

import getpass
import logging
import os
import re
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from fairall.config.checks import check, plain_name
from fairall.config.compose import places
from fairall.errors import FairAllError
from fairall.results.runs import Results, load_results
from fairall.runtime.credentials import complete, hidden, user_and_password
from fairall.runtime.process import is_gone, this_process
from fairall.storage.files import (
    atomic,
    cache_folder,
    damaged,
    locked,
    remove_leftovers,
    replaced_by,
    sqlite_url,
    temporary_folder,
    write_sums,
)
from fairall.storage.run_folder import FILES, RunFolder
from fairall.tracking.page import KIND_TAG, NOTE_TAG, experiment_page, experiment_tags, note_of_report

if TYPE_CHECKING:
    from mlflow.entities import Run

LOCAL_PAGE = "http://127.0.0.1:5000"  # of `mlflow ui`
MAX_NAME = 250  # characters of a metric or a parameter
PROCESS_TAG = "fairall.process"  # writer of the run: host:pid
RUN_TAG = "fairall.run_id"  # identity of the run that was logged
BATCH = 1000  # the most metrics that MLflow takes in one call
PATIENCE = 10.0  # seconds for git to answer
ELSEWHERE = "give another with tracking.uri=URI"
NOT_THERE = ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND", "INVALID_PARAMETER_VALUE")  # MLflow's answers
# Of MLflow, which sends them to servers.
USER, PASSWORD = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"
Connected = TypeVar("Connected")


class UnreachableError(FairAllError):
    """MLflow cannot be reached now."""


def store_uri(config: dict[str, Any]) -> str:
    """Address of the store: `tracking.uri`, or sqlite inside `outputs_dir`."""
    return config["tracking"]["uri"] or sqlite_url(_database(config))


def connection(config: dict[str, Any]) -> str:
    """`store_uri` as MLflow connects to it: that of a database with its user and password.

    Those of a server are in MLflow's environment variables in the block of `reaching`: MLflow prints its
    address and repeats it in errors.
    """
    return store_uri(config) if has_server(config) else complete(store_uri(config))


def how_to_look(config: dict[str, Any]) -> str | None:
    """Address or command to view the store; None where there is none."""
    if config["tracking"]["uri"]:
        return config["tracking"]["uri"]
    if not _database(config).exists():
        return None
    return f"mlflow ui --host 127.0.0.1 --backend-store-uri {shlex.quote(store_uri(config))}"


def quiet_mlflow() -> ModuleType:
    """The module, imported so that it reports nothing by itself and gives up on a server in seconds."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    # Notice an unreachable server in seconds; MLflow's defaults are minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    warnings.filterwarnings("ignore", module="mlflow")
    import mlflow

    # They log every table created, every model and every retry; errors are reported by this package.
    for name in ("alembic", "mlflow", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return mlflow


def page_address(config: dict[str, Any], experiment: str) -> str:
    """Address of an experiment, by its id, on MLflow's page; without a server that of `mlflow ui`."""
    server = config["tracking"]["uri"] if has_server(config) else LOCAL_PAGE
    return f"{server.rstrip('/')}/{experiment_page(experiment)}"


def has_server(config: dict[str, Any]) -> bool:
    """Whether the store is a server, which has a page."""
    return (config["tracking"]["uri"] or "").startswith(("http://", "https://"))


class Store:
    """An MLflow store; the experiment is created where it does not exist, and described where it is not.

    Attributes:
        mlflow: the module, quiet and pointed at the store.
        client: of the store.
        experiment: the id of `tracking.experiment`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.mlflow = mlflow = quiet_mlflow()
        mlflow.set_tracking_uri(connection(config))
        outputs = Path(config["outputs_dir"]).resolve()
        artifacts = None if config["tracking"]["uri"] else (outputs / "mlartifacts").as_uri()
        # Two processes creating the database at once would corrupt it. A server handles that itself.
        with locked(outputs, outputs / "mlflow.lock") if artifacts else nullcontext():
            if artifacts:
                _make_database(_database(config), artifacts)
            self.client = mlflow.MlflowClient()
            self.experiment = self._experiment_id(config["tracking"]["experiment"], artifacts)
            self._close_dead_runs()

    def run(self, run_id: str) -> Run | None:
        """The run of an id; None where there is none or it is deleted."""
        with if_there():
            run = self.client.get_run(run_id)
            return run if run.info.lifecycle_stage == "active" else None
        return None

    def delete(self, run: Run) -> None:
        """Delete a run, the runs nested in it and the models logged from it; safe to kill and repeat."""
        run_id = run.info.run_id
        with if_there():
            of_run = equal("source_run_id", run_id)
            for model in self.client.search_logged_models([self.experiment], of_run):
                self.client.delete_logged_model(model.model_id)
        for one in (*self.search(equal("tags.`mlflow.parentRunId`", run_id)), run):
            with if_there():
                self.client.delete_run(one.info.run_id)

    def search(self, where: str) -> Iterator[Run]:
        """Runs of the experiment that match an MLflow filter, newest first."""
        token = None
        while True:
            page = self.client.search_runs([self.experiment], where, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def log(
        self,
        run: str,
        metrics: Mapping[tuple[str, int], float | None] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Log metrics by name and step, without those that are not a number, and parameters by name."""
        from mlflow.entities import Metric, Param

        now = int(1000 * time.time())
        numbers = [
            Metric(allowed(name), float(value), now, step)
            for (name, step), value in (metrics or {}).items()
            if value is not None and value == value
        ]
        words = [Param(allowed(name), str(value)[:500]) for name, value in (parameters or {}).items()]
        for start in range(0, len(numbers) or 1, BATCH):
            self.client.log_batch(run, numbers[start : start + BATCH], words if start == 0 else [])

    def log_folder(self, run: str, folder: Path, under: str = "") -> None:
        """Log the files of a folder, with its folders, but for temporary ones that a killed process left.

        Args:
            run: that gets them.
            folder: of the files.
            under: folder of the run's artifacts.
        """
        for path in sorted(folder.rglob("*")):
            if path.is_file() and replaced_by(path.name) is None:
                place = (Path(under) / path.parent.relative_to(folder)).as_posix()
                self.client.log_artifact(run, str(path), None if place == "." else place)

    def _experiment_id(self, name: str, artifacts: str | None) -> str:
        tags = experiment_tags(int(1000 * time.time()))
        known = self.client.get_experiment_by_name(name)
        if known is None:
            return self.client.create_experiment(name, artifact_location=artifacts, tags=tags)
        for tag in tags.keys() - known.tags.keys():  # those there may be the user's
            self.client.set_experiment_tag(known.experiment_id, tag, tags[tag])
        return known.experiment_id

    def _close_dead_runs(self) -> None:
        """Close runs left RUNNING by killed processes of this machine."""
        for run in list(self.search("attributes.status = 'RUNNING'")):
            if is_gone(run.data.tags.get(PROCESS_TAG, "")):
                with if_there():
                    self.client.set_terminated(run.info.run_id, "KILLED")


@contextmanager
def if_there() -> Iterator[None]:
    """Leave the block where MLflow answers that a run or model is not there: others may have deleted it."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        if error.error_code not in NOT_THERE:
            raise


def reaching(
    config: dict[str, Any],
    connect: Callable[[], Connected],
    *,
    remedy: str = f"{ELSEWHERE} or go without: tracking.enabled=false",
) -> Connected:
    """Return `connect()`, with errors of one line that end with `remedy`.

    Any error is one of MLflow: what others keep in the store must not end a run, whatever MLflow makes of it.

    Raises:
        UnreachableError: where MLflow cannot be reached, the connection breaks, or its answer cannot be used.
        FairAllError: where `tracking.uri` is no address of an MLflow store.
    """
    try:
        with _signed_in(config):
            return connect()
    except Exception as error:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking.registry import UnsupportedModelRegistryStoreURIException

        reason = hidden(str(error)).strip().split("\n")[0][:200]
        if not isinstance(error, MlflowException | FairAllError | OSError):
            reason = f"{type(error).__name__}: {reason}"
        mistaken = isinstance(error, UnsupportedModelRegistryStoreURIException)
        raise (FairAllError if mistaken else UnreachableError)(
            f"tracking.uri: cannot use {store_uri(config)} ({reason}); {remedy}"
        ) from error


@contextmanager
def _signed_in(config: dict[str, Any]) -> Iterator[None]:
    """Have user and password of the address of a server in MLflow's environment variables in the block.

    Not longer: another server must not get them.
    """
    before = {name: os.environ.get(name) for name in (USER, PASSWORD)}
    given = user_and_password(store_uri(config)) if has_server(config) else (None, None)
    os.environ |= {name: value for name, value in zip(before, given, strict=True) if value is not None}
    try:
        yield
    finally:
        for name in before:
            os.environ.pop(name, None)
        os.environ |= {name: value for name, value in before.items() if value is not None}


def _make_database(path: Path, artifacts: str) -> None:
    """Create MLflow's sqlite database where there is none; the caller holds its lock.

    It is created under a temporary name and moved when complete: a process killed amid MLflow's dozens of
    migrations leaves a database that MLflow can neither use nor repair.

    Args:
        path: of the database.
        artifacts: place of the default experiment, an address without quotation marks. MLflow's own choice
            is in the current folder, whose name it writes into an SQL statement as it is.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    remove_leftovers(path.parent, path.name)
    if not path.exists():
        with atomic(path) as temporary:
            tables = b""
            with suppress(Exception):  # whatever the reason, MLflow then makes the tables below
                tables = _template()
            temporary.write_bytes(tables)
            SqlAlchemyStore(sqlite_url(temporary), artifacts).search_experiments()


def _template() -> bytes:
    """A database with MLflow's tables and no experiment, by `mlflow db upgrade`.

    It is kept in the user's cache folder, by version of MLflow: MLflow's migrations take seconds.
    """
    import mlflow
    from mlflow.db import upgrade

    folder = cache_folder(f"mlflow-{mlflow.__version__}")
    path, sums = folder / "mlflow.db", folder / "SUMS"
    if damaged(sums, [path.name]):
        with atomic(path) as temporary:
            upgrade.callback(sqlite_url(temporary))
        write_sums(sums, [path.name])
    return path.read_bytes()


def _database(config: dict[str, Any]) -> Path:
    return Path(config["outputs_dir"]).resolve() / "mlflow.db"


def allowed(name: str) -> str:
    """A name that MLflow allows: other characters are replaced by their code in hexadecimal."""
    return re.sub(r"[^\w. /-]", lambda character: f"_{ord(character[0]):x}_", name, flags=re.ASCII)[:MAX_NAME]


def equal(key: str, value: str) -> str:
    """MLflow's filter for a value, which has no escapes but two kinds of quotation marks."""
    mark = '"' if "'" in value else "'"
    return f"{key} = {mark}{value}{mark}"


def run_tags(name: str, kind: str) -> dict[str, str]:
    """Tags of a run of this process: its name on MLflow's page, and `KIND_TAG`."""
    return {"mlflow.runName": name, KIND_TAG: kind, PROCESS_TAG: this_process()}


def source_tags() -> dict[str, str]:
    """The tags that `mlflow.start_run` gives a run, for the command of this process.

    The commit is that of the checkout around the working folder, so of the user's project; a run outside a
    checkout has none.
    """
    tags = {"mlflow.source.name": sys.argv[0] or "<console>", "mlflow.source.type": "LOCAL"}
    try:
        tags["mlflow.user"] = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a user id without a name, as in some containers
        tags["mlflow.user"] = "unknown"
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    with suppress(OSError, subprocess.TimeoutExpired):  # without git
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if ended.stdout.strip():
            tags["mlflow.source.git.commit"] = ended.stdout.strip()
    return tags


def log_report(
    config: dict[str, Any],
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
        FairAllError: where MLflow cannot be reached.
    """

    def keep() -> None:
        store = Store(config)
        tags = run_tags(title, "report") | source_tags() | {"fairall.command": command}
        run_id = store.client.create_run(store.experiment, tags=tags).info.run_id
        store.log(run_id, {(name, 0): value for name, value in (metrics or {}).items()}, parameters)
        store.log_folder(run_id, folder)
        store.client.set_tag(run_id, NOTE_TAG, note_of_report(folder, store.experiment, run_id))
        store.client.set_terminated(run_id, "FINISHED")

    reaching(config, keep)


def load_logged_results(*overrides: str) -> Results:
    """The results of all finished runs in an MLflow store.

    Args:
        overrides: words that say where it is, as on the command line: `outputs_dir=FOLDER` or
            `tracking.uri=URI`.

    Raises:
        FairAllError: where MLflow cannot be reached.
    """
    with temporary_folder() as folder:
        fetch_runs(places(overrides), folder)
        return load_results(folder)


def fetch_runs(config: dict[str, Any], folder: Path) -> None:
    """Download the finished runs of a store to a folder laid out as outputs/runs, without figures.

    The last of several MLflow runs of one run is used. Files that a run lacks are skipped.

    Raises:
        FairAllError: where MLflow cannot be reached.
    """
    reaching(config, lambda: _fetch(Store(config), folder))


def download(address: str, folder: Path, config: dict[str, Any]) -> None:
    """Download what is at an address in a store, which is not changed.

    Args:
        address: `runs:/ID/PATH` or `models:/...`.
        folder: to download to.
        config: with `outputs_dir` and `tracking.uri`.

    Raises:
        FairAllError: where the store cannot be reached, or has nothing there.
    """
    if how_to_look(config) is None:
        raise FairAllError(
            f"{address}: {config['outputs_dir']} has no MLflow store; name it with tracking.uri=URI or "
            "MLFLOW_TRACKING_URI, or give outputs_dir=FOLDER"
        )

    def fetch() -> str | None:
        """Download; return why not, where the store answers that there is nothing."""
        mlflow = quiet_mlflow()
        from mlflow.exceptions import MlflowException

        before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
        mlflow.set_tracking_uri(connection(config))  # a logged model is looked for there alone
        try:
            mlflow.artifacts.download_artifacts(address, dst_path=str(folder))
        except MlflowException as error:
            reason = hidden(str(error)).strip().split("\n")[0]
            if error.error_code in NOT_THERE or reason.startswith("Failed to download"):
                return reason
            raise
        finally:
            mlflow.set_tracking_uri(before)
        return None

    missing = reaching(config, fetch, remedy=ELSEWHERE)
    if missing is not None:
        raise FairAllError(f"{address}: not found in {store_uri(config)} ({missing})")


def _fetch(store: Store, folder: Path) -> None:
    from mlflow.exceptions import MlflowException

    for run in reversed(list(store.search("attributes.status = 'FINISHED'"))):
        tags = run.data.tags
        names = [tags.get(name, "") for name in ("fairall.model", "fairall.dataset", RUN_TAG)]
        if not all(names):
            continue  # of one seed, a report, or somebody else's
        for name in names:
            check("a tag of a run in MLflow", name, plain_name())  # part of a path
        path = folder.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            try:
                store.client.download_artifacts(run.info.run_id, name, str(path))
            except (MlflowException, OSError):
                continue  # reading the run reports what is missing
        RunFolder(path).finish()
        ended = run.info.end_time or run.info.start_time  # none where its status alone was set
        os.utime(path / "DONE", (ended / 1000,) * 2)
