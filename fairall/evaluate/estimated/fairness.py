"""Rates of a policy by group and their gaps under selective labels.

Symbols as in `estimators`; E[·] is the mean over the people of a group. The views of the labels differ in who
counts, and with which label:

- naive: people whose label is revealed, as they are.
- ips: the same, weighted by w = r/p, so that rates are self-normalised (Hájek 1971).
- dr: all people, with the doubly robust pseudo-label q + w·(y − q), which may leave [0, 1], as may rates of
  small groups.

Acceptance needs no label, so that its rate is that of all people in the views ips and dr.

Gaps among the accepted need not be those among all people: Kallus and Zhou (2018), "Residual unfairness in
fair machine learning from prejudiced data". Gaps of all by doubly robust pseudo-labels: Coston, Rambachan and
Chouldechova (2021), "Characterizing fairness over the set of good models under selective labels".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fairall.evaluate.estimated.estimates import Column, Estimate, Groups
from fairall.evaluate.estimated.estimators import People

View = Literal["naive", "ips", "dr"]
VIEWS: tuple[View, ...] = ("naive", "ips", "dr")


class Sums(NamedTuple):
    """Columns of the rows, or their means by group: of weight, label, and both among the accepted."""

    weight: Any  # w
    accepted: Any  # w·a
    positive: Any  # w·y
    accepted_positive: Any  # w·a·y
    gain: Any  # w·a·s·(y − b)
    least: Any  # of the gain, with y = 0
    most: Any  # likewise with y = 1


@dataclass(frozen=True)
class FairnessMeasure:
    """Description of a measure of unfairness, the gap of a rate between groups.

    Attributes:
        label: in tables and figures.
        rate: what is compared between groups.
        formula: the rate of means within groups.
        labels: whose labels it needs: nobody's, those of people of one label, or those of the accepted.
        bounds: of the rate, of means within groups; None for those of a share, 0 and 1.
    """

    label: str
    rate: str
    formula: Callable[[Sums], Any]
    labels: Literal["none", "positive", "negative", "accepted"]
    bounds: Callable[[Sums], tuple[Any, Any]] | None = None


MEASURES = {
    # Demographic parity (Calders and Verwer 2010; definition 2.2): E[a].
    "dpu": FairnessMeasure("DPU", "acceptance rate", lambda m: m.accepted / m.weight, "none"),
    # E[a y] / E[y] (Hardt et al. 2016).
    "equal_opportunity": FairnessMeasure(
        "equal-opportunity gap", "true-positive rate", lambda m: m.accepted_positive / m.positive, "positive"
    ),
    # E[a y] / E[a] (Chouldechova 2017).
    "predictive_parity": FairnessMeasure(
        "predictive-parity gap", "precision", lambda m: m.accepted_positive / m.accepted, "accepted"
    ),
    # E[a (1 − y)] / E[1 − y] (Hardt et al. 2016, with true positives equalised odds).
    "false_positive": FairnessMeasure(
        "false-positive gap",
        "false-positive rate",
        lambda m: (m.accepted - m.accepted_positive) / (m.weight - m.positive),
        "negative",
    ),
    # E[(1 − a) y] / E[y] (Chouldechova 2017); its gap is that of equal opportunity.
    "false_negative": FairnessMeasure(
        "false-negative gap",
        "false-negative rate",
        lambda m: (m.positive - m.accepted_positive) / m.positive,
        "positive",
    ),
    # E[a s (y − b)].
    "utility_gap": FairnessMeasure(
        "utility gap",
        "utility per person",
        lambda m: m.gain / m.weight,
        "accepted",
        lambda m: (m.least / m.weight, m.most / m.weight),
    ),
}


def columns(view: View, people: People) -> Sums:
    """The columns of a view, each of N rows.

    Raises:
        AssertionError: in the view dr, without an outcome model.
    """
    a, y = people.target, people.label
    margin, loss = people.stake * (y - people.break_even), people.stake * people.break_even
    gained = people.stake - loss
    if view == "dr":
        accepted = people.accepted_pseudo_label
        gain = (accepted - a * people.break_even) * people.stake
        ends = Column(a * -loss), Column(a * gained)
        return Sums(Column(np.ones_like(a)), Column(a), people.pseudo_label, accepted, gain, *ends)
    w, kept = people.weight, people.kept
    if view == "naive":
        w = Column(people.revealed.astype(float))
        kept = w * a
    return Sums(w, kept, w * y, kept * y, kept * margin, kept * -loss, kept * gained)


def rates(view: View, people: People, by_group: Groups) -> dict[str, Estimate]:
    """The rate of each measure by group, shape (G,); NaN where a group has nobody whom the rate is about.

    Args:
        view: of the labels.
        people: the rows.
        by_group: the same by their G groups.
    """
    found = Sums(*map(by_group.mean, columns(view, people)))
    everyone = found
    if view == "ips":  # acceptance has no sampling error of weights
        one, a = np.ones_like(people.target), people.target
        everyone = found._replace(weight=by_group.mean(one), accepted=by_group.mean(a))

    def rate(one: FairnessMeasure) -> Estimate:
        ends: dict[str, Any] = {}
        if one.bounds is not None:
            lowest, highest = one.bounds(found)
            ends = {"lowest": lowest.value, "highest": highest.value, "cut": False}
        value = one.formula(everyone if one.labels == "none" else found)
        return value.on(by_group.support(support(one, view, people), **ends))

    return {name: rate(one) for name, one in MEASURES.items()}


def support(measure: FairnessMeasure, view: View, people: People) -> np.ndarray:
    """Weights of the outcomes that the rate of a measure rests on, shape (N,).

    These are revealed labels, and of acceptance the decisions on people.
    """
    w = people.revealed.astype(float) if view == "naive" else people.weight.value
    if measure.labels == "none":
        return w if view == "naive" else np.ones_like(w)
    if measure.labels == "positive":
        return w * people.label
    if measure.labels == "negative":
        return w * (1.0 - people.label)
    return w * people.target if view == "naive" else people.kept.value
