"""Logs with a corner in which nobody was ever accepted, and logs in which acceptance is merely rare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import evaluate
from reproduction.simulations import Case

TITLE = "Overlap of a policy with past decisions"
NOTE = (
    "Propensities are estimated, by logistic regressions unless the case names the default models (auto). "
    "In a corner nobody was accepted, and a share of the policy's acceptances lies there. Bad labels are "
    "lower there by 3 in log odds. Refused: the value, for lack of overlap. Told: refused, marked as in "
    "doubt, or covered by the 95 % interval of the doubly robust value. Without corner: two logistic "
    "models, one near 0 at an end; 3 % (2,000 rows, auto), 10 % (2,000 rows) and half at random; steps "
    "from 15 to 90 %; a product of two features."
)
TESTED = ("fairall/tables/overlap.py",)
COST = 0.4
TOWNS = np.array([0.2, 0.15, 0.12, 0.1, 0.1, 0.08, 0.07, 0.05, 0.05, 0.03, 0.03, 0.02])  # shares of people
KEYS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}


class People(NamedTuple):
    """N people; arrays of shape (N,).

    Attributes:
        x: real features, shape (N, D).
        town: number of a category.
        man: the group.
    """

    x: np.ndarray
    town: np.ndarray
    man: np.ndarray

    @classmethod
    def drawn(cls, random: np.random.Generator, rows: int, features: int = 5) -> People:
        """Independent features."""
        x = random.standard_normal((rows, features))
        return cls(x, random.choice(len(TOWNS), size=rows, p=TOWNS), random.random(rows) < 0.5)

    def log(self, granted: np.ndarray, repays: np.ndarray, policy: np.ndarray) -> pd.DataFrame:
        """A log without propensities, and the acceptance probabilities of a policy."""
        columns = {f"x{k}": self.x[:, k] for k in range(self.x.shape[1])}
        return pd.DataFrame(columns).assign(
            town=[f"town {number}" for number in self.town],
            sex=np.where(self.man, "m", "f"),
            granted=granted.astype(int),
            repaid=np.where(granted, repays, np.nan),
            policy=policy,
        )


CORNERS: dict[str, Callable[[People], Any]] = {
    "x1 > 1.3": lambda people: people.x[:, 1] > 1.3,  # 9.7 % of the people
    "x0 > 1.65": lambda people: people.x[:, 0] > 1.65,  # 5 %
    "x0, x1 > 0.5": lambda people: (people.x[:, :2] > 0.5).all(1),  # 9.5 %
    "x0, x1 > 0.76": lambda people: (people.x[:, :2] > 0.76).all(1),  # 5 %
    "x0, x1 > 0.13": lambda people: (people.x[:, :2] > 0.13).all(1),  # 20 %
    "x0, x1, x2 > 0.1": lambda people: (people.x[:, :3] > 0.1).all(1),  # 9.7 %
    "a town of 10 %": lambda people: people.town == 3,
    "women with x1 > 0.84": lambda people: ~people.man & (people.x[:, 1] > 0.84),  # 10 %
}
RARE: dict[str, Callable[[People], Any]] = {
    "logistic": lambda people: expit(0.2 + 0.8 * people.x[:, 0] - 0.5 * people.x[:, 1]),
    "to 0 at an end": lambda people: expit(
        -1.0 + 1.2 * people.x[:, 0] + 0.8 * people.x[:, 1] + 0.5 * people.man
    ),
    "3 % at random": lambda people: np.full(len(people.man), 0.03),
    "10 % at random": lambda people: np.full(len(people.man), 0.1),
    "half at random": lambda people: np.full(len(people.man), 0.5),
    "steps": lambda people: np.select(
        [people.x[:, 0] > 0.5, people.x[:, 1] > 0.8], [np.where(people.x[:, 1] > 0.0, 0.9, 0.4), 0.15], 0.5
    ),
    "product": lambda people: np.clip(expit(0.9 * people.x[:, 0] * people.x[:, 1] + 0.3), 0.05, 0.95),
}
ROWS, SHARES = (500, 1000, 2000), (0.2, 0.35, 0.5, 0.8)


def with_corner(
    people: People, kind: str, share: float, bad: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of a past acceptance and of a good label, and the policy, of which `share` is inside."""
    x, corner = people.x, CORNERS[kind](people)
    chance = expit(0.3 + 0.8 * x[:, 0] - 0.3 * x[:, 1] - 3.0 * bad * corner)
    propensity = np.where(corner, 0.0, expit(0.2 + 0.6 * x[:, 0] - 0.5 * x[:, 2] + 0.3 * people.man))
    policy = expit(1.2 * x[:, 0] + 0.5 * x[:, 3])
    odds = share / (1.0 - share) * policy[~corner].sum() / policy[corner].sum()
    policy = np.where(corner, policy * min(odds, 1.0), policy / max(odds, 1.0))
    return propensity, chance, policy


@cache
def truth(kind: str, share: float, bad: bool) -> float:
    """Value of the policy among 400,000 people."""
    people = People.drawn(np.random.default_rng(0), 400_000)
    _, chance, policy = with_corner(people, kind, share, bad)
    return float((policy * (chance - COST)).mean())


def judged(
    random: np.random.Generator,
    people: People,
    probabilities: tuple[np.ndarray, np.ndarray, np.ndarray],
    auto: bool,
) -> Any:
    """The policy on a log of people by `with_corner` or of one without corner."""
    granted, repays = (random.random(len(people.x)) < one for one in probabilities[:2])
    log = people.log(granted, repays, probabilities[2])
    model = "auto" if auto else "logistic"
    return evaluate("policy", log, propensity_model=model, outcome_model=model, **KEYS)


def lacks_overlap(found: Any) -> bool:
    """Whether the value is refused for lack of overlap, not for lack of labels."""
    return (found.refused_value or "").startswith("no overlap")


def cornered(
    random: np.random.Generator,
    kind: str,
    rows: int,
    share: float = 0.5,
    bad: bool = False,
    auto: bool = False,
) -> Mapping[str, bool]:
    """Whether a policy with `share` of its acceptances in a corner is refused."""
    people = People.drawn(random, rows)
    found = judged(random, people, with_corner(people, kind, share, bad), auto)
    refused = lacks_overlap(found)
    if not bad:
        return {"refused": refused}
    value = found.values["dr"]
    covered = value.low <= truth(kind, share, bad) <= value.high
    return {"refused": refused, "told": refused or bool(found.in_doubt) or bool(covered)}


def any_corner(random: np.random.Generator) -> Mapping[str, bool]:
    """A corner of any kind; those of 5 % in logs of 1,000 rows and more."""
    kind, rows = random.choice([*CORNERS]), int(random.choice(ROWS))
    small = kind in ("x0 > 1.65", "x0, x1 > 0.76")
    return cornered(random, kind, max(rows, 1000) if small else rows, float(random.choice(SHARES)))


def rare(random: np.random.Generator) -> Mapping[str, bool]:
    """Whether one of three policies is refused on a log with a chance of acceptance everywhere."""
    kind, rows, features = random.choice([*RARE]), int(random.choice(ROWS)), int(random.choice([3, 5, 15]))
    if kind in ("3 % at random", "10 % at random"):  # else there are too few labels for any policy
        rows, features = 2000, 5
    people = People.drawn(random, rows, features)
    x = people.x
    chance = expit(0.3 + 0.8 * x[:, 0] - 0.3 * x[:, 1])
    policies = [expit(1.5 * x[:, 0] + 0.5 * x[:, 1]), (x[:, 0] + 0.5 * x[:, 1] > 0.3) * 1.0, expit(x[:, 1])]
    policy = policies[random.integers(len(policies))]
    return {
        "refused": lacks_overlap(
            judged(random, people, (RARE[kind](people), chance, policy), kind == "3 % at random")
        )
    }


REFUSED, BENIGN = {"refused": ("≥", 0.9)}, {"refused": ("≤", 0.01)}
TOLD = {"told": ("≥", 0.9)}
CASES = (
    Case("corner of any kind, 500 to 2,000 rows, 20 to 80 % of the policy", any_corner, 100, REFUSED),
    *(
        Case(f"corner {kind}, 1,000 rows, half", partial(cornered, kind=kind, rows=1000), 20, REFUSED)
        for kind in ("x1 > 1.3", "x0, x1 > 0.5", "x0, x1, x2 > 0.1", "a town of 10 %", "women with x1 > 0.84")
    ),
    Case(
        "corner x0, x1, x2 > 0.1, 1,000 rows, 20 %",
        partial(cornered, kind="x0, x1, x2 > 0.1", rows=1000, share=0.2),
        20,
        {},
    ),
    Case("corner x0 > 1.65, 500 rows, half", partial(cornered, kind="x0 > 1.65", rows=500), 20, {}),
    *(
        Case(
            f"corner {kind}, 1,000 rows, half, bad labels, auto",
            partial(cornered, kind=kind, rows=1000, bad=True, auto=True),
            12,
            TOLD,
        )
        for kind in ("x1 > 1.3", "x0, x1 > 0.5")
    ),
    *(
        Case(
            f"corner {kind}, 2,000 rows, 12 %, bad labels, auto",
            partial(cornered, kind=kind, rows=2000, share=0.12, bad=True, auto=True),
            12,
            TOLD,
        )
        for kind in ("x1 > 1.3", "a town of 10 %")
    ),
    Case("no corner: rare or frequent acceptance of seven kinds, 500 to 2,000 rows", rare, 200, BENIGN),
)
