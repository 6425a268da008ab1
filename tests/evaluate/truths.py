"""Simulated logs whose decisions and labels share something that simple models do not see."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate.log import DecisionLog

COST = 0.4
KEYS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
# What is added to the log odds of decision and label alike, by features or the position of a row.
SHARED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": lambda x: np.zeros(len(x)),
    "irrelevant": lambda x: np.zeros(len(x)),  # thirty features
    "product of three": lambda x: 1.2 * x[:, 0] * x[:, 1] * x[:, 2],
    "parity of two": lambda x: 1.2 * np.sign(x[:, :2]).prod(1),
    "parity of three": lambda x: 1.2 * np.sign(x[:, :3]).prod(1),
    "corner": lambda x: 3.0 * ((x[:, 0] > 0.5) & (x[:, 1] > 0.5)),
    "drift": lambda x: np.linspace(-1.0, 1.0, len(x)),
    "swing": lambda x: np.sin(np.linspace(0.0, 24.0 * np.pi, len(x))),
}


class Drawn(NamedTuple):
    """People and what is true of them; arrays of shape (N,).

    Attributes:
        table: the log.
        target: acceptance probabilities of the policy to judge.
        propensity: true π.
        chance: true P(y = 1).
    """

    table: pd.DataFrame
    target: np.ndarray
    propensity: np.ndarray
    chance: np.ndarray

    def log(self) -> DecisionLog:
        return DecisionLog.of(self.table, **KEYS)

    def rows(self, order: np.ndarray) -> "Drawn":
        """The same people in another order."""
        return Drawn(self.table.iloc[order], *(values[order] for values in self[1:]))


def drawn(name: str, rows: int = 1000, *, seed: int = 0) -> Drawn:
    """A log of `SHARED[name]`."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((rows, 34 if name == "irrelevant" else 4))
    sex, shared = draw.random(rows) < 0.5, SHARED[name](x)
    p = np.clip(expit(0.2 + 0.6 * x[:, 0] + 0.3 * sex + shared), 0.03, 0.97)
    chance = expit(0.3 + 0.8 * x[:, 0] - 0.3 * x[:, 1] + shared)
    granted, repays = draw.random(rows) < p, draw.random(rows) < chance
    table = pd.DataFrame(x, columns=[f"x{k}" for k in range(x.shape[1])]).assign(
        sex=np.where(sex, "m", "f"), granted=granted.astype(int), repaid=np.where(granted, repays, np.nan)
    )
    return Drawn(table, expit(1.2 * x[:, 0] + 0.5 * x[:, 3]), p, chance)
