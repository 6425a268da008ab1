"""Simulated people whose decisions and labels have known probabilities, and what is true of a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import Evaluation, evaluate

Random: TypeAlias = np.random.Generator
Events: TypeAlias = dict[str, bool]  # what has happened
COST = 0.4
# Columns of a log, whose labels are known of accepted people.
COLUMNS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
MODELS = ("propensity_model", "outcome_model")  # options of `evaluate`


class People(NamedTuple):
    """A log and what is true of it; arrays of shape (N,).

    Attributes:
        table: the log, with `COLUMNS`.
        target: acceptance probabilities of the policy to judge.
        propensity: true π.
        chance: true P(y = 1).
    """

    table: pd.DataFrame
    target: np.ndarray
    propensity: np.ndarray
    chance: np.ndarray

    @classmethod
    def decided(cls, random: Random, table: pd.DataFrame, *probabilities: Any) -> People:
        """People with decisions and labels; `probabilities` are target, propensity and chance."""
        granted, repaid = (random.random(len(table)) < one for one in probabilities[1:])
        known = {"granted": granted.astype(int), "repaid": np.where(granted, repaid, np.nan)}
        return cls(table.assign(**known), *probabilities)

    @property
    def value(self) -> float:
        """Of the policy, for these people."""
        return float((self.target * (self.chance - COST)).mean())

    def judged(self, model: str = "logistic", **options: Any) -> Evaluation:
        """The policy, by the log and models of a kind."""
        return evaluate(self.target, self.table, **COLUMNS | dict.fromkeys(MODELS, model) | options)


@cache
def many(people: Callable[..., Any], **world: Any) -> Any:
    """A million people of a world."""
    return people(np.random.default_rng(0), 1_000_000, **world)


@cache
def truth(people: Callable[..., People], rows: int, **world: Any) -> float:
    """The value of the policy of a world for a large population."""
    return people(np.random.default_rng(0), rows, **world).value


def applicants(random: Random, rows: int) -> pd.DataFrame:
    """Features, probability of a good label, propensities `p`, and those of two policies."""
    people = pd.DataFrame({"score": random.normal(size=rows), "sex": random.choice(["f", "m"], rows)})
    log_odds = np.add(np.outer(people["score"], (0.8, 1.0, 1.7, 1.0)), (0.2, 1.0, -0.5, 0.3))
    log_odds[:, 0] -= 0.8 * (people["sex"] == "f")
    people[["p", "mild", "strict", "chance"]] = expit(log_odds)
    return people


def logistic(of: Any, constant: float = 0.0, **weights: float) -> Any:
    """Probabilities of N people by a logistic model of the columns that `weights` name."""
    return expit(sum((weight * of[name] for name, weight in weights.items()), constant))


def covered(intervals: Mapping[str, tuple[Any, float]]) -> Events:
    """Whether intervals contain the truth, to rounding; those that do not exist are left out.

    Args:
        intervals: name → what has the attributes `low` and `high`, and the truth.
    """
    return {
        name: of.low - 1e-9 <= truth <= of.high + 1e-9
        for name, (of, truth) in intervals.items()
        if not np.isnan(of.low)
    }


def outside(row: Any, value: float) -> Any:
    """Whether the interval of a row, or each of those of a table, is known and excludes a value."""
    return (row["low"] > value) | (row["high"] < value)
