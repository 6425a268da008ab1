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
from typing import NamedTuple

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
from reproduction.population import Events, Random

BATCH = 5  # replicates that are saved together
COLUMNS = ("case", "replicate", "event", "happened")  # the case by its place
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
    replicate: Callable[[Random], Events]
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
    names = asked or [*SIMULATED]
    for name in names:
        if name not in SIMULATED:
            raise FairAllError(f"{name}: no such simulation{nearest(name, [*SIMULATED])}")
    end = time.monotonic() + 3600 * hours
    for done, name in enumerate(names):
        of = f"simulations_{name}"
        made = Path(config.outputs_dir) / "simulations" / f"{name}_{fingerprint(of)}.csv"
        left = max(end - time.monotonic(), 0.0) / 3600
        make(name, made, jobs or 1, left / (len(names) - done))
        if made.exists():
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


def make(name: str, file: Path, jobs: int, hours: float = np.inf) -> None:
    """Append the replicates of a study that are missing to a file; all cases progress alike."""
    file.parent.mkdir(parents=True, exist_ok=True)
    done = {*zip(*(found(file)[key] for key in COLUMNS[:2]), strict=True)}
    left = sorted(
        (number / case.replicates, place, number)
        for place, case in enumerate(cases(name))
        for number in range(case.replicates)
        if (place, number) not in done
    )
    batches = [(name, left[start : start + BATCH]) for start in range(0, len(left), BATCH)]
    for _, lines in computed(batch, batches, jobs, hours):
        with file.open("a") as opened:
            opened.write(lines)


def found(file: Path) -> pd.DataFrame:
    """What happened in the replicates of a study, with `COLUMNS`."""
    rows = pd.read_csv(file, names=COLUMNS) if file.exists() else pd.DataFrame(columns=COLUMNS)
    return rows.sort_values(["case", "replicate"], kind="stable", ignore_index=True)  # of several runs


def batch(name: str, numbered: Sequence[tuple[float, int, int]]) -> str:
    """Some replicates, by place of their case and number, as lines of CSV, each from a seed of its own."""
    own, lines = [*cases(name)], []
    for _, place, number in numbered:
        key = zlib.crc32(f"{name}/{own[place].name}".encode())
        # A replicate without an event is not made again.
        events = own[place].replicate(np.random.default_rng([number, key])) or {"": False}
        lines += [(place, number, event, int(happened)) for event, happened in events.items()]
    return pd.DataFrame(lines).to_csv(index=False, header=False)


def holds(claim: str, times: int, of: int) -> bool:
    """Whether an event is as rare or as frequent as claimed, if anything is."""
    sign, limit, _ = (claim or "≥ 0 %").split()
    return bool(COMPARE[sign](times, float(limit) / 100 * of))


def table(name: str, file: Path) -> PageTable:
    """For each case and event how often it happened, with Wilson's 95 % interval, and what is claimed."""
    own, rows, records = [*cases(name)], [], []
    for (place, event), happened in found(file).dropna().groupby(["case", "event"], sort=False)["happened"]:
        times, of, case = int(happened.sum()), len(happened), own[place]
        ends, claim = binomtest(times, of).proportion_ci(method="wilson"), case.claims.get(event, "")
        share = f"{100 * times / of:.1f} [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"
        rows.append(Row(case.name, event, [f"{times} of {of}", share, claim]))
        known = {
            "case": case.name,
            "event": event,
            "times": times,
            "of": of,
            "low": ends.low,
            "high": ends.high,
        }
        records.append(known | {"claim": claim, "holds": holds(claim, times, of)})
    return table_of(
        ["replicates", "% [95 % interval]", "claim"],
        rows,
        records,
        key=f"simulations_{name}",
        **{text: SIMULATED[name][text] for text in ("title", "note")},
    )
