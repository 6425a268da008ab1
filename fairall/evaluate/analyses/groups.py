"""Who is in the log: people, labels and rates by group, and whether weighted labels are like all people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

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
SIZES = "people", "accepted", "labelled", "effective", "accepted by expected", "least balanced"
COLUMNS = [*SIZES, *(MEASURES[measure].rate for measure in RATES)]
NOTE = (
    "accepted, labelled: by the past decisions; effective: how many equally weighted labels theirs count as. "
    "accepted by expected: number of accepted people by the sum of propensities. least balanced: mean of "
    "people with labels less that of all people, in standard deviations, before → after weighting; above 0.1 "
    "is unbalanced. The CSV file has all features. Rates of the policy ×100, doubly robust, "
    f"{INTERVALS}."
)


def records(shown: Shown) -> Iterator[Record]:
    """By group its sizes, the balance of its labels, and rates in each view."""
    for policy, evaluation in shown.evaluations.items():
        log, chance = evaluation.log, evaluation.models.acceptance
        for code in evaluation.models.shown:
            members = log.group == code
            about = {"policy": policy, "group": log.groups[code]}
            values: dict[str, Any] = {
                "people": int(members.sum()),
                "accepted": int((members & log.accepted).sum()),
                "labelled": int((members & log.revealed).sum()),
                "effective": round(evaluation.effective(members)),
            }
            if evaluation is shown.first and log.revealed.any():
                known, features = members & np.isfinite(chance), balance(evaluation, members)
                worst = [
                    f"{row.Index} {row.before:.2f} → {row.after:.2f}" for row in features[:WORST].itertuples()
                ]
                values["accepted by expected"] = f"{log.accepted[known].sum() / chance[known].sum():.2f}"
                values["least balanced"] = "; ".join(worst).replace("-", "−")
                for feature, differences in features.to_dict("index").items():
                    yield about | {"measure": "balance", "feature": feature, "value": None} | differences
            known_rates = MEASURES if log.revealed.any() else {"dpu": MEASURES["dpu"]}
            for (name, measure), view in product(known_rates.items(), VIEWS):
                rate = measure.rate + ("" if view == "dr" else f", {view}")
                values[rate] = evaluation.rate(name, view, code)
            yield from (about | {"measure": measure, "value": value} for measure, value in values.items())


def balance(evaluation: Judgement, rows: np.ndarray) -> pd.DataFrame:
    """Whether people with labels are like all people of some rows (N,).

    Returns:
        By feature, the least balanced first, the standardised difference of means of its inputs (the largest
        in absolute value), `before` and `after` weighting by 1/p.

    References:
        Austin, P. (2009). Balance diagnostics for comparing the distribution of baseline covariates between
        treatment groups. Statistics in Medicine.
    """
    log, standard = evaluation.log, StandardScaler().fit_transform(evaluation.log.design[rows])
    weights = {"before": log.revealed[rows], "after": evaluation.people.weight.value[rows]}
    means = {when: weight @ standard / max(weight.sum(), 1e-300) for when, weight in weights.items()}
    names = pd.Series(log.input_names, dtype=object).replace("", np.nan)  # the group has no name
    features = pd.DataFrame(means).groupby(names, sort=False).agg(lambda inputs: max(inputs, key=abs))
    return features.sort_values("after", key=lambda after: -after.abs(), kind="stable")


def largest(judgement: Judgement) -> list[int]:
    """Codes of the groups that figures show: of those with people enough the `MOST_GROUPS` largest."""
    group, shown = judgement.log.group, judgement.models.shown
    return sorted(sorted(shown, key=lambda code: -(group == code).sum())[:MOST_GROUPS])


def draw(shown: Shown) -> Figure:
    """Draw how many people of a propensity were accepted, and would be by policies; a panel per group."""
    from fairall.display.style import GREEN, GREY, legend_below
    from fairall.evaluate.drawing import coloured, grid

    models, log, edges = shown.first.models, shown.log, np.linspace(0.0, 1.0, BINS + 1)
    codes, handles = largest(shown.first), dict[str, Any]()
    people = [("all", GREY, np.ones(len(log))), ("accepted", GREEN, log.accepted)]
    for name, colour, evaluation in coloured(shown.evaluations):
        people.append((f"accepted by {name}", colour, evaluation.target))
    figure, panels = grid(len(codes), height=1.5)
    for axes, code in zip(panels, codes, strict=True):
        rows = np.isfinite(models.acceptance) & (log.group == code)
        for name, colour, weights in people:
            counts = np.histogram(models.acceptance[rows], edges, weights=1.0 * weights[rows])[0]
            handles[name] = axes.stairs(counts, edges, fill=colour in (GREY, GREEN), color=colour)
        axes.set(title=log.groups[code], xlabel="propensity", xlim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0])
    panels[0].set_ylabel("people")
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
        "People by the propensity of the past decisions, those accepted among them, and as a line how many "
        "the policy accepts. Where it accepts people and nobody was accepted, labels are missing.",
        draw,
        there=lambda shown: len(shown.first.models.shown) > 0,
        wide=lambda shown: len(shown.first.models.shown) > 2,
    ),
)
