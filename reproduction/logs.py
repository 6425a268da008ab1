"""Logs of past decisions with exact propensities and withheld truth, and scores of estimators on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from fairall import FairAllError, load_results, places
from fairall.display import PageTable, number, own_name, write
from fairall.evaluate import judge
from reproduction.evidence import STANDARD, answers, summary
from reproduction.evidence_logs import policy_truth
from reproduction.pages import publish, refuse
from reproduction.plan import LOGS, Planned, missing_runs, plan, with_runs
from reproduction.runs import make
from reproduction.simulations import page_table

# Methods whose decisions are to be judged; the log of the first has the label of every applicant.
TARGETS = ("accept_all", "oracle", "oracle_fair")
GAP = "equal_opportunity"
# Share of a policy's acceptances beyond which a log cannot tell its value, as logs.md says.
UNSUPPORTED = 0.01
ANSWERS = ["log", "target", "quantity", "estimator", "estimate", "low", "high"]
DECISIONS = "decisions.csv"

SCORES = {  # column of `summary`, of questions that can be told or not, and decimals, by heading
    "error ↓": (("off", True), 2),
    "bias": (("error", True), 2),
    "covered": (("covered", True), 1),
    "width ↓": (("width", True), 2),
    "wrongly refused ↓": (("refused", True), 1),
    "rightly refused ↑": (("refused", False), 1),
}


def logs(
    overrides: Sequence[str],
    folder: Path | None = None,
    into: Sequence[Path] = (),
    jobs: int | None = None,
    answers: Path | None = None,
) -> bool:
    """Make the runs that are missing, write a bundle of their logs, and score answers.

    The bundle is a folder with README.md (its card), for each log `logs/NAME.parquet`, `truth/NAME.csv` and
    `answers/NAME.csv`, and a page with the scores. Logs that are there are kept.

    Args:
        overrides: words that pick from the axes of the sweep, or are added to every command.
        folder: of the bundle; None: `logs` in outputs_dir.
        into: pages of the documentation with blocks to fill.
        jobs: number of runs at once; None: one per core.
        answers: CSV file with columns `ANSWERS`, to be scored beside our own.

    Returns:
        Whether all runs are there.

    Raises:
        FairAllError: where the answers cannot be read.
    """
    config = places(overrides)
    refuse(into, config)
    try:
        given = {answers.stem: pd.read_csv(answers, usecols=ANSWERS)} if answers else {}
    except (OSError, ValueError) as error:
        raise FairAllError(f"--answers {answers}: {error}") from error
    planned = plan(LOGS, overrides)
    failures = make(planned, overrides, jobs=jobs)
    outputs = Path(config.outputs_dir)
    finished = with_runs(planned, load_results(outputs / "runs").results)
    folder = folder or outputs / own_name("logs", config.preset)
    tables = []
    if written := write_bundle(folder, finished):
        truth, given["fairall"] = written
        tables = [score_table(truth, given, finished)]
    publish("logs", "FairAll: open logs", {"": tables}, config, folder=folder / "page", into=into)
    return not failures


def write_bundle(folder: Path, planned: Sequence[Planned]) -> list[pd.DataFrame]:
    """Write the logs of finished runs with their truth and our answers; return these of all logs."""
    runs = {(one.dataset, one.name("initial_policy"), one.model): one.run for one in planned if one.run}
    files = []
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    for (dataset, policy, model), run in runs.items():
        targets = [of.path for target in TARGETS if (of := runs.get((dataset, policy, target)))]
        for seed in run.seeds if model not in TARGETS and len(targets) == len(TARGETS) else ():
            name = f"{dataset}-{policy}-{model}-{run.identity}-{seed}"
            files.append([folder / kind / f"{name}.csv" for kind in ("truth", "answers")])
            if files[-1][-1].exists():
                continue
            decided = [pd.read_csv(path / DECISIONS) for path in (run.path, *targets)]
            log, label = log_of(run.path, seed, decided)
            log.to_parquet(folder / "logs" / f"{name}.parquet", index=False)
            truth = truth_of(log, label, cost := run.config.cost.value)
            for file, rows in zip(files[-1], (truth, own_answers(log, truth, cost)), strict=True):
                write(file, rows.assign(log=name).to_csv(index=False))
    write(folder / "README.md", Path(__file__).with_suffix(".md").read_text())
    return [pd.concat(map(pd.read_csv, of_kind)) for of_kind in zip(*files, strict=True)]


def log_of(path: Path, seed: int, decided: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame, pd.Series]:
    """The log of a seed, with a column of acceptance probabilities for each target; and everybody's label.

    Args:
        path: of the run whose log it is.
        seed: of the run.
        decided: decisions.csv of all seeds, of the run and of each of `TARGETS` for the same applicants.

    Raises:
        FairAllError: where the applicants are not the same.
    """
    own, *others = (of[of["seed"] == seed].reset_index(drop=True) for of in decided)
    people = own.columns.difference(["propensity", "decision", "label"])
    for name, other in zip(TARGETS, others, strict=True):
        if not own[people].equals(other[people]):
            raise FairAllError(f"{path}: other applicants than those of model={name}; make both anew")
        own[f"target_{name}"] = other["propensity"]
    return own.drop(columns="seed"), others[0]["label"].astype(float)


def described(log: pd.DataFrame) -> list[str]:
    """Names of the features of a log, and last of its groups."""
    return [*log.loc[:, :"propensity"].columns[1:-1]]


def truth_of(log: pd.DataFrame, label: pd.Series, cost: float) -> pd.DataFrame:
    """What is withheld: for each target and quantity its true value, and whether the log can tell.

    A log can tell unless more than `UNSUPPORTED` of the target's acceptances are of people whom nobody could
    have accepted: no row with these features and group has a propensity above 0. For rates by label this is
    asked of everybody.

    Args:
        log: of `log_of`, N rows.
        label: of everybody, shape (N,).
        cost: c.
    """
    people = described(log)
    never = log.groupby(people, dropna=False)["propensity"].transform("max") == 0
    rows = []
    for target in TARGETS:
        a = log[f"target_{target}"]
        true = policy_truth(a, label, log[people[-1]], 1 - cost, cost)
        rows.append((target, "value", true["value"], (a * never).sum() <= UNSUPPORTED * a.sum()))
        if target != "accept_all":  # whose gap is 0
            rows.append((target, GAP, true[GAP], never.mean() <= UNSUPPORTED))
    return pd.DataFrame(rows, columns=["target", "quantity", "truth", "can_tell"])


def own_answers(log: pd.DataFrame, truth: pd.DataFrame, cost: float) -> pd.DataFrame:
    """Our estimates for each target, as of `truth_of`; without numbers where `evaluate` refuses."""
    policies, table = [f"target_{target}" for target in TARGETS], log.drop(columns="time_step")
    options = STANDARD | {"propensity": "propensity", "sensitive": described(log)[-1]}
    try:
        judged = [*zip(TARGETS, judge(policies, table, cost=cost, **options), strict=True)]
    except FairAllError:
        return truth[["target", "quantity"]].assign(estimator="dr").reindex(columns=ANSWERS[1:])
    rows = [{"target": target, **row} for target, one in judged for row in answers(one, "logs")]
    return pd.DataFrame(rows, columns=ANSWERS[1:])


def score_table(
    truth: pd.DataFrame, given: Mapping[str, pd.DataFrame], planned: Sequence[Planned]
) -> PageTable:
    """Scores by quantity and estimator.

    Args:
        truth: columns log, target, quantity, truth, can_tell.
        given: answers by name, with `ANSWERS`; a row without an estimate, or no row, is a refusal.
        planned: the runs of the logs, finished or missing.
    """
    told = pd.concat([of.assign(estimator=f"{name}: " + of["estimator"]) for name, of in given.items()])
    asked = truth.merge(told[["quantity", "estimator"]].drop_duplicates(), on="quantity")
    table = asked.merge(told.dropna(subset="estimate")[ANSWERS], "left", validate="1:1")
    table["replicate"] = table["log"] + table["target"]
    rows = ["quantity", "estimator", "can_tell"]
    found = summary(table, ["quantity", "can_tell"], rows).unstack(sort=False)
    counts = table.groupby(rows[:2], sort=False)["can_tell"].agg(["sum", "size"]).astype(str)
    cells = {"can be told": counts["sum"] + " of " + counts["size"]}
    found = found.reindex(columns=[of for of, _ in SCORES.values()])
    cells |= {head: found[of].map(partial(number, digits=digits)) for head, (of, digits) in SCORES.items()}
    return page_table(
        pd.DataFrame(cells),
        lacking=missing_runs(planned),
        key="logs",
        title="Scores",
        note="×100. A question is a log, a policy to judge and a quantity. Of questions that can be told: "
        "mean absolute error, bias, coverage and mean width of 95 % intervals, and the share that is refused "
        "wrongly; of the others, the share that is refused rightly.",
    )
