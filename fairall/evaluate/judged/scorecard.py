"""Discrimination and calibration of a score among the accepted, among all people, and at the extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from fairall.data.drift import drift_by_column
from fairall.display.progress import doing
from fairall.evaluate.estimated import bounds as limits
from fairall.evaluate.estimated.bounds import Bounds, Limits
from fairall.evaluate.estimated.fairness import View, rates
from fairall.evaluate.estimated.gaps import NOTHING, Interval, interval, joint_normal
from fairall.evaluate.estimated.influence import Column, Estimate, Groups
from fairall.evaluate.estimated.scores import Partial, Scored
from fairall.evaluate.judged.models import NO_MODEL
from fairall.evaluate.judged.periods import numbered
from fairall.evaluate.judged.validation import QUANTILES
from fairall.evaluate.plain import ByName

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import Evaluation

EVERYBODY = "everybody"  # the groups together
BAYESIAN = "bayesian"
CURVES = {"positive": "equal_opportunity", "negative": "false_positive"}

Measured: TypeAlias = dict[str, dict[str, dict[str, Interval | Limits]]]
"""By group, measure and view."""


class ScoreMeasure(NamedTuple):
    """A measure of a score.

    Attributes:
        label: in tables and figures.
        of: its estimates, shape (G,).
        bounds: its bounds whatever missing labels are, likewise.
        lowest: the least that it can be; the greatest is 1.
        by_label: whether it compares people of either label.
    """

    label: str
    of: Callable[[Scored], Estimate]
    bounds: Callable[[Partial], Bounds]
    lowest: float = 0.0
    by_label: bool = False


MEASURES = {
    "auc": ScoreMeasure("AUC", Scored.auc, Partial.auc, by_label=True),
    "gini": ScoreMeasure(
        "Gini",
        lambda of: 2.0 * of.auc() - 1.0,
        lambda of: Bounds(*(2.0 * end - 1.0 for end in of.auc())),
        -1.0,
        by_label=True,
    ),
    "ks": ScoreMeasure("KS", Scored.ks, Partial.ks, by_label=True),
    "brier": ScoreMeasure("Brier score", Scored.brier, Partial.brier),
    "calibration": ScoreMeasure("label − score", Scored.calibration, Partial.calibration, -1.0),
}


def scorecard(of: Evaluation) -> ByName | None:
    """Measures of the given score, of everybody and by group, and shares of people above its thresholds.

    Each measure has an interval in three views, and bounds:

    - accepted: of the people whose label is revealed.
    - dr: of all people, with doubly robust pseudo-labels.
    - bayesian: of all people; a missing label counts as its probability by the outcome model, which is the
      mean of the labels that Bayesian evaluation draws from it (Kozodoi et al. 2025). It has no interval.
    - bounds: what is possible whatever the missing labels are, with a 95 % interval.

    Returns:
        `everybody`: by name of the measure. `groups`: by name of the group, then likewise. `periods`:
        likewise, with `psi`, the `Stability` of the score against the first period, with p corrected for all
        periods. `curves`: rows of `view` (`accepted`, `dr` or `bounds`), `label` (positive or negative),
        `threshold`, `acceptance`, the share of all people above it, and `estimate`, `low` and `high`, the
        share of people of that label, with intervals that cover a whole curve. None without a score or
        labels.

    References:
        Kozodoi, N., Lessmann, S., Alamgir, M., Moreira-Matias, L. and Papakonstantinou, K. (2025). Fighting
        sampling bias: a framework for training and evaluating credit scoring models. European Journal of
        Operational Research.
    """
    if of.models.score is None or not of.log.revealed.any():
        return None
    doing("discrimination and calibration of the score")
    found = _measured(of, of.models.score, of.sample.everybody, {EVERYBODY: 0})
    named = {of.log.groups[code]: int(code) for code in of.models.shown}
    groups = _measured(of, of.models.score, of.by_group, named)
    of_periods, curves = _by_period(of, of.models.score), _curves(of, of.models.score)
    return found | {"groups": groups, "periods": of_periods, "curves": curves}


def _measured(of: Evaluation, score: np.ndarray, by_group: Groups, named: dict[str, int]) -> Measured:
    """The measures of some groups, by name of the group, of the measure and of the view.

    Args:
        of: the people.
        score: of them, shape (N,).
        by_group: their groups.
        named: code of each group by its name.
    """
    people, known = of.people, of.log.revealed.astype(float)
    one = np.ones_like(known)
    # By view how much everybody counts, how much of that is a positive label, and the weights of labels.
    views = {"accepted": (known, Column(known * people.label), known)}
    if people.outcome is not None:
        imputed = people.outcome * (1.0 - known) + known * people.label
        views |= {"dr": (one, people.pseudo_label, people.weight.value), BAYESIAN: (one, imputed, known)}
    scored = {
        view: Scored(score, positive, counts - positive, by_group)
        for view, (counts, positive, _) in views.items()
    }
    partial = Partial(score, of.log.label, by_group)
    doubts = {
        name: {view: _doubt(of, view, by_group.group == code, name) for view in ("accepted", "dr", BAYESIAN)}
        for name, code in named.items()
    }
    found: Measured = {name: {} for name in named}
    for key, measure in MEASURES.items():
        least, most = measure.bounds(partial)
        estimates = {view: measure.of(people) for view, people in scored.items()}
        labels = [people.label, 1.0 - people.label] if measure.by_label else [one]
        supports = {
            view: [by_group.support(weight * of_label, lowest=measure.lowest) for of_label in labels]
            for view, (_, _, weight) in views.items()
        }
        everyone = by_group.support(one, lowest=measure.lowest)
        for name, code in named.items():
            own: dict[str, Interval | Limits] = {}
            for view, (may, why) in doubts[name].items():
                if not may:
                    own[view] = NOTHING.without_ends(why)
                    continue
                fewest = min((support[code] for support in supports[view]), key=lambda it: it.clusters)
                own[view] = interval(estimates[view][code].on(fewest)).without_ends(why)
            bounds = Bounds(least[code].on(everyone[code]), most[code].on(everyone[code]))
            found[name][key] = own | {"bounds": bounds.limits()}
    return found


def _by_period(of: Evaluation, score: np.ndarray) -> dict[str, ByName]:
    """The measures and the stability of the score by `periods.Period`; none in a log without them."""
    code, names = numbered(of.log)
    if len(names) < 2:
        return {}
    found: dict[str, ByName] = _measured(
        of, score, of.sample.by(code, len(names)), {name: k for k, name in enumerate(names)}
    )
    first, *later = (pd.Series(score[rows]) for rows in of.log.people_of(code, len(names)))
    drifts = drift_by_column(
        {name: (first, scores, True) for name, scores in zip(names[1:], later, strict=True)}
    )
    return {name: own | {"psi": drifts.get(name)} for name, own in found.items()}


def _doubt(of: Evaluation, view: str, members: np.ndarray, name: str) -> tuple[bool, str | None]:
    """Whether measures of some people may be shown in a view, and why not, or without an interval.

    Args:
        of: the people.
        view: of `scorecard`.
        members: whom the measures are about, shape (N,), bool.
        name: of these people.
    """
    people = of.people
    if view != "accepted" and people.outcome is None:
        return False, NO_MODEL
    if view == "dr" and of.refused_rates is not None:
        return False, of.refused_rates
    weight = people.weight.value if view == "dr" else people.revealed.astype(float)
    for what, label in (("positive labels", people.label), ("negative labels", 1.0 - people.label)):
        may, why = of.few_labels((weight * label)[members], what, name)
        if why is not None:
            return may, why
    return True, "Bayesian evaluation gives no interval" if view == BAYESIAN else None


def _curves(of: Evaluation, score: np.ndarray) -> pd.DataFrame:
    """See `scorecard`."""
    levels = np.unique(np.quantile(score, QUANTILES))
    above = [of.with_target((score >= level).astype(float)) for level in levels]
    acceptance = [float(people.target.mean()) for people in above]
    views: dict[str, View] = {"accepted": "naive", "dr": "dr"}
    all_rows = np.ones(len(score), dtype=bool)
    shares = {
        view: [rates(of_labels, people, of.sample.everybody) for people in above]
        for view, of_labels in views.items()
        if _doubt(of, view, all_rows, EVERYBODY)[0]
    }
    parts = []
    for label, name in CURVES.items():
        ends = {}
        for view, found in shares.items():
            ends[view] = [interval(one[name], 0, joint_normal(len(levels)))[:3] for one in found]
        possible = [
            limits.rate_bounds(name, people, limits.manski(people), of.sample.everybody) for people in above
        ]
        ends["bounds"] = [(np.nan, float(low.value[0]), float(high.value[0])) for low, high in possible]
        for view, own in ends.items():
            where = {"view": view, "label": label, "threshold": levels, "acceptance": acceptance}
            parts.append(pd.DataFrame(where).join(pd.DataFrame(own, columns=["estimate", "low", "high"])))
    return pd.concat(parts, ignore_index=True)
