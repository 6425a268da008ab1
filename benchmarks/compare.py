"""Comparison of two revisions of the code on the same command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.errors import RunFailed
from benchmarks.process import run_alone
from benchmarks.revisions import checkout


def compare(revisions: tuple[str, str], repeats: int, overrides: Sequence[str]) -> None:
    """Prints CPU seconds of whole processes, pair by pair, and their medians.

    In turn, and compared pair by pair, since the machine may have other work that comes and goes.

    Args:
        revisions: A and B, as `revisions.checkout` takes them.
        repeats: pairs.
        overrides: the words of the command line.

    Raises:
        BenchmarkError: where there is no such revision, or a run fails.
    """
    first, second = revisions
    with checkout(first) as tree_a, checkout(second) as tree_b:
        pairs = []
        for pair in range(1, repeats + 1):
            a = _cpu_seconds(first, tree_a, overrides)
            b = _cpu_seconds(second, tree_b, overrides)
            pairs.append((a, b))
            print(f"{pair} of {repeats}: A {a:.2f} s, B {b:.2f} s, B/A {b / a:.3f}", flush=True)
    ratios = [b / a for a, b in pairs]
    print(f"A, {first}: median of {median(a for a, _ in pairs):.2f} CPU seconds")
    print(f"B, {second}: median of {median(b for _, b in pairs):.2f} CPU seconds")
    print(f"B/A: median {median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


def _cpu_seconds(revision: str, tree: Path, overrides: Sequence[str]) -> float:
    try:
        cpu, _ = run_alone([sys.executable, "-m", "fairall", *overrides], tree)
    except RunFailed as error:
        raise RunFailed(f"{revision}: {error}") from error
    return cpu
