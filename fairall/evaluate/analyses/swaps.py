"""Swap sets of two policies: whom both accept, only one of them, or neither, and how good these people are.

With acceptance probabilities a of policy A and b of policy B a person is in the sets with the probabilities
a·b, a·(1 − b), (1 − a)·b and (1 − a)·(1 − b), as if both decided independently; of decisions these are 0 or
1. A set is treated as a policy that accepts its members, so that its rate of positive labels is the doubly
robust precision of `fairness.rates` (Robins, Rotnitzky and Zhao 1994), with the same interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairall.evaluate.analysis import VALUE, Analysis, Record, text
from fairall.evaluate.estimated.estimates import NOTHING
from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.estimated.fairness import rates

if TYPE_CHECKING:
    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.comparison import Difference

SETS = {"both": "A and B accept", "first": "only A accepts", "second": "only B accepts", "neither": "neither"}
NOTE = (
    "People by the policies that accept them (expected numbers where policies have probabilities). good: "
    "share of positive labels among them, doubly robust; group: share of the group in the set; all with 95 % "
    "intervals. margin: points by which the positive labels of those whom only B accepts may be fewer than "
    "estimated until B is worth no more than A; below 0 the change does not pay even as estimated."
)
SENTENCE = (
    "Swap sets: only B accepts {people} people, of whom {good} % have a positive label. B is worth as much "
    "as A if this is {margin} points lower than estimated (below 0 the change does not pay)"
)


def swap_sets(comparison: Difference) -> dict[str, People]:
    """The people of the log, with membership in each set of `SETS` as their acceptance probability.

    Where the decisions of the log are one of the policies, a label is weighted by the probability of being
    known given these decisions: r/ℓ where they accept, r/p − r/ℓ where both are counted as rejected.
    """
    policy, other, names = comparison.first.people, comparison.second.people, [*SETS]
    if comparison.second.logged:
        policy, other, names = other, policy, ["both", "second", "first", "neither"]
    accepted, rejected = (policy.target, policy.kept), (1.0 - policy.target, policy.weight - policy.kept)
    parts = itertools.product((accepted, rejected), (other.target, 1.0 - other.target))
    return {
        name: replace(policy, target=share * chance, kept=weight * chance)
        for name, ((share, weight), chance) in zip(names, parts, strict=True)
    }


def measures(comparison: Difference, name: str) -> dict[str, Any]:
    """What is known of a set of `SETS`: people, rate of positive labels, shares of groups.

    Of those whom only B accepts the margin too: by how much their rate may be lower until B is worth as much
    as A, with an interval by the delta method. What is refused has the reason in its `Interval`.
    """
    judge, members = comparison.second, swap_sets(comparison)[name]
    sample, share, weight = judge.sample, members.target, members.kept.value
    _, few = judge.few_labels(share, "people", "the set")
    why = few or comparison.values["dr"].why or judge.few_labels(weight, "labels", "the set")[1]
    why = why or judge.lacking(share, weight, "in the set", sample.mean(members.accepted_pseudo_label))
    refused = NOTHING.without_ends(why)
    good = refused if why else rates("dr", members, sample.everybody)["predictive_parity"].interval(0)
    values = {"people": round(share.sum()), "good": good}
    if name == "second":
        values["margin"] = refused
    if name == "second" and why is None:
        # With a rate that is lower by δ for each of these people B loses δ·E[(1 − a)·b·s], s the stake.
        change, stake = comparison.difference("dr"), sample.mean(share * members.stake)
        values["margin"] = (change / stake).on((change * (1.0 / stake.value)).support).interval()
    if few is None and len(judge.log.groups) > 1:
        of_groups = (judge.by_group.mean(share) / sample.mean(share)).on(sample.support(share))
        for code in judge.models.shown:
            values[f"group {judge.log.groups[code]}"] = of_groups.interval(code)
    return values


def records(shown: Shown) -> Iterator[Record]:
    """What is known of each set; nothing of one policy."""
    if shown.difference is not None:
        for name in SETS:
            for measure, value in measures(shown.difference, name).items():
                yield {"set": name, "measure": measure, "value": value}


def told(shown: Shown) -> Iterator[str]:
    """Who is swapped in, and by how much worse they may be; nothing where that is not known."""
    values = measures(shown.difference, "second") if shown.difference else {"margin": NOTHING}
    if np.isfinite(values["margin"].low):
        yield SENTENCE.format(**{name: text(value, {}) for name, value in values.items()})


SWAPS = Analysis(
    key="swaps",
    section=VALUE,
    title="Swap sets: whom the policies accept ×100",
    note=NOTE,
    records=records,
    line="set",
    column="measure",
    lines=SETS,
    told=told,
)
