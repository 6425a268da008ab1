"""Logs of past decisions with exact propensities and withheld truth, and scores of estimators on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from fairall import FairAllError, load_results, places
from fairall.display import PageTable, Row, number, own_name, rendered, write
from fairall.evaluate import judge
from fairall.report import dataset_label, method_label
from reproduction.evidence import answer, answers, summary
from reproduction.evidence_logs import policy_truth
from reproduction.items import table_of
from reproduction.pages import publish, refuse
from reproduction.plan import LOGS, Planned, plan, with_runs
from reproduction.runs import make

TARGETS = ("accept_all", "oracle", "oracle_fair")  # methods whose decisions are to be judged
EVERYBODY = TARGETS[0]  # whose log has the label of every applicant
GAP = "equal_opportunity"
UNSUPPORTED = 0.01  # share of a policy's acceptances beyond which a log cannot tell its value
KEYS = ["log", "target", "quantity"]
ANSWERS = [*KEYS, "estimator", "estimate", "low", "high"]
DECISIONS = "decisions.csv"
TRUTH, ANSWERED = "truth/{}.csv", "answers/{}.csv"  # of a log in a bundle, by its name

SCORES = {  # column of `scores` and decimals, by heading
    "error ↓": ("error", 2),
    "bias": ("bias", 2),
    "covered": ("covered", 1),
    "width ↓": ("width", 2),
    "wrongly refused ↓": ("wrongly_refused", 1),
    "rightly refused ↑": ("rightly_refused", 1),
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
    given = {} if answers is None else {answers.stem: read_answers(answers)}
    planned = plan(LOGS, overrides)
    failures = make(planned, overrides, jobs=jobs)
    outputs = Path(config.outputs_dir)
    finished = with_runs(planned, load_results(outputs / "runs").results)
    folder = folder or outputs / own_name("logs", config.preset)
    names = write_bundle(folder, finished)
    truth, given["fairall"] = (
        pd.concat([pd.DataFrame(), *(pd.read_csv(folder / path.format(name)) for name in names)])
        for path in (TRUTH, ANSWERED)
    )
    tables = [score_table(truth, given, finished)] if names else []
    publish("logs", "FairAll: open logs", {"": tables}, config, folder=folder / "page", into=into)
    return not failures


def write_bundle(folder: Path, planned: Sequence[Planned]) -> list[str]:
    """Write the logs of finished runs with their truth and our answers; return the names of the logs."""
    runs = {(one.dataset, one.name("initial_policy"), one.model): one.run for one in planned if one.run}
    read, names = cache(lambda path: pd.read_csv(path / DECISIONS)), list[str]()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    for (dataset, policy, model), run in runs.items():
        of_targets = [runs.get((dataset, policy, target)) for target in TARGETS]
        targets = [of.path for of in of_targets if of]
        for seed in run.seeds if model not in TARGETS and len(targets) == len(TARGETS) else ():
            name = f"{dataset}-{policy}-{model}-{run.identity}-{seed}"
            names.append(name)
            if (folder / ANSWERED.format(name)).exists():
                continue
            log, label = log_of(run.path, seed, [read(path) for path in (run.path, *targets)])
            log.to_parquet(folder / "logs" / f"{name}.parquet", index=False)
            for path, found in ((TRUTH, truth_of), (ANSWERED, own_answers)):
                rows = found(log, label, run.config.cost.value)
                write(folder / path.format(name), rows.assign(log=name)[["log", *rows]].to_csv(index=False))
    datasets, models = (dict.fromkeys(key[place] for key in runs) for place in (0, -1))
    told = {"answers": ANSWERS, "percent": 100 * UNSUPPORTED, "datasets": [*map(dataset_label, datasets)]}
    told["methods"] = [method_label(model) for model in models if model not in TARGETS]
    write(folder / "README.md", rendered("logs.md.jinja", told, "reproduction") + "\n")
    return names


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
    known = ("time_step", "propensity", "decision", "label")
    return [name for name in log.columns if name not in known and not name.startswith("target_")]


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
        shares = {"value": (a * never).sum() / max(a.sum(), 1e-12), GAP: never.mean()}
        asked = ("value",) if target == EVERYBODY else ("value", GAP)  # everybody's gap is 0
        rows += [(target, name, true[name], shares[name], shares[name] <= UNSUPPORTED) for name in asked]
    return pd.DataFrame(rows, columns=["target", "quantity", "truth", "unsupported", "can_tell"])


def own_answers(log: pd.DataFrame, label: pd.Series, cost: float) -> pd.DataFrame:
    """Our estimates for each target, as of `truth_of`; without numbers where `evaluate` refuses."""
    people = described(log)
    told: dict[str, Any] = {name: name for name in ("decision", "label", "propensity")}
    told["sensitive"] = people[-1]
    policies, table = [log[f"target_{target}"].to_numpy() for target in TARGETS], log[[*people, *[*told][:3]]]
    try:
        found = [answers(one, "logs") for one in judge(policies, table, cost=cost, **told)]
    except FairAllError as error:
        found = [iter([answer(name, "dr", {"why": str(error)}) for name in ("value", GAP)]) for _ in TARGETS]
    rows = [{"target": target, **one} for target, own in zip(TARGETS, found, strict=True) for one in own]
    return pd.DataFrame(rows, columns=ANSWERS[1:])


def read_answers(path: Path) -> pd.DataFrame:
    """Answers of any estimator, with `ANSWERS` as columns.

    Raises:
        FairAllError: where the file cannot be read or lacks a column.
    """
    try:
        found = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise FairAllError(f"--answers {path}: cannot be read as CSV: {error}") from error
    if lacking := [name for name in ANSWERS if name not in found.columns]:
        raise FairAllError(
            f"--answers {path}: no column {', '.join(lacking)}; needed are {', '.join(ANSWERS)}"
        )
    return found


def scores(truth: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Scores by quantity and estimator.

    Args:
        truth: columns log, target, quantity, truth, can_tell.
        answers: with `ANSWERS`; a row without an estimate, or no row, is a refusal.

    Returns:
        Columns quantity, estimator, questions, can_tell (their number), and of those that can be told:
        error (mean absolute), bias, covered (share of the intervals), width (their mean), wrongly_refused
        (share); of those that cannot rightly_refused.
    """
    of = ["quantity", "estimator"]
    asked = truth.merge(answers[of].drop_duplicates(), on="quantity")
    told = answers.dropna(subset="estimate")
    table = asked.merge(told[[*KEYS, "estimator", "estimate", "low", "high"]], "left", validate="1:1")
    can = table["can_tell"].astype(bool)
    counts = table.assign(can=can).groupby(of, sort=False)["can"].agg(questions="size", can_tell="sum")
    refused = table["estimate"].isna().groupby([*(table[key] for key in of), can]).mean().unstack()
    refused = refused.reindex(columns=[True, False]).set_axis(["wrongly_refused", "rightly_refused"], axis=1)
    found = summary(table[can]).set_index(of)[["off", "error", "covered", "width"]]
    found.columns = ["error", "bias", "covered", "width"]
    return counts.join(found).join(refused).reset_index()


def score_table(
    truth: pd.DataFrame, given: Mapping[str, pd.DataFrame], planned: Sequence[Planned]
) -> PageTable:
    """Scores of several files of answers."""
    scored = {name: scores(truth, answers) for name, answers in given.items()}
    found = pd.concat(scored, names=["answers"]).reset_index("answers").to_dict("records")
    rows = []
    for one in found:
        cells = [number(one[key], 100, digits) for key, digits in SCORES.values()]
        told = f"{one['can_tell']} of {one['questions']}"
        rows.append(Row(one["quantity"], f"{one['answers']}: {one['estimator']}", [told, *cells]))
    return table_of(
        ["can be told", *SCORES],
        rows,
        found,
        planned,
        key="logs",
        title="Scores",
        note="×100. A question is a log, a policy to judge and a quantity. Of questions that can be told: "
        "mean absolute error, bias, coverage and mean width of 95 % intervals, and the share that is refused "
        "wrongly; of the others, the share that is refused rightly.",
    )
