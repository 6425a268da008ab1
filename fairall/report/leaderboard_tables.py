"""Tables of the leaderboard, and its rules in words."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import pandas as pd

from fairall.errors import count
from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.aggregates import DRAWS, Estimate
from fairall.report.board import (
    BASELINE,
    DPU,
    OPPORTUNITY,
    ORACLE,
    RANKED,
    RIVAL,
    SHOWN,
    TEST_UTILITY,
    UTILITY,
    Board,
    Task,
)
from fairall.report.comparable import UNTESTED
from fairall.report.plan import missing_runs
from fairall.report.statistics import LEVEL, holm, paired_p
from fairall.results.interpretable import interpretable
from fairall.results.references import REFERENCES
from fairall.results.table import Cell, Row, Table, hundredfold, plus_minus

MISSING = "missing"
SHORT = 50  # characters of a reason beside it
MEASURES = (UTILITY, TEST_UTILITY, DPU, OPPORTUNITY)  # in the order of the columns


def in_words(own: Board, further: Sequence[str]) -> list[str]:
    """What the page shows, and by which rules: a paragraph, then lines of details.

    Of runs whose numbers may not be interpreted the paragraph alone, and that nothing is compared.

    Args:
        own: the board.
        further: words added to every command.
    """
    planned = own.planned
    n = sum(one.run is not None for one in planned)
    protocols, seeds = (
        " and ".join(dict.fromkeys(map(str, some)))
        for some in ((one.name("protocol") for one in planned), (one.config["seeds"] for one in planned))
    )
    baseline = labels.method(BASELINE)
    lines = [
        f"{count(len(own.methods), 'method')} on {count(len(own.tasks), 'task')}, a task being a data set "
        f"with an initial policy; protocol {protocols}, {seeds} seeds a run. Finished runs: {n} of "
        f"{len(planned)}.",
    ]
    if not interpretable(planned[0].config):
        return [*lines, f"{UNTESTED} Standings and ranks are left out."]
    lines += [
        "Utility is the effective utility, per applicant and accumulated over all time steps, from decisions "
        "while learning. To be averaged over tasks it is divided by that of the oracle of the task, a "
        "logistic regression on every training label: the share of the oracle's utility. Accepting nobody "
        "has 0; a net may have more than the oracle.",
        "Test utility: of the policy on test people, mean over evaluation.window. Real data have few people, "
        "who apply again and again, so a method that remembers them can come to know them by heart, which "
        "counts in effective utility and not in test utility.",
        "DPU: difference of the groups' shares of accepted applicants, over all time steps together. "
        "Equal-opportunity gap: as test utility. Regret: mean effective utility of the oracle on the same "
        "applicants, less that of the method.",
        "IQM, the interquartile mean: mean of the middle half of all seeds of all tasks. In brackets 95 % "
        f"intervals by the bootstrap, which draws seeds within each task, {DRAWS} times (Agarwal et al. "
        "2021, Deep reinforcement learning at the edge of the statistical precipice, NeurIPS). They are "
        "about other seeds, not about other data sets.",
        f"P(better than {baseline}): probability that a seed of the method has a better value than a seed of "
        f"{baseline} on the same task, ties counted half, averaged over the tasks that both have.",
        "Rank over all tasks: 1 + the number of methods whose probability of being better has an interval "
        "above ½. Rank on a task: 1 + the number of methods with a better mean and a significant difference "
        "(two-sided Wilcoxon signed-rank test, paired over seeds, Holm-corrected over the comparisons of a "
        f"method with the others, p < {LEVEL:g}; n seeds allow no p below 2/2ⁿ). Methods that none "
        "beats share rank 1. A method with a large spread can have a better rank than one with a better "
        "mean.",
        "A method with fewer tasks than others is averaged over those that it has: its means do not compare "
        "with theirs, while probabilities and ranks are of the tasks that both methods of a pair have. Seeds "
        "that have diverged are left out. References are not ranked.",
        "CPU seconds: of a whole command, as measured when this command or `reproduce` made the run; else "
        "empty. Phase I, where a method has one, is kept and counts in the run that was first to need it.",
    ]  # fmt: skip
    return lines + ([f"Every command has {' '.join(further)} added."] if further else [])


def standings_table(own: Board) -> Table:
    """A row per method on all tasks, and a row per reference."""
    rows, records = [], []
    n = len(own.tasks)
    for one in own.standings:
        pair = (one.method, BASELINE)
        better = {measure.name: own.better[measure.name].get(pair) for measure in RANKED}
        cells = [
            _rank(one.ranks.get(UTILITY.name)), Cell(_percent(one.share)),
            Cell(_percent(better[UTILITY.name])), Cell(_percent(one.test_share)),
            _rank(one.ranks.get(DPU.name)), Cell(_percent(one.dpu)), Cell(_percent(better[DPU.name])),
            Cell(_percent(one.opportunity)), Cell(str(one.front)), Cell(f"{one.tasks} of {n}"),
            Cell("" if one.cpu is None else f"{one.cpu:.0f}"),
        ]  # fmt: skip
        rows.append(Row("", labels.method(one.method), cells))
        estimates = {
            "share": one.share, "test_share": one.test_share,
            "dpu": one.dpu, "equal_opportunity": one.opportunity,
            "probability_of_earning_more": better[UTILITY.name],
            "probability_of_being_fairer": better[DPU.name],
        }  # fmt: skip
        record: dict[str, Any] = {"method": one.method, "tasks": one.tasks, "front": one.front}
        record |= {f"rank_{key}": rank for key, rank in one.ranks.items()} | {"cpu_seconds": one.cpu}
        for key, estimate in estimates.items():
            value, low, high = estimate or (None, None, None)
            record |= {key: value, f"{key}_low": low, f"{key}_high": high}
        records.append(record)
    for policy in SHOWN if rows else ():
        levels = {
            "share": own.reference_share(policy), "test_share": own.reference_share(policy, TEST_UTILITY),
            "dpu": own.reference_mean(policy, DPU),
            "equal_opportunity": own.reference_mean(policy, OPPORTUNITY),
        }  # fmt: skip
        share, test, dpu, opportunity = map(_level, levels.values())
        cells = [Cell(text) for text in ("", share, "", test, "", dpu, "", opportunity, "", "", "")]
        rows.append(Row("references", REFERENCES[policy], cells))
        records.append({"method": policy} | levels)
    return Table(
        key="leaderboard",
        title="Standings",
        note="IQM with 95 % intervals, and probabilities, ×100. Bold: rank 1. On the front: number of tasks "
        "on which no other method has both more utility and less DPU.",
        section="",
        columns=[
            "rank by utility", "share of the oracle's utility ↑",
            f"P(earns more than {labels.method(BASELINE)})", "share by test utility ↑",
            "rank by DPU", "DPU ↓", f"P(fairer than {labels.method(BASELINE)})", "equal-opportunity gap ↓",
            "on the front", "tasks", "CPU seconds a run",
        ],
        rows=rows, records=records, lacking=missing_runs(own.planned),
    )  # fmt: skip


def task_table(own: Board, dataset: str) -> Table:
    """A row per initial policy and method of a data set, missing ones with the reason, and references."""
    rows, records = [], []
    tasks = [task for task in own.tasks if task.dataset == dataset]
    for task in tasks:
        group = f"{task.initial_policy} initial policy"
        measured = {one.name: task.values(one) for one in MEASURES}
        oracle, ranks = task.reference(ORACLE, UTILITY), task.ranks
        of_utility = measured[UTILITY.name]
        names = list(of_utility)
        if task.compared:
            names.sort(key=lambda name: (ranks[UTILITY.name][name], -of_utility[name].mean()))
        for name in names:
            regret = None if oracle is None else oracle - of_utility[name]
            shown = [_spread(of.get(name)) for of in measured.values()]
            cpu = task.cpu.get(name)
            cells = [
                _rank(ranks[UTILITY.name].get(name)), Cell(shown[0]), Cell(_spread(regret)), Cell(shown[1]),
                _rank(ranks[DPU.name].get(name)), Cell(shown[2]), Cell(shown[3]),
                Cell("yes" if name in task.front() else ""), Cell("" if cpu is None else f"{cpu:.0f}"),
            ]  # fmt: skip
            rows.append(Row(group, labels.method(name), cells))
            for key, values in (
                {"regret": regret} | {key: of.get(name) for key, of in measured.items()}
            ).items():
                for seed, value in () if values is None else values.items():
                    where = {"dataset": dataset, "initial_policy": task.initial_policy, "method": name}
                    records.append(where | {"measure": key, "seed": seed, "value": value})
        for name in task.planned:
            if reason := task.reason(name):
                cells = [Cell(), Cell(MISSING, shorten(reason, SHORT, placeholder=" …")), *[Cell()] * 7]
                rows.append(Row(group, labels.method(name), cells))
        for policy in SHOWN if task.runs else ():
            levels = [task.reference(policy, one) for one in MEASURES]
            lost = None if oracle is None or levels[0] is None else oracle - levels[0]
            utility, test, dpu, opportunity = map(_level, levels)
            cells = [Cell(of) for of in ("", utility, _level(lost), test, "", dpu, opportunity, "", "")]
            rows.append(Row(group, REFERENCES[policy], cells))
    return Table(
        key=f"leaderboard_{dataset}",
        title=labels.dataset(dataset),
        note="×100, mean (standard deviation over seeds). "
        + ("Bold: rank 1. References have no rank." if all(task.compared for task in tasks) else UNTESTED),
        section="",
        columns=[
            "rank by utility", UTILITY.heading, "regret ↓", "test utility ↑",
            "rank by DPU", "DPU ↓", "equal-opportunity gap ↓", "on the front", "CPU seconds",
        ],
        rows=rows, records=records,
        lacking=missing_runs([one for task in tasks for one in task.planned.values()]),
    )  # fmt: skip


def versus_table(own: Board, first: str, second: str) -> Table:
    """Two methods side by side on the tasks that both have, with paired tests, Holm-corrected over tasks."""
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
            cells += [
                Cell(_spread(values), best=winner == name)
                for name, values in zip((first, second), pair, strict=True)
            ]
            cells.append(Cell("" if of_pair is None else f"{of_pair:.2g}"))
            records.append({
                "dataset": task.dataset, "initial_policy": task.initial_policy, "measure": one.name,
                first: pair[0].mean(), second: pair[1].mean(), "p": of_pair, "better": winner,
            })  # fmt: skip
        rows.append(Row(labels.dataset(task.dataset), task.initial_policy, cells))
    names = [labels.method(name) for name in (first, second)]
    return Table(
        key=f"leaderboard_{first}_{second}",
        title=f"{names[0]} and {names[1]}",
        note="×100, mean (standard deviation over seeds). Bold: significantly better of the two (two-sided "
        f"Wilcoxon signed-rank test, paired over seeds, Holm-corrected over the tasks, p < {LEVEL:g}).",
        section="",
        columns=[
            column
            for one in ("utility ↑", "DPU ↓")
            for column in (f"{one}, {names[0]}", f"{one}, {names[1]}", f"p, {one[:-2]}")
        ],
        rows=rows, records=records,
        lacking=missing_runs([
            one for task in own.tasks for name, one in task.planned.items() if name in (first, second)
        ]),
    )  # fmt: skip


def versus_in_words(table: Table) -> list[str]:
    """On how many tasks each of two methods is better, a sentence per measure; none without rows."""
    if not table.rows:
        return []
    found = []
    names = [labels.method(name) for name in (BASELINE, RIVAL)]
    for one, does in ((UTILITY, "earns more"), (DPU, "is fairer (DPU)")):
        better = [record["better"] for record in table.records if record["measure"] == one.name]
        first, second = (better.count(name) for name in (BASELINE, RIVAL))
        open_ones = len(better) - first - second
        rest = f"; on {open_ones} no significant difference" if open_ones else ""
        found.append(
            f"{names[0]} {does} on {first} of {count(len(better), 'task')}, {names[1]} on {second}{rest}."
        )
    return found


def _pair(task: Task, measure: Quantity, first: str, second: str) -> tuple[pd.Series, pd.Series]:
    values = task.values(measure)
    none = pd.Series(dtype=float)
    return values.get(first, none), values.get(second, none)


def care_table(own: Board) -> Table:
    """A row per warning of the runs of a task, and per reason why runs are missing, with the methods."""
    rows = [
        Row(f"{labels.dataset(task.dataset)}, {task.initial_policy}", _names(methods, task), [Cell(remark)])
        for task in own.tasks
        for remark, methods in _remarks(task).items()
    ]
    return Table(
        key="leaderboard_care",
        title="Warnings",
        note="As each run reports them: seeds that diverged, accepted everybody or nobody, and the like; and "
        "why runs are missing.",
        section="", columns=["warning"], rows=rows,
        records=[{"task": row.group, "methods": row.name, "warning": row.cells[0].ours} for row in rows],
    )  # fmt: skip


def _remarks(task: Task) -> dict[str, list[str]]:
    """Methods by warning, and by reason why they are missing."""
    found: dict[str, list[str]] = {}
    for name in task.planned:
        remarks = task.runs[name].summary.get("warnings", []) if name in task.runs else []
        if reason := task.reason(name):
            remarks = [*remarks, f"{MISSING}: {reason}"]
        for remark in remarks:
            found.setdefault(remark, []).append(name)
    return found


def _names(methods: Sequence[str], task: Task) -> str:
    if 1 < len(methods) == len(task.planned):
        return "every method"
    return ", ".join(map(labels.method, methods))


def _rank(rank: int | None) -> Cell:
    return Cell("" if rank is None else str(rank), best=rank == 1)


def _level(value: float | None) -> str:
    return "" if value is None else hundredfold(value)


def _percent(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    value, low, high = map(hundredfold, estimate)
    return f"{value} [{low}, {high}]"


def _spread(values: pd.Series | None) -> str:
    if values is None or not len(values):
        return ""
    return plus_minus(float(values.mean()), float(values.std()) if len(values) > 1 else None)
