"""The product's command line with a stopwatch: `python -m benchmarks.probe FILE [OVERRIDE ...]`.

Started by `measure.measure`. The timers are put around functions of the package from here.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.parts import EVALUATION, MLFLOW, OTHER, PHASE_1, PHASE_2, RATE, RESULTS, START_UP, WARM_UP
from benchmarks.products import count_products, reached_rate
from benchmarks.stopwatch import Stopwatch


def main() -> None:
    """Runs the command and writes what each part used to FILE, as JSON."""
    stopwatch = Stopwatch(START_UP)
    file, *overrides = sys.argv[1:]
    from fairall.main import cli

    put_timers(stopwatch)
    multiply_adds: Counter[str] = Counter()

    counting = Lock()  # compiled functions run in several threads

    def count(n: int) -> None:
        with counting:
            multiply_adds[stopwatch.running] += n

    count_products(count)
    sys.argv = ["fairall", *overrides]
    code = cli()
    stopwatch.switch(RATE)
    rate = reached_rate()
    stopwatch.switch(OTHER)
    parts = {
        part: asdict(
            replace(used, multiply_adds=multiply_adds[part], bound_seconds=multiply_adds[part] / rate)
        )
        for part, used in stopwatch.used.items()
    }
    Path(file).write_text(json.dumps(parts))
    sys.exit(code)


def put_timers(stopwatch: Stopwatch) -> None:
    """Puts timers around the parts of `fairall.experiment.run`."""
    from fairall import experiment
    from fairall.online import training
    from fairall.results import write
    from fairall.storage import checkpoint

    for owner, name, part in (
        (training.Evaluation, "measure", EVALUATION),
        (write, "representation_measures", EVALUATION),
        (experiment, "write_result", RESULTS),
        (checkpoint.Checkpoint, "save", RESULTS),
        (experiment.Outbox, "flush", MLFLOW),
    ):
        setattr(owner, name, _timed(getattr(owner, name), part, stopwatch))

    show_phase, recording = experiment.Display.phase, experiment.Outbox.recording

    @contextmanager
    def phase(display: Any, name: str, *arguments: Any, **keywords: Any) -> Iterator[Any]:
        # Whatever the method's class, each of its phases runs under a progress bar with its name.
        if name not in (PHASE_1, WARM_UP, PHASE_2):
            raise ValueError(f"a phase that benchmarks do not know: {name}")
        with stopwatch.part(name), show_phase(display, name, *arguments, **keywords) as advance:
            yield advance

    @contextmanager
    def timed_recording(*arguments: Any) -> Iterator[None]:
        stopwatch.switch(OTHER)  # the end of the start-up
        tracked: AbstractContextManager[None] = recording(*arguments)
        with stopwatch.part(MLFLOW), tracked, stopwatch.part(OTHER):
            yield

    experiment.Display.phase = phase  # type: ignore[method-assign, assignment]
    experiment.Outbox.recording = timed_recording  # type: ignore[method-assign, assignment]


def _timed(function: Any, part: str, stopwatch: Stopwatch) -> Any:
    @functools.wraps(function)
    def timed(*arguments: Any, **keywords: Any) -> Any:
        with stopwatch.part(part):
            return function(*arguments, **keywords)

    return timed


if __name__ == "__main__":
    main()
