"""Evidence on evaluations of policies: their defaults, on logs from populations with known truth."""

from __future__ import annotations

import functools
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from sklearn.dummy import DummyClassifier

from fairall import FairAllError
from fairall.display import write
from fairall.evaluate import Comparison, Evaluation, compare, evaluate
from reproduction import evidence_logs
from reproduction.batches import computed
from reproduction.evidence_logs import COST, DIFFERENCE, SECOND, Random, truth_of

LOGS, BATCH = 200, 10
POPULATION = 2_000_000  # people that the truth of a population is computed from, by their probabilities
COLUMNS = ["case", "rows", "log", "quantity", "estimator", "estimate", "low", "high", "truth", "why"]
FILE = "evaluations.csv"
STANDARD = {"decision": "decision", "label": "label", "sensitive": "s"}
POLICIES = {"B: second": SECOND, "B − A": DIFFERENCE}  # of a comparison, but for the first
STUDY = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


@dataclass(frozen=True)
class Case:
    """Logs of one kind.

    Attributes:
        setting: heading of its table.
        name: what is special about the log.
        draw: what draws people, a function of `evidence_logs` by name, or the name and options.
        change: of the log, likewise.
        sizes: for each number of rows, the share of the number of logs of a basic case.
        cost: c.
        recorded: whether the log has propensities.
        options: of `fairall.evaluate.evaluate`; `constant` is a model that knows no feature.
        policy: column, if not that of the first policy.
        asked: parts of the evaluation.
        wrong: whether the log cannot tell, or is told wrong, so that a refusal is right.
    """

    setting: str
    name: str
    draw: Any
    change: Any = None
    sizes: Mapping[int, float] = field(default_factory=lambda: {500: 0.25, 2_000: 0.25})
    cost: float = COST
    recorded: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: str = "first"
    asked: Sequence[str] = ("value",)
    wrong: bool = False

    def log(self, n: int, random: Random) -> pd.DataFrame:
        """One log of n rows."""
        people = called(self.draw, n, random)
        decision, y = (random.random(n) < people[name] for name in ("propensity", "chance"))
        log = people.assign(decision=decision, y=y.astype(float))
        log = log if self.change is None else called(self.change, log, random)
        log = log.assign(decision=log["decision"].astype(int), label=log["y"].where(log["decision"] == 1))
        unknown = {"propensity": self.recorded, "second": "differences" in self.asked}
        hidden = [name for name, known in unknown.items() if not known]
        return log.drop(columns=["y", "chance", "rejected", *hidden], errors="ignore")


def called(call: Any, *given: Any) -> pd.DataFrame:
    """What a function of `evidence_logs` makes, by its name or as {name: options}."""
    ((name, options),) = call.items() if isinstance(call, dict) else ((call, {}),)
    made: pd.DataFrame = getattr(evidence_logs, name)(*given, **options)
    return made


CASES = [
    Case(setting, **{key: value for key, value in shared.items() if key not in ("note", "cases")} | own)
    for setting, shared in STUDY["settings"].items()
    for own in shared["cases"]
]


def answers(found: Evaluation | Comparison, part: str) -> Iterator[dict[str, Any]]:
    """What an evaluation or a comparison with `second` says on a part, with `answer` as rows."""
    for read in STUDY["parts"][part]:
        table, measures, views = read["table"], read["measures"], read["views"]
        whose, left = read.get("whose", "{}"), dict(measures)
        for row in found.table(table).to_dict("records"):
            measure, view = row["measure"], row.get("estimator", row.get("view", ""))
            of_score = table != "score" or row["group"] == "everybody"
            own = of_score and POLICIES.get(row.get("policy", ""), "{}") == whose
            if own and measure in measures and view in views:
                left.pop(measure, None)
                yield answer(whose.format(measures[measure].format_map(row)), views[view], row)
        if table == "sensitivity":  # has bounds of gaps only where two groups are shown
            for quantity, view in product(left.values(), views.values()):
                yield answer(quantity, view, {"why": "refused"})


def answer(quantity: str, estimator: str, row: Mapping[Any, Any]) -> dict[str, Any]:
    """An estimate and an interval as a row; neither, for a reason, is a refusal."""
    of_row = {key: row.get(key) for key in ("estimate", "low", "high", "why")}
    return {"quantity": quantity, "estimator": estimator, **of_row}


@functools.cache
def truth(case: int, people: int) -> dict[str, float]:
    """The truth of a case by its place in `CASES`, of many people drawn from its population."""
    drawn = called(CASES[case].draw, people, np.random.default_rng(1))
    return truth_of(drawn, CASES[case].cost)


def judged(case: Case, n: int, number: int) -> list[dict[str, Any]]:
    """What the evaluation of one log says; nothing but a reason where it raises."""
    random = np.random.default_rng([number, n, zlib.crc32(f"{case.setting}/{case.name}".encode())])
    log = case.log(n, random)
    options = {key: DummyClassifier() if of == "constant" else of for key, of in case.options.items()}
    options |= STANDARD | ({} if "gain" in options else {"cost": case.cost})
    options |= {"propensity": "propensity"} if case.recorded else {}
    try:
        if "differences" in case.asked:
            found: Evaluation | Comparison = compare(case.policy, "second", log, **options)
        else:
            found = evaluate(case.policy, log, **options)
        return [one for part in case.asked for one in answers(found, part)]
    except FairAllError as error:
        return [answer("value", "dr", {"why": f"error: {error}"})]


def batch(logs: Sequence[tuple[int, int, int]], people: int) -> str:
    """Evaluations of some logs, by case, rows and number, as lines of CSV with `COLUMNS`."""
    found = [
        {"case": case, "rows": rows, "log": number, "truth": truth(case, people)[one["quantity"]], **one}
        for case, rows, number in logs
        for one in judged(CASES[case], rows, number)
    ]
    table = pd.DataFrame(found, columns=COLUMNS)
    table["why"] = table["why"].str.slice(0, 80)
    return table.to_csv(index=False, header=False, float_format="%.6g")


def evaluations(folder: Path) -> pd.DataFrame:
    """What has been evaluated so far, with `COLUMNS`."""
    file = folder / FILE
    return pd.read_csv(file, names=COLUMNS) if file.exists() else pd.DataFrame(columns=COLUMNS)


def to_do(folder: Path, logs: int) -> list[tuple[int, int, int]]:
    """Case, rows and number of logs still to be evaluated, in an order in which all cases progress alike."""
    done = {*evaluations(folder)[COLUMNS[:3]].itertuples(index=False, name=None)}
    left = [
        (number / (logs * share), case, rows, number)
        for case, of in enumerate(CASES)
        for rows, share in of.sizes.items()
        for number in range(max(1, round(logs * share)))
        if (case, rows, number) not in done
    ]
    return [(case, rows, number) for _, case, rows, number in sorted(left)]


def make(folder: Path, logs: int = LOGS, jobs: int = 1, hours: float = np.inf) -> None:
    """Evaluate the logs that are left, until all are done or the time is up.

    Args:
        folder: of the evaluations; what it has is gone on with.
        logs: of a basic case; others have their share of it.
        jobs: number of processes.
        hours: after which no batch of logs is begun.

    Raises:
        FairAllError: where the folder has evaluations by another revision, or cannot be written.
    """
    left = to_do(folder, logs) if hours else []
    if left:
        noted, own = folder / "revision.txt", revision()
        if noted.exists() and (kept := noted.read_text().strip()) != own:
            raise FairAllError(f"-o {folder}: has evaluations by another revision, {kept}")
        write(noted, f"{own}\n")
    batches = [(left[start : start + BATCH], POPULATION) for start in range(0, len(left), BATCH)]
    for _, lines in computed(batch, batches, jobs, hours):
        with (folder / FILE).open("a") as opened:
            opened.write(lines)


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
        Columns quantity, estimator, truth, error (mean), error_se, off (mean absolute error), width (of the
        intervals), covered (share of them), covered_se (above 0 if all cover: Agresti and Coull 1998),
        answered (share of logs with an interval), refused (share without estimate and interval), logs.
    """
    logs, error = found["log"].nunique(), found["estimate"] - found["truth"]
    table = found.assign(
        error=error,
        off=error.abs(),
        width=found["high"] - found["low"],
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
        off=("off", "mean"),
        width=("width", "mean"),
    )
    n = told["answered"]
    share = (told["covered"] * n + 2) / (n + 4)
    return told.assign(
        covered_se=np.sqrt(share * (1 - share) / (n + 4)).where(n > 0),
        answered=n / logs,
        refused=1 - told["refused"] / logs,
        logs=logs,
    ).reset_index()
