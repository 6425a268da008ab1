"""Values of a policy from logs whose decisions and labels share something that simple models do not see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import evaluate
from reproduction.simulations import Case

TITLE = "What the models do not see"
NOTE = (
    "Logs of 1,000 rows with estimated propensities. Log odds of decision and label are sums of features and "
    "of what is named, a function of the features or of the position of a row. Covered: the true value is in "
    "the 95 % interval of the doubly robust value. Marked: a warning says that the value is in doubt."
)
TESTED = (
    "fairall/evaluate/checks.py",
    "fairall/evaluate/estimated/nuisance.py",
    "fairall/evaluate/estimated/terms.py",
)

COST, ROWS, POPULATION = 0.4, 1000, 500_000
PER_PERSON = 5  # rows, of several rows of a person
COLUMNS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
COVERED, MARKED, EITHER = "covered", "marked", "covered or marked"
Shift = Callable[[np.random.Generator, np.ndarray], np.ndarray]


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


def none(_: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Nothing is added to the log odds of features x, shape (N, D)."""
    return np.zeros(len(x))


# What is added to the log odds of decision and label alike, by features x, shape (N, D).
SHARED: dict[str, Shift] = {
    "product of three": lambda _, x: 1.2 * x[:, :3].prod(1),
    "parity of two": lambda _, x: 1.2 * np.sign(x[:, :2]).prod(1),
    "parity of three": lambda _, x: 1.2 * np.sign(x[:, :3]).prod(1),
    "corner": lambda _, x: 3.0 * ((x[:, 0] > 0.5) & (x[:, 1] > 0.5)),
    "drift": lambda _, x: np.linspace(-1.0, 1.0, len(x)),
}


def people(
    random: np.random.Generator, rows: int, shared: Shift = none, label: Shift | None = None, kind: str = ""
) -> People:
    """A log.

    Args:
        random: draws the people.
        rows: N.
        shared: what is added to the log odds of the decision, and of the label by default.
        label: what is added to the log odds of the label.
        kind: "irrelevant" for thirty features more, "tails" for features of heavy tails, "persons" for
            `PER_PERSON` rows of a person, with features and labels in common.
    """
    x, person = random.standard_normal((rows, 34 if kind == "irrelevant" else 4)), None
    x = random.standard_t(1.5, x.shape) if kind == "tails" else x
    shift = shared(random, x)
    own = shift if label is None else label(random, x)
    if kind == "persons":
        person = random.permutation(np.arange(rows) // PER_PERSON)
        x[:, :2] = x[person, :2]
        own = own + random.standard_normal(rows)[person]
    sex, seen = random.random(rows) < 0.5, np.tanh(x) if kind == "tails" else x
    propensity = expit(0.2 + 0.6 * seen[:, 0] + 0.3 * sex + shift).clip(0.03, 0.97)
    chance = expit(0.3 + 0.8 * seen[:, 0] - 0.3 * seen[:, 1] + own)
    granted, repaid = random.random(rows) < propensity, random.random(rows) < chance
    table = pd.DataFrame(x, columns=[f"x{number}" for number in range(x.shape[1])]).assign(
        sex=np.where(sex, "m", "f"), granted=granted.astype(int), repaid=np.where(granted, repaid, np.nan)
    )
    table = table if person is None else table.assign(person=person)
    return People(table, expit(1.2 * x[:, 0] + 0.5 * x[:, 3]), propensity, chance)


@cache
def truth(**world: Any) -> float:
    """The value of the policy for a large population."""
    population = people(np.random.default_rng(0), POPULATION, **world)
    return float((population.target * (population.chance - COST)).mean())


def judged(
    random: np.random.Generator, order: tuple[str, ...] = (), models: str = "auto", **world: Any
) -> Mapping[str, bool]:
    """What becomes of one log.

    Args:
        random: draws the people.
        order: columns that the file is sorted by, one after the other; "month" is a 24th of the rows.
        models: of decision and label, as for `evaluate`.
        world: further arguments of `people`.
    """
    log = people(random, ROWS, **world)
    keys = log.table.assign(month=np.arange(ROWS) * 24 // ROWS)
    rows = keys.sort_values(list(order), kind="stable").index if order else keys.index
    options = COLUMNS | {"propensity_model": models, "outcome_model": models}
    options |= {"person": "person"} if "person" in keys else {}
    evaluation = evaluate(log.target[rows], log.table.loc[rows].reset_index(drop=True), **options)
    value, marked = evaluation.values["dr"], evaluation.misfit is not None
    covered = bool(value.low <= truth(**world) <= value.high)
    return {COVERED: covered, MARKED: marked, EITHER: covered or marked}


RIGHT = {
    "logistic": "",
    "thirty irrelevant features": "irrelevant",
    "five rows of a person": "persons",
    "heavy tails": "tails",
}
CASES = (
    *(Case(name, partial(judged, kind=kind), 200, {COVERED: ("≥", 0.9)}) for name, kind in RIGHT.items()),
    *(Case(name, partial(judged, shared=shift), 200, {EITHER: ("≥", 0.9)}) for name, shift in SHARED.items()),
)
