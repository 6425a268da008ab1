"""Discrimination and calibration of a score among the accepted, among all people, and at the extremes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairall.data.drift import drift_by_column
from fairall.display.progress import doing
from fairall.evaluate.analyses.choices import levels_of
from fairall.evaluate.analysis import (
    DISCRIMINATION,
    INTERVALS,
    NO_ASSUMPTION,
    Analysis,
    Picture,
    Record,
    text,
)
from fairall.evaluate.estimated.estimates import NOTHING, Column, joint_normal
from fairall.evaluate.estimated.periods import numbered
from fairall.evaluate.estimated.scores import Scored, bounds
from fairall.evaluate.models import NO_MODEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

EVERYBODY = "everybody"  # the groups together
BINS = 10  # of equal width on [0, 1], of probabilities
LABELS = ("positive", "negative")
MEASURES = {  # names of methods of `Scored`
    "auc": "AUC",
    "gini": "Gini",
    "ks": "KS",
    "brier": "Brier score",
    "calibration": "label − score",
}
BY_PERIOD = ["gini", "brier", "calibration"]
NO_ERROR = "Bayesian evaluation gives no interval"
VIEWS = {
    "accepted": "accepted",
    "dr": "everybody, DR",
    "bayesian": "everybody, Bayesian",
}


def labels_of(
    judgement: Judgement, view: str, members: np.ndarray, whose: str
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
    models, people, label = judgement.models, judgement.people, judgement.people.label
    assert models.score is not None
    if view != "accepted" and models.outcome is None:
        return None, NO_MODEL
    if view == "dr" and judgement.refused_rates is not None:
        return None, judgement.refused_rates
    weight = people.weight if view == "dr" else Column(people.revealed.astype(float))
    whole = members * (weight.value if view == "accepted" else 1.0)
    positive = Column(label) if view == "accepted" else replace(people, weight=weight).pseudo_label
    positive, weights = positive * whole, weight.value * members * np.stack([label, 1.0 - label])
    doubts = [
        judgement.few_labels(part, f"{kind} labels", whose)
        for part, kind in zip(weights, LABELS, strict=True)
    ]
    doubts.sort(key=itemgetter(0))  # what is not shown comes first
    scored = Scored(judgement.sample, models.score, (positive, whole - positive), weights)
    why = next((why for _, why in doubts if why), NO_ERROR if view == "bayesian" else None)
    return scored if doubts[0][0] else None, why


def estimates(
    judgement: Judgement, members: np.ndarray, whose: str, measures: Iterable[str] = MEASURES
) -> Iterator[Record]:
    """Measures of the score of some people in each view, and their bounds; arguments as of `labels_of`.

    Yields:
        Records with `measure`, of `MEASURES`, and `view`, of `VIEWS` or `bounds`: what is possible whatever
        missing labels are, not of KS.
    """
    score, label = judgement.models.score, judgement.log.label
    assert score is not None
    views = {view: labels_of(judgement, view, members, whose) for view in VIEWS}
    for measure in measures:
        record = {"about": f"{whose}: {MEASURES[measure]}", "measure": measure}
        for view, (scored, why) in views.items():
            value = NOTHING if scored is None else getattr(scored, measure)().interval()
            yield record | {"view": view, "value": value.without_ends(why)}
        if measure != "ks":
            extremes = bounds(measure, judgement.sample, score, label, members).limits()
            yield record | {"view": "bounds", "value": extremes}


def curves(judgement: Judgement) -> Iterator[Record]:
    """Shares of people of either label whose score is at least a threshold.

    Yields:
        By `view` (`accepted` or `dr`), `label` and `threshold`: `acceptance`, the share of all people above
        it, `estimate`, `low` and `high`. Intervals cover a whole curve with 95 %.
    """
    for view in ("accepted", "dr"):
        scored, why = labels_of(judgement, view, np.ones(len(judgement.log), dtype=bool), EVERYBODY)
        levels = [] if scored is None else levels_of(scored.score).tolist()
        for (kind, label), level in product(enumerate(LABELS), levels):
            above = scored.score >= level
            share = scored.share(kind, above).interval(k=joint_normal(len(levels))).without_ends(why)
            about = {"measure": "share above", "view": view, "label": label, "threshold": level}
            yield about | share._asdict() | {"acceptance": above.mean(), "value": None}


def calibration(judgement: Judgement) -> Iterator[Record]:
    """Mean labels by group and bins of the score with enough labels, of all people, doubly robust.

    References:
        Van Calster, B. et al. (2016). A calibration hierarchy for risk models was defined: from utopia to
        empirical data. Journal of Clinical Epidemiology.
    """
    log, score, models = judgement.log, judgement.models.score, judgement.models
    assert score is not None
    if models.outcome is None or judgement.refused_rates is not None:
        return
    cell = log.group * BINS + np.minimum((score * BINS).astype(int), BINS - 1)
    people, cells = judgement.people, judgement.sample.by(cell, len(log.groups) * BINS)
    means = cells.mean(people.pseudo_label) / cells.mean(np.ones(len(log)))
    means, size = means.on(cells.support(people.weight.value)), np.bincount(log.group)
    for k in np.flatnonzero(np.bincount(cell[log.revealed]) >= models.smallest_cell):
        code, rows = k // BINS, cell == k
        if code in models.shown:
            where = {"score": score[rows].mean(), "share": rows.sum() / size[code]}
            about = {"group": log.groups[code], "measure": "mean label", "view": "bin"}
            yield about | where | {"value": means.interval(k)}


def by_period(judgement: Judgement) -> Iterator[Record]:
    """Measures of the score by period, and its stability against the first one; none without periods.

    P of the stability indices (`measure` is `psi`) is corrected for all periods.
    """
    code, names = numbered(judgement.log)
    if len(names) < 2:
        return
    for k, name in enumerate(names):
        for record in estimates(judgement, code == k, name, BY_PERIOD):
            yield {"period": name} | record
    people = judgement.log.people_of(code, len(names))
    first, *later = (pd.Series(judgement.models.score)[rows] for rows in people)
    pairs = {name: (first, scores, True) for name, scores in zip(names[1:], later, strict=True)}
    for name, drift in drift_by_column(pairs).items():
        record = {"period": name, "about": f"{name}: PSI", "measure": "psi", "view": "dr"}
        yield record | drift._asdict() | {"value": f"{drift.psi:.3f} (p = {drift.p:.2g})"}


def records(judgement: Judgement) -> list[Record]:
    """All that is said of the score; nothing without one, and without labels."""
    log, rows = judgement.log, list[Record]()
    if judgement.models.score is None or not log.revealed.any():
        return rows
    doing("discrimination and calibration")
    groups = {EVERYBODY: np.ones(len(log), dtype=bool)}
    groups |= {log.groups[code]: log.group == code for code in judgement.models.shown}
    for name, members in groups.items():
        rows += ({"group": name} | record for record in estimates(judgement, members, name))
    return [*rows, *calibration(judgement), *by_period(judgement), *curves(judgement)]


def _records(shown: Shown, **keys: str) -> list[Record]:
    """Records with these keys, of the first policy: the score does not depend on it."""
    return [row for row in shown.first.once(records) if keys.items() <= row.items()]


def _told(shown: Shown) -> Iterator[str]:
    """Gini of everybody beside that of the accepted."""
    rows = _records(shown, group=EVERYBODY, measure="gini")
    gini = {row["view"]: row["value"].why or text(row["value"], {}) for row in rows}
    if gini:
        yield f"Score: Gini of everybody, doubly robust: {gini['dr']}; of the accepted: {gini['accepted']}"


def _draw(shown: Shown) -> Figure:
    """Draw the shares of people above thresholds of the score, by label; a panel per view."""
    from fairall.display.style import BLUE, ORANGE, legend_below
    from fairall.evaluate.drawing import band, grid

    frame = pd.DataFrame(_records(shown, measure="share above"))
    handles, (figure, panels) = {}, grid(frame["view"].nunique(), height=1.7, sharey=True)
    for axes, (view, of_view) in zip(panels, frame.groupby("view"), strict=True):
        for colour, (label, curve) in zip((ORANGE, BLUE), of_view.groupby("label"), strict=True):
            x, *lines = curve[["acceptance", "estimate", "low", "high"]].to_numpy().T
            handles[f"people with a {label} label"] = band(axes, 100 * x, *lines, colour)
        axes.set(title=VIEWS[view], xlabel="people above the threshold ×100")
    panels[0].set_ylabel("above the threshold ×100")
    legend_below(figure, handles, 2)
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
        "first period, and p of no change, corrected for all periods. The files have mean labels by bins, "
        "and shares of people above thresholds."
    ),
    records=_records,
    line="about",
    column="view",
    columns=VIEWS | {"bounds": "no assumption"},
    picture=Picture(
        key="ranks",
        title="What the score tells apart",
        note=(
            "People of either label with a score above a threshold, by all people above it. On the accepted "
            "alone, and of everybody, doubly robust. A band covers a whole curve with 95 %."
        ),
        draw=_draw,
        there=lambda shown: bool(_records(shown, measure="share above")),
    ),
    told=_told,
)
