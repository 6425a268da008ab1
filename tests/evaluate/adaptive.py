"""A simulated log of a learner, whose propensities depend on the labels so far, with the truth."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

COST = 0.5
SHARE = 0.4  # of group "a"
KEYS: dict[str, Any] = {
    "decision": "granted",
    "label": "repaid",
    "sensitive": "group",
    "cost": COST,
    "time": "row",
    "not_features": ["new"],
}
X = np.array([-1.5, -0.5, 0.5, 1.5])
CHANCE = np.array([[0.35, 0.3, 0.2, 0.15], [0.15, 0.2, 0.3, 0.35]])  # of x in the groups
GOOD, NEW = expit(X), expit(1.5 * X)  # by x the chance of a positive label, and the policy `new`
TRUTHS = "utility", "gap of acceptance rates", "gap of true-positive rates"


def learner(n: int, seed: int = 0) -> tuple[pd.DataFrame, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A log whose leniency to a group follows the labels of its accepted people.

    Returns:
        The log, and by name what is true of `new` and of the decisions taken until each row, shape (n,).
    """
    draw = np.random.default_rng(seed)
    group = (draw.random(n) > SHARE).astype(int)
    x = (draw.random(n)[:, None] > CHANCE.cumsum(1)[group, :-1]).sum(1)
    label, uniform, policy = draw.random(n) < GOOD[x], draw.random(n), np.empty((n, len(X)))
    accepted, surplus = np.zeros(2), np.zeros(2)
    for row, g in enumerate(group):
        leniency = np.clip(6.0 * surplus[g] / (accepted[g] + 5.0), -1.5, 1.5)
        policy[row] = 0.1 + 0.8 * expit(X + leniency)
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

    def until(part: np.ndarray, members: Any = True) -> np.ndarray:
        return np.cumsum((CHANCE[group] * part).sum(1) * members)

    rows = np.ones_like(policy)
    rates = [
        [until(over, group == g) / np.maximum(until(under, group == g), 1e-9) for g in (0, 1)]
        for over, under in ((policy, rows), (policy * GOOD, rows * GOOD))
    ]
    utility = until(policy * (GOOD - COST)) / until(rows)
    return dict(zip(TRUTHS, [utility, *(abs(first - second) for first, second in rates)], strict=True))
