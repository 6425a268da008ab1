"""Tables of the leaderboard: standings, data set by data set, method by method, two methods, and warnings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from textwrap import shorten
from typing import Any

import pandas as pd

from fairall.display import Cell, PageTable, Row, mean_interval, mean_std, number
from fairall.metrics import Spread
from fairall.report import (
    LEVEL,
    UNTESTED,
    dataset_label,
    holm,
    paired_difference,
    paired_p,
)
from fairall.results import REFERENCES
from reproduction.aggregates import Rank
from reproduction.board import RANKED, UTILITY, WAYS, Board, sign, way_of
from reproduction.items import table_of
from reproduction.plan import Planned, row_label
from reproduction.tables import by_dataset
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
    groups, columns = [*WAYS, "", "references"], WORDS["standings"]
    standings: dict[str, Mapping[str, Any]] = dict(own.standings)
    ways = {one.row: way_of(one) if kind == "leaderboard_alike" else "" for one in own.planned}
    if kind == "leaderboard_short":
        standings = dict(itertools.islice(standings.items(), FIRST))
        columns = {key: columns[key] for key in WORDS["short"]}
    elif standings:
        standings |= own.references
    rows = [
        Row(ways.get(name, "references"), _name(name), [_shown(of.get(key)) for key in columns])
        for name, of in standings.items()
    ]
    rows.sort(key=lambda row: groups.index(row.group))
    return _table(kind, columns.values(), rows, own.planned)


def task_table(own: Board, dataset: str) -> PageTable:
    """A row per method of a task, missing ones with the reason, and references."""
    cells, group = cells_of(own).loc[dataset], f"{own.policies[dataset]} initial policy"
    if dataset != "synthetic":  # whose counterfactuals are known
        cells = cells.drop(columns="effective_cfu")
    rows = [Row(group, _name(str(name)), [*row]) for name, row in cells.iterrows()]
    planned = [one for one in own.planned if one.dataset == dataset]
    columns = [WORDS["of_a_task"][key] for key in cells]
    shown = {"key": f"leaderboard_{dataset}", "title": dataset_label(dataset)}
    return _table("task" if own.compared else "untested", columns, rows, planned, **shown)


def method_table(own: Board, method: str) -> PageTable:
    """A row per data set of a method, with the columns of `task_table`."""
    pairs = [pair for pair in own.means.index if pair[1] == method]
    cells = cells_of(own).loc[pairs]
    rows = [Row(dataset_label(data), own.policies[data], [*row]) for (data, _), row in cells.iterrows()]
    planned = [one for one in own.planned if one.row == method]
    columns, shown = WORDS["of_a_task"].values(), {"key": f"method_{method}", "title": row_label(method)}
    return _table("method" if own.compared else "untested", columns, rows, planned, **shown)


@cache
def cells_of(own: Board) -> pd.DataFrame:
    """What is shown on a task, a column per measure: of methods by rank, missing ones, and references.

    Rows are indexed by data set and method or reference.
    """
    found, utility = own.ranks.map(_shown), own.means[UTILITY.name]
    for key, of in own.values.items():
        deviations = of.groupby(level="dataset").std().stack().reindex(found.index)
        found[key] = own.means[key].combine(deviations, mean_std)
    runs = [own.runs[data][name] for data, name in found.index]
    found["front"] = ["yes" * (pair in own.front) for pair in found.index]
    found["tuned"] = [TUNED.get(run.config.hyperparameters, "a sweep") for run in runs]
    found["cpu_seconds"] = [number(seconds, 1, 0) for seconds in own.seconds]
    if own.compared:
        best = own.ranks[f"rank_{UTILITY.name}"].map(lambda rank: rank.best)
        found = found.loc[pd.DataFrame({"rank": best, "mean": -utility}).sort_values(["rank", "mean"]).index]
    missing = {
        pair: {UTILITY.name: Cell(MISSING, shorten(reason, SHORT, placeholder=" …"))}
        for pair, reason in own.reasons.items()
    }
    references = own.levels.loc[[data for data, runs in own.runs.items() if runs]].map(number)
    every = pd.concat([found, pd.DataFrame(missing).T, references])
    return every.reindex(columns=[*WORDS["of_a_task"]]).fillna("")


def versus_table(own: Board, first: str, second: str) -> PageTable:
    """Two methods side by side on the tasks that both have: differences with intervals, and paired tests.

    The p-values are Holm-corrected over tasks, the intervals are of each difference alone.
    """
    names, shown = [first, second], cells_of(own)
    tasks = [data for data in own.runs if all((data, name) in own.means.index for name in names)]
    columns, counts = list[list[Cell | str]](), list[str]()
    for one in RANKED if tasks else ():
        pairs = [own.values[one.name].loc[data, names].dropna() for data in tasks]
        tests = holm([paired_p(pair[first], pair[second]) for pair in pairs])
        sure = [p is not None and p < LEVEL for p in tests]
        better = [(sign(one) * pair.mean()).idxmax() for pair in pairs]
        for name in names:
            won = [of == name and known for of, known in zip(better, sure, strict=True)]
            texts = [shown.loc[(data, name), one.name] for data in tasks]
            columns.append([Cell(text, best=best) for text, best in zip(texts, won, strict=True)])
            counts.append(f"{sum(won)} of {len(tasks)}")
        columns.append([mean_interval(paired_difference(pair[first], pair[second])) for pair in pairs])
        columns.append(["" if p is None else f"{p:.2g}" for p in tests])
        counts += ["", ""]
    rows = [
        Row(dataset_label(data), own.policies[data], row)
        for data, row in zip(tasks, zip(*columns, strict=True), strict=True)
    ]
    rows += [Row("all tasks", "significantly better", counts)] if tasks else []
    labels = [*map(row_label, names)]
    return _table(
        "versus",
        [heading.format(*labels) for heading in WORDS["versus"]],
        rows,
        [one for one in own.planned if one.row in names],
        key=f"leaderboard_{first}_{second}",
        title=" and ".join(labels),
    )


def care_table(own: Board) -> PageTable:
    """A row per warning of the runs of a task, and per reason why runs are missing, with the methods."""
    rows = []
    for data, planned in by_dataset(own.planned).items():
        remarks: dict[str, list[str]] = {}
        for one in planned:
            reason = own.reasons.get((data, one.row))
            missing = [f"{MISSING}: {reason}"] if reason else []
            for remark in (*getattr(one.run, "warnings", ()), *missing):
                remarks.setdefault(remark, []).append(row_label(one.row))
        where = f"{dataset_label(data)}, {own.policies[data]}"
        for remark, names in remarks.items():
            methods = "every method" if 1 < len(names) == len(planned) else ", ".join(names)
            rows.append(Row(where, methods, [remark]))
    return _table("leaderboard_care", ["warning"], rows)


def _table(
    kind: str, columns: Iterable[str], rows: Iterable[Row], planned: Sequence[Planned] = (), **shown: str
) -> PageTable:
    """A table with the words of its kind."""
    texts: Mapping[str, str] = {"key": kind} | WORDS["tables"][kind] | shown
    note = texts["note"].format(**WORDS["phrases"], untested=UNTESTED, level=LEVEL)
    return table_of(columns, rows, None, planned, **{**texts, "note": note})


def _name(name: str) -> str:
    """Label of a method or reference."""
    return REFERENCES.get(name) or row_label(name)


def _shown(value: Rank | Spread | float | str | None) -> str | Cell:
    if isinstance(value, Rank):
        ends = dict.fromkeys(map(str, value))
        return Cell(" to ".join(ends), best=value.best == 1)
    if isinstance(value, Spread | None):
        return mean_interval(value)
    return value if isinstance(value, str) else number(value)
