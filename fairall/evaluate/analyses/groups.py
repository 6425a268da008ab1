"""Who is in the log: people, labels and rates by group, and whether weighted labels are like all people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairall.evaluate.analysis import DATA, INTERVALS, Analysis, Picture, Record
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

MOST_GROUPS = 8  # drawn, the largest
BINS = 20  # of propensities
WORST = 3  # features named
RATES = ("dpu", "equal_opportunity", "predictive_parity", "false_positive", "utility_gap")
SIZES = ("people", "accepted", "labelled", "effective")
BALANCE = ("accepted by expected", "least balanced")
COLUMNS = [*SIZES, *BALANCE, *(MEASURES[measure].rate for measure in RATES)]
NOTE = (
    "accepted, labelled: by the past decisions; effective: how many equally weighted labels theirs count as. "
    "accepted by expected: number of accepted people by the sum of propensities. least balanced: mean of "
    "people with labels less that of all people, in standard deviations, before → after weighting; above 0.1 "
    "is unbalanced. The CSV file has all features. Rates of the policy ×100, doubly robust, "
    f"{INTERVALS}."
)


def records(shown: Shown) -> Iterator[Record]:
    """By group its sizes, the balance of its labels, and rates in each view."""
    for k, (policy, evaluation) in enumerate(shown.evaluations.items()):
        log = evaluation.log
        for code in evaluation.models.shown:
            group, members = log.groups[code], log.group == code
            about = {"policy": policy, "group": group}
            counted = members, members & log.accepted, members & log.revealed
            sizes = [int(rows.sum()) for rows in counted]
            sizes.append(round(evaluation.effective(members)))
            for measure, size in zip(SIZES, sizes, strict=True):
                yield about | {"measure": measure, "value": size}
            if k == 0 and log.revealed.any():
                known = members & np.isfinite(evaluation.models.acceptance)
                expected = evaluation.models.acceptance[known].sum()
                features = balance(evaluation, members)
                worst = [
                    f"{name} {of.before:.2f} → {of.after:.2f}" for name, of in features[:WORST].iterrows()
                ]
                yield about | {"measure": BALANCE[0], "value": f"{log.accepted[known].sum() / expected:.2f}"}
                yield about | {"measure": BALANCE[1], "value": "; ".join(worst).replace("-", "−")}
                for feature, differences in features.iterrows():
                    keys = {"measure": "balance", "feature": feature, "value": None}
                    yield about | keys | differences.to_dict()
            for name in MEASURES:
                for view in VIEWS:
                    rate = MEASURES[name].rate + ("" if view == "dr" else f", {view}")
                    yield about | {"measure": rate, "value": evaluation.rate(name, view, code)}


def balance(evaluation: Judgement, rows: np.ndarray) -> pd.DataFrame:
    """Whether people with labels are like all people of some rows (N,).

    Returns:
        By feature, the least balanced first, the standardised difference of means of its inputs (the largest
        in absolute value), `before` and `after` weighting by 1/p.

    References:
        Austin, P. (2009). Balance diagnostics for comparing the distribution of baseline covariates between
        treatment groups. Statistics in Medicine.
    """
    design, log = evaluation.log.design[rows], evaluation.log
    spread = np.maximum(design.std(0), np.finfo(np.float32).tiny)
    weights = {"before": log.revealed.astype(float), "after": evaluation.people.weight.value}
    means = {
        when: weight[rows] @ design / max(weight[rows].sum(), 1e-300) for when, weight in weights.items()
    }
    inputs = pd.DataFrame({when: (mean - design.mean(0)) / spread for when, mean in means.items()})
    names = pd.Series(log.input_names, dtype=object).replace("", np.nan)  # the group has no name
    features = inputs.groupby(names, sort=False).agg(lambda column: max(column, key=abs))
    return features.sort_values("after", key=lambda after: -after.abs(), kind="stable")


def draw(shown: Shown) -> Figure:
    """Draw the propensities of accepted and rejected people, acceptance by policies; a panel per group."""
    from fairall.display.style import GREEN, GREY, legend_below
    from fairall.evaluate.drawing import SIDE_BY_SIDE, coloured, grid

    models, log = shown.first.models, shown.log
    propensity, handles = models.acceptance, dict[str, Any]()
    known, sizes = np.isfinite(propensity), np.bincount(log.group, minlength=len(log.groups))
    codes = sorted(sorted(models.shown, key=lambda code: -sizes[code])[:MOST_GROUPS])
    figure, panels = grid(len(codes), height=1.5)
    edges = np.linspace(0.0, 1.0, BINS + 1)
    for at, (axes, code) in enumerate(zip(panels, codes, strict=True)):
        members = known & (log.group == code)
        for label, decided, colour in (("rejected", ~log.accepted, GREY), ("accepted", log.accepted, GREEN)):
            share = np.histogram(propensity[members & decided], edges)[0] / max(members.sum(), 1)
            handles[label] = axes.stairs(share, edges, fill=True, color=colour, alpha=0.45)
        right = axes.twinx()
        people = np.histogram(propensity[members], edges)[0]
        for name, colour, evaluation in coloured(shown.evaluations):
            accepted = np.histogram(propensity[members], edges, weights=evaluation.target[members])[0]
            mean = np.divide(accepted, people, out=np.full(BINS, np.nan), where=people > 0)
            (handles[f"acceptance, {name}"],) = right.plot(
                (edges[1:] + edges[:-1]) / 2, mean, color=colour, marker="o", ms=2, lw=0.9
            )
        last = at == len(codes) - 1 or (at + 1) % SIDE_BY_SIDE == 0
        right.set(ylim=(0.0, 1.02), yticks=[0.0, 0.5, 1.0], ylabel="acceptance by the policy" if last else "")
        right.spines["right"].set_visible(True)
        right.tick_params(labelright=last)
        axes.set(title=log.groups[code], xlabel="propensity", xlim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0])
        axes.set_ylabel("share of the group" if at % SIDE_BY_SIDE == 0 else "")
    legend_below(figure, handles, 4)
    return figure


GROUPS = Analysis(
    key="groups",
    section=DATA,
    title="Groups",
    note=NOTE,
    records=records,
    line="group",
    column="measure",
    columns={name: name for name in COLUMNS},
    picture=Picture(
        "overlap",
        "Overlap",
        "People by the propensity of the past decisions, accepted and rejected; the line is the mean "
        "acceptance probability of the policy among people of a bin. Where it is high and nobody was "
        "accepted, labels are missing.",
        draw,
        there=lambda shown: len(shown.first.models.shown) > 0,
    ),
)
