"""Simulated logs whose decisions and labels share something that simple models do not see."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged.models import Models
from fairall.evaluate.log import DecisionLog

COST = 0.4
N_ROWS = 1000
KEYS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
PER_PERSON = 5  # rows, of clusters


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

    @property
    def value(self) -> float:
        """Of the policy."""
        return float((self.target * (self.chance - COST)).mean())

    def log(self) -> DecisionLog:
        keys = KEYS | ({"person": "person"} if "person" in self.table else {})
        return DecisionLog.of(self.table, **keys)


def corner(x: np.ndarray) -> np.ndarray:
    """Both above a threshold."""
    return 3.0 * ((x[:, 0] > 0.5) & (x[:, 1] > 0.5))


def drift(x: np.ndarray) -> np.ndarray:
    """With the position of the row, which is no column."""
    return np.linspace(-1.0, 1.0, len(x))


def swing(x: np.ndarray) -> np.ndarray:
    """Twelve times to and fro along the rows."""
    return np.sin(np.linspace(0.0, 24.0 * np.pi, len(x)))


# What is added to the log odds of decision and label alike.
SHARED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": lambda x: np.zeros(len(x)),
    "interaction of three": lambda x: 1.2 * x[:, 0] * x[:, 1] * x[:, 2],
    "parity of three": lambda x: 1.2 * np.sign(x[:, :3]).prod(1),
    "parity of four": lambda x: 1.2 * np.sign(x[:, :4]).prod(1),
    "corner": corner,
    "drift": drift,
    "swing": swing,
    "heavy tails": lambda x: np.zeros(len(x)),
    "irrelevant": lambda x: np.zeros(len(x)),
    "clusters": lambda x: np.zeros(len(x)),
}
REPRESENTABLE = ("logistic", "heavy tails", "irrelevant", "clusters")


def drawn(name: str, rows: int = N_ROWS, *, seed: int = 0, strength: float = 1.0) -> Drawn:
    """A log of `SHARED[name]`, times `strength`."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((rows, 34 if name == "irrelevant" else 4))
    if name == "heavy tails":
        x = draw.standard_t(1.5, size=x.shape)
    sex, person, own = draw.random(rows) < 0.5, None, np.zeros(rows)
    if name == "clusters":  # of equal features, and a label in common
        person = draw.permutation(np.arange(rows) // PER_PERSON)
        x[:, :2] = x[person, :2]
        own = draw.standard_normal(rows)[person]
    bounded = np.tanh(x) if name == "heavy tails" else x
    shared = strength * SHARED[name](x)
    p = np.clip(expit(0.2 + 0.6 * bounded[:, 0] + 0.3 * sex + shared), 0.03, 0.97)
    chance = expit(0.3 + 0.8 * bounded[:, 0] - 0.3 * bounded[:, 1] + own + shared)
    granted, repays = draw.random(rows) < p, draw.random(rows) < chance
    table = pd.DataFrame(x, columns=[f"x{k}" for k in range(x.shape[1])]).assign(
        sex=np.where(sex, "m", "f"), granted=granted.astype(int), repaid=np.where(granted, repays, np.nan)
    )
    if person is not None:
        table["person"] = person
    return Drawn(table, expit(1.2 * x[:, 0] + 0.5 * x[:, 3]), p, chance)


def true_value(name: str, strength: float = 1.0) -> float:
    """Of a million people."""
    return float(np.mean([drawn(name, 250_000, seed=10**6 + k, strength=strength).value for k in range(4)]))


class Judged(NamedTuple):
    """Whether the interval of the doubly robust value covers, and whether the value is marked."""

    covered: bool
    marked: bool


def judged(name: str, truth: float, *, seed: int, strength: float = 1.0) -> Judged:
    """One log of `N_ROWS`, with the package's own models."""
    one = drawn(name, seed=seed, strength=strength)
    found = Evaluation(Models(one.log()), "policy", one.target)
    value = found.values["dr"]
    return Judged(value.low <= truth <= value.high, found.misfit is not None)
