"""Evidence on evaluations of policies: their defaults, on logs from populations with known truth."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier

from fairall import FairAllError
from fairall.evaluate import compare, evaluate
from reproduction import simulations
from reproduction.evidence_logs import DIFFERENCE, SECOND, made, truth_of
from reproduction.population import Random
from reproduction.words import words_of

FILE = "evaluations.csv"
POPULATION = 2_000_000  # people that the truth of a population is computed from, by their probabilities
COLUMNS = ["quantity", "estimator", "estimate", "low", "high", "truth"]
STANDARD: dict[str, Any] = {"decision": "decision", "label": "label", "sensitive": "s"}
# Names of quantities by policy of a comparison, but for the first, or by group of a score.
WHOSE = {"B: second": SECOND, "B − A": DIFFERENCE, "everybody": "score: {}"}
STUDY = words_of("evidence")
# Kinds of logs with a number of rows, as the file has them; `share`: of the number of logs of a basic case.
CASES = pd.DataFrame(
    {"setting": setting, **case, "rows": rows, "share": share}
    for setting, own in STUDY["settings"].items()
    for case in simulations.expanded(STUDY["usual"] | own.get("usual", {}), own["cases"])
    for rows, share in case["sizes"].items()
)


def log_of(case: Any, random: Random) -> pd.DataFrame:
    """One log of a case."""
    people = made(case.draw, case.rows, random)
    decision, y = (random.random(case.rows) < people[name] for name in ("propensity", "chance"))
    log = made(case.change, people.assign(decision=decision, y=y.astype(float)), random)
    log = log.assign(decision=log["decision"].astype(int), label=log["y"].where(log["decision"] == 1))
    hidden = ["y", "chance", "rejected"]
    hidden += ["propensity"] * (case.propensities != "recorded")
    hidden += ["second"] * ("differences" not in case.asked)
    return log.drop(columns=hidden, errors="ignore")


def answers(found: Any, part: str) -> Iterator[dict[str, Any]]:
    """What an evaluation or a comparison with `second` says on a part: rows with quantity and estimator."""
    names = STUDY["names"]
    for read in STUDY["parts"][part]:
        whose = read.get("whose", "{}")
        for row in found.table(read["table"]).to_dict("records"):
            own = WHOSE.get(row.get("policy", row.get("group")), "{}") == whose
            measure, view = row["measure"], row.get("estimator", row.get("view", ""))
            if own and measure in read["measures"] and view in read["views"]:
                quantity = whose.format(names.get(measure, measure).format_map(row))
                yield row | {"quantity": quantity, "estimator": names.get(view, view)}


@functools.cache
def truth(place: int) -> pd.Series:
    """The truth of a case by its place in `CASES`."""
    case = CASES.loc[place]
    return truth_of(made(case.draw, POPULATION, np.random.default_rng(1)), case.cost)


def judged(place: int, number: int) -> pd.DataFrame:
    """What the evaluation of a log says, beside the truth; an estimate without numbers where it raises."""
    case = CASES.loc[place]
    key = zlib.crc32(f"{case.setting}/{case['name']}".encode())
    log = log_of(case, np.random.default_rng([number, int(case.rows), key]))
    # `constant` is a model that knows no feature.
    options = {key: DummyClassifier() if of == "constant" else of for key, of in case.options.items()}
    options |= STANDARD | ({} if "gain" in options else {"cost": case.cost})
    options |= {"propensity": "propensity"} if "propensity" in log else {}
    policies = [case.policy, "second"] if "second" in log else [case.policy]
    judge: Any = compare if "second" in log else evaluate
    try:
        found = judge(*policies, log, **options)
        rows = pd.DataFrame(row for part in case.asked for row in answers(found, part))
    except FairAllError:
        rows = pd.DataFrame({"quantity": ["value"], "estimator": "dr"})
    return rows.assign(truth=rows["quantity"].map(truth(place))).reindex(columns=COLUMNS)


def make(folder: Path, logs: int, jobs: int, hours: float) -> None:
    """Evaluate the logs that are left, until all are done or the time is up.

    Args:
        folder: of the evaluations; what it has is gone on with.
        logs: of a basic case; others have their share of it.
        jobs: number of processes.
        hours: after which no log is begun.
    """
    counts = [max(1, round(logs * share)) for share in CASES["share"]]
    simulations.make(folder / FILE, judged, counts, jobs, hours)


def covers(found: pd.DataFrame) -> pd.Series:
    """1 for an interval with the truth inside, to rounding, 0 for another, NaN without one."""
    inside = found["truth"].between(found["low"] - 1e-12, found["high"] + 1e-12)
    return inside.astype(float).where(found["low"].notna())


def summary(found: pd.DataFrame, case: str | list[str], of: list[str]) -> pd.DataFrame:
    """One row for each value of the columns `of`, where the replicates of a case are counted together.

    Args:
        found: replicates, with `COLUMNS`.
        case: columns that tell cases apart.
        of: columns.

    Returns:
        By `of`: truth, error (mean), error_se, off (mean absolute error), width (of the intervals), covered
        (share of them), covered_se (above 0 if all cover: Agresti and Coull 1998), answered (share of logs
        with an interval), refused (share without estimate and interval), logs.
    """
    error, told = found["estimate"] - found["truth"], found["low"].fillna(found["estimate"])
    table = found.assign(error=error, off=error.abs(), told=told, covered=covers(found))
    table["width"] = found["high"] - found["low"]
    table["logs"] = found.groupby(case)["replicate"].transform("nunique")
    by = table.groupby(of, sort=False)
    means, logs = by[["truth", "error", "off", "width", "covered"]].mean(), by["logs"].first()
    n = by["low"].count()
    share = (means["covered"] * n + 2) / (n + 4)
    return means.assign(
        error_se=by["error"].sem(),
        covered_se=np.sqrt(share * (1 - share) / (n + 4)).where(n > 0),
        answered=n / logs,
        refused=1 - by["told"].count() / logs,
        logs=logs,
    )
