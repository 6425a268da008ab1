"""Runs of several methods on several tasks, and what follows from them over all tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fairall import Result
from fairall.metrics import Quantity
from fairall.report import WITH_ROW, first_reference, measures
from reproduction.aggregates import (
    Estimate,
    Pair,
    Rank,
    differences,
    improved,
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
MEASURES = measures(
    *"effective_utility mean_utility effective_dpu_pooled mean_equal_opportunity mean_dpu".split(),
    *("tv_utility", "tv_dpu", "effective_cfu"),
)
UTILITY, TEST_UTILITY, DPU, OPPORTUNITY, TEST_DPU, *_ = MEASURES
RANKED = (UTILITY, DPU)
SHARES = {"share": UTILITY.name, "test_share": TEST_UTILITY.name}  # of what the oracle has
# What is estimated over tasks, by column of the standings: a measure, and of being better than the baseline.
AGGREGATED = {key: key for key in SHARES} | {"dpu": DPU.name, "equal_opportunity": OPPORTUNITY.name}
BETTER = {UTILITY.name: "probability_of_earning_more", DPU.name: "probability_of_being_fairer"}
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
        failures: by key of a run, why there is none.
        cpu: seconds by words of a run, of those that `python -m reproduction` measured.
    """

    dataset: str
    initial_policy: str
    planned: Mapping[str, Planned]
    failures: Mapping[str, str]
    cpu: Mapping[frozenset[str], float]

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
        means = pd.concat([self.values[one.name].mean() for one in (DPU, UTILITY)], axis=1).dropna()
        points = dict(zip(means.index, means.itertuples(index=False, name=None), strict=True))
        undominated = pareto([*points.values()]) if self.compared else []
        return {name for name, point in points.items() if point in undominated}


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

    def table(self, measure: str) -> pd.DataFrame:
        """Values: a column per method that has any, a row per data set, initial policy and seed."""
        tasks = {(task.dataset, task.initial_policy): task.values[measure] for task in self.tasks}
        found = pd.concat(tasks, names=["dataset", "initial_policy", "seed"])
        return found[[name for name in self.methods if name in found]]

    @cached_property
    def apart(self) -> dict[str, dict[Pair, pd.Series]]:
        """`differences` by name of the measure: of earning more, and of being fairer."""
        return {one.name: differences(_sign(one) * self.table(one.name)) for one in RANKED}

    @cached_property
    def better(self) -> dict[str, dict[Pair, Estimate]]:
        """`improvements` by name of the measure."""
        return {name: improvements(pairs) for name, pairs in self.apart.items()}

    @cached_property
    def surely(self) -> dict[str, set[Pair]]:
        """Pairs by name of the measure that differ for other replicates on these tasks."""
        return {
            name: surely_better({pair: improved(own) for pair, own in of.items()})
            for name, of in self.apart.items()
        }

    @cached_property
    def standings(self) -> pd.DataFrame:
        """A row per method with values, by rank, then by share of the oracle's utility.

        Columns are numbers of tasks with values and of tasks on whose front it is, ranks by measure and the
        worst ones of their confidence sets, mean seconds of a run, and estimates by key of `AGGREGATED`, and
        of `BETTER` than `BASELINE`, with the ends of their intervals.
        """
        tasks = {
            name: own for name in self.methods if (own := [of for of in self.tasks if name in of.methods])
        }
        counts = {name: (len(own), sum(name in of.front for of in own)) for name, own in tasks.items()}
        parts: dict[tuple[str, ...], Mapping[str, Sequence[float]]] = {("tasks", "front"): counts}
        for one in RANKED:
            columns = f"rank_{one.name}", f"worst_rank_{one.name}"
            parts[columns] = ranks([*self.table(one.name)], self.surely[one.name])
        parts["cpu_seconds",] = {
            name: [pd.Series([of.seconds(name) for of in own]).mean()] for name, own in tasks.items()
        }
        for key, measure in AGGREGATED.items():
            scores = self.table(measure).items()
            parts[_ends(key)] = {name: interquartile_mean(of.dropna()) for name, of in scores}
        for measure, key in BETTER.items():
            pairs = self.better[measure].items()
            parts[_ends(key)] = {name: of for (name, other), of in pairs if other == BASELINE}
        frames = [pd.DataFrame([*of.values()], [*of], [*names], object) for names, of in parts.items()]
        order = [f"rank_{UTILITY.name}", "share"]
        return pd.concat(frames, axis=1).sort_values(order, ascending=[True, False])

    @cached_property
    def references(self) -> pd.DataFrame:
        """Interquartile means over tasks of the references by key of `AGGREGATED`; NaN for none."""
        policies = pd.concat([task.levels for task in self.tasks]).groupby(level=0, sort=False)
        found = {key: policies[measure].agg(_middle) for key, measure in AGGREGATED.items()}
        return pd.DataFrame(found, dtype=object)


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
    tasks: dict[tuple[str, str], dict[str, Planned]] = {}
    for one in planned:
        tasks.setdefault((one.dataset, one.name("initial_policy")), {})[one.row] = one
    found = [Task(*key, own, failures, cpu) for key, own in tasks.items()]
    return Board(found, list(dict.fromkeys(one.row for one in planned)))


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


def _ends(key: str) -> tuple[str, str, str]:
    """Columns of an estimate and its interval."""
    return key, f"{key}_low", f"{key}_high"


def _middle(levels: pd.Series) -> float:
    known = levels.dropna().to_numpy()
    return float(middle(known)) if len(known) else math.nan
