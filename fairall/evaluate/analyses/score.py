"""Discrimination and calibration of a score among the accepted, among all people, and at the extremes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairall.data.drift import EVERYBODY, drift_by_column
from fairall.display.progress import doing
from fairall.evaluate.analyses.groups import largest
from fairall.evaluate.analysis import (
    CALIBRATION,
    DISCRIMINATION,
    INTERVALS,
    NO_ASSUMPTION,
    Analysis,
    Picture,
    Record,
)
from fairall.evaluate.estimated.estimates import NOTHING, Array, Column
from fairall.evaluate.estimated.periods import numbered
from fairall.evaluate.estimated.scores import Scored, bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

BINS = 10  # of equal width on [0, 1], of probabilities
MEASURES = {  # names of methods of `Scored`
    "auc": "AUC",
    "gini": "Gini",
    "ks": "KS",
    "brier": "Brier score",
    "calibration": "label − score",
}
BY_PERIOD = ["gini", "brier", "calibration"]
VIEWS = {
    "accepted": "accepted",
    "dr": "everybody, DR",
    "bayesian": "everybody, Bayesian",
}


def labels_of(
    judgement: Judgement, view: str, members: Array, whose: str
) -> tuple[Scored | None, str | None]:
    """Score and labels of some people in a view; None where nothing may be shown. Why there is no interval.

    Args:
        judgement: a policy on a log, with a score.
        view: `accepted`: people whose label is revealed. `dr`: all people, with doubly robust pseudo-labels.
            `bayesian`: all people; a missing label counts as its probability by the outcome model, the mean
            of the labels that Bayesian evaluation draws from it (Kozodoi et al. 2025).
        members: the people, shape (N,), bool.
        whose: who they are, in words.

    References:
        Kozodoi, N., Lessmann, S., Alamgir, M., Moreira-Matias, L. and Papakonstantinou, K. (2025). Fighting
        sampling bias: a framework for training and evaluating credit scoring models. European Journal of
        Operational Research.
    """
    refused = judgement.refused_rates or judgement.refused_estimator("dr")
    if refused and view != "accepted":
        return None, refused
    people = judgement.people
    if view != "dr":
        people = replace(people, weight=Column(people.revealed.astype(float)))
    known = people.weight.value * members * np.stack([people.label, 1.0 - people.label])
    why = None
    for weights, kind in zip(known, ("positive labels", "negative labels"), strict=True):
        may, reason = judgement.few_labels(weights, kind, whose)
        if not may:
            return None, reason
        why = why or reason
    if view == "bayesian":
        why = why or "Bayesian evaluation gives no interval"
    if view == "accepted":
        members, positive = members & people.revealed, Column(people.label)
    else:
        positive = people.pseudo_label
    labels = positive * members, (1.0 - positive) * members
    return Scored(judgement.sample, np.asarray(judgement.models.score), labels, known), why


def estimates(judgement: Judgement, members: Array, kind: str, name: str) -> Iterator[Record]:
    """Measures of the score of some people in each view, and their bounds; of periods those of `BY_PERIOD`.

    Args:
        judgement: a policy on a log, with a score.
        members: the people, shape (N,), bool.
        kind: `group` or `period`.
        name: of the group or period.

    Yields:
        Records with `measure`, of `MEASURES`, and `view`, of `VIEWS` or `bounds`: what is possible whatever
        missing labels are, not of KS.
    """
    views = {view: labels_of(judgement, view, members, name) for view in VIEWS}
    for measure in MEASURES if kind == "group" else BY_PERIOD:
        record = {kind: name, "about": f"{name}: {MEASURES[measure]}", "measure": measure}
        for view, (scored, why) in views.items():
            value = NOTHING if scored is None else getattr(scored, measure)().interval()
            yield record | {"view": view, "value": value.without_ends(why)}
        if measure != "ks":
            score = np.asarray(judgement.models.score)
            extremes = bounds(measure, judgement.sample, score, judgement.log.label, members)
            yield record | {"view": "bounds", "value": extremes.limits()}


def calibration(judgement: Judgement, score: Array) -> Iterator[Record]:
    """Mean labels by group and bins of the score (N,) with enough labels, of all people, doubly robust.

    References:
        Van Calster, B. et al. (2016). A calibration hierarchy for risk models was defined: from utopia to
        empirical data. Journal of Clinical Epidemiology.
    """
    log, people, mean = judgement.log, judgement.people, judgement.sample.mean
    if judgement.refused_rates or people.outcome is None:
        return
    label, bins = people.pseudo_label, np.minimum((score * BINS).astype(int), BINS - 1)
    for code, k in product(judgement.models.shown, range(BINS)):
        rows = (log.group == code) & (bins == k)
        if log.revealed[rows].sum() >= judgement.models.smallest_cell:
            share = mean(label * rows) / mean(rows)
            yield {
                "group": log.groups[code],
                "measure": "mean label",
                "view": "bin",
                "score": score[rows].mean(),
                "value": share.on(judgement.sample.support(people.weight.value * rows)).interval(),
            }


def records(judgement: Judgement) -> list[Record]:
    """All that is said of the score; nothing without one, and without labels.

    P of the stability indices of periods (`measure` is `psi`) is corrected for all of them.
    """
    log, score = judgement.log, judgement.models.score
    if score is None or not log.revealed.any():
        return []
    doing("discrimination and calibration")
    groups = {EVERYBODY: np.ones(len(log), dtype=bool)}  # the only group where these have probabilities
    groups |= {log.groups[code]: log.group == code for code in judgement.models.shown}
    rows = [row for name, members in groups.items() for row in estimates(judgement, members, "group", name)]
    period, names = numbered(log)
    if len(names) > 1:
        for k, name in enumerate(names):
            rows += estimates(judgement, period == k, "period", name)
        first, *later = (pd.Series(score[people]) for people in log.people_of(period, len(names)))
        pairs = {name: (first, new, True) for name, new in zip(names[1:], later, strict=True)}
        for name, drift in drift_by_column(pairs).items():
            about = {"period": name, "about": f"{name}: PSI", "measure": "psi", "view": "dr"}
            rows.append({**about, **drift._asdict(), "value": f"{drift.psi:.3f} (p = {drift.p:.2g})"})
    rows += calibration(judgement, score)
    return rows


def _records(shown: Shown, **keys: str) -> list[Record]:
    """Records with these keys, of the first policy: the score does not depend on it."""
    return [row for row in shown.first.once(records) if keys.items() <= row.items()]


def _draw(shown: Shown) -> Figure:
    """Draw mean labels by bins of the score; a panel per group."""
    from fairall.display.style import BLUE, GREY
    from fairall.evaluate.drawing import grid

    names = [shown.log.groups[code] for code in largest(shown.first)]
    figure, panels = grid(len(names), height=1.7, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        axes.plot([0, 100], [0, 100], color=GREY)
        for row in _records(shown, measure="mean label", group=name):
            # From the estimate, which has the mark, to both ends.
            ends = 100 * np.array(row["value"][:3])
            axes.plot([100 * row["score"]] * 3, ends, "o-", ms=3, markevery=3, color=BLUE)
        axes.set(title=name, xlabel="score ×100", xlim=(0, 100), ylim=(0, 100))
    panels[0].set_ylabel("positive labels ×100")
    return figure


SCORE = Analysis(
    key="score",
    section=DISCRIMINATION,
    title="Discrimination and calibration ×100",
    note=(
        f"Of the probability of a positive label by the score, {INTERVALS}. label − score: mean label less "
        "mean probability. accepted: of people with a label, which is another quantity than that of "
        "everybody. DR: doubly robust. Bayesian: a missing label is drawn from the model of the label, "
        f"without an interval. {NO_ASSUMPTION} PSI: population stability index of the score against the "
        "first period, and p of no change, corrected for all periods. The files have mean labels by bins."
    ),
    records=_records,
    line="about",
    column="view",
    columns=VIEWS | {"bounds": "no assumption"},
    picture=Picture(
        key="calibration",
        title="Calibration of the score",
        note=(
            f"Share of positive labels of everybody by bins of the score, doubly robust, {INTERVALS}: on the "
            "line where the score says it. A bin is shown where it has enough labels; of groups the largest."
        ),
        draw=_draw,
        there=lambda shown: bool(_records(shown, measure="mean label")),
        section=CALIBRATION,
    ),
)
