"""The MLflow store: its address, the connection to it, and its errors in one line."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import entry_points, requires
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.runtime.credentials import complete, hidden, user_and_password, withheld
from fairall.storage import files
from fairall.tracking.page import TRAINING, VIEW, experiment_tags

if TYPE_CHECKING:
    from mlflow.entities import Run

    from fairall.tables.people import PeopleReader

MAX_NAME = 250  # characters of a metric or a parameter
MAX_VALUE = 500  # characters of a parameter's value
MOST_RUNS = 50_000  # that MLflow answers with at once
RUN_TAG = "fairall.run_id"  # identity of the run that was logged
SCHEMES = ("", "file", "http", "https", "postgresql", "mysql", "sqlite", "mssql", "databricks", "uc")
ELSEWHERE = "give another with tracking.uri=URI"
OR_WITHOUT = f"{ELSEWHERE} or go without: tracking.enabled=false"
# Environment variables of MLflow, which sends user and password to servers.
USER, PASSWORD = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Notice an unreachable server in seconds; MLflow's defaults are minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
Connected = TypeVar("Connected")


class UnreachableError(FairAllError):
    """MLflow cannot be reached now."""


def store_uri(config: Config) -> str:
    """Address of the store: `tracking.uri`, or sqlite inside `outputs_dir`."""
    return config.tracking.uri or files.sqlite_url(_database(config))


def named_uri(config: Config) -> str | None:
    """`tracking.uri`, else the address in MLFLOW_TRACKING_URI, without user and password."""
    return config.tracking.uri or withheld(os.environ.get("MLFLOW_TRACKING_URI", "")) or None


def connection(config: Config) -> str:
    """`store_uri` as MLflow connects to it: that of a database with its user and password.

    Those of a server are in MLflow's environment variables in the block of `reaching`: MLflow prints its
    address and repeats it in errors.
    """
    return store_uri(config) if has_server(config) else complete(store_uri(config))


def require_store(config: Config) -> None:
    """Raise FairAllError where `tracking.uri` is no address of an MLflow store; nothing is opened."""
    scheme, colon, _ = store_uri(config).partition(":")
    scheme = scheme.partition("+")[0] if colon else ""
    if scheme not in {*SCHEMES, *entry_points(group="mlflow.tracking_store").names}:
        reason = f"no MLflow store has an address {scheme}:..."
        raise FairAllError(f"tracking.uri: cannot use {store_uri(config)} ({reason}); {OR_WITHOUT}")


def how_to_look(config: Config) -> str | None:
    """Address or command to view the store; None where there is none."""
    if config.tracking.uri:
        return config.tracking.uri
    if not _database(config).exists():
        return None
    return f"mlflow ui --host 127.0.0.1 --backend-store-uri {shlex.quote(store_uri(config))}"


def page_address(config: Config, experiment: str) -> str:
    """Address of an experiment, by its id, on MLflow's page; without a server that of `mlflow ui`."""
    server = (has_server(config) and config.tracking.uri) or "http://127.0.0.1:5000"
    return f"{server.rstrip('/')}/#/experiments/{experiment}/runs?viewStateShareKey={VIEW}&{TRAINING}"


def has_server(config: Config) -> bool:
    """Whether the store is a server, which has a page."""
    return (config.tracking.uri or "").startswith(("http://", "https://"))


def quiet_mlflow() -> ModuleType:
    """The module, imported so that it reports nothing by itself and gives up on a server in seconds.

    Raises:
        UnreachableError: where it cannot be imported.
    """
    os.environ |= QUIET | os.environ
    warnings.filterwarnings("ignore", module="mlflow")
    try:
        import mlflow
    except ModuleNotFoundError as error:
        raise UnreachableError(
            f"cannot import mlflow ({error}); install it: pip install 'mlflow>=3,<4'"
        ) from error
    # They log every table created, every model and every retry; errors are reported by this package.
    for name in ("alembic", "mlflow", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return mlflow


class Store:
    """An MLflow store, in the block of `reaching`; its experiment is created and described if need be.

    Attributes:
        client: of the store.
        experiment: the id of `tracking.experiment`.
    """

    def __init__(self, config: Config) -> None:
        import mlflow

        outputs = Path(config.outputs_dir).resolve()
        artifacts = None if config.tracking.uri else (outputs / "mlartifacts").as_uri()
        # Two processes creating the database at once would corrupt it. A server handles that itself.
        with files.locked(outputs, outputs / "mlflow.lock") if artifacts else nullcontext():
            if artifacts:
                _make_database(_database(config), artifacts)
            self.client = mlflow.MlflowClient()
            name, tags = config.tracking.experiment, experiment_tags(int(1000 * time.time()))
            known = self.client.get_experiment_by_name(name)
            if known is None:
                self.experiment = self.client.create_experiment(name, artifacts, tags)
                return
            self.experiment = known.experiment_id
            place = known.artifact_location
            if artifacts and "://" in place and not place.startswith("file:"):
                raise FairAllError(f"its files would be sent to {place}; move {_database(config)} away")
            for tag in tags.keys() - known.tags.keys():  # those there may be the user's
                self.client.set_experiment_tag(self.experiment, tag, tags[tag])

    def log(
        self,
        run: str,
        metrics: Mapping[tuple[str, int], float | None],
        parameters: Mapping[str, str] | None = None,
        model: str | None = None,
    ) -> None:
        """Log metrics by name and step, without those that are not a number, and `parameters`.

        The client sends as many at a time as servers take. `model` is a logged model that has them too.
        """
        from mlflow.entities import Metric, Param

        now = int(1000 * time.time())
        numbers = [
            Metric(allowed(name), float(value), now, step, model_id=model)
            for (name, step), value in metrics.items()
            if value is not None and value == value
        ]
        self.client.log_batch(run, numbers, [Param(*one) for one in (parameters or {}).items()])

    def log_files(self, run: str, folder: Path, *patterns: str) -> None:
        """Log the files of a folder that match the patterns, but for temporary ones of killed processes."""
        for path in sorted(path for pattern in patterns for path in folder.glob(pattern)):
            if path.is_file() and not path.name.startswith(files.TEMPORARY):
                place = path.parent.relative_to(folder).as_posix()
                self.client.log_artifact(run, str(path), None if place == "." else place)

    def log_model(
        self,
        run: str,
        paths: Sequence[Path],
        reader: PeopleReader,
        config: Config,
        tags: dict[str, str],
        parameters: dict[str, str],
    ) -> str:
        """Log a saved policy as a model of a run, and return the model's id.

        The module of its method, which MLflow imports to load it, is recorded where this process has imported
        it. One that only the stored configuration names may be a stranger's.

        Args:
            run: MLflow id.
            paths: the folder of the policy, and further files.
            reader: of the people that the policy takes.
            config: of the policy, as it is stored.
            tags: of the model.
            parameters: of the model.
        """
        from mlflow.models import Model

        from fairall.tracking import model as flavor

        made = self.client.create_logged_model(self.experiment, "policy", run, tags, parameters)
        module = config.model["_target_"].rpartition(".")[0]
        # `log_model` of a flavor of MLflow would need an active run, and end it.
        Model.log(
            None,
            flavor,
            run_id=run,
            model_id=made.model_id,
            files=paths,
            modules=[module] if module in sys.modules else [],
            reader=reader,
            seeds=range(config.seed, config.seed + config.seeds),
            # Without this package, which is on no index and has to be installed.
            requirements=[line for line in requires("fairall") or [] if "extra ==" not in line],
        )
        return made.model_id

    def search(self, where: str) -> list[Run]:
        """Runs of the experiment that match an MLflow filter, newest first."""
        return list(self.client.search_runs([self.experiment], where, max_results=MOST_RUNS))

    def delete(self, run: Run) -> None:
        """Delete a run, the runs nested in it, and the models logged from it that are not registered.

        The run is the last, so that deleting it again deletes what a killed process left.
        """
        run_id = run.info.run_id
        registered = {one.model_id for one in self.client.search_model_versions(equal("run_id", run_id))}
        for model in self.client.search_logged_models([self.experiment], equal("source_run_id", run_id)):
            if model.model_id not in registered:
                self.client.delete_logged_model(model.model_id)
        for one in (*self.search(equal("tags.`mlflow.parentRunId`", run_id)), run):
            self.client.delete_run(one.info.run_id)


def reaching(config: Config, connect: Callable[[], Connected], *, remedy: str = OR_WITHOUT) -> Connected:
    """Return `connect()`, with errors of one line that end with `remedy`.

    Any error is one of MLflow: what others keep in the store must not end a run, whatever MLflow makes of it.

    Raises:
        UnreachableError: where MLflow is not installed or cannot be reached, the connection breaks, or its
            answer cannot be used.
    """
    mlflow = quiet_mlflow()
    try:
        with _pointed_at(config, mlflow):
            return connect()
    except Exception as error:
        reason = hidden(str(error)).strip().split("\n")[0][:200]
        if not isinstance(error, mlflow.exceptions.MlflowException | FairAllError | OSError):
            reason = f"{type(error).__name__}: {reason}"
        raise UnreachableError(
            f"tracking.uri: cannot use {store_uri(config)} ({reason}); {remedy}"
        ) from error


@contextmanager
def _pointed_at(config: Config, mlflow: ModuleType) -> Iterator[None]:
    """Have MLflow use the store in the block, with user and password of its address; afterwards as before.

    Another server must not get them, nor any that the records of a database name. A program that uses MLflow
    itself keeps its own store.
    """
    uri = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    before = {name: os.environ.get(name) for name in (USER, PASSWORD, "MLFLOW_TRACKING_TOKEN")}
    given = (*user_and_password(store_uri(config)), None) if has_server(config) else ("", "", "")
    os.environ |= {name: value for name, value in zip(before, given, strict=True) if value is not None}
    try:
        mlflow.set_tracking_uri(connection(config))
        yield
    finally:
        mlflow.set_tracking_uri(uri)
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

    files.remove_leftovers(path.parent, path.name)
    if not path.exists():
        with files.atomic(path) as temporary:
            with suppress(Exception):  # whatever the reason, MLflow then makes the tables below
                temporary.write_bytes(_template())
            SqlAlchemyStore(files.sqlite_url(temporary), artifacts).search_experiments()


def _template() -> bytes:
    """A database with MLflow's tables and no experiment, by `mlflow db upgrade`.

    It is kept in the user's cache folder, by version of MLflow: MLflow's migrations take seconds.
    """
    import mlflow
    from mlflow.db import upgrade

    folder = files.cache_folder(f"mlflow-{mlflow.__version__}")
    path, sums = folder / "mlflow.db", folder / "SUMS"
    if files.damaged(sums, [path.name]):
        with files.atomic(path) as temporary:
            upgrade.callback(files.sqlite_url(temporary))
        files.write_sums(sums, [path.name])
    return path.read_bytes()


def _database(config: Config) -> Path:
    return Path(config.outputs_dir).resolve() / "mlflow.db"


def allowed(name: str) -> str:
    """A name that MLflow allows: other characters are replaced by their code in hexadecimal."""
    return re.sub(r"[^\w. /-]", lambda character: f"_{ord(character[0]):x}_", name, flags=re.ASCII)[:MAX_NAME]


def parameters_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Names and values of parameters that MLflow allows."""
    return {allowed(name): str(value)[:MAX_VALUE] for name, value in values.items()}


def equal(key: str, value: str) -> str:
    """MLflow's filter for a value, which has no escapes but two kinds of quotation marks."""
    mark = '"' if "'" in value else "'"
    return f"{key} = {mark}{value}{mark}"
