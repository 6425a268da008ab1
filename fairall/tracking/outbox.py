"""What MLflow is told of a run, now or later: training neither waits for it nor ends because of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairall.runtime import signals
from fairall.storage.files import Log, atomic
from fairall.tracking.client import Store, UnreachableError, reaching
from fairall.tracking.run_logger import RunTracker

FILE = "tracking.json"  # of a run's folder


@dataclass
class Told:
    """How far MLflow knows a run.

    Attributes:
        command: what the user typed.
        parent: MLflow id of the run's record, if there is one.
        cpu_seconds: of the process that made the result.
        result: whether the result has been told.
    """

    command: str = ""
    parent: str | None = None
    cpu_seconds: float | None = None
    result: bool = False

    @classmethod
    def read(cls, folder: Path) -> Told:
        """What a run's folder says; that nothing was told where it does not say, or nonsense."""
        try:
            return cls(**json.loads((folder / FILE).read_text()))
        except (OSError, ValueError, TypeError):
            return cls()

    def write(self, folder: Path) -> None:
        """Keeps it in a run's folder."""
        with atomic(folder / FILE) as temporary:
            temporary.write_text(json.dumps(asdict(self)) + "\n")


class Records:
    """The MLflow records of one run, as far as MLflow can be reached.

    Args:
        config: of the run, as plain containers.
        folder: of the run, which is named by its identity.
        say: told when MLflow is away, once.
    """

    def __init__(self, config: dict[str, Any], folder: Path, say: Log) -> None:
        self._config = config
        self._folder = folder
        self._say = say
        self._enabled = config["tracking"]["enabled"]
        self._warned = False

    @contextmanager
    def making(self, command: str) -> Iterator[None]:
        """While the result is made: RUNNING in MLflow, then FAILED or KILLED if that does not end well.

        Raises:
            FairAllError: where `tracking.uri` is nothing that MLflow could be at.
        """
        told = Told(command)
        try:
            with signals.deferred():
                if self._enabled:
                    self._begin(told)
                told.write(self._folder)
            yield
        except BaseException as error:
            if told.parent is not None:
                self._close(told.parent, "FAILED" if isinstance(error, Exception) else "KILLED")
            raise

    def _begin(self, told: Told) -> None:
        try:
            told.parent = reaching(self._config, lambda: self._tracker().begin(told.command))
        except UnreachableError as error:
            self._later(error)

    def result_made(self, cpu_seconds: float) -> None:
        """Keeps what else MLflow is to be told of the result, by `settle`."""
        told = Told.read(self._folder)
        told.cpu_seconds, told.result = cpu_seconds, False
        told.write(self._folder)

    def settle(self) -> None:
        """Tells MLflow the result of a finished run, unless it knows; where it is away, `sync` does later."""
        if self._enabled and not Told.read(self._folder).result:
            try:
                self.send()
            except UnreachableError as error:
                self._later(error)

    def send(self) -> bool:
        """Tells MLflow the result of a finished run; returns whether there was anything to tell.

        Raises:
            FairAllError: where MLflow cannot be reached or breaks off.
        """
        told = Told.read(self._folder)

        def deliver() -> bool:
            tracker = self._tracker()
            parent = tracker.to_tell(told.parent, told.command)
            if parent is None:
                return False
            told.parent = parent
            told.write(self._folder)
            tracker.log_result(parent, self._folder, told.cpu_seconds)
            tracker.end(parent, "FINISHED")
            return True

        # Not half of it: a signal waits until all has been told.
        with signals.deferred():
            sent = reaching(self._config, deliver)
            told.result = True
            told.write(self._folder)
        return sent

    def _close(self, parent: str, status: str) -> None:
        try:
            reaching(self._config, lambda: self._tracker().end(parent, status))
        except UnreachableError as error:
            self._later(error)

    def _tracker(self) -> RunTracker:
        return RunTracker(Store(self._config), self._config, self._folder.name)

    def _later(self, error: UnreachableError) -> None:
        if not self._warned:
            later = "`python -m fairall.tracking sync` tells MLflow later"
            self._say(f"Warning: {error}. The run does without; {later}.")
        self._warned = True
