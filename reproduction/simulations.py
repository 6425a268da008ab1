"""Simulations of what `fairall live`, `evaluate` and `data` promise about errors, against a known truth.

The studies and their cases are in simulations.yaml.
"""

from __future__ import annotations

import operator
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from fairall import FairAllError, places
from fairall.display import PageTable, Row
from reproduction.batches import computed
from reproduction.fingerprint import SIMULATED, fingerprint
from reproduction.items import table_of
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
    claims: Mapping[str, str]


def cases(study: str) -> Iterator[Case]:
    """The cases of a study, as simulations.yaml has them."""
    own = SIMULATED[study]
    module = import_module(f"reproduction.{own['module']}")
    for case in own["cases"]:
        given = {"claims": {}, "each": {}} | own["usual"] | case
        name, function, *rest, each = (
            given.pop(key) for key in ("name", "function", "replicates", "claims", "each")
        )
        for values in product(*each.values()):
            arguments = given | dict(zip(each, values, strict=True))
            yield Case(name.format(**arguments), partial(getattr(module, function), **arguments), *rest)


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
    end, names = time.monotonic() + 3600 * hours, asked or [*SIMULATED]
    for done, name in enumerate(names):
        of = f"simulations_{name}"
        made = Path(config.outputs_dir) / "simulations" / f"{name}_{fingerprint(of)}"
        left = max(end - time.monotonic(), 0.0) / 3600
        make(name, made, jobs or 1, left / (len(names) - done))
        if any(made.iterdir()):
            publish(
                of,
                f"FairAll: {SIMULATED[name]['title']}",
                {"": [table(name, made)]},
                config,
                folder=folder and folder / name,
                into=into,
                known=lambda: [f"simulations_{other}" for other in SIMULATED],
            )
    return True


def of_evaluations() -> list[str]:
    """Names of the studies that test `fairall.evaluate`."""
    return [name for name, own in SIMULATED.items() if "fairall/evaluate/" in str(own["tested"])]


def make(name: str, folder: Path, jobs: int, hours: float = np.inf) -> None:
    """Append the replicates that are missing to a file for each case; all cases progress alike."""
    folder.mkdir(parents=True, exist_ok=True)
    batches = []
    for place, case in enumerate(cases(name)):
        done = set(found(folder, place)["replicate"])
        left = [number for number in range(case.replicates) if number not in done]
        for start in range(0, len(left), BATCH):
            numbers = left[start : start + BATCH]
            batches.append((numbers[0] / case.replicates, (name, place, numbers)))
    batches.sort(key=operator.itemgetter(0))
    for (_, place, _), lines in computed(batch, [one for _, one in batches], jobs, hours):
        with (folder / f"{place:02d}.csv").open("a") as opened:
            opened.write(lines)


def found(folder: Path, place: int) -> pd.DataFrame:
    """What happened in the replicates of a case, with `COLUMNS`."""
    file = folder / f"{place:02d}.csv"
    rows = pd.read_csv(file, names=COLUMNS) if file.exists() else pd.DataFrame(columns=COLUMNS)
    return rows.sort_values("replicate", kind="stable", ignore_index=True)  # batches end in any order


def batch(name: str, place: int, numbers: Sequence[int]) -> str:
    """Some replicates as lines of CSV, each from a seed of its own."""
    case = [*cases(name)][place]
    lines = []
    for number in numbers:
        random = np.random.default_rng([number, zlib.crc32(f"{name}/{case.name}".encode())])
        # A replicate without an event is not made again.
        events = case.replicate(random) or {"": False}
        lines += [(number, event, int(happened)) for event, happened in events.items()]
    return pd.DataFrame(lines).to_csv(index=False, header=False)


def summary(case: Case, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """For each event how often it happened, with Wilson's 95 % interval, and whether the claim holds."""
    for event, happened in rows.dropna().groupby("event", sort=False)["happened"]:
        times, of = int(happened.sum()), len(happened)
        ends, claim = binomtest(times, of).proportion_ci(method="wilson"), case.claims.get(event, "")
        yield {
            "case": case.name,
            "event": event,
            "times": times,
            "of": of,
            "low": ends.low,
            "high": ends.high,
            "claim": claim,
            "holds": holds(claim, times, of),
        }


def holds(claim: str, times: int, of: int) -> bool:
    """Whether an event is as rare or as frequent as claimed, if anything is."""
    sign, limit, _ = (claim or "≥ 0 %").split()
    return bool(COMPARE[sign](times, float(limit) / 100 * of))


def table(name: str, folder: Path) -> PageTable:
    """A row for each case and event."""
    records = [row for place, case in enumerate(cases(name)) for row in summary(case, found(folder, place))]
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
    return table_of(
        ["replicates", "% [95 % interval]", "claim"],
        rows,
        records,
        key=f"simulations_{name}",
        title=SIMULATED[name]["title"],
        note=SIMULATED[name]["note"],
        section="",
    )
