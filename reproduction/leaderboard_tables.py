"""Tables of the leaderboard: standings, data set by data set, method by method, two methods, and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
    paired_difference,
    paired_p,
)
from fairall.results import REFERENCES
from reproduction.board import RANKED, SHARES, UTILITY, WAYS, Board, Task, way_of
from reproduction.items import difference_of, table_of
from reproduction.plan import Planned, row_label
from reproduction.words import words_of

WORDS = words_of("leaderboard")
NONE = pd.Series(dtype=float)
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
    records, columns = own.standings, WORDS["standings"]
    ways = {one.row: way_of(one) if kind == "leaderboard_alike" else "" for one in own.planned}
    named = {name: (way, row_label(name)) for name, way in ways.items()}
    named |= {policy: ("references", REFERENCES[policy]) for policy in WITH_ROW}
    kept = records = records.loc[sorted(records.index, key=lambda name: (*WAYS, "").index(ways[name]))]
    if kind == "leaderboard_short":
        records, columns = records[:FIRST], {key: columns[key] for key in WORDS["short"]}
        kept = records[[]]
    elif len(records):
        kept = records = pd.concat([records, own.references])
    rows = [
        Row(*named[str(name)], [_standing(one, key, len(own.tasks)) for key in columns])
        for name, one in records.iterrows()
    ]
    of_methods = kept.reset_index(names="method").to_dict("records")
    return _table(kind, columns.values(), rows, of_methods, own.planned)


def task_table(own: Board, dataset: str) -> PageTable:
    """A row per initial policy and method of a data set, missing ones with the reason, and references."""
    pairs = []
    for task in (task for task in own.tasks if task.dataset == dataset):
        ranks, means = task.ranks.get(UTILITY.name), task.values[UTILITY.name].mean()
        names = sorted(task.methods, key=lambda name: (ranks[name].best, -means[name]) if ranks else 0)
        names += [*task.reasons, *(WITH_ROW if task.runs else ())]
        group = f"{task.initial_policy} initial policy"
        pairs += [(task, name, group, REFERENCES.get(name) or row_label(name)) for name in names]
    planned = [one for one in own.planned if one.dataset == dataset]
    return _of_tasks("task", pairs, planned, key=f"leaderboard_{dataset}", title=dataset_label(dataset))


def method_table(own: Board, method: str) -> PageTable:
    """A row per data set and initial policy of a method, with the columns of `task_table`."""
    tasks = [task for task in own.tasks if method in task.methods]
    pairs = [(task, method, dataset_label(task.dataset), task.initial_policy) for task in tasks]
    planned = [one for one in own.planned if one.row == method]
    return _of_tasks("method", pairs, planned, key=f"method_{method}", title=row_label(method))


def _of_tasks(
    kind: str, pairs: Iterable[tuple[Task, str, str, str]], planned: Sequence[Planned], **shown: str
) -> PageTable:
    """A row per task and method, with group and name, and a record per measure and seed."""
    columns, rows, records = dict(WORDS["of_a_task"]), [], []
    if kind == "task" and planned[0].dataset != "synthetic":
        del columns["effective_cfu"]  # of data whose counterfactuals are known
    for task, name, group, label in pairs:
        cells = _cells(task, name)
        rows.append(Row(group, label, [cells.get(key, "") for key in columns]))
        where = {"dataset": task.dataset, "initial_policy": task.initial_policy, "method": name}
        records += [
            where | {"measure": key, "seed": seed, "value": value}
            for key, of in task.values.items()
            if name in of and key not in SHARES
            for seed, value in of[name].dropna().items()
        ]
    compared = all(task.compared for task, *_ in pairs)
    return _table(kind if compared else "untested", columns.values(), rows, records, planned, **shown)


def _cells(task: Task, name: str) -> dict[str, str | Cell]:
    """What is shown of a method or a reference on a task, by key of a column."""
    if name in WITH_ROW:
        return {str(key): number(level) for key, level in task.levels.loc[name].items()}
    if name in task.reasons:
        return {UTILITY.name: Cell(MISSING, shorten(task.reasons[name], SHORT, placeholder=" …"))}
    values = {key: of[name] for key, of in task.values.items() if name in of}
    return (
        {key: mean_std(own.mean(), own.std()) for key, own in values.items()}
        | {f"rank_{key}": _rank(*of[name]) for key, of in task.ranks.items() if name in of}
        | {"front": "yes" if name in task.front else "", "cpu_seconds": number(task.seconds(name), 1, 0)}
        | {"tuned": TUNED.get(task.runs[name].config.hyperparameters, "a sweep")}
    )


def versus_table(own: Board, first: str, second: str) -> PageTable:
    """Two methods side by side on the tasks that both have: differences with intervals, and paired tests.

    The p-values are Holm-corrected over tasks, the intervals are of each difference alone.
    """
    methods, names = (first, second), [row_label(first), row_label(second)]
    tasks = [task for task in own.tasks if {*methods} <= {*task.methods}]
    pairs = {
        one.name: [[task.values[one.name].get(name, NONE).dropna() for name in methods] for task in tasks]
        for one in RANKED
    }
    p = {key: holm([paired_p(*pair) for pair in of]) for key, of in pairs.items()}
    rows, records = [], []
    for k, task in enumerate(tasks):
        cells: list[Cell] = []
        for one in RANKED:
            pair, of_pair = pairs[one.name][k], p[one.name][k]
            means, apart = [values.mean() for values in pair], paired_difference(*pair)
            ahead = (means[0] > means[1]) == one.higher_is_better
            winner = methods[not ahead] if of_pair is not None and of_pair < LEVEL else ""
            shown = [mean_std(values.mean(), values.std()) for values in pair]
            cells += [Cell(text, best=winner == name) for text, name in zip(shown, methods, strict=True)]
            cells += [Cell(mean_interval(apart)), Cell("" if of_pair is None else f"{of_pair:.2g}")]
            record = {"dataset": task.dataset, "initial_policy": task.initial_policy, "measure": one.name}
            record |= dict(zip(methods, means, strict=True)) | difference_of(apart)
            records.append(record | {"p": of_pair, "better": winner})
        rows.append(Row(dataset_label(task.dataset), task.initial_policy, cells))
    if tasks:
        won = [(record["measure"], record["better"]) for record in records]
        counts = [f"{won.count((one.name, name))} of {len(tasks)}" for one in RANKED for name in methods]
        rows.append(Row("all tasks", "significantly better", [*counts[:2], "", "", *counts[2:], "", ""]))
    return _table(
        "versus",
        [heading.format(*names) for heading in WORDS["versus"]],
        rows,
        records,
        [one for one in own.planned if one.row in methods],
        key=f"leaderboard_{first}_{second}",
        title=" and ".join(names),
    )


def care_table(own: Board) -> PageTable:
    """A row per warning of the runs of a task, and per reason why runs are missing, with the methods."""
    records = []
    for task in own.tasks:
        remarks: dict[str, list[str]] = {}
        for name, one in task.planned.items():
            missing = [f"{MISSING}: {task.reasons[name]}"] if name in task.reasons else []
            for remark in (*getattr(one.run, "warnings", ()), *missing):
                remarks.setdefault(remark, []).append(row_label(name))
        for remark, names in remarks.items():
            methods = "every method" if 1 < len(names) == len(task.planned) else ", ".join(names)
            where = f"{dataset_label(task.dataset)}, {task.initial_policy}"
            records.append({"task": where, "methods": methods, "warning": remark})
    rows = [Row(one["task"], one["methods"], [one["warning"]]) for one in records]
    return _table("leaderboard_care", ["warning"], rows, records)


def _table(
    kind: str,
    columns: Iterable[str],
    rows: Iterable[Row],
    records: Iterable[Mapping[str, Any]],
    planned: Sequence[Planned] = (),
    **shown: str,
) -> PageTable:
    """A table with the words of its kind."""
    texts = {"key": kind} | WORDS["tables"][kind] | shown
    texts["note"] = texts["note"].format(**WORDS["phrases"], untested=UNTESTED, level=LEVEL)
    return table_of([*columns], rows, records, planned, **texts)


def _standing(record: Mapping[str, Any], key: str, tasks: int) -> str | Cell:
    """A cell of the standings."""
    value = record.get(key)
    if value is None or value != value:
        return ""
    if key.startswith("rank_"):
        return _rank(value, record[f"worst_{key}"])
    counts = {"front": str(value), "tasks": f"{value} of {tasks}", "cpu_seconds": number(value, 1, 0)}
    ends = record.get(f"{key}_low", math.nan), record.get(f"{key}_high", math.nan)
    return counts[key] if key in counts else mean_interval(Spread(value, None, ends))


def _rank(best: int, worst: int) -> Cell:
    return Cell(str(best) if best == worst else f"{best} to {worst}", best=best == 1)
