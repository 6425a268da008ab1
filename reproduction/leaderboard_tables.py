"""Tables of the leaderboard: standings, data set by data set, method by method, two methods, and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten
from typing import Any

from fairall.display import Cell, PageTable, Row, mean_interval, mean_std, number
from fairall.metrics import Spread
from fairall.report import (
    LEVEL,
    UNTESTED,
    WITH_ROW,
    dataset_label,
    holm,
    paired_difference,
    paired_p,
)
from fairall.results import REFERENCES
from reproduction.aggregates import Rank
from reproduction.board import RANKED, UTILITY, WAYS, Board, Task, way_of
from reproduction.plan import Planned, row_label
from reproduction.tables import shown_table
from reproduction.words import words_of

WORDS = words_of("leaderboard")
MISSING = "missing"
SHORT = 50  # characters of a reason beside it
FIRST = 10  # methods in the short table
TUNED = {  # where hyperparameters come from, in a word
    "defaults": "nothing",
    "the paper's selection": "the paper",
    "chosen by the other data sets": "the others",
}


def standings_table(own: Board, kind: str = "leaderboard") -> PageTable:
    """A row per method on all tasks, and a row per reference.

    Args:
        own: the board.
        kind: `leaderboard`; `leaderboard_short`: the first rows with few columns; `leaderboard_alike`:
            rows by how they decide.
    """
    groups = [*WAYS, "", "references"]
    standings, columns = own.standings, WORDS["standings"]
    ways = {one.row: way_of(one) if kind == "leaderboard_alike" else "" for one in own.planned}
    if kind == "leaderboard_short":
        standings = dict([*standings.items()][:FIRST])
        columns = {key: columns[key] for key in WORDS["short"]}
    elif standings:
        standings = standings | own.references
    rows = [
        Row(
            ways.get(name, "references"), _name(name), [_standing(of, key, len(own.tasks)) for key in columns]
        )
        for name, of in standings.items()
    ]
    rows.sort(key=lambda row: groups.index(row.group))
    return _table(kind, columns.values(), rows, own.planned)


def task_table(task: Task) -> PageTable:
    """A row per method of a task, missing ones with the reason, and references."""
    ranks, means = task.ranks.get(UTILITY.name), task.values[UTILITY.name].mean()
    names = sorted(task.methods, key=lambda name: (ranks[name].best, -means[name]) if ranks else 0)
    names += [*task.reasons, *(WITH_ROW if task.runs else ())]
    planned, group = [*task.planned.values()], f"{task.initial_policy} initial policy"
    dataset = planned[0].dataset
    shown = {"key": f"leaderboard_{dataset}", "title": dataset_label(dataset)}
    return _of_tasks("task", [(group, _name(name), task, name) for name in names], planned, **shown)


def method_table(own: Board, method: str) -> PageTable:
    """A row per data set of a method, with the columns of `task_table`."""
    rows = [
        (dataset_label(dataset), task.initial_policy, task, method)
        for dataset, task in own.tasks.items()
        if method in task.methods
    ]
    planned = [one for one in own.planned if one.row == method]
    return _of_tasks("method", rows, planned, key=f"method_{method}", title=row_label(method))


def _of_tasks(
    kind: str, rows: Sequence[tuple[str, str, Task, str]], planned: Sequence[Planned], **shown: str
) -> PageTable:
    """A row per group, name, task and method."""
    columns = dict(WORDS["of_a_task"])
    if kind == "task" and planned[0].dataset != "synthetic":
        del columns["effective_cfu"]  # of data whose counterfactuals are known
    cells = [(group, label, _cells(task, method)) for group, label, task, method in rows]
    made = [Row(group, label, [of.get(key, "") for key in columns]) for group, label, of in cells]
    kind = kind if all(task.compared for _, _, task, _ in rows) else "untested"
    return _table(kind, columns.values(), made, planned, **shown)


def _cells(task: Task, name: str) -> dict[str, str | Cell]:
    """What is shown of a method or a reference on a task, by key of a column."""
    if name in WITH_ROW:
        return {str(key): number(level) for key, level in task.levels.loc[name].items()}
    if name in task.reasons:
        return {UTILITY.name: Cell(MISSING, shorten(task.reasons[name], SHORT, placeholder=" …"))}
    values = {key: of[name] for key, of in task.values.items() if name in of}
    return (
        {key: mean_std(own.mean(), own.std()) for key, own in values.items()}
        | {f"rank_{key}": _rank(of[name]) for key, of in task.ranks.items() if name in of}
        | {"front": "yes" * (name in task.front), "cpu_seconds": number(task.seconds(name), 1, 0)}
        | {"tuned": TUNED.get(task.runs[name].config.hyperparameters, "a sweep")}
    )


def versus_table(own: Board, first: str, second: str) -> PageTable:
    """Two methods side by side on the tasks that both have: differences with intervals, and paired tests.

    The p-values are Holm-corrected over tasks, the intervals are of each difference alone.
    """
    methods, names = (first, second), [row_label(first), row_label(second)]
    tasks = {dataset: task for dataset, task in own.tasks.items() if {*methods} <= {*task.methods}}
    cells: list[list[Cell | str]] = [[] for _ in tasks]
    counts: list[str] = []
    for one in RANKED:
        pairs = [[task.values[one.name][name].dropna() for name in methods] for task in tasks.values()]
        won = []
        for row, pair, p in zip(cells, pairs, holm([paired_p(*pair) for pair in pairs]), strict=True):
            better = int((pair[0].mean() > pair[1].mean()) != one.higher_is_better)
            won.append(better if p is not None and p < LEVEL else None)
            row += [Cell(mean_std(of.mean(), of.std()), best=won[-1] == k) for k, of in enumerate(pair)]
            row += [mean_interval(paired_difference(*pair)), "" if p is None else f"{p:.2g}"]
        counts += [*(f"{won.count(k)} of {len(tasks)}" for k in range(2)), "", ""]
    rows = [
        Row(dataset_label(dataset), task.initial_policy, row)
        for (dataset, task), row in zip(tasks.items(), cells, strict=True)
    ]
    rows += [Row("all tasks", "significantly better", counts)] if tasks else []
    return _table(
        "versus",
        [heading.format(*names) for heading in WORDS["versus"]],
        rows,
        [one for one in own.planned if one.row in methods],
        key=f"leaderboard_{first}_{second}",
        title=" and ".join(names),
    )


def care_table(own: Board) -> PageTable:
    """A row per warning of the runs of a task, and per reason why runs are missing, with the methods."""
    rows = []
    for dataset, task in own.tasks.items():
        remarks: dict[str, list[str]] = {}
        for name, one in task.planned.items():
            missing = [f"{MISSING}: {task.reasons[name]}"] if name in task.reasons else []
            for remark in (*getattr(one.run, "warnings", ()), *missing):
                remarks.setdefault(remark, []).append(row_label(name))
        where = f"{dataset_label(dataset)}, {task.initial_policy}"
        for remark, names in remarks.items():
            methods = "every method" if 1 < len(names) == len(task.planned) else ", ".join(names)
            rows.append(Row(where, methods, [remark]))
    return _table("leaderboard_care", ["warning"], rows)


def _table(
    kind: str, columns: Iterable[str], rows: Iterable[Row], planned: Sequence[Planned] = (), **shown: str
) -> PageTable:
    """A table with the words of its kind."""
    texts: Mapping[str, str] = {"key": kind} | WORDS["tables"][kind] | shown
    note = texts["note"].format(**WORDS["phrases"], untested=UNTESTED, level=LEVEL)
    return shown_table([*columns], rows, planned, **{**texts, "note": note})


def _name(name: str) -> str:
    """Label of a method or reference."""
    return REFERENCES.get(name) or row_label(name)


def _standing(of: Mapping[str, Any], key: str, tasks: int) -> str | Cell:
    """A cell of the standings."""
    value = of.get(key)
    if value is None:
        return ""
    if isinstance(value, Rank):
        return _rank(value)
    if isinstance(value, Spread):
        return mean_interval(value)
    counts = {"front": str(value), "tasks": f"{value} of {tasks}", "cpu_seconds": number(value, 1, 0)}
    return counts.get(key, number(value))


def _rank(rank: Rank) -> Cell:
    best, worst = rank
    return Cell(str(best) if best == worst else f"{best} to {worst}", best=best == 1)
