"""What a log cannot tell: impossible propensities, missing overlap, policies that know the past decision.

Each function gives a sentence that says what is wrong, or None.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.special import iti0k0
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from fairall.display.progress import doing
from fairall.errors import count
from fairall.evaluate.estimated.bounds import Bounds
from fairall.evaluate.estimated.estimates import Estimate
from fairall.evaluate.estimated.terms import deviations, products
from fairall.evaluate.log import DecisionLog
from fairall.tables.overlap import (
    LEAST_EFFECTIVE,
    MOST_CLOSED,
    TOTAL_TOLERANCE,
    closed_regions,
    effective_sample_size,
)

UNLIKELY = 0.01  # propensity below which acceptance is too rare to learn from
MOST_UNLIKELY = 0.05  # share of people concerned that may be so unlikely
SEPARABLE = 0.99  # AUC of estimated propensities from which decisions are taken as deterministic
DEPENDENT, CORRELATED = 5.0, 0.1  # deviations of the covariance, and the correlation, from which it matters
LEAST_LEFT = 0.02  # share of the variance of a that features do not explain, below which nothing is told
MOST_ROWS = 20_000  # of the regression behind `knows_decision`
SURPRISE = float(np.log(2e4))  # −ln of the probability of a deviation of Σ d/π, halved
LEVEL = 0.01  # of `misfit`; 4 of 100 logs of logistic models were marked at 0.05
LEAST_DEVIATION = 2.0  # of either residual from 0, in standard errors, for a misfit of both models
LEAST_SHIFT = 0.1  # standard errors of the value by which a misfit moves it, below which it matters little
LEAST_SHOWN = 1e-6  # p
WIDTHS = (0.01, 0.04, 0.16)  # of half a window around a row, as shares of the rows
TINY = np.finfo(float).tiny
LEAST_CHANGES = 0.25  # of those between neighbours in random order, below which a file is sorted by a column


def impossible(log: DecisionLog, propensity: np.ndarray) -> str | None:
    """Why the propensities cannot be those of the decisions.

    Σ d/π over any set of people is their number in expectation (Horvitz & Thompson 1952), with the variance
    Σ (1 − π)/π. It is compared with the number of those with π > 0: of all, of each group, and of each region
    of a feature where π is recorded for everybody. A deviation is too large if Bernstein's inequality gives
    it a probability below 10⁻⁴.

    Args:
        log: the people.
        propensity: π, recorded or estimated, shape (N,), NaN where unknown.
    """
    doing("sums of 1/π in all regions")
    d, unknown = log.accepted, np.isnan(propensity)
    if (certain := int((~d & (propensity >= 1.0)).sum())) > 0:
        whom = count(certain, "rejected person", "rejected people")
        return f"{whom} had a recorded propensity of 1: these are not the propensities of the decisions"
    inverse = np.where(d, 1.0 / np.where(d, propensity, 1.0), 0.0)
    possible = unknown | (propensity > 0)
    largest = np.where(unknown, inverse.max(), 1.0 / np.where(possible, propensity, 1.0))
    # Of each row where π is known, which is more stable than the estimate d (1 − π)/π² by the accepted.
    variance = np.where(unknown, inverse * (inverse - 1.0), largest - 1.0)
    by_feature = log.propensity is not None and not unknown.any()
    regions = log.regions() if by_feature else log.members.items()
    for name, rows in itertools.chain([("in the log", np.ones_like(d))], regions):
        expected, total = int(possible[rows].sum()), inverse[rows].sum()
        jump = SURPRISE * largest[rows].max() / 3.0
        noise = jump + np.sqrt(jump**2 + 2.0 * SURPRISE * variance[rows].sum())
        if abs(total - expected) > max(TOTAL_TOLERANCE * expected, noise):
            return (
                f"1/π of the accepted, by the {'estimated' if log.propensity is None else 'recorded'} "
                f"propensities π, adds up to {total:.0f} for the people {name} instead of their number "
                f"{expected}: π is not the probability of these decisions, or some had almost no chance"
            )
    return None


def lacking(
    log: DecisionLog,
    chance: np.ndarray,
    separable: bool,
    wanted: np.ndarray,
    weight: np.ndarray,
    whom: str,
    error: float = np.inf,
) -> str | None:
    """What overlap is missing for estimates about people weighted by `wanted`.

    Args:
        log: the people.
        chance: of a revealed label, shape (N,).
        separable: whether rejected people had no chance, since the features tell the decisions.
        wanted: shares of people that count, shape (N,).
        weight: of their revealed labels, shape (N,).
        whom: which people, in words.
        error: standard error of a mean over all N rows of labels times `wanted`. Overlap is missing too where
            people of whom hardly any label is known have a greater share, Σ wanted / N, than this.
    """
    if wanted.sum() <= 0:
        return None
    columns = log.members, log.features, log.x, log.design, log.input_names
    closed = closed_regions(*columns, log.revealed, wanted)
    share = sum(wanted[rows].sum() for _, rows in closed) / wanted.sum()
    hint = f"; drop=[{','.join(log.telling)}] leaves out columns that tell the decision" * bool(log.telling)
    if share > MOST_CLOSED:
        names = "; ".join(name for name, _ in closed)
        return f"no overlap: {names} was accepted with a known label, {share:.1%} of the people {whom}{hint}"
    rare = chance < UNLIKELY
    rare &= log.revealed[rare].sum() <= UNLIKELY * rare.sum()  # else it is not as rare as estimated
    unlikely = wanted * (rare | (~log.accepted if separable else False))
    share, few = unlikely.sum() / wanted.sum(), log.revealed[unlikely > 0].sum() < LEAST_EFFECTIVE
    if share > MOST_UNLIKELY or (few and unlikely.mean() > error):
        why = f"had a propensity of a known label below {UNLIKELY:g}"
        why = "were rejected, and the features tell nearly every decision" if separable else why
        return f"no overlap: {share:.1%} of the people {whom} {why}{hint}"
    if (size := effective_sample_size(weight)) < LEAST_EFFECTIVE:
        return (
            f"the effective sample size of the weights is {size:.0f}, below {LEAST_EFFECTIVE}: too few "
            f"accepted people are like those {whom}"
        )
    return None


class Misfit(NamedTuple):
    """What two models leave over, and share.

    Attributes:
        inputs: names of the inputs that tell it; none for the order of the rows.
        shift: estimate of the bias of the value by what `inputs` tell, in its units.
        p: bound of the probability of as much by chance, where either model is right.
    """

    inputs: list[str]
    shift: float
    p: float

    @property
    def sentence(self) -> str:
        """What is in doubt, with what to do."""
        what = " and ".join(name or "the group" for name in self.inputs) or "the order of the rows in time"
        return (
            f"the value is in doubt, by {100 * abs(self.shift):.1f} per 100 people or more: what the models "
            f"of decision and label leave over can still be foretold by {what} (p ≤ "
            f"{max(self.p, LEAST_SHOWN):.2g}); give features that tell more, the time among them, a "
            "propensity_model or outcome_model of your own, or record propensities"
        )


def misfit(
    log: DecisionLog, outcome: np.ndarray, imbalance: np.ndarray, error: float, seed: int
) -> Misfit | None:
    """Where the weights of a policy miss what the outcome model misses too.

    The bias of a doubly robust value is E[(w·a − a)·(q − q̂)·stake]: w·a − a has the expectation 0 given the
    inputs if propensities are right, y − q̂ if the outcome model is. In the direction of each function h of
    the inputs both are tested; where both models miss h, the bias is about slope · E[(w·a − a)·h], with the
    slope Σ (y − q̂)·h / Σ h² over the rows with a label. If one model is right, one of the two deviations is
    about N(0, 1), and the product |Z₁·Z₂| is above z with the probability 1 − (2/π) ∫₀ᶻ K₀ if both are. p is
    this, times the number of functions (Bonferroni). Such tests of a doubly robust interval by products of
    residuals are those of Liu, Mukherjee and Robins (2020), here of one direction at a time.

    Decisions and labels may also change together with time or, without times, along the rows, slowly or to
    and fro. Let m be the mean of y − q̂ among the other rows in a window around a row; then Σ (w·a − a)·m /N
    is an estimate of the bias. It is a sum over pairs of neighbours, and has the expectation 0 given either
    of the two residuals if the model of the other one is right. p is of the smaller of its deviations by the
    two conditional standard errors, times the number of `WIDTHS`. A file that is sorted by decision or label
    has no order of time, and is not tested so.

    The smaller of both p is doubled.

    Args:
        log: the people.
        outcome: q̂, out of fold, shape (N,).
        imbalance: w·a − a, shape (N,).
        error: standard error of the value.
        seed: chooses `MOST_ROWS` of the rows of a large log.

    References:
        Liu, L., Mukherjee, R. and Robins, J. (2020). On nearly assumption-free tests of nominal confidence
        interval coverage for causal parameters estimated by machine learning. Statistical Science.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(len(log))[:MOST_ROWS])
    rows = rows if log.time is None else rows[np.argsort(log.time[rows], kind="stable")]
    person = None if log.person is None else log.person[rows]
    residual = np.where(log.revealed, np.nan_to_num(log.label) - outcome, 0.0)[rows]
    known, weighted = log.revealed[rows], (imbalance * log.stake)[rows]
    parts = []
    for terms, h in products(log.design[rows]):
        h -= h.mean(1, keepdims=True)
        slope = h @ residual / np.maximum((h[:, known] ** 2).sum(1), TINY)
        z = np.abs([deviations(values, h, person) for values in (residual, weighted)])
        both = np.where(z.min(0) >= LEAST_DEVIATION, z.prod(0), 0.0)
        parts.append([*terms.T, both, h @ weighted / len(rows) * slope])
    *inputs, both, shift = np.concatenate(parts, axis=1)
    best = int(both.argmax())
    names = [log.input_names[int(values[best])] for values in inputs if values[best] >= 0]
    p = max(0.0, len(both) * (1.0 - 2.0 / np.pi * float(iti0k0(both[best])[1])))
    tests = [Misfit(list(dict.fromkeys(names)), float(shift[best]), p)]
    if not any(map(_sorted, (log.accepted[rows], log.label[rows][known]))):
        tests += _misses_over_time(residual, known, weighted, person)
    worst = min(tests, key=lambda test: test.p)
    worst = worst._replace(p=2.0 * worst.p)
    return worst if worst.p < LEVEL and abs(worst.shift) >= LEAST_SHIFT * error else None


def _misses_over_time(
    residual: np.ndarray, known: np.ndarray, weighted: np.ndarray, person: np.ndarray | None
) -> Iterator[Misfit]:
    """Whether weights miss where the labels of neighbours in time miss too, by window; see `misfit`.

    Args:
        residual: y − q̂ of rows with a label, else 0, in the order of time, shape (N,).
        known: whether a row has a label, shape (N,).
        weighted: (w·a − a)·stake, shape (N,).
        person: codes of people, shape (N,); None for a row each.
    """
    for width in WIDTHS:
        size = 2 * max(1, int(width * len(known))) + 1

        labels = np.maximum(_of_others(known.astype(float), size).round(), 1.0)
        miss, weights = _of_others(residual, size) / labels, _of_others(weighted / labels, size)
        z = deviations(weighted, miss[None], person), deviations(residual, weights[None], person)
        p = 2.0 * len(WIDTHS) * float(norm.sf(np.abs(z).min()))
        yield Misfit([], float(weighted @ (miss - miss.mean())) / len(miss), p)


def _of_others(values: np.ndarray, size: int) -> np.ndarray:
    """Sums of the other values in a window around each, shape (N,)."""
    return np.asarray(size * uniform_filter1d(values, size, mode="constant") - values)


def _sorted(values: np.ndarray) -> bool:
    """Whether neighbours are alike far more often than in random order."""
    changes, share = (values[1:] != values[:-1]).mean(), values.mean()
    return bool(changes < LEAST_CHANGES * 2.0 * share * (1.0 - share))


def knows_decision(log: DecisionLog, propensity: np.ndarray, target: np.ndarray, seed: int) -> str | None:
    """Whether a policy's acceptance depends on the past decision given the features.

    The mean of (d − π)·(a − Ê[a | x]) is 0 where it does not: the generalised covariance measure (Shah and
    Peters 2020, "The hardness of conditional independence testing and the generalised covariance measure"),
    with an out-of-fold regression of a by gradient boosting.

    Args:
        log: the people.
        propensity: π, shape (N,).
        target: a, shape (N,).
        seed: of the rows that are tested in a large log, and the folds.
    """
    if np.ptp(target) == 0:
        return None
    rows = np.random.default_rng(seed).permutation(len(target))[:MOST_ROWS]
    rows = rows[~np.isnan(propensity[rows])]
    model = HistGradientBoostingRegressor(max_iter=50, early_stopping=False, random_state=seed)
    fitted = cross_val_predict(model, log.design[rows], target[rows], cv=KFold(min(3, len(rows))))
    decision, left = log.accepted[rows] - propensity[rows], target[rows] - fitted
    correlation = (decision * left).mean() / max(decision.std() * left.std(), 1e-300)
    dependent = abs(deviations(decision, left[None])[0]) > DEPENDENT and abs(correlation) > CORRELATED
    if not dependent or left.var() < LEAST_LEFT * target.var():
        return None
    return (
        "its acceptance depends on the past decision among people of equal features (correlation "
        f"{correlation:.2f}): a policy that knows it cannot be judged by weights; give the policy's own "
        "probability, or add to the log what both it and the decisions depend on"
    )


def outside(estimate: Estimate, possible: Bounds, name: str) -> str | None:
    """Whether a scalar estimate is outside of what is possible whatever the labels are, by three errors."""
    low, high = float(possible.low.value), float(possible.high.value)
    if low - 3 * estimate.error <= estimate.value <= high + 3 * estimate.error:
        return None
    return (
        f"the estimate by {name}, {100 * estimate.value:.1f} per 100 people, is outside of what is "
        f"possible whatever the labels are, {100 * low:.1f} to {100 * high:.1f}: the propensities are not "
        "those of the decisions"
    )
