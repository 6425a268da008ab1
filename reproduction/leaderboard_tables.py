"""Tables of the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

import pandas as pd

from fairall.display import Cell, PageTable, Row, mean_interval, mean_std, number
from fairall.metrics import Spread
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
from reproduction.items import difference_of, table_of
from reproduction.plan import row_label

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
# Columns of a task by key, as those of all tasks below.
OF_A_TASK = {
    f"rank_{UTILITY.name}": "rank by utility",
    UTILITY.name: UTILITY.heading,
    "regret": "regret ↓",
    TEST_UTILITY.name: "test utility ↑",
    f"rank_{DPU.name}": "rank by DPU",
    DPU.name: "DPU ↓",
    OPPORTUNITY.name: "equal-opportunity gap ↓",
    TEST_DPU.name: "test DPU ↓",
    "tv_utility": "TV of test utility ↓",
    "tv_dpu": "TV of test DPU ↓",
    "effective_cfu": CFU,
    "front": "on the front",
    "tuned": "tuned by",
    "cpu_seconds": "CPU seconds",
}
BETTER = {UTILITY.name: "probability_of_earning_more", DPU.name: "probability_of_being_fairer"}
STANDINGS = {
    f"rank_{UTILITY.name}": "rank by utility",
    "share": "share of the oracle's utility ↑",
    "probability_of_earning_more": "P(earns more than {})",
    "test_share": "share by test utility ↑",
    f"rank_{DPU.name}": "rank by DPU",
    "dpu": "DPU ↓",
    "probability_of_being_fairer": "P(fairer than {})",
    "equal_opportunity": "equal-opportunity gap ↓",
    "front": "on the front",
    "tasks": "tasks",
    "cpu_seconds": "CPU seconds a run",
}
SHORT_COLUMNS = [
    STANDINGS[key] for key in (f"rank_{UTILITY.name}", "share", f"rank_{DPU.name}", "dpu", "cpu_seconds")
]
TUNED = {  # where hyperparameters come from, in a word
    "defaults": "nothing",
    "the paper's selection": "the paper",
    "chosen by the other data sets": "the others",
}
SPREAD = "×100, mean ± standard deviation over seeds. "
VARIATION = "TV: standard deviation over the time steps of evaluation.window. "


def short_table(own: Board) -> PageTable:
    """The first methods of `standings_table` with few columns."""
    table, n = standings_table(own), min(FIRST, len(own.standings))
    return replace(
        table,
        key="leaderboard_short",
        title="Standings in short",
        note=f"Interquartile means over tasks, ×100, with 95 % intervals for other data sets. {RANKS}",
        frame=table.frame.iloc[:n][SHORT_COLUMNS],
        records=table.records.filter(["method"]).head(n),
    )


def alike_table(own: Board) -> PageTable:
    """`standings_table`, its rows by how they decide."""
    table = standings_table(own, grouped=True)
    note = (
        "Ranks are of all rows, so that they differ from the standings. Rows that decide alike stand "
        "together. Cut: accepts from the method's threshold on, in place of a draw. + parity: thresholds per "
        "group with equal acceptance rates of everybody seen, in place of the method's rule. Blind: equal "
        "rates, decided on x alone. "
    )
    return replace(table, key="leaderboard_alike", title="Rows that decide alike", note=note + table.note)


def standings_table(own: Board, *, grouped: bool = False) -> PageTable:
    """A row per method on all tasks, and a row per reference; grouped: by how the methods decide."""
    rows, records = [], []
    order = sorted(own.standings, key=lambda one: WAYS.index(own.ways[one.method]) if grouped else 0)
    for one in order:
        better = {name: own.better[key].get((one.method, BASELINE)) for key, name in BETTER.items()}
        estimates = {**one.estimates, **better}
        shown = {key: _estimate(estimate) for key, estimate in estimates.items()}
        shown |= {f"rank_{key}": _rank(one.ranks.get(key)) for key in BETTER}
        shown |= {"front": str(one.front), "tasks": f"{one.tasks} of {len(own.tasks)}"}
        shown["cpu_seconds"] = number(one.cpu, 1, 0)
        group = own.ways[one.method] if grouped else ""
        rows.append(Row(group, row_label(one.method), [shown[key] for key in STANDINGS]))
        record: dict[str, Any] = {"method": one.method, "tasks": one.tasks, "front": one.front}
        for key, rank in one.ranks.items():
            record |= {f"rank_{key}": rank.best, f"worst_rank_{key}": rank.worst}
        record["cpu_seconds"] = one.cpu
        for key, estimate in estimates.items():
            value, low, high = estimate or (None, None, None)
            record |= {key: value, f"{key}_low": low, f"{key}_high": high}
        records.append(record)
    for policy in WITH_ROW if rows else ():
        levels = own.reference_levels(policy)
        cells = [number(levels.get(key)) for key in STANDINGS]
        rows.append(Row("references", REFERENCES[policy], cells))
        records.append({"method": policy} | levels)
    return table_of(
        [heading.format(row_label(BASELINE)) for heading in STANDINGS.values()],
        rows,
        records,
        own.planned,
        key="leaderboard",
        title="Standings",
        note="Interquartile means and probabilities, ×100, with 95 % intervals for other data sets. "
        f"{RANKS} On the front: number of tasks on which no other method has both more utility and less DPU.",
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
                said = Cell(MISSING, shorten(reason, SHORT, placeholder=" …"))
                rows.append(Row(group, row_label(name), _in_columns({UTILITY.name: said})))
        oracle = task.reference(ORACLE, UTILITY)
        for policy in WITH_ROW if task.runs else ():
            levels = {one.name: task.reference(policy, one) for one in MEASURES}
            earned = levels[UTILITY.name]
            levels["regret"] = None if oracle is None or earned is None else oracle - earned
            cells = _in_columns({key: number(level) for key, level in levels.items()})
            rows.append(Row(group, REFERENCES[policy], cells))
    compared = all(task.compared for task in tasks)
    table = table_of(
        [*OF_A_TASK.values()],
        rows,
        records,
        [one for task in tasks for one in task.planned.values()],
        key=f"leaderboard_{dataset}",
        title=dataset_label(dataset),
        note=SPREAD + VARIATION + (f"{RANKS} References have no rank." if compared else UNTESTED),
    )
    return table if dataset == "synthetic" else replace(table, frame=table.frame.drop(columns=CFU))


def method_table(own: Board, method: str) -> PageTable:
    """A row per data set and initial policy of a method, with the columns of `task_table`."""
    rows, records = [], []
    for task in (task for task in own.tasks if method in task.values(UTILITY)):
        cells, values = _of_method(task, method)
        rows.append(Row(dataset_label(task.dataset), task.initial_policy, cells))
        records += values
    compared = all(task.compared for task in own.tasks)
    meaning = f"Regret: the oracle's utility less the method's. {RANKS}" if compared else UNTESTED
    return table_of(
        [*OF_A_TASK.values()],
        rows,
        records,
        [one for one in own.planned if one.row == method],
        key=f"method_{method}",
        title=row_label(method),
        note=SPREAD + VARIATION + meaning,
    )


def _in_columns(shown: Mapping[str, str | Cell]) -> list[str | Cell]:
    """Cells of the columns `OF_A_TASK`, empty where nothing is shown."""
    return [shown.get(key, "") for key in OF_A_TASK]


def _of_method(task: Task, name: str) -> tuple[list[str | Cell], list[dict[str, Any]]]:
    """Cells of the columns `OF_A_TASK`, and a record per measure and seed."""
    oracle, run = task.reference(ORACLE, UTILITY), task.runs[name]
    values = {one.name: run.values(one.name) for one in MEASURES}
    none = pd.Series(dtype=float)
    values = {"regret": none if oracle is None else oracle - values[UTILITY.name], **values}
    shown: dict[str, str | Cell] = {key: _spread(own) for key, own in values.items()}
    shown |= {f"rank_{one.name}": _rank(task.ranks[one.name].get(name)) for one in RANKED}
    shown |= {
        "front": "yes" if name in task.front else "",
        "tuned": TUNED.get(run.config.hyperparameters, "a sweep"),
        "cpu_seconds": number(task.cpu.get(name), 1, 0),
    }
    where = {"dataset": task.dataset, "initial_policy": task.initial_policy, "method": name}
    records = [
        where | {"measure": key, "seed": seed, "value": value}
        for key, series in values.items()
        for seed, value in series.items()
    ]
    return _in_columns(shown), records


def versus_table(own: Board, first: str, second: str) -> PageTable:
    """Two methods side by side on the tasks that both have: differences with intervals, and paired tests.

    The p-values are Holm-corrected over tasks, the intervals are of each difference alone.
    """
    methods = first, second
    tasks = [task for task in own.tasks if all(name in task.values(UTILITY) for name in methods)]
    none = pd.Series(dtype=float)
    pairs = {
        one.name: [[task.values(one).get(name, none) for name in methods] for task in tasks] for one in RANKED
    }
    p = {key: holm([paired_p(*pair) for pair in of_tasks]) for key, of_tasks in pairs.items()}
    rows, records = [], []
    better: dict[str, list[str]] = {key: [] for key in pairs}
    for k, task in enumerate(tasks):
        cells = []
        for one in RANKED:
            pair, of_pair = pairs[one.name][k], p[one.name][k]
            means = [values.mean() for values in pair]
            ahead = (means[0] > means[1]) == one.higher_is_better and means[0] != means[1]
            won = of_pair is not None and of_pair < LEVEL
            winner = methods[not ahead] if won else ""
            better[one.name].append(winner)
            apart = paired_difference(*pair)
            cells += [
                *(
                    Cell(_spread(values), best=winner == name)
                    for name, values in zip(methods, pair, strict=True)
                ),
                Cell(mean_interval(apart)),
                Cell("" if of_pair is None else f"{of_pair:.2g}"),
            ]
            record = {"dataset": task.dataset, "initial_policy": task.initial_policy, "measure": one.name}
            record |= dict(zip(methods, means, strict=True)) | difference_of(apart)
            records.append(record | {"p": of_pair, "better": winner})
        rows.append(Row(dataset_label(task.dataset), task.initial_policy, cells))
    if tasks:
        counted = [
            cell
            for winners in better.values()
            for cell in (*(f"{winners.count(name)} of {len(tasks)}" for name in methods), "", "")
        ]
        rows.append(Row("all tasks", "significantly better", counted))
    names = [row_label(name) for name in methods]
    columns = [
        column
        for of, arrow in (("utility", "↑"), ("DPU", "↓"))
        for column in (*(f"{of} {arrow}, {name}" for name in names), f"difference, {of}", f"p, {of}")
    ]
    return table_of(
        columns,
        rows,
        records,
        [one for one in own.planned if one.row in methods],
        key=f"leaderboard_{first}_{second}",
        title=f"{names[0]} and {names[1]}",
        note=f"{SPREAD}Difference: first less second, with the 95 % "
        "interval of a task alone (Student's t). Bold: significantly better of the two (two-sided Wilcoxon "
        f"signed-rank test, Holm-corrected over the tasks, p < {LEVEL:g}). Both are paired over seeds.",
    )


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
    return table_of(
        ["warning"],
        [Row(one["task"], one["methods"], [one["warning"]]) for one in found],
        found,
        key="leaderboard_care",
        title="Warnings",
        note="As each run reports them: seeds that diverged, accepted everybody or nobody, and the like; and "
        "why runs are missing.",
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


def _spread(values: pd.Series) -> str:
    return mean_std(values.mean(), values.std())
