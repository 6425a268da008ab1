"""Models of a log that learn from earlier rows only, for estimates that may be looked at at any moment.

With predictions from the past, and recorded propensities, each doubly robust pseudo-label has the expectation
of the label given everything before, also where propensities depend on the past, as those of a learner do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fairall.evaluate.estimated.nuisance import fit
from fairall.evaluate.log import FURTHEST, DecisionLog
from fairall.tables.features import DISCRETE

FIRST_FIT = 100  # rows before the first fit
GROWTH = 1.5  # of the rows, at which models are fitted again
MOST_MOMENTS = 200


@dataclass(frozen=True)
class Past:
    """The rows of a log in the order of time, and predictions for each from earlier moments.

    Attributes:
        order: rows of the log by time, of equal times as given, shape (N,).
        last: position in `order` of the last row of each moment, shape (T,); of more than `MOST_MOMENTS`
            moments as many, evenly by rows.
        weight: r/p, NaN where p is not known, before the first fit; shape (N,), by time as all below.
        label_weight: r/ℓ, likewise.
        outcome: q; before the first fit the share of positive labels so far.
        lacking: what has too few rows to be told over time, a sentence each.
    """

    order: np.ndarray
    last: np.ndarray
    weight: np.ndarray
    label_weight: np.ndarray
    outcome: np.ndarray
    lacking: tuple[str, ...] = ()


def past(log: DecisionLog, propensity_model: Any, outcome_model: Any, folds: int, seed: int) -> Past:
    """Fit the models of a log with times again and again, whenever its rows have grown by `GROWTH`.

    Args:
        log: with times.
        propensity_model: as of `nuisance.fit`, as the others.
        outcome_model: likewise.
        folds: likewise.
        seed: likewise.
    """
    assert log.time is not None
    order = np.argsort(log.time, kind="stable")
    log = log.rows(order)
    revealed = log.revealed
    positive, labels, accepted = (
        np.cumsum(values) - values
        for values in (np.nan_to_num(log.label), revealed.astype(int), log.accepted)
    )
    learnt, _ = _learnt(log, log.label, "label", outcome_model, folds, seed)
    outcome = np.where(np.isnan(learnt), (positive + 0.5) / (labels + 1.0), learnt)
    label_weight = revealed.astype(float)
    if not log.labels_complete:
        known = np.where(log.accepted, revealed, np.nan)
        _, inverse = _learnt(log, known, "known label", propensity_model, folds, seed)
        # All labels of the past may be known, or none of them.
        possible = (labels > 0) & (np.arange(len(log)) >= FIRST_FIT)
        share = np.where(possible, labels / np.maximum(accepted, 1), np.nan)
        label_weight *= np.where(np.isnan(inverse), 1.0 / share, inverse)
    lacking = [*filter(None, [few_rows(len(log))])]
    if log.propensity is not None:
        weight = label_weight / np.where(revealed, log.propensity, 1.0)
    else:
        weight, version = np.full(len(log), np.nan), log.policy_version
        for name in [None] if version is None else np.unique(version):
            # A new policy is learnt anew, from its own past.
            rows = np.flatnonzero(np.ones(len(log)) if version is None else version == name)
            part = log.rows(rows)
            _, inverse = _learnt(part, part.accepted, "decision", propensity_model, folds, seed)
            weight[rows] = label_weight[rows] * inverse
            if not lacking and np.isnan(inverse).all():
                whose = "the log" if version is None else f"policy version {name}"
                lacking.append(
                    f"over time, labels of {whose} count for the value of the decisions taken only: "
                    f"propensities are learnt from {FIRST_FIT} of its earlier rows, two of them with either "
                    f"decision, and it has {len(part)} rows"
                )
    last = _last(log)
    if len(last) > MOST_MOMENTS:
        wanted = np.linspace(len(log) / MOST_MOMENTS, len(log), MOST_MOMENTS) - 1
        last = np.unique(last[np.searchsorted(last, wanted.round())])
    return Past(order, last, weight, label_weight, outcome, tuple(lacking))


def few_rows(rows: int) -> str | None:
    """Why a log has too few rows for intervals over time; None where it has enough."""
    why = f"no intervals over time yet: they begin at {FIRST_FIT} rows, and the log has {rows}"
    return why if rows < FIRST_FIT else None


def _last(log: DecisionLog) -> np.ndarray:
    """The last row of each moment of a log in the order of time."""
    assert log.time is not None
    return np.flatnonzero(np.append(log.time[1:] != log.time[:-1], True))


def _learnt(
    log: DecisionLog, target: np.ndarray, what: str, model: Any, folds: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """P and 1/p of the rows of a log by models of earlier moments, NaN without one; arguments as of `fit`."""
    starts: list[int] = []
    for end in (_last(log)[:-1] + 1).tolist():
        if end >= (GROWTH * starts[-1] if starts else FIRST_FIT):
            starts.append(end)
    p, inverse = np.full((2, len(log)), np.nan)
    for start, end in pairwise([*starts, len(log)]):
        rows = np.arange(end)
        part = replace(log.rows(rows), inputs=_standardised(log, start)[rows])
        fitted = fit(part, np.where(rows < start, target[rows], np.nan), what, model, folds, seed)
        if fitted is not None:
            p[start:end], inverse[start:end] = fitted.probability[start:], fitted.inverse()[start:]
    return p, inverse


def _standardised(log: DecisionLog, start: int) -> np.ndarray:
    """`DecisionLog.inputs` with means and standard deviations of the first rows, up to `start`."""
    numeric = [feature.name for feature in log.features if feature.kind not in DISCRETE]
    inputs, columns = log.inputs.copy(), slice(1, 1 + len(numeric))  # they come first
    values = pd.DataFrame(inputs[:, columns].astype(float)).where(log.x[numeric].notna().to_numpy())
    scaled = (values - values[:start].mean()) / values[:start].std(ddof=0).replace(0.0, 1.0)
    inputs[:, columns] = scaled.clip(-FURTHEST, FURTHEST).fillna(0.0)
    return inputs
