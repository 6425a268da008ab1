"""Logs of past decisions with exact propensities and withheld truth, and scores of estimators on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall import FairAllError, Result, load_results, places
from fairall.display import PageTable, Row, number, own_name, write
from fairall.evaluate import Evaluation, judge
from fairall.report import dataset_label, method_label
from reproduction.evidence import covers
from reproduction.items import table_of
from reproduction.pages import publish, refuse
from reproduction.plan import LOGS, Planned, plan, with_runs
from reproduction.runs import make

TARGETS = ("accept_all", "oracle", "oracle_fair")  # methods whose decisions are to be judged
EVERYBODY = TARGETS[0]  # whose log has the label of every applicant
GAP = "equal_opportunity"
QUANTITIES = ("value", GAP)
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
    tasks: dict[tuple[str, str], dict[str, Result]] = {}
    for one in planned:
        if one.run is not None:
            tasks.setdefault((one.dataset, one.name("initial_policy")), {})[one.model] = one.run
    names: list[str] = []
    for task, runs in tasks.items():
        if not set(TARGETS) <= set(runs):
            continue
        decided = {target: pd.read_csv(runs[target].path / DECISIONS) for target in TARGETS}
        for model in (name for name in runs if name not in TARGETS):
            run = runs[model]
            of_seeds = {seed: "-".join((*task, model, run.identity, str(seed))) for seed in run.seeds}
            names += of_seeds.values()
            left = [seed for seed, name in of_seeds.items() if not (folder / ANSWERED.format(name)).exists()]
            own = pd.read_csv(run.path / DECISIONS) if left else pd.DataFrame()
            for seed in left:
                write_log(folder, of_seeds[seed], run, own, seed, decided)
    write(folder / "README.md", card(tasks))
    return names


def write_log(
    folder: Path, name: str, run: Result, table: pd.DataFrame, seed: int, decided: Mapping[str, pd.DataFrame]
) -> None:
    """Write the log of a seed, its truth, and last our answers to it; other arguments as `log_of`."""
    log, label = log_of(run, table, seed, decided)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    log.to_parquet(folder / "logs" / f"{name}.parquet", index=False)
    tables = {
        TRUTH: truth_of(log, label, run.config.cost.value),
        ANSWERED: own_answers(log, run.config.cost.value),
    }
    for path, found in tables.items():
        found.insert(0, "log", name)
        write(folder / path.format(name), found.to_csv(index=False))


def log_of(
    run: Result, table: pd.DataFrame, seed: int, decided: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, np.ndarray]:
    """The log of a seed, with a column of acceptance probabilities for each target; and everybody's label.

    Args:
        run: whose log it is.
        table: its decisions.csv, of all seeds.
        seed: of the run.
        decided: decisions.csv of each of `TARGETS` for the same applicants.

    Raises:
        FairAllError: where the applicants are not the same.
    """
    own = table[table["seed"] == seed].drop(columns="seed").reset_index(drop=True)
    people = [name for name in own.columns if name not in ("propensity", "decision", "label")]
    for name, of_target in decided.items():
        other = of_target[of_target["seed"] == seed].reset_index(drop=True)
        if not own[people].equals(other[people]):
            raise FairAllError(f"{run.path}: other applicants than those of model={name}; make both anew")
        own[f"target_{name}"] = other["propensity"]
    everybody = decided[EVERYBODY]
    return own, everybody.loc[everybody["seed"] == seed, "label"].to_numpy(dtype=float)


def described(log: pd.DataFrame) -> tuple[list[str], str]:
    """Names of the features of a log, and of its groups."""
    given = [name for name in log.columns if not name.startswith("target_")]
    given = [name for name in given if name not in ("time_step", "propensity", "decision", "label")]
    return given[:-1], given[-1]


def truth_of(log: pd.DataFrame, label: np.ndarray, cost: float) -> pd.DataFrame:
    """What is withheld: for each target and quantity its true value, and whether the log can tell.

    A log can tell unless more than `UNSUPPORTED` of the target's acceptances are of people whom nobody could
    have accepted: no row with these features and group has a propensity above 0. For rates by label this is
    asked of everybody.

    Args:
        log: of `log_of`, N rows.
        label: of everybody, shape (N,).
        cost: c.
    """
    features, sensitive = described(log)
    chance = log.groupby([*features, sensitive], dropna=False)["propensity"].transform("max")
    never = (chance == 0).to_numpy()
    rows = []
    for target in TARGETS:
        a, s = log[f"target_{target}"].to_numpy(), log[sensitive].to_numpy()
        rates = [a[(s == group) & (label == 1)].mean() for group in np.unique(s)]
        shares = {"value": (a * never).sum() / max(a.sum(), 1e-12), GAP: never.mean()}
        true = {"value": (a * (label - cost)).mean(), GAP: max(rates) - min(rates)}
        rows += [
            {
                "target": target,
                "quantity": name,
                "truth": true[name],
                "unsupported": shares[name],
                "can_tell": shares[name] <= UNSUPPORTED,
            }
            for name in QUANTITIES[: 1 if target == EVERYBODY else None]  # everybody's gap is 0
        ]
    return pd.DataFrame(rows)


def own_answers(log: pd.DataFrame, cost: float) -> pd.DataFrame:
    """Our estimates for each target; without numbers where `evaluate` refuses."""
    features, sensitive = described(log)
    people = log[[*features, sensitive, "decision", "label", "propensity"]]
    try:
        found = judge(
            [log[f"target_{target}"].to_numpy() for target in TARGETS],
            people,
            decision="decision",
            label="label",
            sensitive=sensitive,
            propensity="propensity",
            cost=cost,
        )
        answers = dict(zip(TARGETS, map(list, map(_answers, found)), strict=True))
    except FairAllError:
        nothing = [{"quantity": name, "estimator": "dr"} for name in QUANTITIES]
        answers = dict.fromkeys(TARGETS, nothing)
    rows = [{"target": target, **one} for target, own in answers.items() for one in own]
    return pd.DataFrame(rows, columns=ANSWERS[1:])


def _answers(found: Evaluation) -> Iterator[dict[str, Any]]:
    values = [("value", name, of) for name, of in found.values.items()]
    gaps = [(GAP, name, of) for name, of in found.fairness[GAP].items()]
    for quantity, name, of in (*values, *gaps):
        yield {"quantity": quantity, "estimator": name, **of._asdict()}


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
        Columns quantity, estimator, questions, can_tell (their number), and of those answered that can be
        told: error (mean absolute), bias, intervals (their number), covered (share of them), width (mean).
        wrongly_refused is a share of those that can be told, rightly_refused of those that cannot.
    """
    rows = []
    for (quantity, estimator), own in answers.groupby(["quantity", "estimator"], sort=False):
        asked = truth[truth["quantity"] == quantity]
        table = asked.merge(own[[*KEYS, "estimate", "low", "high"]], on=KEYS, how="left", validate="1:1")
        answered, can = table["estimate"].notna(), table["can_tell"].astype(bool)
        told = table[answered & can]
        off = told["estimate"] - told["truth"]
        ends = told[told["low"].notna() & told["high"].notna()]
        rows.append(
            {
                "quantity": quantity,
                "estimator": estimator,
                "questions": len(asked),
                "error": off.abs().mean(),
                "bias": off.mean(),
                "covered": covers(ends).mean() if len(ends) else np.nan,
                "intervals": len(ends),
                "width": (ends["high"] - ends["low"]).mean(),
                "wrongly_refused": (~answered[can]).mean(),
                "rightly_refused": (~answered[~can]).mean(),
                "can_tell": int(can.sum()),
            }
        )
    return pd.DataFrame(rows)


def score_table(
    truth: pd.DataFrame, given: Mapping[str, pd.DataFrame], planned: Sequence[Planned]
) -> PageTable:
    """Scores of several files of answers."""
    rows, records = [], []
    for name, answers in given.items():
        for one in scores(truth, answers).to_dict("records"):
            cells = [number(one[key], 100, digits) for key, digits in SCORES.values()]
            cells.insert(0, f"{one['can_tell']} of {one['questions']}")
            rows.append(Row(str(one["quantity"]), f"{name}: {one['estimator']}", cells))
            records.append({"answers": name, **one})
    return table_of(
        ["can be told", *SCORES],
        rows,
        records,
        planned,
        key="logs",
        title="Scores",
        note="×100. A question is a log, a policy to judge and a quantity. Of questions that can be told: "
        "mean absolute error, bias, coverage and mean width of 95 % intervals, and the share that is refused "
        "wrongly; of the others, the share that is refused rightly.",
    )


def card(tasks: Mapping[tuple[str, str], Mapping[str, Result]]) -> str:
    """The text that accompanies a bundle."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in tasks))
    models = list(dict.fromkeys(model for runs in tasks.values() for model in runs if model not in TARGETS))
    return f"""# Logs of decisions with exact propensities and withheld truth

Each file `logs/DATASET-INITIAL_POLICY-METHOD-RUN-SEED.parquet` is what a method left that learnt while it
decided: a row per applicant in the order of the `time_step`, with the features, the group (the column before
`propensity`), the `propensity` of acceptance at that time, which is exact and depends on the rows before, the
`decision`, and the `label` of the accepted.

Data sets: {", ".join(map(dataset_label, datasets))}. Methods: {", ".join(map(method_label, models))}.

## Questions

The policies to judge have their acceptance probabilities a in `target_accept_all`, `target_oracle` and
`target_oracle_fair`. Asked is for each the `value`, the mean of a·(y − c) over all rows, and of the oracles
the `equal_opportunity` gap, the largest difference between groups of the acceptance rate among people with
label 1. Answer with a CSV file of the columns {", ".join(ANSWERS)}.
No estimate is a refusal, which is right where the log cannot tell.

    python -m reproduction logs --answers answers.csv

## Truth

`truth/`, not to be read by estimators, has the answers from everybody's label, and whether the log can tell.
It cannot where more than {100 * UNSUPPORTED:.0f} % of the policy's acceptances (for the gap: of
all people) are of people without any row of equal features and group that had a propensity above 0.
`answers/` has the estimates of `fairall evaluate`.

## Licences

The rows are those of the data sets, under their licences and terms (docs/licences.md): those of COMPAS and
MEPS are not to be passed on.
"""
