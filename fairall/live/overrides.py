"""How often people decided otherwise than a policy, or on those whom it referred, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from fairall.errors import FairAllError
from fairall.live.guard import log_of_rows
from fairall.live.record import Record
from fairall.policy import Policy

OF = {"rejected": 0.0, "accepted": 1.0, "referred": None}  # decisions of policies


def overrides(record: Record, policy: Policy, until: int) -> list[dict[str, Any]]:
    """Decisions of people, in all and by group.

    Acceptances are valued by their outcomes. Of rejections no outcome is known: the doubly robust estimate
    takes whoever was rejected as alike, given the features, to those whom policies had decided on in the same
    way and whom people had not rejected. A person who knows more than the features may have done better or
    worse; the bounds hold then, too.

    Args:
        record: of the ledger.
        policy: of any version.
        until: time of the latest application whose outcome counts.

    Returns:
        For each group, what policies had decided (`of`, see `OF`) and what people did (`to`): the number of
        `people`, their `share` of those whom policies had decided on so, with its 95 % interval (Wilson
        1927), and known `outcomes`; the `value` of such a decision, compared with the opposite one, and its
        95 % interval, None where it cannot be estimated, and `why`; `bounds` of it, whatever the outcomes
        are.
    """
    people = record.applications[~record.applications["undecided"]]
    people = people.assign(label=people["label"].where(people["time"] <= until))
    groups = {"all": people["s"].notna()}
    groups |= {policy.reader.group_name(float(s)): people["s"] == s for s in sorted(people["s"].unique())}
    found = []
    for of, decision in OF.items():
        before = people["decision"].isna() if decision is None else people["decision"] == decision
        rejected = cache(lambda own=people[before]: _rejections(own, policy))
        for to in (True, False):
            chosen = before & people["override"].notna() & (people["accepted"] == to)
            for group, rows in groups.items():
                if not (moved := people[chosen & rows]).empty:
                    row: dict[str, Any] = {"group": group, "of": of, "people": len(moved)}
                    row["to"] = "accept" if to else "reject"
                    row["share"] = share(len(moved), int((before & rows).sum()))
                    row["outcomes"] = int(moved["label"].notna().sum())
                    value = accepted_value(moved, policy) if to else rejected()(rows)
                    found.append(row | value)
    return found


def share(k: int, n: int) -> list[float]:
    """A share of n people, and the ends of its 95 % interval (Wilson 1927)."""
    ends = binomtest(k, n).proportion_ci(method="wilson")
    return [k / n, float(ends.low), float(ends.high)]


def accepted_value(people: pd.DataFrame, policy: Policy) -> dict[str, Any]:
    """`value` of an acceptance of people by their known labels, as of `overrides`."""
    assert policy.config is not None
    labels, value = people["label"].dropna(), None
    if len(labels):
        value = [one - policy.config.cost.value for one in share(int(labels.sum()), len(labels))]
    return {"value": value, "why": None if value else "no outcome is known", "bounds": None}


def _rejections(people: pd.DataFrame, policy: Policy) -> Callable[[pd.Series], dict[str, Any]]:
    """`value` of the rejections among those of some rows, as of `overrides`.

    It is the difference between what was decided and accepting everybody, who are worth the same where people
    accepted (Robins et al. 1994).

    Args:
        people: whom policies had decided on alike.
        policy: of any version.
    """
    from fairall.evaluate.estimated.estimators import dr, value_support
    from fairall.evaluate.evaluation import judge  # what decides on people does not need it

    people = people[~people["forgotten"]]
    log = log_of_rows(people.assign(decision=people["accepted"]), policy)
    why, judged = None, []
    try:
        judged = judge([np.ones(len(people)), None], log.frame, **log.keywords())
        why = judged[0].refused_value
    except FairAllError as error:
        why = str(error)

    def value(rows: pd.Series) -> dict[str, Any]:
        chosen = rows[people.index].to_numpy()
        rejected = (chosen & ~people["accepted"]).mean()
        of_all = {"value": None, "why": why, "bounds": [log.cost - 1.0, log.cost]}
        if why is not None or not rejected:
            return of_all
        everybody, decided = (replace(one.people, stake=one.people.stake * chosen) for one in judged)
        weight = np.abs(decided.kept.value - everybody.kept.value) * chosen
        sample = judged[0].sample
        support = value_support(everybody, decided.target - everybody.target, weight, sample)
        difference = (dr(decided, sample) - dr(everybody, sample)).on(support).difference_interval()
        return of_all | {"value": [float(one) / rejected for one in difference[:3]]}

    return value
