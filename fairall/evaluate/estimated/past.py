"""Models of a log that learn from earlier rows only, for estimates that may be looked at at any moment.

With predictions from the past, and recorded propensities, each doubly robust pseudo-label has the expectation
of the label given everything before, also where propensities depend on the past, as those of a learner do.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairall.evaluate.log import FURTHEST, DecisionLog
from fairall.tables.overlap import LEAST_EFFECTIVE

FIRST_FIT = 100  # rows before the first fit
GROWTH = 1.5  # of the rows, at which models are fitted again
MOST_MOMENTS = 200


class Past(NamedTuple):
    """The rows of a log in the order of time, and predictions for each from earlier moments.

    Attributes:
        order: rows of the log by time, of equal times as they are in the log, shape (N,).
        last: position in `order` of the last row of each moment, shape (T,); of more than `MOST_MOMENTS`
            moments as many of them, evenly.
        weight: r/p, NaN where p is not known, before the first fit; shape (N,), by time as all below.
        label_weight: r/ℓ, likewise.
        outcome: q; before the first fit the share of positive labels so far, NaN before the first label.
    """

    order: np.ndarray
    last: np.ndarray
    weight: np.ndarray
    label_weight: np.ndarray
    outcome: np.ndarray


def past(log: DecisionLog, by_decision: Any, by_label: Any) -> Past:
    """Fit the models of a log with times again and again, whenever its rows have grown by `GROWTH`.

    Args:
        log: with times.
        by_decision: `nuisance.fit` of a log, a target and its name, by the model of decisions.
        by_label: likewise, by that of labels.
    """
    order = np.argsort(np.asarray(log.time), kind="stable")
    log = log.rows(order)
    outcome, _ = _learnt(log, log.label, 1, "label", by_label)
    label_weight = log.revealed.astype(float)
    if not log.labels_complete:
        known = np.where(log.accepted, log.revealed, np.nan)
        # Where all labels of the past are known there is no model.
        label_weight *= _learnt(log, known, LEAST_EFFECTIVE, "known label", by_decision)[1]
    weight = label_weight.copy()
    if log.propensity is not None:
        weight *= 1.0 / np.where(log.revealed, log.propensity, 1.0)
    else:
        version = np.zeros(len(log)) if log.policy_version is None else log.policy_version
        # A new policy is learnt anew, from its own past.
        for rows in pd.Series(version).groupby(version).indices.values():
            part = log.rows(rows)
            weight[rows] *= _learnt(part, part.accepted, len(part), "decision", by_decision)[1]
    last = _last(log)
    last = last[np.linspace(0, len(last) - 1, min(len(last), MOST_MOMENTS)).astype(int)]
    return Past(order, last, weight, label_weight, outcome)


def _last(log: DecisionLog) -> np.ndarray:
    """The last row of each moment of a log in the order of time."""
    return np.flatnonzero(~pd.Series(log.time).duplicated(keep="last"))


def _learnt(log: DecisionLog, target: np.ndarray, least: int, what: str, fit: Any) -> np.ndarray:
    """P and 1/p of the rows of a log by models of earlier moments, shape (2, N).

    Inputs have the mean 0 and standard deviation 1 in the rows that a model is fitted to, not in all.

    Args:
        log: in the order of time.
        target: as of `nuisance.fit`.
        least: targets from which on their mean so far stands in where there is no model; else NaN.
        what: of the target, in messages.
        fit: see `past`.
    """
    share = pd.Series(target).expanding(least).mean().shift()
    both = np.stack([share, 1.0 / share.replace(0.0, np.nan)])
    numeric = [feature.name for feature in log.features if not feature.codes]
    numbers = log.x[numeric].astype(float)
    inputs = log.inputs.copy()
    starts: list[int] = []
    for end in (_last(log)[:-1] + 1).tolist():
        if end >= (GROWTH * starts[-1] if starts else FIRST_FIT):
            starts.append(end)
    for start, end in pairwise([*starts, len(log)]):
        earlier = numbers[:start]
        rows = np.arange(end)
        scaled = (numbers - earlier.mean()) / earlier.std().replace(0.0, 1.0)
        # They come first, after the constant.
        inputs[:, 1 : 1 + len(numeric)] = scaled.clip(-FURTHEST, FURTHEST).fillna(0.0)
        part = replace(log, inputs=inputs).rows(rows)
        fitted = fit(part, np.where(rows < start, target[rows], np.nan), what)
        if fitted:
            both[:, start:end] = fitted.probability[start:], fitted.inverse()[start:]
    return both
