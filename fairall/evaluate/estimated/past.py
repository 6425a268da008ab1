"""Models of a log that learn from earlier rows only, for estimates that may be looked at at any moment.

With predictions from the past, and recorded propensities, each doubly robust pseudo-label has the expectation
of the label given everything before, also where propensities depend on the past, as those of a learner do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from fairall.evaluate.estimated.nuisance import Fitted, fit
from fairall.evaluate.log import FURTHEST, DecisionLog
from fairall.tables.features import DISCRETE

FIRST_FIT = 100  # rows before the first fit
GROWTH = 1.5  # of the rows, at which models are fitted again
MOST_MOMENTS = 200
Targets: TypeAlias = dict[str, tuple[np.ndarray, Any]]
"""By name a target, shape (N,), NaN where unknown, and the model of it, see `nuisance.fit`."""


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
    last = _last(log)
    revealed = log.revealed
    positive = np.cumsum(np.nan_to_num(log.label)) - np.nan_to_num(log.label)
    outcome = (positive + 0.5) / (np.cumsum(revealed) - revealed + 1.0)
    # 1/π and 1/ℓ of each row, NaN where it is not known.
    of_decision = np.full(len(log), np.nan)
    if log.propensity is not None:
        of_decision = 1.0 / np.where(revealed, log.propensity, 1.0)
    of_label = np.full(len(log), 1.0 if log.labels_complete else np.nan)
    lacking = list(filter(None, [few_rows(len(log))]))
    if log.propensity is None:
        version = np.zeros(len(log)) if log.policy_version is None else log.policy_version
        for name in np.unique(version):  # a new policy is learnt anew, from its own past
            own = np.flatnonzero(version == name)
            part = log.rows(own)
            of_part: Targets = {"decision": (part.accepted, propensity_model)}
            for start, end, (found,) in _fits(part, of_part, folds, seed):
                if found is not None:
                    of_decision[own[start:end]] = found.inverse()[start:]
            if not lacking and np.isnan(of_decision[own]).all():
                lacking.append(_not_learnt(name, part))
    of_labels: Targets = {"label": (log.label, outcome_model)}
    if not log.labels_complete:
        of_labels["known label"] = np.where(log.accepted, revealed, np.nan), propensity_model
    for start, end, (label, *known) in _fits(log, of_labels, folds, seed):
        if label is not None:
            outcome[start:end] = label.probability[start:]
        for found in known:
            # All labels of the past may be known, or none of them.
            share = revealed[:start].sum() / max(log.accepted[:start].sum(), 1)
            if found is not None or share > 0:
                of_label[start:end] = 1.0 / share if found is None else found.inverse()[start:]
    label_weight = revealed * of_label
    if len(last) > MOST_MOMENTS:
        wanted = np.linspace(len(log) / MOST_MOMENTS, len(log), MOST_MOMENTS) - 1
        last = np.unique(last[np.searchsorted(last, wanted.round())])
    return Past(order, last, label_weight * of_decision, label_weight, outcome, tuple(lacking))


def few_rows(rows: int) -> str | None:
    """Why a log has too few rows for intervals over time; None where it has enough."""
    why = f"no intervals over time yet: they begin at {FIRST_FIT} rows, and the log has {rows}"
    return why if rows < FIRST_FIT else None


def _not_learnt(name: Any, part: DecisionLog) -> str:
    """That nothing is known of the propensities of a policy version, whose rows are `part`."""
    of = "the log" if part.policy_version is None else f"policy version {name}"
    why = f"its propensities are learnt from {FIRST_FIT} of its earlier rows, and it has {len(part)} rows"
    if len(part) > FIRST_FIT:
        why = f"a model of the decision needs {FIRST_FIT} earlier rows, two of them with either decision"
    return f"over time, labels of {of} count for the value of the decisions taken only: {why}"


def _spans(ends: np.ndarray) -> Iterator[tuple[int, int]]:
    """Rows of the past of each fit, and the row before which the next one is due."""
    starts: list[int] = []
    for end in ends.tolist():
        if end >= (GROWTH * starts[-1] if starts else FIRST_FIT):
            starts.append(end)
    return pairwise([*starts, int(ends[-1])])


def _last(log: DecisionLog) -> np.ndarray:
    """The last row of each moment of a log in the order of time."""
    assert log.time is not None
    return np.flatnonzero(np.append(log.time[1:] != log.time[:-1], True))


def _fits(
    log: DecisionLog, targets: Targets, folds: int, seed: int
) -> Iterator[tuple[int, int, list[Fitted | None]]]:
    """Models of targets, fitted on the first rows, up to a start, and the end of those that they predict."""
    for start, end in _spans(_last(log) + 1):
        rows = np.arange(end)
        part = replace(log.rows(rows), inputs=_standardised(log, start)[:end])
        fitted = [
            fit(part, np.where(rows < start, target[:end], np.nan), what, model, folds, seed, past=start)
            for what, (target, model) in targets.items()
        ]
        yield start, end, fitted


def _standardised(log: DecisionLog, start: int) -> np.ndarray:
    """`DecisionLog.inputs` with means and standard deviations of the first rows, up to `start`."""
    inputs = log.inputs.copy()
    numeric = [feature.name for feature in log.features if feature.kind not in DISCRETE]
    for column, name in zip(inputs.T[1:], numeric, strict=False):  # they come first
        known = log.x[name].notna().to_numpy()
        seen = column[:start][known[:start]].astype(float)
        mean, spread = (seen.mean(), seen.std()) if len(seen) else (0.0, 1.0)
        scaled = (column - mean) / (spread or 1.0)
        column[:] = np.where(known, np.clip(scaled, -FURTHEST, FURTHEST), 0.0)
    return inputs
