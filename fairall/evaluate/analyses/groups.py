"""Who is in the log: people, labels and rates by group, and whether weighted labels are like all people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from fairall.evaluate.analysis import DATA, INTERVALS, Analysis, Picture, Record
from fairall.evaluate.estimated.fairness import MEASURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

MOST_GROUPS = 8  # drawn, the largest
BINS = 20  # of propensities


def records(shown: Shown) -> Iterator[Record]:
    """By group its sizes, doubly robust rates, and the balance of its labels."""
    log = shown.log
    for policy, evaluation in shown.evaluations.items():
        for code in evaluation.models.shown:
            members = log.group == code
            about = {"policy": policy, "group": log.groups[code]}
            values: dict[str, Any] = {
                "people": members.sum(),
                "accepted": log.accepted[members].sum(),
                "labelled": log.revealed[members].sum(),
                "effective": round(evaluation.effective(members)),
            }
            features = {}
            if evaluation is shown.first and values["labelled"]:  # they are of the past decisions
                expected = evaluation.models.acceptance[members].sum()
                values["accepted by expected"] = f"{values['accepted'] / expected:.2f}"
                features = balance(evaluation, members).to_dict("index")
            for name, measure in MEASURES.items():
                if log.revealed.any() or measure.labels == "none":
                    values[measure.rate] = evaluation.rate(name, "dr", code)
            yield from (about | {"measure": measure, "value": value} for measure, value in values.items())
            for feature, means in features.items():  # the page shows the last one
                cell = "{} {before:.2f} → {after:.2f}".format(feature, **means).replace("-", "−")
                yield about | {"measure": "balance", "feature": feature, "value": cell} | means


def balance(evaluation: Judgement, rows: np.ndarray) -> pd.DataFrame:
    """Whether people with labels are like all people of some rows (N,), at least one of which has a label.

    Returns:
        By feature, the least balanced last, the standardised difference of means of its inputs (the largest
        in absolute value), `before` and `after` weighting by 1/p.

    References:
        Austin, P. (2009). Balance diagnostics for comparing the distribution of baseline covariates between
        treatment groups. Statistics in Medicine.
    """
    log = evaluation.log
    standard = StandardScaler().fit_transform(log.design[rows])
    weights = {"before": log.revealed[rows], "after": evaluation.people.weight.value[rows]}
    means = {when: weight @ standard / weight.sum() for when, weight in weights.items()}
    by_feature = pd.DataFrame(means).groupby(np.asarray(log.input_names), sort=False)
    features = by_feature.agg(lambda inputs: max(inputs, key=abs)).sort_values("after", key=abs)
    return features.drop(index="", errors="ignore")  # inputs of the group


def largest(judgement: Judgement) -> np.ndarray:
    """Codes of the groups that figures show: of those with people enough the `MOST_GROUPS` largest."""
    by_size = np.argsort(-np.bincount(judgement.log.group), kind="stable")
    return np.sort(by_size[: len(judgement.models.shown)][:MOST_GROUPS])


def draw(shown: Shown) -> Figure:
    """Draw how many people of a propensity were accepted, and would be by policies; a panel per group."""
    from fairall.display.style import GREEN, GREY, handles_of, legend_below
    from fairall.evaluate.drawing import POLICIES, grid

    log = shown.log
    codes = largest(shown.first)
    people = {"all": np.ones(len(log)), "accepted": log.accepted.astype(float)}
    people |= {f"accepted by {name}": one.target for name, one in shown.evaluations.items()}
    figure, panels = grid(len(codes), height=1.5)
    for axes, code in zip(panels, codes, strict=True):
        rows = log.group == code
        propensity = shown.first.models.acceptance[rows]
        for (name, weights), colour in zip(people.items(), (GREY, GREEN, *POLICIES), strict=False):
            counts, edges = np.histogram(propensity, BINS, (0.0, 1.0), weights=weights[rows])
            axes.stairs(counts, edges, fill=colour not in POLICIES, color=colour, label=name)
        axes.set(title=log.groups[code], xlabel="propensity", xlim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0])
    panels[0].set_ylabel("people")
    legend_below(figure, handles_of(panels), 4)
    return figure


GROUPS = Analysis(
    key="groups",
    section=DATA,
    title="Groups",
    note=(
        "accepted, labelled: by the past decisions; effective: how many equally weighted labels theirs count "
        "as. accepted by expected: number of accepted people by the sum of propensities. Rates of the policy "
        f"×100, doubly robust, {INTERVALS}. balance: of the least balanced feature the mean of people with "
        "labels less that of all people, in standard deviations, before → after weighting; above 0.1 is "
        "unbalanced. The CSV file has all features."
    ),
    records=records,
    line="group",
    column="measure",
    picture=Picture(
        "overlap",
        "Overlap",
        "People by the propensity of the past decisions, those accepted among them, and as a line how many "
        "the policy accepts. Where it accepts people and nobody was accepted, labels are missing.",
        draw,
        there=lambda shown: len(shown.first.models.shown) > 0,
        wide=lambda shown: len(shown.first.models.shown) > 1,
    ),
)
