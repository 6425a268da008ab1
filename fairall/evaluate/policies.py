"""Target policies: their acceptance probabilities of the people of a log, and whom they were learnt from."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.checks import require
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.tables.cells import numbers_of, refuse, spelling
from fairall.tables.features import Feature, Kind

LOGGED = "the logged decisions"
PROBA = ("decision", "label")  # what a probability is of: acceptance, a positive label
RULES = {
    "decision": "accept with the given probability",
    "label": "accept where the probability of a positive label is at least c = loss/(gain + loss)",
}
SAY = "--proba label or --proba decision, in Python proba='label' or proba='decision'"
SCORE_OF = ("positive", "negative")
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
        draw: seed of the decisions that a saved policy draws; None for others.
    """

    probability: np.ndarray
    name: str
    held_out: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    logged: bool = False
    rule: str = ""
    draw: int | None = None


def target_policy(
    policy: Any,
    log: DecisionLog,
    *,
    proba: str | None = None,
    draw: int | None = None,
    **places: Any,
) -> Target:
    """A policy with its acceptance probabilities and the rows of the log that it can be judged on.

    A policy looks better than it is on people whom it was learnt from. Those of a finished run with
    `dataset=csv` are found in its data file, see `saved.learnt_from`; of other policies a note says that they
    cannot be told.

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
              `predict_proba`, see `_place`. It gets the columns in its `feature_names_in_`, all if it has
              none, as numbers where all values are;
            - function of such a DataFrame of all columns, which returns probabilities, shape (N,);
            - array of probabilities, shape (N,).
        log: the people.
        proba: what the probabilities are of: `decision`, acceptance, or `label`, a positive label, of which
            at least c is accepted (`DecisionLog.break_even` where rows have amounts). By default those of a
            predictor are of what its classes say, and others of acceptance.
        draw: seed of the drawn decisions of a saved policy, which changes nothing here but the rule.
        places: of `saved.saved_policy`.

    Raises:
        FairAllError: if there is no such policy, the log lacks columns that it needs, it gives no
            probabilities, it cannot be told what they are of, or too few rows are left that it was not learnt
            from.
    """
    if policy is None:
        return Target(log.accepted.astype(float), LOGGED, logged=True, rule="as in the log")
    require(proba in (None, *PROBA), "proba", proba, " or ".join(PROBA))
    target, run = _read(policy, log, proba, draw, "", places)
    name = target.name
    if (target.probability == log.accepted).all():
        return replace(target, logged=True)
    learnt, reason = None, ""
    if run is not None:
        from fairall.evaluate.saved import learnt_from

        try:
            learnt = learnt_from(run, log)
        except FairAllError as error:
            reason = f" ({error})"
    if learnt is None:
        note = f"whether {name} was learnt from people of this log cannot be told{reason}"
        return replace(target, notes=(f"{note}; if it was, its estimates are too good",))
    if not learnt.any():
        return target
    known = f"policy {name} was learnt from {learnt.sum()} of the log's {len(log)} rows"
    n, unlabelled = (~learnt).sum(), log.revealed.any() and not log.revealed[~learnt].any()
    if n < LEAST_HELD_OUT or unlabelled:
        lacking = "have no label" if unlabelled else f"are too few: at least {LEAST_HELD_OUT} are needed"
        raise FairAllError(
            f"{known}, on which it looks better than it is, and the other {n} {lacking}; give a log of other "
            "people"
        )
    note = f"{known}, as training or validation rows, and is judged on the other {n} only"
    return replace(target, held_out=~learnt, notes=(note,))


def label_score(score: Any, log: DecisionLog, score_of: str = "positive", **places: Any) -> np.ndarray:
    """The probability of a positive label that a model gives each person of the log, shape (N,).

    Args:
        score: as for `target_policy`; of a saved policy `Policy.predict_proba`, of a predictor
            `predict_proba` of the positive label.
        log: the people.
        score_of: the label that a column, an array or a function is the probability of, `positive` or
            `negative`.
        places: of `saved.saved_policy`.

    Raises:
        FairAllError: as `target_policy`, and where a saved policy has no estimate of the label, or `score_of`
            is no label, or it is `negative` of a predictor or a saved policy, which say it themselves.
    """
    require(score_of in SCORE_OF, "score_of", score_of, " or ".join(SCORE_OF))
    probability = _read(score, log, "label", None, score_of, places)[0].probability
    return probability if score_of == "positive" else 1.0 - probability


def _read(
    policy: Any, log: DecisionLog, proba: str | None, draw: int | None, score_of: str, places: dict[str, Any]
) -> tuple[Target, Path | None]:
    """A policy, or with `score_of` a score, whose probabilities stay as they are; and the folder of a run."""
    run, name, role = None, str(policy), "score" if score_of else "policy"
    if not isinstance(policy, str | Path):
        kind = type(getattr(policy, "learner", policy)).__name__
        name = str(getattr(policy, "__name__", None) or getattr(policy, "name", None) or kind)
    elif name not in log.raw:
        from fairall.evaluate.saved import saved_policy  # imports torch, and reads configurations

        policy, name, run = saved_policy(name, log, **places)
    try:
        values, kind = _values(policy, log, proba, score_of)
        column = pd.Series(np.asarray(values), name=name)
        probability, _ = Feature(name, Kind.REAL).read(column)
        if len(probability) != len(log):
            raise ValueError(f"shape ({len(column)},) instead of ({len(log)},)")
        wrong = ~((probability >= 0) & (probability <= 1))
        refuse(column, wrong, "is no probability, a number from 0 to 1")
    except FairAllError as error:
        raise FairAllError(f"{role} {name}: {error}") from error
    except (TypeError, ValueError, KeyError) as error:  # of a user's object
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise FairAllError(f"{role} {name} gives no probabilities of this log ({reason})") from error
    if kind == "saved":
        from fairall.decide.rules import Rule

        rule = Rule(policy.threshold, draw)
        return Target(rule.acceptance(probability), name, rule=rule.told(), draw=draw), run
    if kind == "label" and not score_of:
        probability = (probability >= log.break_even).astype(float)
    return Target(probability, name, rule=RULES[kind]), run


def _values(policy: Any, log: DecisionLog, proba: str | None, score_of: str) -> tuple[Any, str]:
    """Probabilities (N,), unchecked, and what they are of: a key of `RULES`, or `saved`."""
    kind, people = proba or "decision", log.raw
    if isinstance(policy, str | Path):
        column = people[str(policy)]
        accepts, _ = Feature.discrete(str(policy), log.words["decision"], first_code=0).read(column)
        return column if proba == "label" or np.isnan(accepts).any() else accepts, kind
    module = sys.modules.get("fairall.policy")  # there is no saved policy before its import
    saved = module is not None and isinstance(policy, module.Policy)
    method = "predict_proba" if score_of or not hasattr(policy, "decision_proba") else "decision_proba"
    if not hasattr(policy, method):
        values = policy(_with_numbers(people)) if callable(policy) else policy
        return np.asarray(values, dtype=float), kind
    if score_of == "negative" or (proba == "label" and method == "decision_proba"):
        raise FairAllError(
            "it says itself what its probabilities are of: leave --proba, or --score-of, out (in Python "
            "proba=, score_of=); of several policies give one for each"
        )
    place = 1
    if saved:
        kind = kind if score_of else "saved"
    else:
        if method == "predict_proba":
            kind, place = _place(policy, log, proba)
        people = _with_numbers(people[[*getattr(policy, "feature_names_in_", people)]])
    values = np.asarray(getattr(policy, method)(people))
    return values[:, place] if values.shape[1:] == (2,) else values, kind


def _place(policy: Any, log: DecisionLog, proba: str | None) -> tuple[str, int]:
    """What `predict_proba` of a predictor is of, a key of `RULES`, and its column.

    Without `proba` its classes must be the two values of the decision or of the label, and not of both. With
    it the positive value must be one of two classes, or they are 0 and 1, or False and True; without
    `classes_` it is the last column.

    Raises:
        FairAllError: where the classes are others.
    """
    if proba and not hasattr(policy, "classes_"):
        return proba, 1
    words = np.ravel(getattr(policy, "classes_", [])).tolist()
    classes = [*map(spelling, words)]
    kinds = [proba] if proba else [kind for kind in PROBA if {*map(spelling, log.words[kind])} == {*classes}]
    if len(kinds) == 1 and len(classes) == 2:
        positive = log.words[kinds[0]][1]
        digits = {*classes} == {0.0, 1.0} and spelling(positive) != 0.0
        for place, value in enumerate(classes):
            # False may be the positive value 0, or mean that a value is not positive.
            unclear = words[place] is False and positive.casefold() != "false"
            if value == (1.0 if digits else spelling(positive)) and not unclear:
                return kinds[0], place
    say = "give a predictor of these values, or a function of the people" if proba else f"say it: {SAY}"
    raise FairAllError(
        f"its classes_ are {words}, the values of the decision {log.words['decision']}, of the label "
        f"{log.words['label']}: what its predict_proba is of cannot be told; {say}"
    )


def _with_numbers(raw: pd.DataFrame) -> pd.DataFrame:
    """The columns, those of text as numbers where all their values are; missing ones are NaN."""
    columns = dict(raw.items())
    for name, column in raw.items():
        if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype):
            numbers = numbers_of(column)
            words = (np.isnan(numbers) & column.notna()).any()
            columns[name] = column.astype(object) if words else numbers
    return pd.DataFrame(columns, index=raw.index)
