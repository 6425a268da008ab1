"""Evidence on evaluations of policies: their defaults, on logs from populations with known truth."""

from __future__ import annotations

import functools
import subprocess
import zlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall import FairAllError
from fairall.display import write
from fairall.evaluate import Comparison, Evaluation, compare, evaluate
from reproduction.batches import computed
from reproduction.evidence_logs import CASES, GAPS, ODDS, SCORED, Case, truth_of

LOGS, BATCH = 200, 10
POPULATION = 2_000_000  # people that the truth of a population is computed from, by their probabilities
ESTIMATORS, VIEWS = ("dr", "sndr", "ips", "snips", "dm"), {"ips": "ips", "dr": "dr"}
COLUMNS = ("log", "quantity", "estimator", "estimate", "low", "high", "truth", "why")
STANDARD = {"decision": "decision", "label": "label", "sensitive": "s"}
Answer = tuple[str, str, Mapping[Hashable, Any]]  # quantity, estimator, and estimate, low, high and why
FIRST, SECOND, DIFFERENCE = "{}", "{} of the second policy", "difference: {}"  # names of quantities
POLICIES = {"B: second": SECOND, "B − A": DIFFERENCE}  # of a comparison, but for the first
VALUE, RATES = {"utility": "value"}, {name: name for name in GAPS}
BOUNDED = VALUE | {name: name for name in GAPS[1:]}  # quantities that have bounds
NO_ASSUMPTION = "bounds without assumption"
PROMISED = {"guaranteed": "guarantee"}
RATE = {"true-positive rate": "TPR of group {group}"}
SCORES = {name: f"score: {name}" for name in SCORED}
SCORE_VIEWS = {"bounds": NO_ASSUMPTION} | {view: view for view in ("accepted", "dr", "bayesian")}
# What each part reads: a table, of whom, quantities by measure, and estimators by view.
PARTS: dict[str, list[tuple[str, str, Mapping[str, str], Mapping[str, str]]]] = {
    "value": [("value", FIRST, VALUE, {name: name for name in ESTIMATORS})],
    "gaps": [("fairness", FIRST, RATES, VIEWS), ("fairness", SECOND, RATES, VIEWS)],
    "differences": [("value", DIFFERENCE, VALUE, VIEWS), ("fairness", DIFFERENCE, RATES, VIEWS)],
    "guarantee": [("value", FIRST, VALUE, PROMISED)],
    "bounds": [("sensitivity", FIRST, BOUNDED, {"no assumption": NO_ASSUMPTION})],
    "sensitivity": [("sensitivity", FIRST, BOUNDED, {f"Γ = {ODDS:g}": f"bounds for Γ = {ODDS:g}"})],
    "groups": [("groups", FIRST, RATE, {"": "dr"})],
    "score": [("score", FIRST, SCORES, SCORE_VIEWS)],
}


def answers(found: Evaluation | Comparison, part: str) -> Iterator[Answer]:
    """What an evaluation or a comparison with `second` says on one of `PARTS`."""
    for table, whose, quantities, views in PARTS[part]:
        left = dict(quantities)
        for row in found.table(table).to_dict("records"):
            measure, view = row["measure"], row.get("estimator", row.get("view", ""))
            of_score = table != "score" or row["group"] == "everybody"
            own = of_score and POLICIES.get(row.get("policy", ""), FIRST) == whose
            if own and measure in quantities and view in views:
                left.pop(measure, None)
                yield whose.format(quantities[measure].format_map(row)), views[view], row
        if table == "sensitivity":  # has bounds of gaps only where two groups are shown
            for quantity, view in product(left.values(), views.values()):
                yield quantity, view, refused("refused")


def refused(why: str) -> Mapping[Hashable, Any]:
    """Neither an estimate nor an interval, for a reason."""
    return {"estimate": None, "low": None, "high": None, "why": why}


@functools.cache
def truth(place: int, population: int) -> dict[str, float]:
    """The truth of the case at a place in `CASES`, of many people drawn from its population."""
    return truth_of(CASES[place].draw(population, np.random.default_rng(1)), CASES[place].cost)


def judged(case: Case, n: int, number: int) -> list[Answer]:
    """What the evaluation of one log says; nothing but a reason where it raises."""
    random = np.random.default_rng([number, n, zlib.crc32(f"{case.setting}/{case.name}".encode())])
    log = case.log(n, random)
    options = STANDARD | ({} if "gain" in case.options else {"cost": case.cost}) | dict(case.options)
    if case.recorded:
        options["propensity"] = "propensity"
    found: Evaluation | Comparison
    try:
        if "differences" in case.asked:
            found = compare(case.policy, "second", log, **options)
        else:
            found = evaluate(case.policy, log, **options)
        return [answer for part in case.asked for answer in answers(found, part)]
    except FairAllError as error:
        return [("value", "dr", refused(f"error: {error}"))]


def batch(place: int, n: int, numbers: Sequence[int], population: int) -> str:
    """Evaluations of some logs as lines of CSV, with `COLUMNS`."""
    true = truth(place, population)
    rows: list[dict[Hashable, Any]] = [
        {
            **found,
            "log": number,
            "quantity": quantity,
            "estimator": estimator,
            "truth": true[quantity],
            "why": str(found.get("why") or "")[:80],
        }
        for number in numbers
        for quantity, estimator, found in judged(CASES[place], n, number)
    ]
    return pd.DataFrame(rows)[[*COLUMNS]].to_csv(index=False, header=False, float_format="%.6g")


@dataclass
class Evidence:
    """A folder with a CSV file of the evaluations of each case and size.

    Attributes:
        folder: where they are; what it has is gone on with.
        logs: of a basic case; others have their share of it.
        cases: places in `CASES`.
    """

    folder: Path
    logs: int = LOGS
    cases: Sequence[int] = range(len(CASES))

    def file(self, place: int, n: int) -> Path:
        """Evaluations of logs of a case."""
        return self.folder / f"{place:02d}_{n}.csv"

    def found(self, place: int, n: int) -> pd.DataFrame:
        """The same, with `COLUMNS`."""
        file = self.file(place, n)
        return pd.read_csv(file) if file.exists() else pd.DataFrame(columns=COLUMNS)

    def batches(self) -> list[tuple[int, int, list[int]]]:
        """Numbers of logs that are still to be done, in an order in which all cases progress alike."""
        found = []
        for place in self.cases:
            for n in CASES[place].sizes:
                most = max(1, round(self.logs * CASES[place].share))
                done = set(self.found(place, n)["log"])
                left = [number for number in range(most) if number not in done]
                chunks = [left[start : start + BATCH] for start in range(0, len(left), BATCH)]
                found += [(chunk[0] / most, (place, n, chunk)) for chunk in chunks]
        return [one for _, one in sorted(found, key=lambda pair: pair[0])]

    def run(self, jobs: int = 1, hours: float = np.inf, population: int = POPULATION) -> None:
        """Evaluate the logs that are left, until all are done or the time is up.

        Raises:
            FairAllError: where the folder has evaluations by another revision, or cannot be written.
        """
        batches = self.batches() if hours else []
        if batches:
            self._claim()
        tasks = [(place, n, numbers, population) for place, n, numbers in batches]
        for (place, n, *_), lines in computed(batch, tasks, jobs, hours):
            file = self.file(place, n)
            head = "" if file.exists() else ",".join(COLUMNS) + "\n"
            with file.open("a") as opened:
                opened.write(head + lines)

    def _claim(self) -> None:
        """Note the revision, which must be the same for all evaluations."""
        noted, own = self.folder / "revision.txt", revision()
        kept = noted.read_text().strip() if noted.exists() else own
        if kept != own:
            raise FairAllError(f"-o {self.folder}: has evaluations by another revision, {kept}")
        write(noted, f"{own}\n")


def revision() -> str:
    """Commit of the checkout, with a mark where files have changed since."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or "unknown"


def covers(found: pd.DataFrame) -> pd.Series:
    """Whether each interval has the truth inside, to rounding."""
    return (found["low"] <= found["truth"] + 1e-12) & (found["truth"] <= found["high"] + 1e-12)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row per quantity and estimator.

    Args:
        found: evaluations of logs of a case, with `COLUMNS`.

    Returns:
        Columns quantity, estimator, truth, error (mean) and error_se, covered (share of the intervals) and
        covered_se (above 0 if all cover: Agresti and Coull 1998), answered (share of logs with an interval),
        refused (share without estimate and interval), logs.
    """
    logs = found["log"].nunique()
    table = found.assign(
        error=found["estimate"] - found["truth"],
        told=found["low"].fillna(found["estimate"]),
        covered=covers(found).astype(float).where(found["low"].notna()),
    )
    told = table.groupby(["quantity", "estimator"], sort=False).agg(
        truth=("truth", "first"),
        error=("error", "mean"),
        error_se=("error", "sem"),
        covered=("covered", "mean"),
        answered=("low", "count"),
        refused=("told", "count"),
    )
    n = told["answered"]
    share = (told["covered"] * n + 2) / (n + 4)
    return told.assign(
        covered_se=np.sqrt(share * (1 - share) / (n + 4)).where(n > 0),
        answered=n / logs,
        refused=1 - told["refused"] / logs,
        logs=logs,
    ).reset_index()
