"""Simulations of what `fairall live`, `evaluate` and `data` promise about errors, against a known truth.

A study is a module `simulated_NAME` with TITLE, NOTE, TESTED (files of the package that it tests) and CASES.
"""

from __future__ import annotations

import operator
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from fairall import FairAllError, places
from fairall.display import PageTable, Row, frame_of, records_of
from reproduction.batches import computed
from reproduction.fingerprint import SIMULATED, fingerprint
from reproduction.pages import publish, refuse
from reproduction.plan import nearest

BATCH = 5  # replicates that are saved together
COLUMNS = ("replicate", "event", "happened")
COMPARE = {"≤": operator.le, "≥": operator.ge}


class Case(NamedTuple):
    """A world with a known truth, and what may happen in it.

    Attributes:
        name: with the conditions that differ between cases of a study.
        replicate: what has happened in one simulated data set, by event; an event that could not happen in
            it is left out and does not count.
        replicates: number of simulated data sets.
        claims: event → `≤` or `≥` and a share of the replicates; other events are shown without a claim.
    """

    name: str
    replicate: Callable[[np.random.Generator], Mapping[str, bool]]
    replicates: int
    claims: Mapping[str, tuple[str, float]]


def simulations(
    overrides: Sequence[str],
    folder: Path | None = None,
    into: Sequence[Path] = (),
    jobs: int | None = None,
    asked: Sequence[str] = (),
    hours: float = np.inf,
) -> bool:
    """Make the replicates that are missing, and write a page for each study.

    Args:
        overrides: `outputs_dir`, below which replicates are saved for the code that they test.
        folder: of the pages; None: `simulations_NAME` in outputs_dir.
        into: pages of the documentation with blocks to fill.
        jobs: number of processes; None: 1.
        asked: names of studies; none: all.
        hours: after which no replicate is begun; each study may take an equal share of what is left.

    Raises:
        FairAllError: where a page cannot be filled, or a study is unknown.
    """
    config = places(overrides)
    refuse(into, config)
    for name in asked:
        if name not in SIMULATED:
            raise FairAllError(f"{name}: no such simulation{nearest(name, SIMULATED)}")
    end, names = time.monotonic() + 3600 * hours, asked or SIMULATED
    for done, name in enumerate(names):
        of = f"simulations_{name}"
        made = Path(config.outputs_dir) / "simulations" / f"{name}_{fingerprint(of)}"
        left = max(end - time.monotonic(), 0.0) / 3600
        make(name, made, jobs or 1, left / (len(names) - done))
        if not any(made.iterdir()):
            continue
        publish(
            of,
            f"FairAll: {study(name).TITLE}",
            {"": [table(name, made)]},
            config,
            folder=folder and folder / name,
            into=into,
            known=lambda: [f"simulations_{other}" for other in SIMULATED],
        )
    return True


def study(name: str) -> Any:
    """The module of a study."""
    return import_module(f"reproduction.simulated_{name}")


def of_evaluations() -> list[str]:
    """Names of the studies that test `fairall.evaluate`."""
    return [
        name for name in SIMULATED if any(path.startswith("fairall/evaluate/") for path in study(name).TESTED)
    ]


def make(name: str, folder: Path, jobs: int, hours: float = np.inf) -> None:
    """Append the replicates that are missing to a file for each case; all cases progress alike."""
    folder.mkdir(parents=True, exist_ok=True)
    batches = []
    for place, case in enumerate(study(name).CASES):
        done = set(found(folder, place)["replicate"])
        left = [number for number in range(case.replicates) if number not in done]
        batches += [(name, place, left[start : start + BATCH]) for start in range(0, len(left), BATCH)]
    batches.sort(key=lambda batch: batch[2][0] / study(name).CASES[batch[1]].replicates)
    for (_, place, _), lines in computed(batch, batches, jobs, hours):
        with (folder / f"{place:02d}.csv").open("a") as opened:
            opened.write(lines)


def found(folder: Path, place: int) -> pd.DataFrame:
    """What happened in the replicates of a case, with `COLUMNS`."""
    file = folder / f"{place:02d}.csv"
    rows = pd.read_csv(file, names=COLUMNS) if file.exists() else pd.DataFrame(columns=COLUMNS)
    return rows.sort_values("replicate", kind="stable", ignore_index=True)  # batches end in any order


def batch(name: str, place: int, numbers: Sequence[int]) -> str:
    """Some replicates as lines of CSV, each from a seed of its own."""
    case = study(name).CASES[place]
    lines = []
    for number in numbers:
        random = np.random.default_rng([number, zlib.crc32(f"{name}/{case.name}".encode())])
        events = case.replicate(random)
        # A replicate without an event is not made again.
        lines += [(number, event, int(events[event])) for event in events] or [(number, "", 0)]
    return pd.DataFrame(lines).to_csv(index=False, header=False)


def summary(case: Case, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """For each event how often it happened, with Wilson's 95 % interval, and whether the claim holds."""
    for event, happened in rows[rows["event"].notna()].groupby("event", sort=False)["happened"]:
        times, of = int(happened.sum()), len(happened)
        ends = binomtest(times, of).proportion_ci(method="wilson")
        claim = case.claims.get(event)
        yield {
            "case": case.name,
            "event": event,
            "times": times,
            "of": of,
            "low": ends.low,
            "high": ends.high,
            "claim": "" if claim is None else f"{claim[0]} {100 * claim[1]:g} %",
            "holds": claim is None or COMPARE[claim[0]](times, claim[1] * of),
        }


def table(name: str, folder: Path) -> PageTable:
    """A row for each case and event."""
    own = study(name)
    records = [row for place, case in enumerate(own.CASES) for row in summary(case, found(folder, place))]
    rows = [
        Row(
            row["case"],
            row["event"],
            [
                f"{row['times']} of {row['of']}",
                f"{100 * row['times'] / row['of']:.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
                row["claim"],
            ],
        )
        for row in records
    ]
    return PageTable(
        key=f"simulations_{name}",
        title=own.TITLE,
        note=own.NOTE,
        section="",
        frame=frame_of(["replicates", "% [95 % interval]", "claim"], rows),
        records=records_of(records),
    )
