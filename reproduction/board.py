"""Runs of several methods on several tasks, and what follows from them over all tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from fairall import Result
from fairall.metrics import Quantity
from fairall.report import first_reference, measures
from reproduction.aggregates import (
    Estimate,
    Pair,
    Rank,
    TaskKey,
    better_on_task,
    improvements,
    interquartile_mean,
    middle,
    ranks,
    surely_better,
)
from reproduction.figures import pareto
from reproduction.plan import PLACES, Planned, interpretable
from reproduction.runs import read_durations

BASELINE, RIVAL = "fairall_I_II", "adopt"
ORACLE = "oracle"
UTILITY, DPU, OPPORTUNITY, TEST_UTILITY, TEST_DPU = measures(
    "effective_utility", "effective_dpu_pooled", "mean_equal_opportunity", "mean_utility", "mean_dpu"
)
RANKED = (UTILITY, DPU)
# What is aggregated over tasks: a measure, and whether it is a share of what the oracle has.
AGGREGATED = {
    "share": (UTILITY, True),
    "test_share": (TEST_UTILITY, True),
    "dpu": (DPU, False),
    "equal_opportunity": (OPPORTUNITY, False),
}
DRAWN = ("consequential", "fair_reductions", "sellf_one_step")  # without a key for it
WAYS = (
    "drawn with probability π",
    "cut at one threshold",
    "cut at thresholds with equal acceptance rates",
    "equal acceptance rates without reading s",
)
NOT_MADE, NO_VALUE = "not made", "no seed has a value"


@dataclass(frozen=True)
class Task:
    """A data set with an initial policy, and the runs of all methods there.

    A method with other words, as `fairlog cut`, counts as a method of its own (`Planned.row`).

    Attributes:
        dataset: its name.
        initial_policy: its name.
        planned: by method, finished or not.
        reasons: by method, why there is no run; empty where none failed.
        cpu: seconds by method, of those that `python -m reproduction` measured.
    """

    dataset: str
    initial_policy: str
    planned: Mapping[str, Planned]
    reasons: Mapping[str, str]
    cpu: Mapping[str, float]

    @property
    def key(self) -> TaskKey:
        """Data set and initial policy."""
        return self.dataset, self.initial_policy

    @cached_property
    def runs(self) -> dict[str, Result]:
        """Finished runs by method."""
        return {name: one.run for name, one in self.planned.items() if one.run is not None}

    def values(self, measure: Quantity) -> dict[str, pd.Series]:
        """A measure by seed of each method that has values, plain units."""
        found = {name: run.values(measure.name) for name, run in self.runs.items()}
        return {name: values for name, values in found.items() if len(values)}

    def reference(self, policy: str, measure: Quantity) -> float | None:
        """Mean over seeds of a measure of a reference, plain units; None where no run has it."""
        found = first_reference(self.runs.values(), policy, measure.name)
        return None if found is None else float(found.mean)

    def shares(self, measure: Quantity = UTILITY) -> dict[str, pd.Series]:
        """Share of the oracle's utility by method and seed; none where the oracle earns nothing.

        Args:
            measure: `UTILITY` or `TEST_UTILITY`.
        """
        oracle = self.reference(ORACLE, measure)
        return {name: u / oracle for name, u in self.values(measure).items()} if oracle and oracle > 0 else {}

    def reason(self, method: str) -> str:
        """Why a method has no values here; empty where it has."""
        if method not in self.runs:
            return self.reasons.get(method, NOT_MADE)
        return "" if method in self.values(UTILITY) else NO_VALUE

    @cached_property
    def ranks(self) -> dict[str, dict[str, Rank]]:
        """Ranks by measure and method; of no method if not `compared`."""
        found: dict[str, dict[str, Rank]] = {one.name: {} for one in RANKED}
        for one in RANKED if self.compared else ():
            values = self.values(one)
            better = better_on_task(values, higher_is_better=bool(one.higher_is_better))
            found[one.name] = ranks([*values], better)
        return found

    @property
    def compared(self) -> bool:
        """Whether the methods are compared: not where their numbers may not be interpreted."""
        return all(interpretable(one.config.preset) for one in self.planned.values())

    @cached_property
    def front(self) -> set[str]:
        """Methods that no other beats in mean effective utility and in mean DPU; none if not `compared`."""
        if not self.compared:
            return set()
        utility, dpu = (self.values(one) for one in RANKED)
        points = {name: (dpu[name].mean(), utility[name].mean()) for name in utility if name in dpu}
        undominated = pareto(list(points.values()))
        return {name for name, point in points.items() if point in undominated}


@dataclass(frozen=True)
class Standing:
    """A method on all tasks."""

    method: str
    tasks: int  # with values
    front: int  # tasks on whose front it is
    estimates: Mapping[str, Estimate | None]  # by key of `AGGREGATED`; None where no task has values
    ranks: Mapping[str, Rank]  # by name of the measure
    cpu: float | None  # mean seconds of a run


@dataclass(frozen=True)
class Board:
    """All tasks, and what follows from them.

    Attributes:
        tasks: in the order of the sweeps.
        methods: in the order of the sweeps.
    """

    tasks: Sequence[Task]
    methods: Sequence[str]

    @property
    def planned(self) -> list[Planned]:
        """All runs."""
        return [one for task in self.tasks for one in task.planned.values()]

    @cached_property
    def better(self) -> dict[str, dict[Pair, Estimate]]:
        """`improvements` by name of the measure: of earning more, and of being fairer."""
        return {one.name: improvements(self._scores(one)) for one in RANKED}

    @cached_property
    def surely(self) -> dict[str, set[Pair]]:
        """`surely_better` by name of the measure."""
        return {one.name: surely_better(self._scores(one)) for one in RANKED}

    def _scores(self, measure: Quantity) -> dict[str, dict[TaskKey, pd.Series]]:
        """Values by method, task and seed, greater is better."""
        sign = 1 if measure.higher_is_better else -1
        by_task = {task.key: task.values(measure) for task in self.tasks}
        return {
            name: {key: sign * own[name] for key, own in by_task.items() if name in own}
            for name in self.methods
        }

    @cached_property
    def ways(self) -> dict[str, str]:
        """How each method decides, of `WAYS`."""
        return {one.row: way_of(one) for one in self.planned}

    @cached_property
    def standings(self) -> list[Standing]:
        """Methods with values, by rank, then by share of the oracle's utility."""
        ranked = {}
        for one in RANKED:
            present = [name for name in self.methods if any(name in task.values(one) for task in self.tasks)]
            ranked[one.name] = ranks(present, self.surely[one.name])
        found = []
        for name in ranked[UTILITY.name]:
            measured = [task for task in self.tasks if name in task.values(UTILITY)]
            cpu = [task.cpu[name] for task in measured if name in task.cpu]
            found.append(
                Standing(
                    name,
                    len(measured),
                    sum(name in task.front for task in measured),
                    {key: _aggregate(measured, key, name) for key in AGGREGATED},
                    {key: of[name] for key, of in ranked.items() if name in of},
                    float(np.mean(cpu)) if cpu else None,
                )
            )
        return sorted(found, key=_place)

    def reference_levels(self, policy: str) -> dict[str, float | None]:
        """Interquartile means over tasks of a reference's measures, by key of `AGGREGATED`."""
        found = {}
        for key, (measure, shared) in AGGREGATED.items():
            levels = [
                (task.reference(policy, measure), task.reference(ORACLE, measure) if shared else 1.0)
                for task in self.tasks
            ]
            known = [level / unit for level, unit in levels if level is not None and unit and unit > 0]
            found[key] = float(middle(np.array(known))) if known else None
        return found


def way_of(planned: Planned) -> str:
    """How a run decides, of `WAYS`."""
    config = planned.config
    if config.fairness.rule.name == "demographic_parity":
        return WAYS[2 + config.fairness.blind]
    return WAYS[planned.model not in DRAWN and config.model.get("decision") != "sample"]


def _aggregate(tasks: Sequence[Task], key: str, method: str) -> Estimate | None:
    measure, shared = AGGREGATED[key]
    by_task = {task.key: task.shares(measure) if shared else task.values(measure) for task in tasks}
    values = {key: own[method] for key, own in by_task.items() if method in own}
    return interquartile_mean(values) if values else None


def _place(one: Standing) -> tuple[int, float]:
    """By rank, then by share of the oracle's utility."""
    share = one.estimates["share"]
    return one.ranks[UTILITY.name].best, -share.value if share else 0.0


def board(
    planned: Sequence[Planned], reasons: Mapping[str, str], cpu: Mapping[frozenset[str], float]
) -> Board:
    """Tasks of some runs.

    Args:
        planned: with their runs.
        reasons: by key of a run, why it failed.
        cpu: of `cpu_seconds`.
    """
    tasks: dict[TaskKey, dict[str, Planned]] = {}
    for one in planned:
        tasks.setdefault((one.dataset, one.name("initial_policy")), {})[one.row] = one
    found = [
        Task(
            *key,
            own,
            {name: reasons[one.key] for name, one in own.items() if one.key in reasons},
            {name: cpu[_words(one.words)] for name, one in own.items() if _words(one.words) in cpu},
        )
        for key, own in tasks.items()
    ]
    return Board(found, list(dict.fromkeys(one.row for one in planned)))


def cpu_seconds(path: Path) -> dict[frozenset[str], float]:
    """The last measured processor time of each command, by its words without those about places."""
    measured = read_durations(path)
    lines = zip(measured["words"], measured["cpu_seconds"], strict=True)
    return {_words(words.split()): seconds for words, seconds in lines}


def _words(words: Sequence[str]) -> frozenset[str]:
    return frozenset(word for word in words if not word.startswith(PLACES))
