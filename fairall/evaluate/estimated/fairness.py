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


@dataclass(frozen=True)
class FairnessMeasure:
    """Description of a measure of unfairness, the gap of a rate between groups.

    Attributes:
        label: in tables and figures.
        rate: what is compared between groups, by `rates`.
        labels: whose labels it needs: nobody's, those of people of one label, or those of the accepted.
    """

    label: str
    rate: str
    labels: Literal["none", "positive", "negative", "accepted"]


MEASURES = {
    # Demographic parity (Calders and Verwer 2010; definition 2.2).
    "dpu": FairnessMeasure("DPU", "acceptance rate", "none"),
    # Hardt et al. 2016; with false positives equalised odds.
    "equal_opportunity": FairnessMeasure("equal-opportunity gap", "true-positive rate", "positive"),
    # Chouldechova 2017.
    "predictive_parity": FairnessMeasure("predictive-parity gap", "precision", "accepted"),
    "false_positive": FairnessMeasure("false-positive gap", "false-positive rate", "negative"),
    "utility_gap": FairnessMeasure("utility gap", "utility per person", "accepted"),
}


def columns(view: View, people: People) -> Sums:
    """The columns of a view, each of N rows.

    Raises:
        AssertionError: in the view dr, without an outcome model.
    """
    a, y = people.target, people.label
    if view == "dr":
        accepted = people.accepted_pseudo_label
        gain = (accepted - a * people.break_even) * people.stake
        return Sums(Column(np.ones_like(a)), Column(a), people.pseudo_label, accepted, gain)
    w, kept = people.weight, people.kept
    if view == "naive":
        w = Column(people.revealed.astype(float))
        kept = w * a
    return Sums(w, kept, w * y, kept * y, kept * (people.stake * (y - people.break_even)))


def rates(view: View, people: People, by_group: Groups) -> dict[str, Estimate]:
    """The rate of each measure by group, shape (G,); NaN where a group has nobody whom the rate is about.

    Args:
        view: of the labels.
        people: the rows.
        by_group: the same by their G groups.
    """
    of_rows = columns(view, people)
    m, everyone = Sums(*map(by_group.mean, of_rows)), by_group.mean(np.ones_like(people.target))
    found = {
        "dpu": m.accepted / m.weight if view == "naive" else by_group.mean(people.target) / everyone,
        "equal_opportunity": m.accepted_positive / m.positive,  # E[a·y]/E[y]
        "predictive_parity": m.accepted_positive / m.accepted,  # E[a·y]/E[a]
        "false_positive": (m.accepted - m.accepted_positive) / (m.weight - m.positive),
        "utility_gap": m.gain / m.weight,
    }
    at_stake = of_rows.accepted.value * people.stake
    losses, stakes = (by_group.mean(at_stake * part) / m.weight for part in (people.break_even, 1.0))
    ends: dict[str, dict[str, Any]] = {
        "utility_gap": {"lowest": -losses.value, "highest": (stakes - losses).value, "cut": False}
    }
    return {
        name: rate.on(by_group.support(support(MEASURES[name], view, people), **ends.get(name, {})))
        for name, rate in found.items()
    }


def support(measure: FairnessMeasure, view: View, people: People) -> np.ndarray:
    """Weights of the outcomes that the rate of a measure rests on, shape (N,).

    These are revealed labels, and of acceptance the decisions on people.
    """
    naive = view == "naive"
    w = people.revealed.astype(float) if naive else people.weight.value
    return {
        "none": w if naive else np.ones_like(w),
        "positive": w * people.label,
        "negative": w * (1.0 - people.label),
        "accepted": w * people.target if naive else people.kept.value,
    }[measure.labels]
