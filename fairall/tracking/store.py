"""The MLflow store: its address, the connection to it, and its errors in one line."""

from __future__ import annotations

import logging
import os
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.runtime.credentials import complete, hidden, user_and_password, withheld
from fairall.storage import files
from fairall.tracking.page import VIEW, experiment_tags

if TYPE_CHECKING:
    from mlflow import MlflowClient

RUN_TAG = "fairall.run_id"  # identity of the run that was logged
SCHEMES = ("file", "http", "https", "postgresql", "mysql", "sqlite", "mssql", "databricks", "uc")
SERVER = ("http://", "https://")
# Environment variables of MLflow, which sends user and password to servers.
USER, PASSWORD = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"
LOGIN = (USER, PASSWORD, "MLFLOW_TRACKING_TOKEN")
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Notice an unreachable server in seconds; MLflow's defaults are minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_UV_AUTO_DETECT": "false",  # a project in the current folder is not part of the model
}


class UnreachableError(FairAllError):
    """MLflow cannot be reached now."""


def store_uri(config: Config) -> str:
    """Address of the store: `tracking.uri`, or sqlite inside `outputs_dir`."""
    return config.tracking.uri or files.sqlite_url(_database(config))


def named_uri(config: Config) -> str | None:
    """`tracking.uri`, else the address in MLFLOW_TRACKING_URI, without user and password."""
    return config.tracking.uri or withheld(os.environ.get("MLFLOW_TRACKING_URI", "")) or None


def require_store(config: Config) -> None:
    """Raise FairAllError where `tracking.uri` is no address of an MLflow store; nothing is opened."""
    scheme, colon, _ = store_uri(config).partition(":")
    plugins = entry_points(group="mlflow.tracking_store").names
    if colon and scheme.partition("+")[0] not in {*SCHEMES, *plugins}:
        raise FairAllError(
            f"tracking.uri: cannot use {store_uri(config)} (no MLflow store has an address {scheme}:...); "
            "give another with tracking.uri=URI or go without: tracking.enabled=false"
        )


def how_to_look(config: Config) -> str | None:
    """Address or command to view the store; None where there is none."""
    if config.tracking.uri or not _database(config).exists():
        return config.tracking.uri
    return f"mlflow ui --host 127.0.0.1 --backend-store-uri {shlex.quote(store_uri(config))}"


def page_address(config: Config, experiment: str) -> str:
    """Address of an experiment, by its id, on MLflow's page; without a server that of `mlflow ui`."""
    uri = store_uri(config)
    server = uri.rstrip("/") if uri.startswith(SERVER) else "http://127.0.0.1:5000"
    # Without the type of the workflow, MLflow's page opens on language models.
    query = f"viewStateShareKey={VIEW}&workflowType=machine_learning"
    return f"{server}/#/experiments/{experiment}/runs?{query}"


@contextmanager
def connected(config: Config) -> Iterator[MlflowClient]:
    """Have MLflow use the store in the block, with user and password of its address; afterwards as before.

    Another server must not get them, nor a server that the records of a database name. A program that uses
    MLflow itself keeps its store. The database in `outputs_dir` is created if need be.

    Args:
        config: with `outputs_dir` and `tracking`.

    Raises:
        UnreachableError: where MLflow is not installed, or anything fails in the block: what others keep in a
            store must not end a run, whatever MLflow makes of it.
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
    previous = os.environ.get("MLFLOW_TRACKING_URI")  # which mlflow.set_tracking_uri sets
    uri, before = store_uri(config), {name: os.environ[name] for name in LOGIN if name in os.environ}
    server = uri.startswith(SERVER)
    login = dict(zip(LOGIN, user_and_password(uri), strict=False)) if server else dict.fromkeys(LOGIN, "")
    os.environ |= {name: value for name, value in login.items() if value is not None}
    try:
        if not config.tracking.uri:
            create_database(_database(config))
        # The address of a server has no password: MLflow prints it and repeats it in errors.
        mlflow.set_tracking_uri(uri if server else complete(uri))
        yield mlflow.MlflowClient()
    except Exception as error:
        reason = hidden(f"{type(error).__name__}: {error}").split("\n")[0][:200]
        raise UnreachableError(
            f"tracking.uri: cannot use {uri} ({reason}); give another with tracking.uri=URI"
        ) from error
    finally:
        mlflow.set_tracking_uri(previous)
        for name in LOGIN:
            os.environ.pop(name, None)
        os.environ |= before


def experiment_of(client: MlflowClient, config: Config) -> str:
    """The id of the experiment `tracking.experiment`, which is created and described if need be."""
    from mlflow.exceptions import MlflowException

    artifacts = None if config.tracking.uri else _database(config).with_name("mlartifacts").as_uri()
    with suppress(MlflowException):  # where it is there; another error comes again
        client.create_experiment(config.tracking.experiment, artifacts)
    experiment = client.get_experiment_by_name(config.tracking.experiment)
    place, tags = experiment.artifact_location, experiment_tags()
    if artifacts and not place.startswith(("file:", "/")):
        raise FairAllError(f"its files would be sent to {place}; move {_database(config)} away")
    for tag in tags.keys() - experiment.tags.keys():  # those there may be the user's
        client.set_experiment_tag(experiment.experiment_id, tag, tags[tag])
    return str(experiment.experiment_id)


def create_database(path: Path) -> None:
    """Create MLflow's sqlite database where there is none.

    It takes seconds, and is created under a temporary name and moved when complete: a process killed amid
    MLflow's dozens of migrations, or two at once, leave a database that MLflow can neither use nor repair.
    """
    with files.locked(path.parent, path.with_suffix(".lock")):
        files.remove_leftovers(path.parent, path.name)
        if not path.exists():
            from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

            # MLflow's own choice for artifacts is the current folder, whose name it writes into an SQL
            # statement without escapes.
            artifacts = path.with_name("mlartifacts").as_uri()
            with files.atomic(path) as temporary:
                SqlAlchemyStore(files.sqlite_url(temporary), artifacts).search_experiments()


def _database(config: Config) -> Path:
    return Path(config.outputs_dir).resolve() / "mlflow.db"


def allowed(name: str) -> str:
    """A name that MLflow allows: other characters are replaced by their code in hexadecimal."""
    return re.sub(r"[^\w. /-]", lambda character: f"_{ord(character[0]):x}_", name, flags=re.ASCII)[:250]
