"""Objectives of a study, and the selection of a trial."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairall.tuning.space import Point

DIRECTIONS = {"minimize": 1.0, "maximize": -1.0}
"""Factor by direction that makes less the better."""


@dataclass(frozen=True)
class Objective:
    """A measure of a trial, and whether it is minimised or maximised."""

    measure: str
    direction: str

    @classmethod
    def parse(cls, words: str) -> Objective:
        """Inverse of `str`."""
        direction, measure = words.split(" ")
        return cls(measure, direction)

    def __str__(self) -> str:
        return f"{self.direction} {self.measure}"

    @property
    def sign(self) -> float:
        """+1 where less is better, −1 where more is."""
        return DIRECTIONS[self.direction]


@dataclass(frozen=True)
class Trial:
    """State of a trial.

    Attributes:
        number: within the study, from 0.
        state: waiting, running, complete or fail.
        point: values by key.
        per_seed: by objective one value per seed, of a complete one.
        notes: `reason` of a failure, `run` folder, `seconds`, `worker`, `attempts`.
    """

    number: int
    state: str
    point: Point
    per_seed: Mapping[str, Sequence[float]]
    notes: Mapping[str, Any]

    def mean(self, objective: Objective) -> float:
        """Over seeds."""
        return statistics.fmean(self.per_seed[objective.measure])

    def std(self, objective: Objective) -> float | None:
        """Over seeds, with n − 1; None for one seed."""
        values = self.per_seed[objective.measure]
        return None if len(values) < 2 else statistics.stdev(values)

    def standard_error(self, objective: Objective) -> float:
        """Standard error of the mean over seeds; 0 for one seed."""
        return (self.std(objective) or 0.0) / math.sqrt(len(self.per_seed[objective.measure]))


def pareto_set(trials: Sequence[Trial], objectives: Sequence[Objective]) -> list[Trial]:
    """The trials that are not dominated: none is at least as good in every objective and better in one."""
    costs = {trial.number: _costs(trial, objectives) for trial in trials}
    return [
        trial
        for trial in trials
        if not any(_dominates(costs[other.number], costs[trial.number]) for other in trials)
    ]


def selected(trials: Sequence[Trial], objectives: Sequence[Objective]) -> Trial | None:
    """The trial selected by the rule of one standard error; None where there is no trial.

    Objective after objective, the most important first, only those trials stay whose mean is within one
    standard error of the best one's mean. Of those that are left after the last but one, the last
    objective's best is selected; ties go to the best in the objectives from the first on, then to the lowest
    number. A dominated trial is never selected.
    """
    left = list(trials)
    for objective in objectives[:-1]:
        left = _as_good_as_the_best(left, objective)
    return min(left, key=lambda trial: _preference(trial, objectives), default=None)


def _as_good_as_the_best(trials: Sequence[Trial], objective: Objective) -> list[Trial]:
    if not trials:
        return []
    best = min(trials, key=lambda trial: objective.sign * trial.mean(objective))
    worst = objective.sign * best.mean(objective) + best.standard_error(objective)
    return [trial for trial in trials if objective.sign * trial.mean(objective) <= worst]


def _preference(trial: Trial, objectives: Sequence[Objective]) -> tuple[float, ...]:
    costs = _costs(trial, objectives)
    return (costs[-1], *costs[:-1], trial.number)


def _costs(trial: Trial, objectives: Sequence[Objective]) -> tuple[float, ...]:
    return tuple(objective.sign * trial.mean(objective) for objective in objectives)


def _dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))
