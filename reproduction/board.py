"""Runs of several methods on several data sets, and what follows from them over all data sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall import Result
from fairall.metrics import Quantity, Spread
from fairall.report import WITH_ROW, first_reference, measures
from reproduction.aggregates import (
    Pair,
    Rank,
    differences,
    improved,
    improvements,
    interquartile_mean,
    middle,
    probability_of_improvement,
    ranks,
    surely_better,
)
from reproduction.figures import undominated
from reproduction.plan import PLACES, Planned, interpretable
from reproduction.runs import read_durations
from reproduction.tables import by_dataset

BASELINE, RIVAL = "fairall_I_II", "adopt"
MEASURES = measures(
    *"effective_utility mean_utility effective_dpu_pooled mean_equal_opportunity mean_dpu".split(),
    *("tv_utility", "tv_dpu", "effective_cfu"),
)
UTILITY, TEST_UTILITY, DPU, OPPORTUNITY, TEST_DPU, *_ = MEASURES
RANKED = (UTILITY, DPU)
SHARES = {"share": UTILITY.name, "test_share": TEST_UTILITY.name}  # of what the oracle has
# What is estimated over tasks, by column of the standings: a measure, and of being better than the baseline.
AGGREGATED = {key: key for key in SHARES} | {"dpu": DPU.name, "equal_opportunity": OPPORTUNITY.name}
BETTER = {"probability_of_earning_more": UTILITY.name, "probability_of_being_fairer": DPU.name}
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
    """A data set after an initial policy, and the runs of all methods there.

    A method with other words, as `fairlog cut`, counts as a method of its own (`Planned.row`).

    Attributes:
        planned: by method, finished or not.
        failures: by key of a run, why there is none.
        cpu: seconds by words of a run, of those that `python -m reproduction` measured.
    """

    planned: Mapping[str, Planned]
    failures: Mapping[str, str]
    cpu: Mapping[frozenset[str], float]

    @property
    def initial_policy(self) -> str:
        """Name of the initial policy of all runs."""
        return next(iter(self.planned.values())).name("initial_policy")

    @cached_property
    def runs(self) -> dict[str, Result]:
        """Finished runs by method."""
        return {name: one.run for name, one in self.planned.items() if one.run is not None}

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Means of the references, plain units: a row per policy, a column per measure; NaN for none."""
        found = {
            one.name: [first_reference(self.runs.values(), policy, one.name) for policy in WITH_ROW]
            for one in MEASURES
        }
        means = pd.DataFrame(found, WITH_ROW).map(lambda spread: spread.mean if spread else math.nan)
        return means.assign(**_beside(means, means.loc["oracle"]))

    @cached_property
    def values(self) -> dict[str, pd.DataFrame]:
        """By measure, plain units: a row per seed, and a column per method that has values."""
        runs = {name: run for name, run in self.runs.items() if len(run.values(UTILITY.name))}
        own = {
            one.name: pd.DataFrame({name: run.values(one.name) for name, run in runs.items()}, dtype=float)
            for one in MEASURES
        }
        found = _beside(own, self.levels.loc["oracle"]) | own
        return {name: of.dropna(axis=1, how="all") for name, of in found.items()}

    @property
    def methods(self) -> list[str]:
        """Methods with values of `UTILITY`, in the order of the sweeps; others have no values at all."""
        return [*self.values[UTILITY.name]]

    @property
    def reasons(self) -> dict[str, str]:
        """Why methods have no values."""
        return {
            name: NO_VALUE if one.run else self.failures.get(one.key, NOT_MADE)
            for name, one in self.planned.items()
            if name not in self.methods
        }

    def seconds(self, method: str) -> float:
        """Measured processor time of a run; NaN where it was not measured."""
        return self.cpu.get(_words(self.planned[method].words), math.nan)

    @property
    def compared(self) -> bool:
        """Whether the methods are compared: not where their numbers may not be interpreted."""
        return all(interpretable(one.config.preset) for one in self.planned.values())

    @cached_property
    def ranks(self) -> dict[str, dict[str, Rank]]:
        """Ranks by measure and method; of no measure if not `compared`."""
        scores = {one.name: _sign(one) * self.values[one.name] for one in RANKED if self.compared}
        return {key: ranks([*own], surely_better(differences(own))) for key, own in scores.items()}

    @cached_property
    def front(self) -> set[str]:
        """Methods that no other beats in mean effective utility and in mean DPU; none if not `compared`."""
        dpu, utility = (self.values[one.name].mean() for one in (DPU, UTILITY))
        return {*undominated({name: (dpu[name], utility[name]) for name in self.methods if self.compared})}


@dataclass(frozen=True)
class Board:
    """All tasks, and what follows from them.

    Attributes:
        tasks: by data set, in the order of the sweeps.
    """

    tasks: Mapping[str, Task]

    @property
    def planned(self) -> list[Planned]:
        """All runs."""
        return [one for task in self.tasks.values() for one in task.planned.values()]

    @property
    def methods(self) -> list[str]:
        """In the order of the sweeps."""
        return list(dict.fromkeys(one.row for one in self.planned))

    def table(self, measure: str) -> pd.DataFrame:
        """Values: a column per method that has any, a row per data set and seed."""
        tasks = {dataset: task.values[measure] for dataset, task in self.tasks.items()}
        found = pd.concat(tasks, names=["dataset", "seed"])
        return found[[name for name in self.methods if name in found]]

    @cached_property
    def apart(self) -> dict[str, pd.DataFrame]:
        """`differences` by name of the measure: of earning more, and of being fairer."""
        return {one.name: differences(_sign(one) * self.table(one.name)) for one in RANKED}

    @cached_property
    def better(self) -> dict[str, dict[Pair, Spread]]:
        """`improvements` by name of the measure."""
        return {name: improvements(pairs) for name, pairs in self.apart.items()}

    @cached_property
    def surely(self) -> dict[str, set[Pair]]:
        """Pairs by name of the measure that differ for other replicates on these tasks."""
        return {name: surely_better(improved(pairs)) for name, pairs in self.apart.items()}

    @cached_property
    def standings(self) -> dict[str, dict[str, Any]]:
        """Of each method with values, by rank, then by share of the oracle's utility.

        Numbers of tasks with values and of tasks on whose front it is, ranks by measure, mean seconds of a
        run, and estimates by key of `AGGREGATED`, and of `BETTER` than `BASELINE`, None without values.
        """
        found: dict[str, dict[str, Any]] = {}
        tables = {key: self.table(measure) for key, measure in AGGREGATED.items()}
        placed = {one.name: ranks([*self.table(one.name)], self.surely[one.name]) for one in RANKED}
        for name in self.table(UTILITY.name):
            own = [task for task in self.tasks.values() if name in task.methods]
            found[name] = {
                "tasks": len(own),
                "front": sum(name in task.front for task in own),
                "cpu_seconds": pd.Series([task.seconds(name) for task in own]).mean(),
            }
            found[name] |= {f"rank_{measure}": of.get(name) for measure, of in placed.items()}
            for key, measure in BETTER.items():
                ahead = self.apart[measure].get((BASELINE, name))  # it is the first of the sweeps
                found[name][key] = None if ahead is None else probability_of_improvement(-ahead.dropna())
            for key, of in tables.items():
                found[name][key] = interquartile_mean(of[name].dropna()) if name in of else None

        def place(name: str) -> tuple[int, float]:
            share = found[name]["share"]
            return found[name][f"rank_{UTILITY.name}"].best, -share.mean if share else math.inf

        return {name: found[name] for name in sorted(found, key=place)}

    @cached_property
    def references(self) -> dict[str, dict[str, float]]:
        """Interquartile means over tasks of the references by key of `AGGREGATED`; NaN for none."""
        every = pd.concat([task.levels for task in self.tasks.values()])
        return {
            policy: {key: _middle(every.loc[[policy], of]) for key, of in AGGREGATED.items()}
            for policy in WITH_ROW
        }


def way_of(planned: Planned) -> str:
    """How a run decides, of `WAYS`."""
    config = planned.config
    if config.fairness.rule.name == "demographic_parity":
        return WAYS[2 + config.fairness.blind]
    return WAYS[planned.model not in DRAWN and config.model.get("decision") != "sample"]


def board(
    planned: Sequence[Planned], failures: Mapping[str, str], cpu: Mapping[frozenset[str], float]
) -> Board:
    """Tasks of some runs.

    Args:
        planned: with their runs.
        failures: by key of a run, why it failed.
        cpu: of `cpu_seconds`.
    """
    own = by_dataset(planned).items()
    return Board({dataset: Task({one.row: one for one in of}, failures, cpu) for dataset, of in own})


def cpu_seconds(path: Path) -> dict[frozenset[str], float]:
    """The last measured processor time of each command, by its words without those about places."""
    measured = read_durations(path)
    lines = zip(measured["words"], measured["cpu_seconds"], strict=True)
    return {_words(words.split()): seconds for words, seconds in lines}


def _words(words: Sequence[str]) -> frozenset[str]:
    return frozenset(word for word in words if not word.startswith(PLACES))


def _beside(own: Any, oracle: pd.Series) -> dict[str, Any]:
    """Regret, and shares of what the oracle earns where it earns anything, of values or levels by measure."""
    earned = oracle.where(oracle > 0)
    shares = {key: own[of] / earned[of] for key, of in SHARES.items()}
    return {"regret": oracle[UTILITY.name] - own[UTILITY.name]} | shares


def _sign(measure: Quantity) -> int:
    return 1 if measure.higher_is_better else -1


def _middle(levels: pd.Series) -> float:
    known = levels.dropna().to_numpy()
    return float(middle(known, np.ones(len(known)))) if len(known) else math.nan
