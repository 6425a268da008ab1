"""CPU seconds of the parts of a run."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.machine import run_alone

START_UP = "start-up"  # imports, configuration, data
REST = "rest"  # results, figures, MLflow
EVALUATION = "evaluation"
SECONDS = ["cpu_seconds", "wall_seconds"]


def parts(words: Sequence[str], file: Path) -> pd.DataFrame:
    """Run `python -m fairall *words` in a process and a folder of its own; what its parts take.

    Args:
        words: of the command line.
        file: CSV that the process writes the parts to.

    Returns:
        A row per part and one of the whole.

    Raises:
        RunFailed: with what the run said.
    """
    used = run_alone([sys.executable, "-m", "benchmarks.probe", str(file), *words])
    table = pd.read_csv(file, index_col="part")
    table = table.loc[[*table.index.drop(REST), REST]]
    # From outside, since no process sees its own end.
    table.loc["whole"] = pd.Series(asdict(used))[SECONDS]
    return table


def main() -> None:
    """Run the command line `FILE WORD ...` and write the parts to FILE."""
    stopwatch = Stopwatch(START_UP)
    file, *words = sys.argv[1:]
    from fairall.cli.main import main as cli

    put_timers(stopwatch)
    sys.argv = ["fairall", *words]
    code = cli()
    stopwatch.switch(REST)
    table = pd.DataFrame.from_dict(stopwatch.used, orient="index", columns=SECONDS)
    table.to_csv(file, index_label="part")
    sys.exit(code)


class Stopwatch:
    """Attribution of the time of this process to parts, of which exactly one is running.

    A part that begins inside of another interrupts it.

    Args:
        part: the first to run.

    Attributes:
        used: CPU seconds and seconds on the clock of each part, up to the last switch.
        running: the part that is running.
    """

    def __init__(self, part: str) -> None:
        self.used: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.running = part
        self._since = (time.process_time(), time.perf_counter())

    def switch(self, part: str) -> None:
        """End the running part and start another."""
        now = (time.process_time(), time.perf_counter())
        for i in range(2):
            self.used[self.running][i] += now[i] - self._since[i]
        self.running, self._since = part, now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """A part, after which the one that it interrupted continues; the start-up does not."""
        before = self.running
        self.switch(name)
        try:
            yield
        finally:
            self.switch(REST if before == START_UP else before)


def put_timers(stopwatch: Stopwatch) -> None:
    """Time the phases of training, each of which has a progress bar with its name, and the evaluation."""
    from fairall.display.progress import Display
    from fairall.online.training import Evaluator

    show_phase, evaluate = Display.phase, Evaluator.measure

    @contextmanager
    def phase(display: Any, name: str, *arguments: Any, **keywords: Any) -> Iterator[Any]:
        with stopwatch.part(name), show_phase(display, name, *arguments, **keywords) as advance:
            yield advance

    def measure(*arguments: Any, **keywords: Any) -> Any:
        with stopwatch.part(EVALUATION):
            return evaluate(*arguments, **keywords)

    Display.phase = phase  # type: ignore[method-assign, assignment]
    Evaluator.measure = measure  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
