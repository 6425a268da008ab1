"""Compare a version with the one on duty on the people held out for that."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sqlalchemy as sql
from scipy.stats import norm

from fairall.errors import FairAllError
from fairall.live.due import clock, latest_outcomes
from fairall.live.people import cells_of
from fairall.live.settings import Settings
from fairall.live.store import APPLICATIONS, BATCHES
from fairall.policy import Policy
from fairall.tables.people import CODED

LEAST = 100  # held-out people, below which versions are not compared
MOST = 20_000  # newest held-out people, on whom versions are compared
ERROR = 0.05  # of all comparisons of a ledger together
GAPS = {"dpu": "acceptance rates", "equal_opportunity": "true-positive rates"}
NAMES = ("decision", "label", "propensity", "version", "time", "id")  # of the columns of a log
PREFIX = "live "  # of a column whose name is that of a feature
FIRST, SECOND = "policy on duty", "challenger"


class Log(NamedTuple):
    """Decisions of a ledger.

    Attributes:
        frame: a row for each of N people: features and sensitive attribute as in the raw data, as texts, and
            the columns of `NAMES`.
        names: what these and the `group` are called there.
        rows: `features` and `s` as in the ledger, N rows.
        cost: c.
    """

    frame: pd.DataFrame
    names: dict[str, str]
    rows: pd.DataFrame
    cost: float


def log_of(connection: sql.Connection, policy: Policy, settings: Settings, *, held: bool = False) -> Log:
    """The ledger as a log of decisions, a row for each person who was not forgotten.

    Outcomes before the horizon are left out: those that come first are unlike the others.

    Args:
        connection: in a transaction.
        policy: of any version.
        settings: of the ledger.
        held: only the newest `MOST` people who are held out and applied `settings.horizon` ago or earlier.
    """
    assert policy.config is not None
    last, reader = latest_outcomes(1), policy.reader
    named = ("person", "time", "features", "s", "propensity", "accepted")
    columns = [APPLICATIONS.c[name] for name in named]
    query = (
        sql.select(*columns, BATCHES.c.version, last.c.label)
        .select_from(APPLICATIONS.join(BATCHES).outerjoin(last, last.c.application == APPLICATIONS.c.id))
        .where(APPLICATIONS.c.features.is_not(None))
        .order_by(APPLICATIONS.c.id.desc())
    )
    old = clock(connection) - (settings.horizon or 0)
    if held:
        query = query.where(APPLICATIONS.c.held, APPLICATIONS.c.time <= old).limit(MOST)
    rows = pd.DataFrame(connection.execute(query).all()[::-1], columns=[*named, "version", "label"])
    raw = reader.sensitive
    taken = {*reader.names, CODED if raw is None else raw.column}
    names = {name: PREFIX * (name in taken) + name for name in NAMES}
    names["group"] = CODED if raw is None else raw.column
    words = {s: str(s) if raw is None else raw.values(float(s))[0] for s in rows["s"].unique()}
    log = (
        cells_of(rows["features"].tolist(), reader.names) if len(rows) else pd.DataFrame(columns=reader.names)
    )
    log[names["decision"]] = rows["accepted"].astype(int)
    log[names["label"]] = rows["label"].where(rows["time"] <= old).astype(float)
    log[names["propensity"]] = rows["propensity"].astype(float)
    log[names["group"]] = rows["s"].map(words)
    log[names["version"]] = rows["version"]
    log[names["time"]] = pd.to_datetime(rows["time"].astype("int64"), unit="s")
    log[names["id"]] = rows["person"]
    return Log(log, names, rows, policy.config.cost.value)


def compared(
    log: Log, first: np.ndarray, second: np.ndarray, gap: float, number: int = 1
) -> dict[str, Any]:
    """Whether a challenger is better than the policy on duty, by a log of held-out people.

    Estimates are doubly robust. The interval of the k-th comparison leaves out the truth with probability
    α·6/(π²k²), α = `ERROR`, so that all intervals of a ledger hold together with 95 %, however often it
    learns (Bonferroni, over challengers that all are compared on the same people).

    Args:
        log: of N held-out people.
        first: acceptance probabilities by the policy on duty, shape (N,).
        second: by the challenger.
        gap: most that a gap between groups may grow.
        number: k.

    Returns:
        `people`, `labels`; `value`, the challenger's less that of the other, as estimate, low and high;
        `gaps`, by how much each gap of `GAPS` grows; `better`, and `why` it is or is not.
    """
    from fairall.evaluate.comparison import compare

    frame, names = log.frame, log.names
    n, labels = len(frame), int(frame[names["label"]].notna().sum())
    told: dict[str, Any] = {"people": n, "labels": labels, "value": None, "gaps": {}, "better": False}
    if n < LEAST or not labels:
        why = f"{n} held-out people with {labels} labels are too few: {LEAST} people are needed"
        return told | {"why": why}
    if np.abs(second - first).max() == 0:
        return told | {"why": "it decides as the policy on duty on all held-out people"}
    roles = {role: names[role] for role in ("decision", "label", "propensity")}
    drop = [names[name] for name in ("version", "time", "id")]
    columns = {
        names["label"]: frame[names["label"]].map({0.0: "bad", 1.0: "good"}),
        FIRST: first,
        SECOND: second,
    }
    try:
        found = compare(
            FIRST,
            SECOND,
            frame.assign(**columns),
            **roles,
            positive="good",
            sensitive=names["group"],
            cost=log.cost,
            drop=drop,
            proba="decision",
        )
        refused = found.refused_value
        difference = found.difference("dr") if refused is None else None
        gaps = {name: found.fairness[name]["dr"].estimate for name in GAPS}
    except FairAllError as error:
        return told | {"why": f"the versions cannot be compared ({error})"}
    grown = {name: float(of) for name, of in gaps.items() if not math.isnan(of)}
    told |= {"gaps": grown}
    if difference is None:
        return told | {"why": f"the difference in value cannot be estimated: {refused}"}
    half = float(norm.isf(3.0 * ERROR / (math.pi * number) ** 2)) * float(difference.error)
    value = float(difference.value)
    told["value"] = {"estimate": value, "low": value - half, "high": value + half}
    larger = [
        f"the gap between {GAPS[name]} grows by {100 * of:.1f}" for name, of in grown.items() if of > gap
    ]
    shown = f"{100 * value:.1f} [{100 * (value - half):.1f}, {100 * (value + half):.1f}] per 100 people"
    if not value - half >= 0:
        return told | {"why": f"it may earn less than the policy on duty: {shown}"}
    if larger:
        return told | {"why": f"{larger[0]}, and live.gap is {100 * gap:g}"}
    return told | {"better": True, "why": f"it earns more than the policy on duty: {shown}"}
