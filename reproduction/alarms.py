"""How soon a log over time tells or excludes a gap between acceptance rates, and whether it is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairall import load_results, places
from fairall.display import PageTable, Row, frame_of, records_of
from fairall.measuring import ALARM, LARGEST_GAP, OBSERVATIONS, gap_wealth, largest_gap
from fairall.report import dataset_label, method_label
from reproduction.logs import DECISIONS, described
from reproduction.pages import publish, refuse
from reproduction.plan import ALARMS, Planned, missing_runs, plan, with_runs
from reproduction.runs import make

FEWEST = 30  # applicants of a group


class Watched(NamedTuple):
    """What the log of a seed tells about the gap between acceptance rates of all applicants so far.

    Attributes:
        found: time step of the alarm that the gap is above `LARGEST_GAP`; ∞ for none.
        excluded: first time step at which the interval is not above it; ∞ for none.
        held: whether the intervals of all time steps hold the gap of the acceptance probabilities.
    """

    found: float
    excluded: float
    held: bool


def alarms(
    overrides: Sequence[str], folder: Path | None = None, into: Sequence[Path] = (), jobs: int | None = None
) -> bool:
    """Make the runs that are missing, and write a page of them; return whether all runs are there.

    Args:
        overrides: words that pick from the axes of the sweep, or are added to every command.
        folder: of the page; None: `alarms` in outputs_dir.
        into: pages of the documentation with blocks to fill.
        jobs: number of runs at once; None: one per core.

    Raises:
        FairAllError: where a page cannot be filled, or a word is wrong.
    """
    config = places(overrides)
    refuse(into, config)
    planned = plan(ALARMS, overrides)
    failures = make(planned, overrides, jobs=jobs)
    finished = with_runs(planned, load_results(Path(config.outputs_dir) / "runs").results)
    publish("alarms", "FairAll: alarms", {"": [alarm_table(finished)]}, config, folder=folder, into=into)
    return not failures


def watched(log: pd.DataFrame) -> Watched:
    """What `fairall evaluate --monitor` finds in one seed's rows of decisions.csv, beside the truth.

    The gap of the mean of the recorded `propensity` is the truth: the policy may change, and with it this
    mean. Intervals begin where every group has `FEWEST` applicants.
    """
    _, column = described(log.drop(columns="seed"))
    codes, names = pd.factorize(log[column])
    at = log.assign(group=codes).groupby(["time_step", "group"])
    so_far = {
        name: table.unstack(fill_value=0).cumsum().to_numpy(dtype=float).T
        for name, table in at.agg({"decision": "sum", "propensity": "sum", column: "size"}).items()
    }
    people = so_far[column]
    enough = np.where(people >= FEWEST, people, np.nan)
    rate, truths = so_far["decision"] / enough, so_far["propensity"] / enough
    variance = (enough * rate * (1.0 - rate) + OBSERVATIONS) / enough**2
    _, low, high = largest_gap(rate, variance, people.sum(0))
    wealth = gap_wealth(log["decision"].to_numpy(float), codes, np.arange(len(names)), LARGEST_GAP)
    steps, truth = np.unique(log["time_step"]), truths.max(0) - truths.min(0)
    return Watched(
        _first(log["time_step"].to_numpy(), wealth >= ALARM),
        _first(steps, high <= LARGEST_GAP),
        not ((truth < low) | (truth > high)).any(),
    )


def _first(steps: np.ndarray, found: np.ndarray) -> float:
    return float(steps[found].min()) if found.any() else np.inf


def alarm_table(planned: Sequence[Planned]) -> PageTable:
    """A row per data set and method; seeds that have diverged are left out."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for one in planned:
        if one.run is None:
            continue
        log = pd.read_csv(one.run.path / DECISIONS)
        seeds = [own for _, own in log.groupby("seed") if own["propensity"].notna().all()]
        found = pd.DataFrame(map(watched, seeds), columns=[*Watched._fields])
        cells = [_when(found["found"]), _when(found["excluded"]), f"{found['held'].sum()} of {len(found)}"]
        names = dataset_label(one.dataset), method_label(one.model)
        rows.append(Row(*names, cells))
        records += [
            dict(zip(("dataset", "policy"), names, strict=True)) | row for row in found.to_dict("records")
        ]
    return PageTable(
        key="alarms",
        title=f"Gaps above {100 * LARGEST_GAP:g} points between acceptance rates",
        note="Number of seeds, and the median time step where it is more than half of them.",
        section="",
        frame=frame_of(["found", "excluded", "intervals hold the truth"], rows),
        records=records_of(records),
        lacking=missing_runs(planned),
    )


def _when(steps: pd.Series) -> str:
    """Seeds with a time step, and the median over all of them if it is one."""
    median = steps.median()
    return f"{np.isfinite(steps).sum()}" + (f", step {median:g}" if np.isfinite(median) else "")
