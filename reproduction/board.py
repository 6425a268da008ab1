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
from fairall.display import number
from fairall.metrics import Quantity
from fairall.report import WITH_ROW, first_reference, measures
from reproduction.aggregates import (
    Pair,
    Rank,
    differences,
    improved,
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


@dataclass(frozen=True, eq=False)  # so that it can be the key of a cache
class Board:
    """Runs of methods on tasks, a data set after an initial policy each, and what follows from them.

    A method with other words, as `fairlog cut`, counts as a method of its own (`Planned.row`).

    Attributes:
        planned: finished or not, in the order of the sweeps.
        failures: by key of a run, why there is none.
        cpu: of `cpu_seconds`.
    """

    planned: Sequence[Planned]
    failures: Mapping[str, str]
    cpu: Mapping[frozenset[str], float]

    @cached_property
    def runs(self) -> dict[str, dict[str, Result]]:
        """Finished runs by data set and method."""
        own = by_dataset(self.planned).items()
        return {data: {one.row: one.run for one in of if one.run is not None} for data, of in own}

    @property
    def policies(self) -> dict[str, str]:
        """Names of the initial policies by data set."""
        return {one.dataset: one.name("initial_policy") for one in self.planned}

    @property
    def methods(self) -> list[str]:
        """In the order of the sweeps."""
        return list(dict.fromkeys(one.row for one in self.planned))

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Means of the references, plain units: a row per data set and policy, NaN for none."""
        pairs = pd.MultiIndex.from_product([self.runs, WITH_ROW], names=["dataset", "policy"])
        found = {
            one.name: [
                getattr(first_reference(self.runs[data].values(), policy, one.name), "mean", math.nan)
                for data, policy in pairs
            ]
            for one in MEASURES
        }
        means = pd.DataFrame(found, pairs, dtype=float)
        return means.assign(**_beside(means, means.xs("oracle", level="policy")))

    @cached_property
    def values(self) -> dict[str, pd.DataFrame]:
        """By measure, plain units: a row per data set and seed, and a column per method that has values."""
        own = {}
        for one in MEASURES:
            found = {}
            for data, runs in self.runs.items():
                # Who has no value of the utility has none.
                there = {name: run for name, run in runs.items() if len(run.values(UTILITY.name))}
                columns = {name: run.values(one.name) for name, run in there.items()}
                found[data] = pd.DataFrame(columns, dtype=float)
            own[one.name] = pd.concat(found, names=["dataset", "seed"])
        own |= _beside(own, self.levels.xs("oracle", level="policy"))
        known = {key: of.dropna(axis=1, how="all") for key, of in own.items()}
        return {key: of[[name for name in self.methods if name in of]] for key, of in known.items()}

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means over seeds: a row per data set and method with values, a column per measure."""
        found = {
            key: of.groupby(level="dataset", sort=False).mean().stack() for key, of in self.values.items()
        }
        return pd.DataFrame(found, found[UTILITY.name].dropna().index)

    @cached_property
    def reasons(self) -> dict[tuple[str, str], str]:
        """Why there are no values, by data set and method."""
        return {
            (one.dataset, one.row): NO_VALUE if one.run else self.failures.get(one.key, NOT_MADE)
            for one in self.planned
            if (one.dataset, one.row) not in self.means.index
        }

    @cached_property
    def seconds(self) -> pd.Series:
        """Measured processor time of the runs with values by data set and method; NaN where unknown."""
        return pd.Series(
            {(one.dataset, one.row): self.cpu.get(_words(one.words), math.nan) for one in self.planned}
        )[self.means.index]

    @property
    def compared(self) -> bool:
        """Whether the methods are compared: not where their numbers may not be interpreted."""
        return all(interpretable(one.config.preset) for one in self.planned)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """Ranks on a task, a row per data set and method, a column per measure; none if not `compared`."""
        found: dict[str, dict[tuple[Any, str], Rank]] = {}
        for one in RANKED if self.compared else ():
            own = found[f"rank_{one.name}"] = {}
            for data, table in (sign(one) * self.values[one.name]).groupby(level="dataset"):
                scores = table.droplevel("dataset").dropna(axis=1, how="all")
                of = ranks([*scores], surely_better(differences(scores)))
                own |= {(data, name): rank for name, rank in of.items()}
        return pd.DataFrame(found, self.means.index)

    @cached_property
    def front(self) -> list[tuple[str, str]]:
        """Data set and method of those that no other beats in mean effective utility and in mean DPU."""
        tasks = self.means.groupby(level="dataset") if self.compared else ()
        return [pair for _, of in tasks for pair in undominated(of[DPU.name], of[UTILITY.name])]

    @cached_property
    def apart(self) -> dict[str, pd.DataFrame]:
        """`differences` by name of the measure: of earning more, and of being fairer."""
        return {one.name: differences(sign(one) * self.values[one.name]) for one in RANKED}

    @cached_property
    def surely(self) -> dict[str, set[Pair]]:
        """Pairs by name of the measure that differ for other replicates on these tasks."""
        return {name: surely_better(improved(pairs)) for name, pairs in self.apart.items()}

    @cached_property
    def standings(self) -> dict[str, dict[str, Any]]:
        """Of each method with values, by rank, then by share of the oracle's utility.

        Numbers of tasks with values and of tasks on whose front it is, and mean seconds of a run, as shown;
        ranks by measure, and estimates by key of `AGGREGATED`, and of `BETTER` than `BASELINE`, where there
        are values.
        """
        placed = {one.name: ranks([*self.values[one.name]], self.surely[one.name]) for one in RANKED}
        front, tasks = [name for _, name in self.front], [name for _, name in self.means.index]
        found = {}
        for name in self.values[UTILITY.name]:
            ahead = {key: self.apart[of].get((BASELINE, name)) for key, of in BETTER.items()}
            values = {key: self.values[of] for key, of in AGGREGATED.items() if name in self.values[of]}
            found[name] = {
                "tasks": f"{tasks.count(name)} of {len(self.runs)}",
                "front": str(front.count(name)),
                "cpu_seconds": number(self.seconds.xs(name, level=1).mean(), 1, 0),
                **{f"rank_{measure}": of.get(name) for measure, of in placed.items()},
                **{key: of if of is None else probability_of_improvement(-of) for key, of in ahead.items()},
                **{key: interquartile_mean(of[name].dropna()) for key, of in values.items()},
            }
        return dict(sorted(found.items(), key=_place))

    @cached_property
    def references(self) -> dict[str, dict[str, float]]:
        """Interquartile means over tasks of the references by key of `AGGREGATED`; NaN for none."""
        levels = self.levels[[*AGGREGATED.values()]].set_axis([*AGGREGATED], axis=1)
        return levels.groupby(level="policy").agg(_middle).to_dict("index")


def _place(standing: tuple[str, dict[str, Any]]) -> tuple[int, float]:
    rank, share = standing[1][f"rank_{UTILITY.name}"], standing[1].get("share")
    return rank.best, -share.mean if share else math.inf


def way_of(planned: Planned) -> str:
    """How a run decides, of `WAYS`."""
    config = planned.config
    if config.fairness.rule.name == "demographic_parity":
        return WAYS[2 + config.fairness.blind]
    return WAYS[planned.model not in DRAWN and config.model.get("decision") != "sample"]


def cpu_seconds(path: Path) -> dict[frozenset[str], float]:
    """The last measured processor time of each command, by its words without those about places."""
    measured = read_durations(path)
    lines = zip(measured["words"], measured["cpu_seconds"], strict=True)
    return {_words(words.split()): seconds for words, seconds in lines}


def _words(words: Sequence[str]) -> frozenset[str]:
    return frozenset(word for word in words if not word.startswith(PLACES))


def _beside(own: Any, oracle: pd.DataFrame) -> dict[str, Any]:
    """Regret, and shares of what the oracle earns where it earns anything, of values or levels by measure."""
    earned, by = oracle.where(oracle > 0), {"axis": 0, "level": "dataset"}
    shares = {key: own[of].div(earned[of], **by) for key, of in SHARES.items()}
    return {"regret": own[UTILITY.name].rsub(oracle[UTILITY.name], **by)} | shares


def sign(measure: Quantity) -> int:
    """1 where greater is better, else −1."""
    return 1 if measure.higher_is_better else -1


def _middle(levels: pd.Series) -> float:
    known = levels.dropna().to_numpy()
    return float(middle(known, np.ones(len(known)))) if len(known) else math.nan
