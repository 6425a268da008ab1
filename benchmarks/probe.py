"""CPU seconds of the parts of a run, beside what the multiply-adds of its nets take on one core."""

from __future__ import annotations

import functools
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import pandas as pd

from benchmarks.machine import run_alone

START_UP = "start-up"  # imports, configuration, data
REST = "rest"  # results, figures, MLflow
RATE = "rate"  # measured after the run, and no part of it
EVALUATION = "evaluation"
SIZE = 256  # of square factors: three float32 matrices take 0.75 MiB
SLICES, SLICE_SECONDS = 10, 0.03


def parts(words: Sequence[str], file: Path) -> pd.DataFrame:
    """Run `python -m fairall *words` in a process and a folder of its own; the parts of its cost.

    Args:
        words: of the command line.
        file: CSV that the process writes the parts to.

    Returns:
        A row per part and one of the whole: CPU seconds, seconds on the clock, 10⁹ multiply-adds of nets,
        the seconds that these take at `reached_rate`, and the ratio of CPU seconds to them.

    Raises:
        RunFailed: with what the run said.
    """
    used = run_alone([sys.executable, "-m", "benchmarks.probe", str(file), *words])
    table = pd.read_csv(file, index_col="part")
    rate = table.loc[RATE]
    table = table.loc[[*table.index.drop([RATE, REST]), REST]]
    table.loc["whole"] = table.sum()
    # From outside, since no process sees its own end.
    table.loc["whole", "cpu_seconds"] = used.cpu_seconds - rate["cpu_seconds"]
    table.loc["whole", "wall_seconds"] = used.wall_seconds - rate["wall_seconds"]
    bound = table["multiply_adds"].where(table["multiply_adds"] > 0) / rate["multiply_adds"]
    billions = table.pop("multiply_adds") / 1e9
    return table.assign(billion_products=billions, bound=bound, ratio=table["cpu_seconds"] / bound)


def main() -> None:
    """Run the command line `FILE WORD ...` and write the parts to FILE; RATE has products a second."""
    stopwatch, counting = Stopwatch(START_UP), Lock()  # compiled functions run in several threads
    file, *words = sys.argv[1:]
    from fairall.cli.main import main as cli

    put_timers(stopwatch)

    def count(n: int) -> None:
        with counting:
            stopwatch.used[stopwatch.running][2] += n

    count_products(count)
    sys.argv = ["fairall", *words]
    code = cli()
    stopwatch.switch(RATE)
    rate = reached_rate()
    stopwatch.switch(REST)
    stopwatch.used[RATE][2] = rate
    columns = ["cpu_seconds", "wall_seconds", "multiply_adds"]
    table = pd.DataFrame.from_dict(stopwatch.used, orient="index", columns=columns)
    table.to_csv(file, index_label="part")
    sys.exit(code)


class Stopwatch:
    """Attribution of the time of this process to parts, of which exactly one is running.

    A part that begins inside of another interrupts it.

    Args:
        part: the first to run.

    Attributes:
        used: CPU seconds, seconds on the clock and multiply-adds of each part, up to the last switch.
        running: the part that is running.
    """

    def __init__(self, part: str) -> None:
        self.used: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
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


def count_products(count: Callable[[int], None]) -> None:
    """Call `count` with the multiply-adds of every product of a net from now on.

    `fairall.nn` computes layers with a function of torch and with compiled ones, which are replaced here. A
    product that autograd will differentiate counts once more for each factor that has a gradient. Other
    products (alignment of the latent) are not counted.
    """
    import torch

    from fairall.nn.native import kernels

    multiply = torch.baddbmm

    @functools.wraps(multiply)
    def counted(*tensors: Any) -> Any:
        product = multiply(*tensors)
        a, b = tensors[-2:]
        times = 1 + a.requires_grad + b.requires_grad if product.requires_grad else 1
        count(times * a.numel() * b.shape[-1])
        return product

    torch.baddbmm = counted  # type: ignore[assignment]
    if kernels() is not None:
        for name, of_call in COMPILED.items():
            setattr(kernels(), name, _counted_call(getattr(kernels(), name), of_call, count))


def _counted_call(function: Any, of_call: Callable[..., int], count: Callable[[int], None]) -> Any:
    def counted(*arguments: Any) -> None:
        count(of_call(*arguments))
        function(*arguments)

    return counted


def _of_net(sizes: Any) -> int:
    """Multiply-adds of a net for one person."""
    return int((sizes[:-1] * sizes[1:]).sum())


def _of_training(sizes: Any) -> int:
    """Multiply-adds of a net for one person forward and backward; its input has no gradient."""
    return 3 * _of_net(sizes) - int(sizes[0] * sizes[1])


def _objective(values: Any) -> Any:
    from fairall.nn.objective import Objective  # imports torch, whose time is a part of the run

    return Objective(*values)


def _of_model_epoch(*arguments: Any) -> int:
    order, people, (encoder, decoder, classifier) = *arguments[4:6], arguments[9]
    o, n_known = _objective(arguments[10]), int(people[3].sum()) * len(order) // len(people[3])
    rows = n_known + 2 * o.unlabelled * (order.size - n_known)
    if arguments[2] == 0.0:  # losses alone
        return rows * (_of_net(encoder) + o.n_elbo * _of_net(decoder))
    classified = order.size * _of_training(classifier) if o.trains_classifier else 0
    return classified + rows * (_of_training(encoder) + 3 * o.n_elbo * _of_net(decoder))


def _of_policy_epoch(*arguments: Any) -> int:
    people, (encoder, decoder, classifier), sizes = arguments[5], *arguments[8:10]
    o = _objective(arguments[10])
    teacher = _of_net(decoder) if o.from_decoder else 0
    per_person = _of_net(classifier) + _of_net(encoder) + teacher + _of_training(sizes)
    return int(people[3].size) * per_person


COMPILED: dict[str, Callable[..., int]] = {
    "apply": lambda theta, sizes, x, *_: len(theta) * x.shape[2] * _of_net(sizes),
    "average": lambda theta, sizes, loc, scale, noise, *_: (
        noise.shape[0] * noise.shape[1] * loc.shape[2] * noise.shape[3] * _of_net(sizes)
    ),
    "model_epoch": _of_model_epoch,
    "policy_epoch": _of_policy_epoch,
}
"""Multiply-adds of a call of each function of `fairall.nn.kernels` that computes nets."""


def reached_rate() -> float:
    """Multiply-adds a second of one core in float32 products that stay in its second-level cache.

    The best of several short slices, since other work on the machine can only make one slower.
    """
    import torch

    torch.set_num_threads(1)
    a, b, product = (torch.ones(SIZE, SIZE) for _ in range(3))

    def slice_rate() -> float:
        n_products, started = 0, time.process_time()
        while (seconds := time.process_time() - started) < SLICE_SECONDS:
            torch.mm(a, b, out=product)
            n_products += 1
        return n_products * SIZE**3 / seconds

    return max(slice_rate() for _ in range(SLICES))


if __name__ == "__main__":
    main()
