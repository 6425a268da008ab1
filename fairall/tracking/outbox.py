"""Results to log to MLflow, now or later: training neither waits for MLflow nor fails because of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fairall.errors import FairAllError
from fairall.results.result import Result
from fairall.runtime import signals
from fairall.runtime.reading import DamagedFileError
from fairall.storage.files import Log, atomic
from fairall.storage.plain import read_json
from fairall.tracking.logger import RunLogger
from fairall.tracking.store import Store, UnreachableError, reaching, source_tags

FILE = "tracking.json"  # of a run's folder
Answer = TypeVar("Answer")


@dataclass
class Sent:
    """What has been logged of a run.

    Attributes:
        command: command line of the user.
        parent: MLflow id of the parent run, if there is one.
        experiment: MLflow id of its experiment, once the result has been logged.
        cpu_seconds: that the process took to compute the result.
        result: whether the result has been logged.
        source: MLflow's tags of the command's program and commit, see `source_tags`.
    """

    command: str = ""
    parent: str | None = None
    experiment: str = ""
    cpu_seconds: float | None = None
    result: bool = False
    source: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Sent:
        """The status kept in a run's folder; nothing sent where it is missing or unreadable."""
        try:
            return read_json(folder / FILE, cls)
        except (OSError, DamagedFileError):
            return cls()

    def write(self, folder: Path) -> None:
        """Write it to a run's folder."""
        with atomic(folder / FILE) as temporary:
            temporary.write_text(json.dumps(asdict(self)) + "\n")


class Outbox:
    """Results of one run for MLflow, sent when MLflow can be reached.

    Args:
        config: of the run, as plain containers.
        folder: of the run, which is named by its identity.
        say: called once when MLflow cannot be reached.
    """

    def __init__(self, config: dict[str, Any], folder: Path, say: Log) -> None:
        self._config, self._folder, self._say = config, folder, say
        self._enabled = config["tracking"]["enabled"]
        self._name: str = config["tracking"]["register"] or ""
        self._warned = False

    @contextmanager
    def recording(self, command: str) -> Iterator[None]:
        """Keep an MLflow run RUNNING in the block, and close it as FAILED or KILLED if the block raises.

        Raises:
            FairAllError: where `tracking.uri` is no address of an MLflow store.
        """
        sent = Sent(command)
        try:
            with signals.deferred():
                if self._enabled:
                    sent.source = source_tags()
                    sent.parent = self._if_reached(lambda logger: logger.begin(command, sent.source))
                sent.write(self._folder)
            yield
        except BaseException as error:
            parent, status = sent.parent, "FAILED" if isinstance(error, Exception) else "KILLED"
            if parent is not None:
                self._if_reached(lambda logger: logger.end(parent, status))
            raise

    def result_made(self, cpu_seconds: float) -> None:
        """Mark the result as finished and not yet sent."""
        sent = Sent.read(self._folder)
        sent.cpu_seconds, sent.result = cpu_seconds, False
        sent.write(self._folder)

    def flush(self, result: Result) -> list[str]:
        """Send the result of a finished run, unless it was sent, and register its policy as `register` does.

        Warns where MLflow cannot be reached.

        Args:
            result: of the run.

        Returns:
            As `register`.
        """
        sent = Sent.read(self._folder).result
        if not self._enabled or (sent and not self._name):
            return []
        try:
            if not sent:
                self.send(result)
            return self.register()
        except UnreachableError as error:
            self._later(error)
            return []

    def register(self) -> list[str]:
        """Register the policy of a run whose result was sent as `tracking.register`, unless that is null.

        Returns:
            A sentence that says which version the policy is; none without `tracking.register`.

        Raises:
            FairAllError: where MLflow cannot be reached, or has no model of the run.
        """
        if not self._name:
            return []
        with signals.deferred():
            registered = reaching(self._config, lambda: self._logger().register(self._name))
        if registered is None:
            raise FairAllError(
                f"tracking.register={self._name}: MLflow has no model of {self._folder}; "
                "run it anew with force=true"
            )
        version, is_new = registered
        already = "" if is_new else ", which it was already"
        return [f"Registered: version {version} of {self._name}{already}: models:/{self._name}/{version}"]

    def send(self, result: Result) -> bool:
        """Send the result of a finished run; return whether there was anything to send.

        Args:
            result: of the run.

        Raises:
            FairAllError: where MLflow cannot be reached or breaks off.
        """
        sent = Sent.read(self._folder)

        def deliver() -> bool:
            logger = self._logger()
            sent.experiment = logger.experiment
            parent = logger.to_log(sent.parent, sent.command, sent.source)
            if parent is None:
                return False
            sent.parent = parent
            sent.write(self._folder)
            logger.log_result(parent, result, self._folder, sent.cpu_seconds)
            logger.end(parent, "FINISHED")
            return True

        # A signal waits until everything has been logged.
        with signals.deferred():
            was_new = reaching(self._config, deliver)
            sent.result = True
            sent.write(self._folder)
        return was_new

    def _if_reached(self, act: Callable[[RunLogger], Answer]) -> Answer | None:
        """What `act` returns; None, and a warning, where MLflow cannot be reached."""
        try:
            return reaching(self._config, lambda: act(self._logger()))
        except UnreachableError as error:
            self._later(error)
            return None

    def _logger(self) -> RunLogger:
        return RunLogger(Store(self._config), self._config, self._folder.name)

    def _later(self, error: UnreachableError) -> None:
        if not self._warned:
            later = "`python -m fairall mlflow sync` logs it later"
            self._say(f"Warning: {error}. The run goes on without; {later}.")
        self._warned = True
