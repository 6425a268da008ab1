"""Evidence on evaluations of policies: their defaults, on logs from populations with known truth."""

from __future__ import annotations

import functools
import subprocess
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall import FairAllError
from fairall.evaluate import Comparison, Evaluation, compare, evaluate
from reproduction.batches import computed
from reproduction.evidence_logs import CASES, GAPS, ODDS, SCORED, Case

LOGS, BATCH = 2_000, 10
POPULATION = 2_000_000  # people that the truth of a population is computed from, by their probabilities
ESTIMATORS, VIEWS = ("dr", "sndr", "ips", "snips", "dm"), ("ips", "dr")
COLUMNS = ("log", "quantity", "estimator", "estimate", "low", "high", "truth", "why")
STANDARD = {"decision": "decision", "label": "label", "sensitive": "s"}
Found = Evaluation | Comparison
Answer = tuple[str, str, Mapping[Hashable, Any]]  # quantity, estimator, and estimate, low, high and why
DIFFERENCE = "B − A"  # policy of a row of a comparison
BOUNDED = {"utility": "value"} | {name: name for name in GAPS[1:]}  # quantities that have bounds


def _rows(found: Found, table: str, second: bool = False) -> list[Mapping[Hashable, Any]]:
    """Rows of a table on the first or the second policy."""
    rows = found.table(table).to_dict("records")
    named = [name for name in dict.fromkeys(row.get("policy") for row in rows) if name != DIFFERENCE]
    return [row for row in rows if row.get("policy") == named[second]]


def _value(found: Found) -> Iterator[Answer]:
    for row in _rows(found, "value"):
        if row["estimator"] in ESTIMATORS:
            yield "value", row["estimator"], row


def _gaps(found: Found) -> Iterator[Answer]:
    for second in (False, True) if isinstance(found, Comparison) else (False,):
        for row in _rows(found, "fairness", second):
            if row["measure"] in GAPS and row["view"] in VIEWS:
                yield f"{row['measure']}{' of the second policy' * second}", row["view"], row


def _differences(found: Found) -> Iterator[Answer]:
    for table, view in (("value", "estimator"), ("fairness", "view")):
        for row in found.table(table).to_dict("records"):
            name = "value" if row["measure"] == "utility" else row["measure"]
            if row["policy"] == DIFFERENCE and row[view] in VIEWS and name in ("value", *GAPS):
                yield f"difference: {name}", row[view], row


def _guarantee(found: Found) -> Iterator[Answer]:
    for row in _rows(found, "value"):
        if row["estimator"] == "guaranteed":
            yield "value", "guarantee", row


def _bounds(
    found: Found, view: str = "no assumption", name: str = "bounds without assumption"
) -> Iterator[Answer]:
    known = {row["measure"]: row for row in _rows(found, "sensitivity") if row["view"] == view}
    for measure, quantity in BOUNDED.items():  # of gaps only where two groups are shown
        yield quantity, name, known.get(measure, refused("refused"))


def _sensitivity(found: Found) -> Iterator[Answer]:
    return _bounds(found, f"Γ = {ODDS:g}", f"bounds for Γ = {ODDS:g}")


def _groups(found: Found) -> Iterator[Answer]:
    for row in _rows(found, "groups"):
        if row["measure"] == "true-positive rate":
            yield f"TPR of group {row['group']}", "dr", row


def _scores(found: Found) -> Iterator[Answer]:
    for row in found.table("score").to_dict("records"):
        if row["group"] == "everybody" and row["measure"] in SCORED:
            view = "bounds without assumption" if row["view"] == "bounds" else row["view"]
            yield f"score: {row['measure']}", view, row


def refused(why: str) -> Mapping[Hashable, Any]:
    """Neither an estimate nor an interval, for a reason."""
    return {"estimate": None, "low": None, "high": None, "why": why}


PARTS: dict[str, Callable[[Found], Iterator[Answer]]] = {
    "value": _value,
    "gaps": _gaps,
    "differences": _differences,
    "guarantee": _guarantee,
    "bounds": _bounds,
    "sensitivity": _sensitivity,
    "groups": _groups,
    "score": _scores,
}


@functools.cache
def truth(place: int, population: int) -> dict[str, float]:
    """The truth of the case at a place in `CASES`, of many people drawn from its population."""
    return CASES[place].draw(population, np.random.default_rng(1)).truth()


def judged(case: Case, n: int, number: int) -> list[Answer]:
    """What the evaluation of one log says; nothing but a reason where it raises."""
    random = np.random.default_rng([number, n, zlib.crc32(f"{case.setting}/{case.name}".encode())])
    log, cost = case.log(n, random)
    second = "differences" in case.asked
    log = log if second else log.drop(columns="second", errors="ignore")
    options = STANDARD | dict(case.options) | ({"propensity": "propensity"} if case.recorded else {})
    if "gain" not in options:
        options["cost"] = cost
    try:
        found: Found
        if second:
            found = compare(case.policy, "second", log, **options)
        else:
            found = evaluate(case.policy, log, **options)
        return [answer for part in case.asked for answer in PARTS[part](found)]
    except FairAllError as error:
        return [("value", "dr", refused(f"error: {error}"))]


def batch(place: int, n: int, numbers: Sequence[int], population: int) -> str:
    """Evaluations of some logs as lines of CSV, with `COLUMNS`."""
    true = truth(place, population)
    rows = [
        (
            number,
            quantity,
            estimator,
            found.get("estimate"),
            found.get("low"),
            found.get("high"),
            true[quantity],
            str(found.get("why") or "")[:80],
        )
        for number in numbers
        for quantity, estimator, found in judged(CASES[place], n, number)
    ]
    return pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False, header=False, float_format="%.6g")


class Study:
    """A folder with a CSV file of the evaluations of each case and size.

    Args:
        folder: where they are; what it has is gone on with.
        logs: of a basic case; others have their share of it.
        cases: places in `CASES`.

    Raises:
        FairAllError: where the folder cannot be written.
    """

    def __init__(self, folder: Path, logs: int = LOGS, cases: Sequence[int] = range(len(CASES))) -> None:
        self.folder, self.logs, self.cases = folder, logs, cases
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FairAllError(f"-o {folder}: {error.strerror}") from error

    def file(self, place: int, n: int) -> Path:
        """Evaluations of logs of a case."""
        return self.folder / f"{place:02d}_{n}.csv"

    def found(self, place: int, n: int) -> pd.DataFrame:
        """The same, with `COLUMNS`."""
        file = self.file(place, n)
        return pd.read_csv(file, keep_default_na=True) if file.exists() else pd.DataFrame(columns=COLUMNS)

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
            FairAllError: where the folder has evaluations by another revision.
        """
        batches = self.batches() if hours else []
        if batches:
            self._claim()
        tasks = [(place, n, numbers, population) for place, n, numbers in batches]
        for (place, n, *_), lines in computed(batch, tasks, jobs, hours):
            self._append(place, n, lines)

    def _claim(self) -> None:
        """Note the revision, which must be the same for all evaluations."""
        noted, own = self.folder / "revision.txt", revision()
        if noted.exists() and noted.read_text().strip() != own:
            kept = noted.read_text().strip()
            raise FairAllError(f"-o {self.folder}: has evaluations by another revision, {kept}")
        noted.write_text(f"{own}\n")

    def _append(self, place: int, n: int, lines: str) -> None:
        file = self.file(place, n)
        head = "" if file.exists() else ",".join(COLUMNS) + "\n"
        with file.open("a") as opened:
            opened.write(head + lines)


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
    shown = found["low"].notna()
    table = found.assign(
        error=found["estimate"] - found["truth"],
        shown=shown,
        told=shown | found["estimate"].notna(),
        covered=covers(found).astype(float).where(shown),
    )
    told = table.groupby(["quantity", "estimator"], sort=False).agg(
        truth=("truth", "first"),
        error=("error", "mean"),
        error_se=("error", "sem"),
        covered=("covered", "mean"),
        answered=("shown", "sum"),
        refused=("told", "sum"),
    )
    n = told["answered"]
    share = (told["covered"] * n + 2) / (n + 4)
    return told.assign(
        covered_se=np.sqrt(share * (1 - share) / (n + 4)).where(n > 0),
        answered=n / logs,
        refused=1 - told["refused"] / logs,
        logs=logs,
    ).reset_index()
