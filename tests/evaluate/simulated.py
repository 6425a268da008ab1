"""Simulated logs of past decisions, of which all labels are known."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import evaluate
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models

COST = 0.4
KEYS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
LOGISTIC: dict[str, Any] = {"propensity_model": "logistic", "outcome_model": "logistic"}
NOT_FEATURES = ("p", "new", "steep", "truth", "chance")


def applicants(n: int = 1500, *, seed: int = 0) -> pd.DataFrame:
    """A log with propensities `p`, two similar policies, and all labels `truth` with their probability."""
    draw = np.random.default_rng(seed)
    score, sex = draw.normal(size=n), draw.choice(["f", "m"], n)
    p, chance = expit(0.2 + 0.8 * score + 0.8 * (sex == "m")), expit(0.3 + score)
    people = decided(pd.DataFrame({"score": score, "sex": sex}), p, chance, draw)
    people = people.assign(p=p, steep=expit(1.7 * score), chance=chance)
    return people[["score", "sex", "granted", "repaid", *NOT_FEATURES]]


def decided(
    people: pd.DataFrame, p: np.ndarray, chance: np.ndarray, draw: np.random.Generator
) -> pd.DataFrame:
    """People with a score, with decisions of propensity p (N,), labels by their chance (N,) and a policy."""
    accepted, repays = (draw.random(len(people)) < probability for probability in (p, chance))
    return people.assign(
        granted=accepted.astype(int),
        repaid=np.where(accepted, repays, np.nan),
        new=expit(1.5 * people["score"]),
        truth=repays.astype(float),
    )


def log_of(people: pd.DataFrame, **keys: Any) -> DecisionLog:
    """The log of a table of `applicants`."""
    return DecisionLog.of(people, not_features=NOT_FEATURES, **(KEYS | keys))


def models_of(people: pd.DataFrame | DecisionLog, model: Any = "logistic", **keys: Any) -> Models:
    """Models of a log, logistic regressions by default."""
    log = log_of(people, **keys) if isinstance(people, pd.DataFrame) else people
    return Models(log, propensity_model=model, outcome_model=model)


def judged(models: Models, target: Any, name: str = "policy") -> Evaluation:
    """A policy of the given acceptance probabilities (N,); of None the logged decisions."""
    if target is None:
        return Evaluation(models, name, models.log.accepted.astype(float), logged=True)
    return Evaluation(models, name, np.asarray(target, dtype=float))


def evaluated(people: pd.DataFrame, policy: Any = "new", **options: Any) -> Evaluation:
    """`evaluate` on a table of `applicants`, by logistic regressions."""
    return evaluate(policy, people, **KEYS | LOGISTIC | {"not_features": [*NOT_FEATURES]} | options)
