"""Target policies: their acceptance probabilities of the people of a log, and whom they were learnt from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.tables.cells import TRUTH, listed, numbers_of, spelling, words_of
from fairall.tables.features import Feature, Kind

LOGGED = "the logged decisions"
PROBA = {"decision": "acceptance", "label": "a positive label"}  # what a probability is of
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
    `dataset=csv` are found in its data file, see `_learnt_from`; of other policies a note says that they
    cannot be told.

    A run has a policy for every seed. Their mean decides as the command `decide` does: it accepts where the
    mean probability is at least the threshold of the method, or, with `draw`, with that probability.

    Args:
        policy: one of, in this order of precedence:
            - None: the policy that took the logged decisions;
            - array of probabilities, shape (N,);
            - `fairall.policy.Policy`;
            - object with `decision_proba`, π, shape (N,), or (N, 2) with acceptance last; else with
              `predict_proba` and `classes_`, see `_reading`. It gets the columns in its `feature_names_in_`,
              all if it has none, as numbers where all values are;
            - function of such a DataFrame of all columns, which returns probabilities, shape (N,);
            - name of a column of the log, with probabilities or with the two values of its decisions;
            - address of a saved policy in MLflow, as of `fairall.load_policy`;
            - folder of a finished run, or of a saved policy;
            - beginning of the id of a run.
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
    if proba not in (None, *PROBA):
        raise FairAllError(f"proba={proba} is not possible: it must be {' or '.join(PROBA)}")
    run, called = None, ""
    if isinstance(policy, str | Path) and str(policy) in log.raw:
        target = _of_column(log.raw[str(policy)], log, proba)
    else:
        if isinstance(policy, str | Path):
            policy, called, run = _saved().saved_policy(str(policy), log, **places)
        target = _of_object(policy, called, log, proba, draw)
    name = target.name
    if (target.probability == log.accepted).all():
        return replace(target, logged=True)
    learnt, reason = None, ""
    try:
        learnt = None if run is None else _saved().learnt_from(run, log)
    except FairAllError as error:
        reason = " ({})".format(str(error).split("\n")[0])
    if learnt is None:
        note = f"whether {name} was learnt from people of this log cannot be told{reason}"
        return replace(target, notes=(f"{note}; if it was, its estimates are too good",))
    if not learnt.any():
        return target
    held_out = ~learnt
    n = held_out.sum()
    known = f"policy {name} was learnt from {learnt.sum()} of the log's {len(log)} rows"
    lacking = f"are too few: at least {LEAST_HELD_OUT} are needed" if n < LEAST_HELD_OUT else None
    if log.revealed.any() and not log.revealed[held_out].any():
        lacking = "have no label"
    if lacking is not None:
        raise FairAllError(
            f"{known}, on which it looks better than it is, and the other {n} {lacking}; give a log of other "
            "people"
        )
    note = f"{known}, as training or validation rows, and is judged on the other {n} only"
    return replace(target, held_out=held_out, notes=(note,))


def label_score(score: Any, log: DecisionLog, of: str = "positive", **places: Any) -> np.ndarray:
    """The probability of a positive label that a model gives each person of the log, shape (N,).

    Args:
        score: as for `target_policy`; of a saved policy `Policy.predict_proba`, of a predictor
            `predict_proba` of the positive label.
        log: the people.
        of: the label that a column, an array or a function is the probability of, `positive` or `negative`.
        places: of `saved.saved_policy`.

    Raises:
        FairAllError: as `target_policy`, and where a saved policy has no estimate of the label, or `of` is no
            label, or it is `negative` of a predictor or a saved policy, which say it themselves.
    """
    if of not in SCORE_OF:
        raise FairAllError(f"score_of={of} is not possible: it must be {' or '.join(SCORE_OF)}")
    if isinstance(score, str | Path) and str(score) in log.raw:
        given = _checked(lambda: _numbers(log.raw[str(score)]), str(score), log, "score")
        return given if of == "positive" else 1.0 - given
    if isinstance(score, str | Path):
        score, _, _ = _saved().saved_policy(str(score), log, **places)
    name = type(score).__name__
    if not _is_saved(score) and not hasattr(score, "predict_proba"):
        given = _of_object(score, "", log, "decision", None).probability
        return given if of == "positive" else 1.0 - given
    if of == "negative":
        raise FairAllError(
            f"score {name}: it says itself what its probabilities are of: leave --score-of, or score_of, out"
        )
    if _is_saved(score):
        return _checked(lambda: score.predict_proba(log.raw)[:, 1], name, log, "score")
    _, position, _ = _reading(score, log, "label")
    return _checked(lambda: _column_of(score, "predict_proba", log, position), name, log, "score")


def _of_object(policy: Any, name: str, log: DecisionLog, proba: str | None, draw: int | None) -> Target:
    """A policy that is no column; a saved one may have a name."""
    if _is_saved(policy):
        name = name or type(policy.learner).__name__
        _refuse_label(proba, name, "a saved policy decides by its own rule")
        give, rule = _saved().deciding(policy, log, draw)
        return Target(_checked(give, name, log), name, rule=rule, draw=draw)
    name, of = type(policy).__name__, proba or "decision"
    if hasattr(policy, "decision_proba"):
        _refuse_label(proba, name, "its decision_proba is of acceptance")
        give = partial(_column_of, policy, "decision_proba", log, 1)
        return _decided(give, name, "its decision_proba", log)
    if hasattr(policy, "predict_proba"):
        of, position, what = _reading(policy, log, proba)
        give = partial(_column_of, policy, "predict_proba", log, position)
        return _decided(give, name, f"its predict_proba of {what}", log, of)
    if callable(policy):
        name, give = getattr(policy, "__name__", name), partial(policy, _with_numbers(log.raw))
        return _decided(give, name, f"its probability of {PROBA[of]}", log, of)
    name = str(getattr(policy, "name", None) or "array")
    return _decided(lambda: policy, name, f"the given probability of {PROBA[of]}", log, of)


def _is_saved(policy: Any) -> bool:
    """Whether an object is a `fairall.policy.Policy`, of which there is none before its import."""
    module = sys.modules.get("fairall.policy")
    return module is not None and isinstance(policy, module.Policy)


def _saved() -> ModuleType:
    """`evaluate.saved`, which imports torch and reads configurations."""
    from fairall.evaluate import saved

    return saved


def _decided(give: Callable[[], Any], name: str, rule: str, log: DecisionLog, of: str = "decision") -> Target:
    """The policy that accepts with given probabilities, or, of a `label`, where they are at least c."""
    probability = _checked(give, name, log)
    if of == "decision":
        return Target(probability, name, rule=f"accept with {rule}")
    least = log.break_even if log.cost is None else np.full(len(log), log.cost)
    known = "loss/(gain + loss) of the row" if log.cost is None else f"c = {log.cost:g}"
    accepts = (probability >= least).astype(float)
    return Target(accepts, name, rule=f"accept where {rule} is at least {known}")


def _refuse_label(proba: str | None, name: str, why: str) -> None:
    """Raise FairAllError where probabilities that are of acceptance are said to be of the label."""
    if proba == "label":
        raise FairAllError(
            f"policy {name}: --proba label, or proba='label', is not possible: {why}; of several policies "
            "give one for each"
        )


def _checked(give: Callable[[], Any], name: str, log: DecisionLog, what: str = "policy") -> np.ndarray:
    """The probabilities that a policy or a score (`what`) of a name gives, checked, shape (N,)."""
    try:
        values = np.asarray(give(), dtype=float)
    except FairAllError as error:
        told = str(error)
        raise FairAllError(told if told.startswith(f"{what} ") else f"{what} {name}: {told}") from error
    except (TypeError, ValueError, KeyError) as error:  # of a user's object
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise FairAllError(f"{what} {name} gives no probabilities of this log ({reason})") from error
    if values.shape != (len(log),):
        raise FairAllError(
            f"{what} {name} gives an array of shape {values.shape}; it must be ({len(log)},), a probability "
            "for each row of the log"
        )
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise FairAllError(
            f"{what} {name}, row {int(wrong.argmax()) + 1}: {values[wrong.argmax()]:g} is no probability, a "
            "number from 0 to 1"
        )
    return values


def _of_column(column: pd.Series, log: DecisionLog, proba: str | None) -> Target:
    """Probabilities or decisions in a column of the log."""
    name, (rejection, acceptance) = str(column.name), map(spelling, log.decision_values)
    codes, words = words_of(column)
    spelt = [spelling(word) for word in words]
    decides = set(spelt) <= {rejection, acceptance} and (codes >= 0).all()
    if decides and (proba != "label" or any(isinstance(one, str) for one in spelt)):
        _refuse_label(proba, name, "the column holds decisions")
        accepts = np.array([value == acceptance for value in spelt], dtype=float)
        return Target(accepts[codes], name, rule=f"the decisions in column {name!r}")
    of = proba or "decision"
    rule = f"the probability of {PROBA[of]} in column {name!r}"
    decisions = f", or decisions as in {log.decision!r}, {_either(log.decision_values)}"
    return _decided(lambda: _numbers(column, decisions), name, rule, log, of)


def _numbers(column: pd.Series, others: str = "") -> np.ndarray:
    """The numbers of a column that must hold probabilities, or `others`, shape (N,); True is 1.

    Raises:
        FairAllError: where a cell is empty or another text.
    """
    numbers, _ = Feature(str(column.name), Kind.REAL).read(column)
    if np.isnan(numbers).any():
        codes, words = words_of(column)
        values = listed(list(words), "value")
        missing = " and empty cells" if (codes < 0).any() else ""
        raise FairAllError(
            f"the column has {values}{missing}; it must hold probabilities from 0 to 1{others}"
        )
    return numbers


def _column_of(policy: Any, method: str, log: DecisionLog, position: int) -> np.ndarray:
    """A column of what a predictor's method gives, or all of it where it gives one number a person."""
    needed = list(getattr(policy, "feature_names_in_", log.raw.columns))
    lacking = [column for column in needed if column not in log.raw]
    if lacking:
        raise FairAllError(f"it needs {listed(lacking, 'column')} that the log lacks")
    values = np.asarray(getattr(policy, method)(_with_numbers(log.raw[needed])))
    return values[:, position] if values.ndim == 2 and values.shape[1] == 2 else values


def _reading(policy: Any, log: DecisionLog, proba: str | None) -> tuple[str, int, str]:
    """What `predict_proba` of a predictor is of (a key of `PROBA`), its column, and its class in words.

    Its `classes_` tell, which are the two values of the decisions or of the labels of the log, in any order.
    Values that both have can be either, and so can 0 and 1, or False and True, where neither has them:
    `proba` must then say it.

    Raises:
        FairAllError: where they tell nothing, or not what `proba` says.
    """
    name, classes = type(policy).__name__, getattr(policy, "classes_", None)
    say = f"say what its predict_proba is of, a positive label or acceptance: {SAY}"
    if classes is None:
        if proba is None:
            raise FairAllError(f"policy {name} has no classes_: {say}")
        return proba, 1, PROBA[proba]
    own = list(np.asarray(classes, dtype=object).ravel())
    values = {"decision": log.decision_values, "label": log.label_values}
    places = {of: place for of, words in values.items() if (place := _place(own, *words)) is not None}
    spelt = {spelling(one) for one in own}
    written = [of for of in places if {spelling(word) for word in values[of] if word} <= spelt]
    told = f"policy {name}: its classes are {_either(own)}"
    if proba is None and places and len(written) != 1:
        raise FairAllError(f"{told}, which can be those of the decision or of the label: {say}")
    of = proba or next(iter(written), "")
    if of not in places:
        which = PROBA.get(of) or _either(PROBA.values())
        raise FairAllError(
            f"{told}; the decision in this log is {_either(log.decision_values)}, the label "
            f"{_either(log.label_values)}: which class is {which} cannot be told; give a predictor of these "
            "values, or a function of the people"
        )
    return of, places[of], f"class {own[places[of]]}"


def _place(classes: Sequence[Any], no: str, yes: str) -> int | None:
    """Position of the class that is a positive value; None where that cannot be told.

    Args:
        classes: of a predictor.
        no: the negative value, "" where it is not known.
        yes: the positive value, likewise.
    """
    spelt = [spelling(one) for one in classes]
    if len(spelt) != 2:
        return None
    place = spelt.index(1.0) if set(spelt) == {0.0, 1.0} else None
    # A value that is not known, "", may be either class.
    fits = [k for k in (0, 1) if spelling(yes) in ("", spelt[k]) and spelling(no) in ("", spelt[1 - k])]
    if len(fits) != 1:
        return place
    (exact,) = fits
    # Whether True is the value 1 or the positive value, 0, cannot be told.
    truth = all(isinstance(one, bool | np.bool_) for one in classes)
    written = {str(word).casefold() for word in (no, yes) if word} <= TRUTH.keys()
    return None if truth and exact != place and not written else exact


def _either(values: Iterable[object]) -> str:
    """Words that are known, as "refused or granted"; "unknown" without any."""
    return " or ".join(str(value) for value in values if str(value)) or "unknown"


def _with_numbers(raw: pd.DataFrame) -> pd.DataFrame:
    """The columns, those of text as numbers where all their values are; missing ones are NaN."""
    columns = {}
    for name, column in raw.items():
        columns[name] = column
        if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype):
            numbers = numbers_of(column) + 0.0  # turns −0 into 0
            words = (np.isnan(numbers) & column.notna().to_numpy()).any()
            columns[name] = column.astype(object) if words else numbers
    return pd.DataFrame(columns, index=raw.index)
