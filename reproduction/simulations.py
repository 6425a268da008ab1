"""Simulations of what `fairall live`, `evaluate` and `data` promise about errors, against a known truth.

The studies and their cases are in simulations.yaml.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from fairall import FairAllError, places
from fairall.display import PageTable, Row, frame_of
from reproduction.fingerprint import SIMULATED, fingerprint
from reproduction.pages import INDEX, publish, refuse
from reproduction.population import Events, Random

OF = ["case", "replicate"]  # columns of every file of replicates: the place of the case, and a number


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


def expanded(usual: dict[str, Any], listed: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Cases as a file lists them, one for every combination of the values of `each`.

    Args:
        usual: what cases have unless they say otherwise.
        listed: cases, with a name that may have their values in braces.
    """
    for case in listed:
        given = {"each": {}} | usual | case
        each = given.pop("each")
        for values in product(*each.values()):
            own = given | dict(zip(each, values, strict=True))
            yield own | {"name": own["name"].format(**own)}


def cases(study: str) -> Iterator[Case]:
    """The cases of a study, as simulations.yaml has them."""
    own = SIMULATED[study]
    module = import_module(f"reproduction.{own['module']}")
    for case in expanded({"claims": {}} | own["usual"], own["cases"]):
        name, function, *rest = (case.pop(key) for key in ("name", "function", "replicates", "claims"))
        yield Case(name, partial(getattr(module, function), **case), *rest)


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
            raise FairAllError(f"{name}: no such simulation, but {', '.join(SIMULATED)}")
    end = time.time() + 3600 * hours
    for done, name in enumerate(names):
        of = f"simulations_{name}"
        made = Path(config.outputs_dir) / "simulations" / f"{name}_{fingerprint(of)}.csv"
        left = (end - time.time()) / 3600
        counts = [case.replicates for case in cases(name)]
        make(made, partial(events, name), counts, jobs or 1, left / (len(names) - done))
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


def make(
    file: Path,
    replicate: Callable[[int, int], pd.DataFrame],
    counts: Sequence[int],
    jobs: int = 1,
    hours: float = np.inf,
) -> None:
    """Append the replicates that are missing to a CSV file; all cases progress alike.

    Args:
        file: of all replicates so far.
        replicate: makes the rows of a file but for `OF`, of the place of a case and a number; rows of all
            have the same columns.
        counts: number of replicates of each case.
        jobs: number of processes, each with one thread; with 1 they are computed in this one.
        hours: after which no replicate is begun.
    """
    end = time.time() + 3600 * hours

    def rows(place: int, number: int) -> pd.DataFrame:
        with threadpool_limits(1):  # sums do not depend on the number of threads
            made = replicate(place, number) if time.time() < end else pd.DataFrame()
        return made.assign(case=place, replicate=number)

    left = {(place, number) for place, count in enumerate(counts) for number in range(count)}
    left -= {*found(file)[OF].itertuples(index=False, name=None)}
    ordered = sorted(left, key=lambda of: (of[1] / counts[of[0]], of))
    every = Parallel(jobs, return_as="generator")(delayed(rows)(*of) for of in ordered)
    for made in tqdm(every, total=len(left), disable=None):
        if len(made):
            file.parent.mkdir(parents=True, exist_ok=True)
            made.to_csv(file, mode="a", header=not file.exists(), index=False, float_format="%.6g")


def found(file: Path) -> pd.DataFrame:
    """What a file of replicates has so far."""
    rows = pd.read_csv(file) if file.exists() else pd.DataFrame(columns=OF)
    return rows.sort_values(OF, kind="stable", ignore_index=True)  # of several runs


def events(study: str, place: int, number: int) -> pd.DataFrame:
    """What happens in a replicate of a study: rows with `event` and `happened`."""
    own = [*cases(study)][place]
    random = np.random.default_rng([number, zlib.crc32(f"{study}/{own.name}".encode())])
    # A replicate without an event is not made again.
    happened = pd.Series(own.replicate(random) or {"": False}, name="happened", dtype=int)
    return happened.rename_axis("event").reset_index()


def table(name: str, file: Path) -> PageTable:
    """For each case and event how often it happened, with Wilson's 95 % interval, and what is claimed."""
    own, rows = [*cases(name)], []
    happened = found(file).dropna().groupby(["case", "event"], sort=False)["happened"]
    for (place, event), times, of in happened.agg(["sum", "count"]).itertuples():
        low, high = binomtest(times, of).proportion_ci(method="wilson")
        share = f"{100 * times / of:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        claim = own[place].claims.get(event, "")
        rows.append(Row(own[place].name, event, [f"{times} of {of}", share, claim]))
    texts = {text: SIMULATED[name][text] for text in ("title", "note")}
    columns = ["replicates", "% [95 % interval]", "claim"]
    return page_table(frame_of(columns, rows), key=f"simulations_{name}", **texts)


def page_table(frame: pd.DataFrame, **texts: Any) -> PageTable:
    """A table of texts by group and name of the row."""
    frame = frame.rename_axis(index=INDEX, columns=None)
    return PageTable(frame=frame, records=frame.reset_index(), **texts)
