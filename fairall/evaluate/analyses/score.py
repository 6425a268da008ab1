"""Discrimination and calibration of a score among the accepted, among all people, and at the extremes.

Without a score the calibration of the model of the label takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

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
from fairall.evaluate.estimated.bounds import Bounds, Limits
from fairall.evaluate.estimated.gaps import NOTHING, Interval, interval, joint_normal
from fairall.evaluate.estimated.influence import Column
from fairall.evaluate.estimated.scores import Partial, Scored
from fairall.evaluate.judged.judgement import NO_MODEL, Judgement
from fairall.evaluate.judged.periods import numbered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.evaluation import Evaluation
    from fairall.evaluate.page import Shown

EVERYBODY = "everybody"  # the groups together
BINS = 10  # of equal width on [0, 1], of probabilities
# The methods of `Scored` and `Partial`: name, the least value (the greatest is 1), and whether people of
# either label are compared.
MEASURES = {
    "auc": ("AUC", 0.0, True),
    "gini": ("Gini", -1.0, True),
    "ks": ("KS", 0.0, True),
    "brier": ("Brier score", 0.0, False),
    "calibration": ("label − score", -1.0, False),
}
BY_PERIOD = ("gini", "brier", "calibration")
COLUMNS = {
    "accepted": "accepted",
    "dr": "everybody",
    "bayesian": "everybody, Bayesian",
    "bounds": "no assumption",
    "all scores": "everybody",
}
LABELS = ("positive", "negative")


class View(NamedTuple):
    """Labels of some people in a view.

    Attributes:
        scored: the people; None where nothing may be shown of them.
        weights: of the revealed positive and negative labels that the view rests on, shape (2, N).
        why: there is no estimate, or no interval.
    """

    scored: Scored | None
    weights: np.ndarray
    why: str | None


def view_of(of: Judgement, view: str, members: np.ndarray, whose: str) -> View:
    """Labels of some people in a view.

    Args:
        of: with a score.
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
    people, known, score = of.people, of.log.revealed.astype(float), of.models.score
    weight = people.weight.value if view == "dr" else known
    weights = weight * members * np.stack([people.label, 1.0 - people.label])
    refused = of.refused_rates if view == "dr" else None
    if view != "accepted" and people.outcome is None:
        refused = NO_MODEL
    doubts = [(refused is None, refused)]
    doubts += [
        of.few_labels(own, f"{label} labels", whose) for own, label in zip(weights, LABELS, strict=True)
    ]
    if view == "bayesian":
        doubts.append((True, "Bayesian evaluation gives no interval"))
    may, why = next((doubt for doubt in doubts if doubt[1] is not None), (True, None))
    if not may:
        return View(None, weights, why)
    assert score is not None
    positive = Column(people.label)  # 0 where the label is not known
    if view == "dr":
        positive = people.pseudo_label
    if view == "bayesian" and people.outcome is not None:
        positive = positive + people.outcome * (1.0 - known)
    positive = positive * members
    counts = members * (known if view == "accepted" else 1.0)
    return View(Scored(of.sample, score, positive, counts - positive), weights, why)


def estimates(
    of: Judgement, members: np.ndarray, whose: str, measures: Iterable[str] = MEASURES
) -> Iterator[Record]:
    """Measures of the score of some people in each view, and their bounds.

    Args:
        of: with a score.
        members: the people, shape (N,), bool.
        whose: who they are, in words.
        measures: of `MEASURES`.

    Yields:
        Records with `measure` and `view`: one of `view_of`, or `bounds`, what is possible whatever missing
        labels are.
    """
    assert of.models.score is not None
    views = {view: view_of(of, view, members, whose) for view in ("accepted", "dr", "bayesian")}
    partial = Partial(of.sample, of.models.score, of.log.label, members)
    for measure in measures:
        name, lowest, by_label = MEASURES[measure]
        record = {"about": f"{whose}: {name}", "measure": measure}
        for view, (scored, weights, why) in views.items():
            value = NOTHING
            if scored is not None:
                parts = weights if by_label else weights.sum(0, keepdims=True)
                supports = (of.sample.support(part, lowest=lowest) for part in parts)
                fewest = min(supports, key=lambda support: float(support.clusters))
                value = interval(getattr(scored, measure)().on(fewest))
            yield record | {"view": view, "value": value.without_ends(why)}
        support = of.sample.support(members.astype(float), lowest=lowest)
        bounds = Bounds(*(end.on(support) for end in getattr(partial, measure)()))
        yield record | {"view": "bounds", "value": bounds.limits()}


def by_period(of: Judgement) -> Iterator[Record]:
    """Measures of the score by period, and its stability against the first one; none without periods.

    P of the stability indices (`measure` is `psi`) is corrected for all periods.
    """
    code, names = numbered(of.log)
    if len(names) < 2:
        return
    first, *later = (pd.Series(of.models.score)[rows] for rows in of.log.people_of(code, len(names)))
    drifts = drift_by_column({k: (first, scores, True) for k, scores in enumerate(later, start=1)})
    for k, name in enumerate(names):
        for record in estimates(of, code == k, name, BY_PERIOD):
            yield {"period": name} | record
        if k:
            value = f"{drifts[k].psi:.3f} (p = {drifts[k].p:.2g})"
            record = {"period": name, "about": f"{name}: PSI", "measure": "psi", "view": "all scores"}
            yield record | drifts[k]._asdict() | {"value": value}


def curves(of: Judgement) -> pd.DataFrame:
    """Shares of people of either label whose score is at least a threshold.

    Returns:
        A row per `view` (`accepted`, `dr` or `bounds`), `label` and `threshold`: `acceptance`, the share of
        all people above it, `estimate`, `low` and `high`. Intervals cover a whole curve with 95 %.
    """
    score, everybody = of.models.score, np.ones(len(of.log), dtype=bool)
    assert score is not None
    levels, partial = levels_of(score), Partial(of.sample, score, of.log.label, everybody)
    views = {view: view_of(of, view, everybody, EVERYBODY) for view in ("accepted", "dr")}
    rows, k = [], joint_normal(len(levels))
    for level in levels:
        above = score >= level
        # A share is extreme where unknown labels above the threshold are of one kind, and those below not.
        ends = zip(*(partial.labelled(unknown).shares(above) for unknown in (above, ~above)), strict=True)
        found = {"bounds": [(np.nan, *sorted(float(end.value) for end in pair)) for pair in ends]}
        for view, (scored, weights, _) in views.items():
            if scored is not None:
                shares = zip(scored.shares(above), weights, strict=True)
                found[view] = [interval(share.on(of.sample.support(own)), k=k)[:3] for share, own in shares]
        rows += [
            (view, label, level, above.mean(), *own)
            for view, by_label in found.items()
            for label, own in zip(LABELS, by_label, strict=True)
        ]
    columns = ["view", "label", "threshold", "acceptance", "estimate", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def calibration(of: Judgement) -> Iterator[Record]:
    """By group, mean labels by bins of the probability of a positive label (`view` is `bin`).

    The probability is the given score's, else the outcome model's, of which the mean label less the mean
    probability is given too. Labels are doubly robust, so that all people count; none where labels of all
    people cannot be estimated.

    References:
        Van Calster, B. et al. (2016). A calibration hierarchy for risk models was defined: from utopia to
        empirical data. Journal of Clinical Epidemiology.
    """
    models, log, people = of.models, of.log, of.people
    if models.outcome is None or of.refused_rates is not None:
        return
    score = models.outcome.probability if models.score is None else models.score
    label, weight = people.pseudo_label, people.weight.value
    cell = log.group * BINS + np.minimum((score * BINS).astype(int), BINS - 1)
    by_cell = of.sample.by(cell, len(log.groups) * BINS)
    size = by_cell.mean(np.ones(len(log)))
    scores, labels = (by_cell.mean(column) / size for column in (score, label))
    labels = labels.on(by_cell.support(weight))
    known = np.bincount(cell[log.revealed], minlength=by_cell.groups)
    for code in models.shown:
        group, members = log.groups[code], log.group == code
        if models.score is None:
            positive, mean = label * members, score[members].mean()
            error = Scored(of.sample, score, positive, members - positive).calibration()
            support = of.sample.support(weight * members, lowest=-mean, highest=1.0 - mean, cut=False)
            may, why = of.doubt("equal_opportunity", "dr", code)
            value = (interval(error.on(support)) if may else NOTHING).without_ends(why)
            about = f"{group}: label − probability"
            yield {"group": group, "about": about, "measure": "calibration", "view": "dr", "value": value}
        for b in range(code * BINS, (code + 1) * BINS):
            if known[b] >= models.smallest_cell:
                share = size.value[b] * len(log) / members.sum()
                record = {"group": group, "measure": "mean label", "view": "bin", "score": scores.value[b]}
                yield record | {"share": share, "value": interval(labels, b)}


def _judged(shown: Shown) -> Evaluation:
    """The policies share the score and the models: the first whose labels of all people are not refused."""
    return next((one for one in shown.evaluations.values() if one.refused_rates is None), shown.first)


def _scored(shown: Shown) -> bool:
    return shown.first.models.score is not None and bool(shown.log.revealed.any())


def _records(shown: Shown) -> Iterator[Record]:
    of, log = _judged(shown), shown.log
    if _scored(shown):
        doing("discrimination and calibration of the score")
        parts = {EVERYBODY: np.ones(len(log), dtype=bool)}
        parts |= {log.groups[code]: log.group == code for code in of.models.shown}
        for name, members in parts.items():
            for record in estimates(of, members, name):
                yield {"group": name} | record
        yield from by_period(of)
        for row in curves(of).to_dict("records"):
            yield {"group": EVERYBODY, "measure": "share above", "value": None} | row
    yield from calibration(of)


def _gini(shown: Shown) -> dict[str, Interval | Limits]:
    """Of everybody, by view."""
    everybody = np.ones(len(shown.log), dtype=bool)
    return {one["view"]: one["value"] for one in estimates(_judged(shown), everybody, EVERYBODY, ["gini"])}


def _told(shown: Shown) -> Iterator[str]:
    """Gini of everybody beside that of the accepted."""
    if _scored(shown):
        gini, reasons = _gini(shown), dict[str, int]()
        known = (
            f"{text(gini['dr'], reasons)}, doubly robust; of the accepted {text(gini['accepted'], reasons)}"
        )
        yield "; ".join(
            [f"Score: Gini of everybody {known}", *(f"[*{k}] {why}" for why, k in reasons.items())]
        )


def _draw(shown: Shown) -> Figure:
    """Draw the shares of people above thresholds of the score, by label; a panel per view."""
    from fairall.display.style import BLUE, ORANGE, legend_below
    from fairall.evaluate.drawing import band, grid

    frame, gini = curves(_judged(shown)), _gini(shown)
    titles = {"accepted": "accepted alone", "dr": "everybody", "bounds": "no assumption"}
    handles, (figure, panels) = {}, grid(len(titles), height=1.7, sharey=True)
    for axes, (view, title) in zip(panels, titles.items(), strict=True):
        for label, colour in zip(LABELS, (BLUE, ORANGE), strict=True):
            own = frame[(frame["view"] == view) & (frame["label"] == label)]
            if len(own):
                ends = own["estimate"], own["low"], own["high"]
                handles[f"people with a {label} label"] = band(axes, 100 * own["acceptance"], *ends, colour)
        axes.set(title=f"{title}\nGini {text(gini[view], {})}", xlabel="people above the threshold ×100")
    panels[0].set_ylabel("above the threshold ×100")
    legend_below(figure, handles, 2)
    return figure


def _note(shown: Shown) -> str:
    """What the columns are."""
    if not _scored(shown):
        return (
            "Mean label less mean probability of a positive label by the model of the label, of all people, "
            f"doubly robust, {INTERVALS}. The files have mean labels by bins of the probability too."
        )
    return (
        f"Of the probability of a positive label, {INTERVALS}. accepted: of people with a label, which is "
        "another quantity than that of everybody. everybody: doubly robust. Bayesian: a missing label is "
        f"drawn from the model of the label, without an interval. {NO_ASSUMPTION} PSI: population stability "
        "index of the score against the first period, and p of no change, corrected for all periods. The files "
        "have mean labels by bins of the score, and shares of people above thresholds."
    )


SCORE = Analysis(
    key="score",
    section=DISCRIMINATION,
    title="Discrimination and calibration ×100",
    note=_note,
    records=_records,
    line="about",
    column="view",
    columns=COLUMNS,
    picture=Picture(
        title="What the score tells apart",
        note=(
            "People of either label with a score above a threshold, by all people above it. On the accepted "
            "alone; of everybody, doubly robust; and what is possible whatever the missing labels are. A band "
            "covers a whole curve with 95 %."
        ),
        draw=_draw,
        there=_scored,
    ),
    told=_told,
)
