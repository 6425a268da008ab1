"""Simulated logs of a learner, whose propensities depend on the labels so far, with the truth at each row."""

from dataclasses import dataclass
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
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LENIENCY = np.linspace(-1.5, 1.5, 301)
LARGE = np.array([-0.3, 0.3])  # mean of x in the groups


@dataclass
class Truth:
    """Of the policy `new`, and of the decisions of each log until each row, shape (logs, n)."""

    new: dict[str, float]
    taken: dict[str, np.ndarray]


def new_policy(x: np.ndarray) -> np.ndarray:
    return expit(1.5 * x)


def propensity(x: np.ndarray, leniency: np.ndarray) -> np.ndarray:
    return 0.1 + 0.8 * expit(x + leniency)


def logs(number: int, n: int, seed: int = 0) -> tuple[list[pd.DataFrame], Truth]:
    """Logs whose leniency to a group follows the labels of its accepted people, and the truth."""
    draw = np.random.default_rng(seed)
    group = (draw.random((number, n)) > SHARE).astype(int)
    x = LARGE[group] + draw.normal(size=(number, n))
    label = draw.random((number, n)) < expit(x)
    uniform, p, leniency = draw.random((number, n)), np.empty((number, n)), np.empty((number, n))
    seen, each = np.zeros((number, 2)), np.arange(number)
    surplus = np.zeros((number, 2))
    for row in range(n):
        own = each, group[:, row]
        leniency[:, row] = np.clip(6.0 * surplus[own] / (seen[own] + 5.0), -1.5, 1.5)
        p[:, row] = propensity(x[:, row], leniency[:, row])
        accepted = uniform[:, row] < p[:, row]
        seen[own] += accepted
        surplus[own] += accepted * (label[:, row] - 0.6)
    accepted = uniform < p
    tables = [
        pd.DataFrame(
            {
                "row": np.arange(1.0, n + 1) * 0.5,
                "x": x[k],
                "group": np.array(["a", "b"])[group[k]],
                "p": p[k],
                "granted": accepted[k].astype(int),
                "new": new_policy(x[k]),
                "repaid": np.where(accepted[k], label[k], np.nan),
            }
        )
        for k in range(number)
    ]
    return tables, _truth(group, leniency)


def _truth(group: np.ndarray, leniency: np.ndarray) -> Truth:
    shares, found = np.array([SHARE, 1.0 - SHARE]), {}
    x = LARGE[:, None] + NODES
    good, new = expit(x), new_policy(x)
    acceptance, positive = new @ WEIGHTS, (new * good) @ WEIGHTS
    found["value"] = float(shares @ ((new * (good - COST)) @ WEIGHTS))
    found["dpu"] = float(abs(np.diff(acceptance))[0])
    found["equal_opportunity"] = float(abs(np.diff(positive / (good @ WEIGHTS)))[0])
    # Means by leniency of a group, from which those of each row follow.
    p = propensity(x[:, None], LENIENCY[:, None])
    by_leniency = {
        "accepted": p @ WEIGHTS,
        "positive": (p * good[:, None]) @ WEIGHTS,
        "gain": (p * (good[:, None] - COST)) @ WEIGHTS,
    }

    def so_far(what: str, chosen: np.ndarray | None = None) -> np.ndarray:
        low, high = (np.interp(leniency, LENIENCY, one) for one in by_leniency[what])
        own = np.where(group == 0, low, high)
        return np.cumsum(own if chosen is None else own * chosen, axis=1)

    members = [np.cumsum(group == code, axis=1) for code in (0, 1)]
    rates = {
        name: [so_far(what, group == code) / np.maximum(members[code] * below[code], 1e-9) for code in (0, 1)]
        for name, what, below in (
            ("dpu", "accepted", np.ones(2)),
            ("equal_opportunity", "positive", good @ WEIGHTS),
        )
    }
    taken = {name: np.abs(one - other) for name, (one, other) in rates.items()}
    # The value is of the applicants so far of either group, which vary with them.
    taken["value"] = so_far("gain") / np.arange(1, group.shape[1] + 1)
    return Truth(found, taken)
