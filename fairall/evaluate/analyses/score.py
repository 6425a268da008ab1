"""Discrimination and calibration of a score among the accepted, among all people, and at the extremes.

Without a score it is the calibration of the model of the label, whose probability takes the score's place.
"""

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
from fairall.evaluate.estimated.scores import Partial, Scored
from fairall.evaluate.models import NO_MODEL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

EVERYBODY = "everybody"  # the groups together
BINS = 10  # of equal width on [0, 1], of probabilities
LABELS = ("positive", "negative")
ENDS = ("estimate", "low", "high")
MEASURES = {  # names of methods of `Scored`
    "auc": "AUC",
    "gini": "Gini",
    "ks": "KS",
    "brier": "Brier score",
    "calibration": "label − score",
    "error": "label − probability",  # of the model of the label
}
BY_PERIOD = ["gini", "brier", "calibration"]
VIEWS = ("accepted", "dr", "bayesian")
COLUMNS = {
    "accepted": "accepted",
    "dr": "everybody, DR",
    "bayesian": "everybody, Bayesian",
    "bounds": "no assumption",
}


def score_of(judgement: Judgement) -> np.ndarray:
    """The score, or without one the probability of a positive label by the outcome model, shape (N,)."""
    if judgement.models.score is not None:
        return judgement.models.score
    assert judgement.models.outcome is not None
    return judgement.models.outcome.probability


def labels_of(
    judgement: Judgement, view: str, members: np.ndarray, whose: str
) -> tuple[Scored | None, str | None]:
    """Labels of some people in a view; None where nothing may be shown of them. Why there is no interval.

    Args:
        judgement: a policy on a log.
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
    people, whole = judgement.people, members.astype(float)
    weight = people.weight if view == "dr" else Column(judgement.log.revealed.astype(float))
    positive, counts = Column(people.label), whole * weight.value  # the label is 0 where it is not known
    if view != "accepted":
        if people.outcome is None:
            return None, NO_MODEL
        positive, counts = replace(people, weight=weight).pseudo_label, whole
    positive, weights = positive * whole, weight.value * whole * np.stack([people.label, 1.0 - people.label])
    compared = (
        LABELS if judgement.models.score is not None else LABELS[:1]
    )  # the error of a model compares none
    doubts = [
        (False, judgement.refused_rates if view == "dr" else None),
        *(
            judgement.few_labels(part, f"{kind} labels", whose)
            for part, kind in zip(weights, compared, strict=False)
        ),
        (True, "Bayesian evaluation gives no interval" if view == "bayesian" else None),
    ]
    # What is not shown comes first.
    may, why = min((doubt for doubt in doubts if doubt[1]), key=itemgetter(0), default=(True, None))
    scored = Scored(judgement.sample, score_of(judgement), positive, counts - positive, weights)
    return scored if may else None, why


def estimates(
    judgement: Judgement, members: np.ndarray, whose: str, measures: Iterable[str] = MEASURES
) -> Iterator[Record]:
    """Measures of the score of some people in each view, and their bounds; arguments as of `labels_of`.

    Yields:
        Records with `measure`, of `MEASURES`, and `view`, of `VIEWS` or `bounds`: what is possible whatever
        missing labels are.
    """
    views = {view: labels_of(judgement, view, members, whose) for view in VIEWS}
    partial = Partial(judgement.sample, score_of(judgement), judgement.log.label, members)
    for measure in measures:
        record = {"about": f"{whose}: {MEASURES[measure]}", "measure": measure}
        for view, (scored, why) in views.items():
            value = NOTHING if scored is None else getattr(scored, measure)().interval()
            yield record | {"view": view, "value": value.without_ends(why)}
        yield record | {"view": "bounds", "value": partial.bounds(measure).limits()}


def curves(judgement: Judgement) -> Iterator[Record]:
    """Shares of people of either label whose score is at least a threshold.

    Yields:
        By `view` (`accepted`, `dr` or `bounds`), `label` and `threshold`: `acceptance`, the share of all
        people above it, `estimate`, `low` and `high`. Intervals cover a whole curve with 95 %.
    """
    score, everybody = score_of(judgement), np.ones(len(judgement.log), dtype=bool)
    levels, partial = levels_of(score), Partial(judgement.sample, score, judgement.log.label, everybody)
    views = {view: labels_of(judgement, view, everybody, EVERYBODY) for view in ("accepted", "dr")}
    for level, (kind, label) in product(levels.tolist(), enumerate(LABELS)):
        above = score >= level
        lines = {}
        for view, (scored, _) in views.items():
            if scored is not None:
                lines[view] = scored.share(kind, above).interval(k=joint_normal(len(levels)))[:3]
        # A share is extreme where unknown labels above the threshold are of one kind, and those below not.
        ends = (partial.labelled(unknown).share(kind, above).value for unknown in (above, ~above))
        low, high = sorted(map(float, ends))
        lines["bounds"] = np.nan, low, high
        record = {"measure": "share above", "label": label, "threshold": level, "acceptance": above.mean()}
        for view, line in lines.items():
            yield record | {"view": view, "value": None} | dict(zip(ENDS, line, strict=True))


def calibration(judgement: Judgement) -> Iterator[Record]:
    """Mean labels by group and bins of the score with enough labels, of all people, doubly robust.

    References:
        Van Calster, B. et al. (2016). A calibration hierarchy for risk models was defined: from utopia to
        empirical data. Journal of Clinical Epidemiology.
    """
    log, score = judgement.log, score_of(judgement)
    if judgement.models.outcome is None or judgement.refused_rates is not None:
        return
    label, bins = judgement.people.pseudo_label, np.minimum((score * BINS).astype(int), BINS - 1)
    for code, k in product(judgement.models.shown, range(BINS)):
        rows = (log.group == code) & (bins == k)
        if (rows & log.revealed).sum() >= judgement.models.smallest_cell:
            mean = judgement.sample.mean(label * rows) / judgement.sample.mean(rows.astype(float))
            value = mean.on(judgement.sample.support(judgement.people.weight.value * rows)).interval()
            where = {"score": score[rows].mean(), "share": rows.sum() / (log.group == code).sum()}
            yield {"group": log.groups[code], "measure": "mean label", "view": "bin", "value": value} | where


def by_period(judgement: Judgement) -> Iterator[Record]:
    """Measures of the score by period, and its stability against the first one; none without periods.

    P of the stability indices (`measure` is `psi`) is corrected for all periods.
    """
    code, names = numbered(judgement.log)
    if len(names) < 2:
        return
    first, *later = (
        pd.Series(score_of(judgement)[rows]) for rows in judgement.log.people_of(code, len(names))
    )
    drifts = drift_by_column(
        {name: (first, scores, True) for name, scores in zip(names[1:], later, strict=True)}
    )
    for k, name in enumerate(names):
        for record in estimates(judgement, code == k, name, BY_PERIOD):
            yield {"period": name} | record
    for name, drift in drifts.items():
        record = {"period": name, "about": f"{name}: PSI", "measure": "psi", "view": "dr"}
        yield record | drift._asdict() | {"value": f"{drift.psi:.3f} (p = {drift.p:.2g})"}


def _scored(shown: Shown) -> bool:
    return shown.first.models.score is not None and bool(shown.log.revealed.any())


def _records(shown: Shown) -> Iterator[Record]:
    judgement, log, scored = shown.first, shown.log, _scored(shown)
    if not scored and (judgement.models.outcome is None or judgement.refused_rates is not None):
        return
    doing("discrimination and calibration")
    groups = {EVERYBODY: np.ones(len(log), dtype=bool)}
    groups |= {log.groups[code]: log.group == code for code in judgement.models.shown}
    for name, members in groups.items():
        for record in estimates(judgement, members, name, [*MEASURES][:-1] if scored else ["error"]):
            yield {"group": name} | record
    yield from calibration(judgement)
    if scored:
        yield from by_period(judgement)
        yield from curves(judgement)


def _told(shown: Shown) -> Iterator[str]:
    """Gini of everybody beside that of the accepted."""
    if _scored(shown):
        everybody = np.ones(len(shown.log), dtype=bool)
        records = estimates(shown.first, everybody, EVERYBODY, ["gini"])
        gini = {record["view"]: record["value"].why or text(record["value"], {}) for record in records}
        yield f"Score: Gini of everybody, doubly robust: {gini['dr']}; of the accepted: {gini['accepted']}"


def _draw(shown: Shown) -> Figure:
    """Draw the shares of people above thresholds of the score, by label; a panel per view."""
    from fairall.display.style import BLUE, ORANGE, legend_below
    from fairall.evaluate.drawing import band, grid

    frame = pd.DataFrame(curves(shown.first))
    handles, (figure, panels) = {}, grid(frame["view"].nunique(), height=1.7, sharey=True)
    for axes, (view, of_view) in zip(panels, frame.groupby("view", sort=False), strict=True):
        for colour, (label, curve) in zip((ORANGE, BLUE), of_view.groupby("label"), strict=True):
            x, y, low, high = curve[["acceptance", *ENDS]].to_numpy().T
            handles[f"people with a {label} label"] = band(axes, 100 * x, y, low, high, colour)
        axes.set(title=COLUMNS[view], xlabel="people above the threshold ×100")
    panels[0].set_ylabel("above the threshold ×100")
    legend_below(figure, handles, 2)
    return figure


SCORE = Analysis(
    key="score",
    section=DISCRIMINATION,
    title="Discrimination and calibration ×100",
    note=(
        "Of the probability of a positive label by the score or, without one, by the model of the label; "
        f"{INTERVALS}. label − score: mean label less mean probability. accepted: of people with a "
        "label, which is another quantity than that of everybody. DR: doubly robust. Bayesian: a "
        f"missing label is drawn from the model of the label, without an interval. {NO_ASSUMPTION} PSI: "
        "population stability index of the score against the first period, and p of no change, corrected "
        "for all periods. The files have mean labels by bins, and shares of people above thresholds."
    ),
    records=_records,
    line="about",
    column="view",
    columns=COLUMNS,
    picture=Picture(
        key="ranks",
        title="What the score tells apart",
        note=(
            "People of either label with a score above a threshold, by all people above it. On the accepted "
            "alone; of everybody, doubly robust; and what is possible whatever the missing labels are. A "
            "band covers a whole curve with 95 %."
        ),
        draw=_draw,
        there=_scored,
    ),
    told=_told,
)
