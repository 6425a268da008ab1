"""Target policies: their acceptance probabilities of the people of a log, and whom they were learnt from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.checks import require
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.tables.cells import is_text, numbers_of, refuse, spelling
from fairall.tables.features import Feature, Kind

LOGGED = "the logged decisions"
PROBA = {"decision": "accepted", "label": "positive"}  # what a probability is of, and the key of its value
RULES = {
    "decision": "accept with the given probability",
    "label": "accept where the probability of a positive label is at least c = loss/(gain + loss)",
}
SAY = "--proba label or --proba decision, in Python proba='label' or proba='decision'"
LEAST_HELD_OUT = 100  # rows that a policy is judged on where it was learnt from others of the log


@dataclass(frozen=True)
class Target:
    """A policy to judge on a log of N people.

    Attributes:
        probability: of acceptance, shape (N,), in [0, 1].
        name: for tables.
        held_out: rows that the policy was not learnt from, shape (N,), bool; None where all rows count.
        notes: on the people that the policy was learnt from, a sentence each.
        logged: whether its decisions are the logged ones.
        rule: where the probabilities come from, in words.
        saved: whether it is a `fairall.policy.Policy`, whose decisions may be drawn.
    """

    probability: np.ndarray
    name: str
    held_out: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    logged: bool = False
    rule: str = ""
    saved: bool = False


def target_policy(
    policy: Any,
    log: DecisionLog,
    *,
    proba: str | None = None,
    draw: int | None = None,
    **places: Any,
) -> Target:
    """A policy with its acceptance probabilities and the rows of the log that it can be judged on.

    A policy looks better than it is on people whom it was learnt from. Of a finished run with `dataset=csv`
    these are known where the log has the rows of its data file, see `saved.not_learnt_from`; else a note says
    that they cannot be told.

    A run has a policy for every seed. Their mean decides as the command `decide` does: it accepts where the
    mean probability is at least the threshold of the method, or, with `draw`, with that probability.

    Args:
        policy: one of, in this order of precedence:
            - None: the policy that took the logged decisions;
            - name of a column of the log, with probabilities or with the two values of its decisions;
            - address of a saved policy in MLflow, as of `fairall.load_policy`;
            - folder of a finished run, or of a saved policy;
            - beginning of the id of a run;
            - `fairall.policy.Policy`;
            - object with `decision_proba`, π, shape (N,), or (N, 2) with acceptance last; else with
              `predict_proba`, see `_place`, which needs `proba`. It gets the columns in its
              `feature_names_in_`, all if it has none; those of text as numbers where all values are;
            - function of such a DataFrame of all columns, which returns probabilities, shape (N,);
            - array of probabilities, shape (N,).
        log: the people.
        proba: what the probabilities are of: `decision`, acceptance, or `label`, a positive label, of which
            at least c is accepted (`DecisionLog.break_even` where rows have amounts). By default acceptance.
        draw: seed of the drawn decisions of a saved policy, which changes nothing here but the rule.
        places: of `saved.saved_policy`.

    Raises:
        FairAllError: if there is no such policy, the log lacks columns that it needs, it gives no
            probabilities, it cannot be told what they are of, or too few rows are left that it was not learnt
            from.
    """
    if policy is None:
        return Target(log.accepted.astype(float), LOGGED, logged=True, rule="as in the log")
    require(proba in (None, *PROBA), "proba", proba, "decision or label")
    kind, held_out, reason = proba or "decision", None, ""
    name = getattr(policy, "__name__", type(policy).__name__)
    if isinstance(policy, str | Path):
        name = str(policy)
        if name in log.raw:
            policy = _column(name, kind, log)
        else:
            from fairall.evaluate.saved import saved_policy  # imports torch, and reads configurations

            policy, name, held_out, reason = saved_policy(name, log, **places)
    # A `fairall.policy.Policy`, which is not imported here, since it imports torch.
    saved = hasattr(policy, "encoded_propensity")
    try:
        probability = _probabilities(_values(policy, log, proba, saved), name, log)
    except (TypeError, ValueError, KeyError) as error:  # of a user's object
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise FairAllError(f"policy {name} gives no probabilities of this log ({what})") from error
    rule = RULES[kind]
    if saved:
        from fairall.decide.rules import Rule

        of_saved = Rule(policy.threshold, draw)
        probability, rule = of_saved.acceptance(probability), of_saved.told()
    elif kind == "label":
        probability = (probability >= log.break_even).astype(float)
    target = Target(probability, name, rule=rule, saved=saved)
    if (probability == log.accepted).all():
        return replace(target, logged=True)
    if held_out is None:
        note = f"whether {name} was learnt from people of this log cannot be told{reason}"
        return replace(target, notes=(f"{note}; if it was, its estimates are too good",))
    n = held_out.sum()
    known = f"policy {name} was learnt from {len(log) - n} of the log's {len(log)} rows"
    if n < LEAST_HELD_OUT or log.revealed.any() > log.revealed[held_out].any():
        raise FairAllError(
            f"{known}, on which it looks better than it is, and of the other {n} at least {LEAST_HELD_OUT} "
            "are needed, some of them with a label; give a log of other people"
        )
    note = f"{known}, as training or validation rows, and is judged on the other {n} only"
    return replace(target, held_out=held_out, notes=(note,))


def label_score(score: Any, log: DecisionLog, score_of: str = "positive") -> np.ndarray:
    """The probability of a positive label that a model gives each person of the log, shape (N,).

    Args:
        score: name of a column of the log, or an array, shape (N,).
        log: the people.
        score_of: the label that it is the probability of, `positive` or `negative`.

    Raises:
        FairAllError: if the log has no such column, the score is no probability, or `score_of` no label.
    """
    require(score_of in ("positive", "negative"), "score_of", score_of, "positive or negative")
    name = "score"
    if isinstance(score, str):
        require(score in log.raw, "score", score, "a column of the log")
        name, score = score, log.raw[score]
    probability = _probabilities(score, name, log)
    return probability if score_of == "positive" else 1.0 - probability


def _probabilities(values: Any, name: str, log: DecisionLog) -> np.ndarray:
    column = np.asarray(values)
    if column.shape != (len(log),):
        raise FairAllError(f"{name}: one probability for each row is needed, {len(log)} in all")
    cells = pd.Series(column, name=name)
    probability, _ = Feature(name, Kind.REAL).read(cells)
    refuse(cells, ~((probability >= 0) & (probability <= 1)), "is no probability, a number from 0 to 1")
    return probability


def _column(name: str, kind: str, log: DecisionLog) -> pd.Series:
    """A column of the log; one that has the values of the decision and no other ones holds decisions."""
    words, decisions = (log.raw[column].map(spelling) for column in (name, log.declared.decision))
    if kind == "decision" and words.isin(decisions.unique()).all():
        return words == spelling(log.declared.accepted)
    return log.raw[name]


def _values(policy: Any, log: DecisionLog, proba: str | None, saved: bool) -> Any:
    """Probabilities (N,), unchecked."""
    if not any(hasattr(policy, name) for name in ("decision_proba", "predict_proba", "__call__")):
        return policy
    people = log.raw[[*getattr(policy, "feature_names_in_", log.raw)]]
    if not saved:
        people = people.apply(_number)
    if hasattr(policy, "decision_proba"):
        if proba == "label":
            raise FairAllError(
                "decision_proba is of acceptance, and not of a label; of several policies give proba= for "
                "each"
            )
        values, place = np.asarray(policy.decision_proba(people)), 1
    elif hasattr(policy, "predict_proba"):
        place = _place(policy, log, proba)
        values = np.asarray(policy.predict_proba(people))
    else:
        return policy(people)
    return values[:, place] if values.shape[1:] == (2,) else values


def _place(policy: Any, log: DecisionLog, proba: str | None) -> int:
    """The column of `predict_proba` that is of the positive value: of an acceptance, or a positive label.

    It is that of this value, or of 1 or True where the classes are 0 and 1, or False and True; without
    `classes_` the last one.

    Raises:
        FairAllError: where it is not said what `predict_proba` is of, or the classes are others.
    """
    if proba is None:
        raise FairAllError(f"what predict_proba is of cannot be told: say {SAY}")
    positive = getattr(log.declared, PROBA[proba])
    words = np.ravel(getattr(policy, "classes_", ["", positive]))
    classes, value = [*map(spelling, words.tolist())], spelling(positive)
    if value not in classes and {*classes} == {0.0, 1.0}:
        value = 1.0
    # False may be the positive value 0, or mean that a value is not positive.
    if len(classes) != 2 or value not in classes or (words.dtype == bool and value == 0.0):
        raise FairAllError(
            f"which of the classes_ {words.tolist()} is {PROBA[proba]}={positive} cannot be told; give a "
            "function of the people"
        )
    return classes.index(value)


def _number(column: pd.Series) -> pd.Series:
    """A column, one of text as numbers where all its values are; missing ones are NaN."""
    if not is_text(column):
        return column
    numbers = pd.Series(numbers_of(column), column.index)
    return numbers if numbers.notna().equals(column.notna()) else column.astype(object)
