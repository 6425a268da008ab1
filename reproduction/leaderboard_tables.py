"""Tables of the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

import pandas as pd

from fairall.display import Cell, PageTable, Row, frame_of, mean_interval, mean_std, number, records_of
from fairall.metrics import Quantity, Spread
from fairall.report import (
    LEVEL,
    UNTESTED,
    WITH_ROW,
    dataset_label,
    holm,
    measures,
    paired_difference,
    paired_p,
)
from fairall.results import REFERENCES
from reproduction.aggregates import Estimate, Rank
from reproduction.board import (
    BASELINE,
    DPU,
    OPPORTUNITY,
    ORACLE,
    RANKED,
    TEST_DPU,
    TEST_UTILITY,
    UTILITY,
    WAYS,
    Board,
    Task,
)
from reproduction.plan import missing_runs, row_label

MISSING = "missing"
SHORT = 50  # characters of a reason beside it
FIRST = 10  # methods in the short table
RANKS = (
    "Rank: 1 + the number of significantly better methods (for other seeds and splits of the same data), "
    "corrected for all pairs, and to what the 95 % confidence set reaches; bold: rank 1."
)
CFU = "CFU ↓"  # column of data whose counterfactuals are known
FURTHER = (TEST_DPU, *measures("tv_utility", "tv_dpu", "effective_cfu"))
MEASURES = (UTILITY, TEST_UTILITY, DPU, OPPORTUNITY, *FURTHER)  # in the order of the columns
OF_A_TASK = [
    "rank by utility",
    UTILITY.heading,
    "regret ↓",
    "test utility ↑",
    "rank by DPU",
    "DPU ↓",
    "equal-opportunity gap ↓",
    "test DPU ↓",
    "TV of test utility ↓",
    "TV of test DPU ↓",
    CFU,
    "on the front",
    "tuned by",
    "CPU seconds",
]
SPREAD = "×100, mean ± standard deviation over seeds. "
VARIATION = "TV: standard deviation over the time steps of evaluation.window. "


def short_table(own: Board) -> PageTable:
    """The first methods of `standings_table` with few columns."""
    rows = [
        Row(
            "",
            row_label(one.method),
            [
                _rank(one.ranks.get(UTILITY.name)),
                _estimate(one.share),
                _rank(one.ranks.get(DPU.name)),
                _estimate(one.dpu),
                number(one.cpu, 1, 0),
            ],
        )
        for one in own.standings[:FIRST]
    ]
    columns = [
        "rank by utility",
        "share of the oracle's utility ↑",
        "rank by DPU",
        "DPU ↓",
        "CPU seconds a run",
    ]
    return PageTable(
        key="leaderboard_short",
        title="Standings in short",
        note=f"Interquartile means over tasks, ×100, with 95 % intervals for other data sets. {RANKS}",
        frame=frame_of(columns, rows),
        records=records_of({"method": one.method} for one in own.standings[:FIRST]),
        lacking=missing_runs(own.planned),
    )


def alike_table(own: Board) -> PageTable:
    """`standings_table`, its rows by how they decide."""
    table = standings_table(own, grouped=True)
    note = (
        "Ranks are of all rows, so that they differ from the standings. Rows that decide alike stand "
        "together. Cut: accepts from the method's threshold on, in place of a draw. + parity: thresholds per "
        "group with equal acceptance rates of everybody seen, in place of the method's rule. "
    )
    return replace(table, key="leaderboard_alike", title="Rows that decide alike", note=note + table.note)


def standings_table(own: Board, *, grouped: bool = False) -> PageTable:
    """A row per method on all tasks, and a row per reference; grouped: by how the methods decide."""
    rows, records = [], []
    order = sorted(own.standings, key=lambda one: WAYS.index(own.ways[one.method]) if grouped else 0)
    for one in order:
        pair = (one.method, BASELINE)
        more, fairer = (own.better[measure.name].get(pair) for measure in RANKED)
        cells = [
            _rank(one.ranks.get(UTILITY.name)),
            *map(_estimate, (one.share, more, one.test_share)),
            _rank(one.ranks.get(DPU.name)),
            *map(_estimate, (one.dpu, fairer, one.opportunity)),
            str(one.front),
            f"{one.tasks} of {len(own.tasks)}",
            number(one.cpu, 1, 0),
        ]
        rows.append(Row(own.ways[one.method] if grouped else "", row_label(one.method), cells))
        record: dict[str, Any] = {"method": one.method, "tasks": one.tasks, "front": one.front}
        for key, rank in one.ranks.items():
            record |= {f"rank_{key}": rank.best, f"worst_rank_{key}": rank.worst}
        record["cpu_seconds"] = one.cpu
        estimates = {
            "share": one.share,
            "test_share": one.test_share,
            "dpu": one.dpu,
            "equal_opportunity": one.opportunity,
            "probability_of_earning_more": more,
            "probability_of_being_fairer": fairer,
        }
        for key, estimate in estimates.items():
            value, low, high = estimate or (None, None, None)
            record |= {key: value, f"{key}_low": low, f"{key}_high": high}
        records.append(record)
    for policy in WITH_ROW if rows else ():
        levels = {
            "share": own.reference_share(policy),
            "test_share": own.reference_share(policy, TEST_UTILITY),
            "dpu": own.reference_mean(policy, DPU),
            "equal_opportunity": own.reference_mean(policy, OPPORTUNITY),
        }
        share, test, dpu, opportunity = map(number, levels.values())
        cells = ["", share, "", test, "", dpu, "", opportunity, "", "", ""]
        rows.append(Row("references", REFERENCES[policy], cells))
        records.append({"method": policy} | levels)
    baseline = row_label(BASELINE)
    columns = [
        "rank by utility",
        "share of the oracle's utility ↑",
        f"P(earns more than {baseline})",
        "share by test utility ↑",
        "rank by DPU",
        "DPU ↓",
        f"P(fairer than {baseline})",
        "equal-opportunity gap ↓",
        "on the front",
        "tasks",
        "CPU seconds a run",
    ]
    return PageTable(
        key="leaderboard",
        title="Standings",
        note="Interquartile means and probabilities, ×100, with 95 % intervals for other data sets. "
        f"{RANKS} On the front: number of tasks on which no other method has both more utility and less DPU.",
        frame=frame_of(columns, rows),
        records=records_of(records),
        lacking=missing_runs(own.planned),
    )


def task_table(own: Board, dataset: str) -> PageTable:
    """A row per initial policy and method of a data set, missing ones with the reason, and references."""
    rows, records = [], []
    tasks = [task for task in own.tasks if task.dataset == dataset]
    for task in tasks:
        group = f"{task.initial_policy} initial policy"
        of_utility = task.values(UTILITY)
        names = list(of_utility)
        if task.compared:
            names.sort(key=lambda name: (task.ranks[UTILITY.name][name].best, -of_utility[name].mean()))
        for name in names:
            cells, values = _of_method(task, name)
            rows.append(Row(group, row_label(name), cells))
            records += values
        for name in task.planned:
            if reason := task.reason(name):
                cells = ["", Cell(MISSING, shorten(reason, SHORT, placeholder=" …")), *[""] * 12]
                rows.append(Row(group, row_label(name), cells))
        oracle = task.reference(ORACLE, UTILITY)
        for policy in WITH_ROW if task.runs else ():
            levels = [task.reference(policy, one) for one in MEASURES]
            left = None if oracle is None or levels[0] is None else oracle - levels[0]
            utility, test, dpu, opportunity, *further = map(number, levels)
            cells = ["", utility, number(left), test, "", dpu, opportunity, *further, "", "", ""]
            rows.append(Row(group, REFERENCES[policy], cells))
    frame = frame_of(OF_A_TASK, rows)
    if dataset != "synthetic":
        frame = frame.drop(columns=CFU)
    compared = all(task.compared for task in tasks)
    return PageTable(
        key=f"leaderboard_{dataset}",
        title=dataset_label(dataset),
        note=SPREAD + VARIATION + (f"{RANKS} References have no rank." if compared else UNTESTED),
        frame=frame,
        records=records_of(records),
        lacking=missing_runs([one for task in tasks for one in task.planned.values()]),
    )


def method_table(own: Board, method: str) -> PageTable:
    """A row per data set and initial policy of a method, with the columns of `task_table`."""
    rows, records = [], []
    for task in (task for task in own.tasks if method in task.values(UTILITY)):
        cells, values = _of_method(task, method)
        rows.append(Row(dataset_label(task.dataset), task.initial_policy, cells))
        records += values
    compared = all(task.compared for task in own.tasks)
    return PageTable(
        key=f"method_{method}",
        title=row_label(method),
        note=SPREAD
        + VARIATION
        + (f"Regret: the oracle's utility less the method's. {RANKS}" if compared else UNTESTED),
        frame=frame_of(OF_A_TASK, rows),
        records=records_of(records),
        lacking=missing_runs([one for one in own.planned if one.row == method]),
    )


def _of_method(task: Task, name: str) -> tuple[list[str | Cell], list[dict[str, Any]]]:
    """Cells of the columns `OF_A_TASK`, and a record per measure and seed."""
    oracle = task.reference(ORACLE, UTILITY)
    values = {one.name: task.runs[name].values(one.name) for one in MEASURES}
    regret = None if oracle is None else oracle - values[UTILITY.name]
    utility, test, dpu, opportunity, *further = map(_spread, values.values())
    cells = [
        _rank(task.ranks[UTILITY.name].get(name)),
        utility,
        _spread(regret),
        test,
        _rank(task.ranks[DPU.name].get(name)),
        dpu,
        opportunity,
        *further,
        "yes" if name in task.front else "",
        _tuning(task.runs[name].config.hyperparameters),
        number(task.cpu.get(name), 1, 0),
    ]
    where = {"dataset": task.dataset, "initial_policy": task.initial_policy, "method": name}
    records = [
        where | {"measure": key, "seed": seed, "value": value}
        for key, series in {"regret": regret, **values}.items()
        for seed, value in (() if series is None else series.items())
    ]
    return cells, records


def versus_table(own: Board, first: str, second: str) -> PageTable:
    """Two methods side by side on the tasks that both have: differences with intervals, and paired tests.

    The p-values are Holm-corrected over tasks, the intervals are of each difference alone.
    """
    tasks = [task for task in own.tasks if all(name in task.values(UTILITY) for name in (first, second))]
    p = {one.name: holm([paired_p(*_pair(task, one, first, second)) for task in tasks]) for one in RANKED}
    rows, records = [], []
    for k, task in enumerate(tasks):
        cells = []
        for one in RANKED:
            pair, of_pair = _pair(task, one, first, second), p[one.name][k]
            sign = 1 if one.higher_is_better else -1
            difference = sign * (pair[0].mean() - pair[1].mean())
            won = of_pair is not None and of_pair < LEVEL
            winner = (first if difference > 0 else second) if won else ""
            for name, values in zip((first, second), pair, strict=True):
                cells.append(Cell(_spread(values), best=winner == name))
            apart = paired_difference(*pair)
            low, high = apart.interval if apart and apart.interval else (None, None)
            cells += [Cell(mean_interval(apart)), Cell("" if of_pair is None else f"{of_pair:.2g}")]
            records.append(
                {
                    "dataset": task.dataset,
                    "initial_policy": task.initial_policy,
                    "measure": one.name,
                    first: pair[0].mean(),
                    second: pair[1].mean(),
                    "difference": apart.mean if apart else None,
                    "low": low,
                    "high": high,
                    "p": of_pair,
                    "better": winner,
                }
            )
        rows.append(Row(dataset_label(task.dataset), task.initial_policy, cells))
    if tasks:
        counted = []
        for one in RANKED:
            better = [record["better"] for record in records if record["measure"] == one.name]
            counted += [*(f"{better.count(name)} of {len(better)}" for name in (first, second)), "", ""]
        rows.append(Row("all tasks", "significantly better", counted))
    names = [row_label(name) for name in (first, second)]
    columns = [
        column
        for one in ("utility ↑", "DPU ↓")
        for column in (
            f"{one}, {names[0]}",
            f"{one}, {names[1]}",
            f"difference, {one[:-2]}",
            f"p, {one[:-2]}",
        )
    ]
    planned = [one for task in own.tasks for name, one in task.planned.items() if name in (first, second)]
    return PageTable(
        key=f"leaderboard_{first}_{second}",
        title=f"{names[0]} and {names[1]}",
        note=f"{SPREAD}Difference: first less second, with the 95 % "
        "interval of a task alone (Student's t). Bold: significantly better of the two (two-sided Wilcoxon "
        f"signed-rank test, Holm-corrected over the tasks, p < {LEVEL:g}). Both are paired over seeds.",
        frame=frame_of(columns, rows),
        records=records_of(records),
        lacking=missing_runs(planned),
    )


def _pair(task: Task, measure: Quantity, first: str, second: str) -> tuple[pd.Series, pd.Series]:
    values = task.values(measure)
    none = pd.Series(dtype=float)
    return values.get(first, none), values.get(second, none)


def care_table(own: Board) -> PageTable:
    """A row per warning of the runs of a task, and per reason why runs are missing, with the methods."""
    found = [
        {
            "task": f"{dataset_label(task.dataset)}, {task.initial_policy}",
            "methods": _names(methods, task),
            "warning": remark,
        }
        for task in own.tasks
        for remark, methods in _remarks(task).items()
    ]
    return PageTable(
        key="leaderboard_care",
        title="Warnings",
        note="As each run reports them: seeds that diverged, accepted everybody or nobody, and the like; and "
        "why runs are missing.",
        frame=frame_of(["warning"], [Row(one["task"], one["methods"], [one["warning"]]) for one in found]),
        records=records_of(found),
    )


def _remarks(task: Task) -> dict[str, list[str]]:
    """Methods by warning, and by reason why they are missing."""
    found: dict[str, list[str]] = {}
    for name in task.planned:
        remarks = list(task.runs[name].warnings) if name in task.runs else []
        if reason := task.reason(name):
            remarks.append(f"{MISSING}: {reason}")
        for remark in remarks:
            found.setdefault(remark, []).append(name)
    return found


def _tuning(origin: str) -> str:
    """Where the hyperparameters of a run come from, in a word."""
    known = {
        "defaults": "nothing",
        "the paper's selection": "the paper",
        "chosen by the other data sets": "the others",
    }
    return known.get(origin, "a sweep")


def _names(methods: Sequence[str], task: Task) -> str:
    if 1 < len(methods) == len(task.planned):
        return "every method"
    return ", ".join(map(row_label, methods))


def _rank(rank: Rank | None) -> Cell:
    if rank is None:
        return Cell("")
    best, worst = rank
    return Cell(str(best) if best == worst else f"{best} to {worst}", best=best == 1)


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    value, *ends = estimate
    return mean_interval(Spread(value, None, (ends[0], ends[1])))


def _spread(values: pd.Series | None) -> str:
    return "" if values is None or values.empty else mean_std(values.mean(), values.std())
