"""How often people decided otherwise than a policy, or on those whom it referred, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from fairall.errors import FairAllError
from fairall.live.guard import log_of_rows
from fairall.live.versions import Version

OF = {"rejected": 0, "accepted": 1, "referred": -1}  # decisions of policies
NO_OUTCOME, FEW = "no outcome is known", "too few people and outcomes to compare with"


def overrides(people: pd.DataFrame, version: Version) -> list[dict[str, Any]]:
    """Decisions of people, in all and by group.

    Acceptances are valued by their outcomes. Of rejections no outcome is known: the doubly robust estimate
    takes whoever was rejected as alike, given the features, to those whom policies had decided on in the same
    way and whom people had not rejected. A person who knows more than the features may have done better or
    worse; the bounds hold then, too.

    Args:
        people: as of `Record.applications`, with a column `group`; their labels are those that count.
        version: any.

    Returns:
        For each group, what policies had decided (`of`, see `OF`) and what people did (`to`): the number of
        `people`, their `share` of those whom policies had decided on so, with its 95 % interval (Wilson
        1927), and known `outcomes`; the `value` of such a decision, compared with the opposite one, and its
        95 % interval, None where it cannot be estimated, and what it `lacks` then; `bounds` of it, whatever
        the outcomes are.
    """
    people = people.query("not undecided")
    found = []
    for (of, decision), to in product(OF.items(), ("accept", "reject")):
        before = people[people["decision"].fillna(-1) == decision]
        moved = before[before["override"].notna() & (before["accepted"] == (to == "accept"))]
        if moved.empty:
            continue
        rejections = None if to == "accept" else _rejections(before, version)
        groups = {group: ids for (_, group), ids in before.groupby(["s", "group"]).groups.items()}
        for group, ids in {"all": before.index, **groups}.items():
            own = moved[moved.index.isin(ids)]
            if len(own):
                row = {"group": group, "of": of, "to": to, "people": len(own)}
                row |= {"share": share(len(own), len(ids)), "outcomes": int(own["label"].count())}
                found.append(row | (rejections(ids) if rejections else accepted_value(own, version)))
    return found


def share(k: int, n: int) -> list[float]:
    """A share of n people, and the ends of its 95 % interval (Wilson 1927)."""
    ends = binomtest(k, n).proportion_ci(method="wilson")
    return [k / n, float(ends.low), float(ends.high)]


def accepted_value(people: pd.DataFrame, version: Version) -> dict[str, Any]:
    """`value` of an acceptance of people by their known labels, as of `overrides`.

    The amounts of people who were forgotten are not known: they are left out.
    """
    known, value = people.dropna(subset=["label", "features"] if version.money else ["label"]), None
    if len(known) and version.money:
        value = mean_worth(known["label"].to_numpy() == 1, *version.amounts(known))
    elif len(known):
        value = [one - version.config.cost.value for one in share(int(known["label"].sum()), len(known))]
    lacks = None if value else FEW if len(known) else NO_OUTCOME
    return {"value": value, "lacks": lacks, "bounds": None}


def mean_worth(good: np.ndarray, gain: np.ndarray, loss: np.ndarray) -> list[float] | None:
    """Mean of what N people brought or cost, and the ends of its 95 % interval (`estimated.estimates`).

    Outcomes weigh as their stakes: where few are large the mean rests on these. None where that is on fewer
    than 3.
    """
    from fairall.evaluate.estimated.estimates import Sample  # imports scikit-learn

    sample, lowest, highest = Sample(len(good)), -loss.mean(), gain.mean()
    support = sample.support(gain + loss, cut=False, lowest=lowest, highest=highest)
    return _within(sample.mean(np.where(good, gain, -loss)).on(support).interval()[:3], lowest, highest)


def _within(estimate: Sequence[float], low: float, high: float) -> list[float] | None:
    """An estimate and the ends of its interval, no further than is possible; None without an interval."""
    return None if np.isnan(estimate).any() else np.clip(estimate, low, high).tolist()


def _rejections(people: pd.DataFrame, version: Version) -> Callable[[pd.Index], dict[str, Any]]:
    """`value` of the rejections among those of some ids, as of `overrides`.

    It is the difference between what was decided and accepting everybody, who are worth the same where people
    accepted (Robins et al. 1994).

    Args:
        people: whom policies had decided on alike.
        version: any.
    """
    from fairall.evaluate.estimated.estimators import dr, value_support
    from fairall.evaluate.evaluation import judge  # what decides on people does not need it

    people = people.query("not forgotten")
    gain, loss = version.amounts(people)
    log = log_of_rows(people.assign(decision=people["accepted"]), version)
    lacks: str | None = NO_OUTCOME
    try:
        if people["label"].notna().any():
            judged = judge([np.ones(len(people)), None], log.frame, accepts_all=True, **log.keywords())
            lacks = FEW if judged[0].refused_value else None
    except FairAllError:  # nobody accepted, or one group alone
        lacks = FEW

    def value(ids: pd.Index) -> dict[str, Any]:
        chosen = people.index.isin(ids)
        rejected = chosen & ~people["accepted"].to_numpy()
        of_all: dict[str, Any] = {"value": None, "lacks": lacks, "bounds": None}
        if not rejected.any():
            return of_all
        of_all["bounds"] = [-float(gain[rejected].mean()), float(loss[rejected].mean())]
        if lacks is not None:
            return of_all
        everybody, decided = (replace(one.people, stake=one.people.stake * chosen) for one in judged)
        weight = np.abs(decided.kept.value - everybody.kept.value) * chosen
        sample = judged[0].sample
        support = value_support(everybody, decided.target - everybody.target, weight, sample)
        difference = (dr(decided, sample) - dr(everybody, sample)).on(support).difference_interval()
        value = _within([end / rejected.mean() for end in difference[:3]], *of_all["bounds"])
        return of_all | {"value": value, "lacks": None if value else FEW}

    return value
