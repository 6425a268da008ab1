"""CPU seconds, time and peak memory of whole commands, of one revision or of two in pairs."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.errors import BenchmarkError, RunFailed
from benchmarks.machine import compile_code, run_alone

METHODS = (
    "model=fairall_I_II,fairall_II,fairlab_I_II,fairlog,unfairlog",
    "dataset=credit,synthetic,compas,meps",
    "seeds=10",
)
"""What is measured where nothing is asked for: the paper's methods and data sets."""

ROWS, FEATURES = 1000, 20  # of the table of people
SIZES: dict[str, tuple[int, ...]] = {
    "seeds": (1, 3, 10, 30, 100),
    "people": (1_000, 10_000, 100_000, 1_000_000),
    "applicants": (16, 64, 256, 1024, 4096),
    "features": (5, 20, 80, 320),
    "time_steps": (8, 16, 32, 64, 128),
    "threads": (1, 2),
}
"""Values of each axis, a size of a small run."""
BASE = (
    # Epochs and time steps few enough for a million people.
    "model=fairall_I_II",
    "seeds=2",
    "schedule.phase1_epochs=20",
    "schedule.warm_up_epochs=8",
    "schedule.time_steps=8",
    "evaluation.window=[4,8]",
    "tracking.enabled=false",
    "dataset=csv",
    "dataset.label=good",
    "dataset.positive=yes",
    "dataset.sensitive=group",
    "dataset.advantaged=a",
)


def combinations(words: Sequence[str]) -> dict[str, list[str]]:
    """The command lines of all combinations of KEY=VALUE,VALUE words, each by its text."""
    choices = []
    for word in words:
        key, _, values = word.partition("=")
        # A comma inside of brackets or quotes belongs to the value.
        several = [values] if re.search(r"[\[({'\"]", values) else values.split(",")
        choices.append([f"{key}={value}" for value in several])
    return {" ".join(line): list(line) for line in itertools.product(*choices)}


def along(axes: Iterable[str], words: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """The command lines of a small run with one size changed at a time; writes their tables into `folder`."""
    lines = {}
    for axis, value in ((name, value) for name in axes for value in SIZES[name]):
        rows = value if axis == "people" else ROWS
        features = value if axis == "features" else FEATURES
        table = folder / f"{rows}_{features}.csv"
        if not table.exists():
            write_people(table, rows, features)
        change = {
            "seeds": [f"seeds={value}"],
            "threads": ["seeds=100", f"threads={value}"],
            "applicants": [f"schedule.applicants={value}"],
            "time_steps": [f"schedule.time_steps={value}"],
        }.get(axis, [])
        lines[f"{axis}={value}"] = [*BASE, f"dataset.path={table}", *change, *words]
    return lines


def write_people(path: Path, rows: int, features: int) -> None:
    """Write a CSV file of people with real features, a group and a label; the same every time."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(rows, features))
    table = pd.DataFrame(x, columns=[f"x{i}" for i in range(features)])
    table["group"] = draw.choice(["a", "b"], rows)
    table["good"] = np.where(x[:, 0] + draw.normal(size=rows) > 0, "yes", "no")
    table.to_csv(path, index=False, float_format="%.4f")


def refuse_mistyped(lines: Iterable[Sequence[str]]) -> None:
    """Raise BenchmarkError, with the message of the command itself, for an unknown name or value."""
    from fairall.config.compose import compose_config
    from fairall.config.messages import USER_ERRORS, message

    for words in lines:
        try:
            compose_config(*words)
        except USER_ERRORS as error:
            raise BenchmarkError(message(error)) from error


def measure(
    lines: Mapping[str, Sequence[str]], trees: Mapping[str, Path], repeats: int, file: Path
) -> pd.DataFrame:
    """Measure command lines in checkouts; report and leave out those that fail.

    All are measured once before any is repeated, so that an interruption leaves fewer repeats, not fewer
    commands. Checkouts take turns, since other work on the machine comes and goes.

    Args:
        lines: words of `python -m fairall` by their text in the table.
        trees: checkouts by the name of their revision.
        repeats: of every command in every checkout.
        file: CSV that has every measurement as soon as it is made.

    Returns:
        A row per measurement: command, revision, repeat and the attributes of `Usage`.

    Raises:
        BenchmarkError: if nothing could be measured.
    """
    for tree in trees.values():
        with suppress(RunFailed):  # a checkout that cannot run is reported below
            compile_code(tree)
    rows: list[dict[str, object]] = []
    failed = set()
    for repeat, command, revision in itertools.product(range(repeats), lines, trees):
        if (command, revision) in failed:
            continue
        try:
            used = run_alone([sys.executable, "-m", "fairall", *lines[command]], trees[revision])
        except RunFailed as error:
            failed.add((command, revision))
            where = f" in {revision}" if len(trees) > 1 else ""
            print(f"left out: {command}{where}: {error}", file=sys.stderr)
            continue
        rows.append({"command": command, "revision": revision, "repeat": repeat, **asdict(used)})
        pd.DataFrame(rows).to_csv(file, index=False, float_format="%.6g")
    if not rows:
        raise BenchmarkError("nothing could be measured")
    return pd.DataFrame(rows)


def medians(measured: pd.DataFrame) -> pd.DataFrame:
    """Medians over repeats of every quantity on its own, a row per command."""
    return measured.drop(columns=["revision", "repeat"]).groupby("command", sort=False).median()


def ratios(measured: pd.DataFrame) -> pd.DataFrame:
    """Medians of A and of B, and the median, least and most of B/A over pairs, by command and quantity."""
    quantities = measured.columns.drop(["command", "revision", "repeat"])
    found = {}
    for quantity in quantities:
        pairs = measured.pivot(index=["command", "repeat"], columns="revision", values=quantity)
        pairs = pairs.reindex(columns=["A", "B"]).assign(ratio=lambda pair: pair["B"] / pair["A"])
        by_command = pairs.groupby("command", sort=False)
        found[quantity] = by_command.median().rename(columns={"ratio": "B/A"})
        found[quantity][["least", "most"]] = by_command["ratio"].agg(["min", "max"])
    return pd.concat(found, names=["quantity"]).swaplevel().sort_index(level="command", sort_remaining=False)
