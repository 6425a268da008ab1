"""A simulated log of a learner, whose propensities depend on the labels so far, with the truth."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import binom

COST = 0.5
KEYS: dict[str, Any] = {
    "decision": "granted",
    "label": "repaid",
    "sensitive": "group",
    "cost": COST,
    "time": "row",
    "not_features": ["new"],
}
X = np.arange(4) - 1.5
TIMES = np.array([0.4, 0.6])  # that x is greater by 1, of three, by group
CHANCE = binom.pmf(np.arange(4), 3, TIMES[:, None])  # of x in the groups
GOOD = expit(X)  # by x the chance of a positive label
NEW = expit(1.5 * X)  # and the policy `new`
TRUTHS = "utility", "gap of acceptance rates", "gap of true-positive rates"


def learner(n: int, seed: int = 0) -> tuple[pd.DataFrame, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A log whose leniency to a group follows the labels of its accepted people.

    Returns:
        The log, and by name what is true of `new` and of the decisions taken until each row, shape (n,).
    """
    draw = np.random.default_rng(seed)
    group = (draw.random(n) > 0.4).astype(int)
    x = draw.binomial(3, TIMES[group])
    label = draw.random(n) < GOOD[x]
    uniform = draw.random(n)
    policy = np.empty((n, len(X)))
    accepted = np.zeros(2)
    surplus = np.zeros(2)
    for row, g in enumerate(group):
        policy[row] = 0.1 + 0.8 * expit(X + np.clip(6.0 * surplus[g] / (accepted[g] + 5.0), -1.5, 1.5))
        if uniform[row] < policy[row, x[row]]:
            accepted[g] += 1
            surplus[g] += label[row] - 0.6
    p = policy[np.arange(n), x]
    table = pd.DataFrame(
        {
            "row": np.arange(1.0, n + 1) * 0.5,
            "x": X[x],
            "group": np.array(["a", "b"])[group],
            "p": p,
            "granted": (uniform < p).astype(int),
            "new": NEW[x],
            "repaid": np.where(uniform < p, label, np.nan),
        }
    )
    return table, truth(group, np.tile(NEW, (n, 1))), truth(group, policy)


def truth(group: np.ndarray, policy: np.ndarray) -> dict[str, np.ndarray]:
    """Expectations of acceptance probabilities by x, shape (n, 4), of the groups' people until each row."""

    def gap(weight: Any) -> np.ndarray:
        rates = []
        for g in (0, 1):
            chance = CHANCE[group] * weight * (group == g)[:, None]
            rates.append(np.cumsum((chance * policy).sum(1)) / np.maximum(np.cumsum(chance.sum(1)), 1e-9))
        return abs(rates[0] - rates[1])

    utility = np.cumsum((CHANCE[group] * policy * (GOOD - COST)).sum(1)) / np.arange(1, len(group) + 1)
    return dict(zip(TRUTHS, [utility, gap(1.0), gap(GOOD)], strict=True))
