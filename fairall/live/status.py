"""Where a ledger stands: versions, waiting outcomes, acceptance and value by group, drift, alarms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sql
from scipy.stats import false_discovery_control

from fairall.config.schema import ExplorationRule
from fairall.data.drift import DRIFTED, binned, stability
from fairall.live import versions
from fairall.live.due import clock, latest_outcomes
from fairall.live.ledger import Ledger
from fairall.live.people import cells_of, told
from fairall.live.store import APPLICATIONS, BATCHES, DUTY, FORGOTTEN, LEARNT, OUTCOMES, VERSIONS
from fairall.measuring.sequences import LARGEST_GAP, largest_gap
from fairall.results.table import print_frame
from fairall.tables.features import DISCRETE
from fairall.tables.people import PeopleReader

MOST_COMPARED = 5000  # people at the beginning and at the end, whose features are compared
Z = 1.96


def status(ledger: Ledger) -> dict[str, Any]:
    """Everything that `status` shows, as JSON allows it.

    Returns:
        `versions`, `duty`, `people`, `accepted`, `outcomes`, `corrected`, `waiting`, `overdue` (None
        without a horizon), `forgotten`, `until`, `groups` with acceptance and value and their 95 %
        intervals, `courses` with the acceptance rate of each batch, `gap` between acceptance rates as a
        confidence sequence, `drift`, features that differ between the first people and the last, and
        `alarms`, a sentence each.

    Raises:
        FairAllError: as `Ledger`.
    """
    kept, settings = ledger.about, ledger.settings
    with ledger.store.reading() as connection:
        rows = connection.execute(sql.select(DUTY.c.version, DUTY.c.why).order_by(DUTY.c.id)).all()
        duty, on_duty = {row.version: row.why for row in rows}, rows[-1].version
        version = versions.read(connection, kept, on_duty, modules=ledger.modules)
        reader, config = version.policy.reader, versions.config_of(version.policy)
        found = _counts(connection)
        now = clock(connection)
        last = latest_outcomes(1)
        waits = (
            sql.select(sql.func.count())
            .select_from(APPLICATIONS.outerjoin(last, last.c.application == APPLICATIONS.c.id))
            .where(APPLICATIONS.c.accepted, last.c.id.is_(None), APPLICATIONS.c.features.is_not(None))
        )
        found["waiting"] = connection.scalar(waits)
        overdue = waits.where(APPLICATIONS.c.time <= now - (settings.horizon or 0))
        found["overdue"] = connection.scalar(overdue) if settings.horizon else None
        found["until"] = told(now) if now else None
        by_batch = _frame(
            connection,
            sql.select(
                APPLICATIONS.c.batch,
                APPLICATIONS.c.s,
                sql.func.count().label("people"),
                sql.func.sum(sql.cast(APPLICATIONS.c.accepted, sql.Integer)).label("accepted"),
            )
            .group_by(APPLICATIONS.c.batch, APPLICATIONS.c.s)
            .order_by(APPLICATIONS.c.batch),
        ).astype(int)
        earned = _frame(
            connection,
            sql.select(
                APPLICATIONS.c.s, sql.func.count().label("labels"), sql.func.sum(last.c.label).label("good")
            )
            .join(last, last.c.application == APPLICATIONS.c.id)
            .group_by(APPLICATIONS.c.s),
        ).set_index("s")
        found["versions"] = _versions(connection, duty, on_duty)
        found["drift"] = _drift(connection, reader, found["people"])
    found["duty"] = on_duty
    found["groups"] = _groups(by_batch, earned, reader, config.cost.value)
    found["courses"] = [
        {"batch": int(row.batch), "group": reader.group_name(float(row.s)), "people": int(row.people),
         "acceptance": row.accepted / row.people} for row in by_batch.itertuples()
    ]  # fmt: skip
    found["gap"] = _gap(by_batch)
    rule = version.process.exploration.config.rule
    found["alarms"] = _alarms(found, settings.explore == 0 and rule is not ExplorationRule.epsilon)
    return found


def _frame(connection: sql.Connection, query: sql.Select[Any]) -> pd.DataFrame:
    return pd.DataFrame(connection.execute(query).all(), columns=[one.name for one in query.selected_columns])


def _counts(connection: sql.Connection) -> dict[str, Any]:
    """Numbers of people, acceptances, batches, outcomes, corrections, and forgotten people."""
    people = sql.select(sql.func.count(), sql.func.sum(sql.cast(APPLICATIONS.c.accepted, sql.Integer)))
    n, accepted = connection.execute(people.select_from(APPLICATIONS)).one()
    outcomes = sql.select(sql.func.count(), sql.func.count(sql.distinct(OUTCOMES.c.application)))
    entered, known = connection.execute(outcomes).one()
    numbers = {
        table.name: connection.scalar(sql.select(sql.func.count()).select_from(table))
        for table in (BATCHES, FORGOTTEN)
    }
    return {
        "people": n,
        "accepted": int(accepted or 0),
        "outcomes": known,
        "corrected": entered - known,
        **numbers,
    }


def _versions(connection: sql.Connection, duty: dict[int, str], on_duty: int) -> list[dict[str, Any]]:
    """Each version with what it was made from, where it stands, and why."""
    forgotten = sql.select(LEARNT.c.version).join(FORGOTTEN, FORGOTTEN.c.application == LEARNT.c.application)
    touched, found, broken = {*connection.scalars(forgotten.distinct())}, [], set()
    columns = (VERSIONS.c.id, VERSIONS.c.parent, VERSIONS.c.made, VERSIONS.c.report)
    for row in connection.execute(sql.select(*columns).order_by(VERSIONS.c.id)):
        report = json.loads(row.report)
        if row.id in touched or row.parent in broken:
            broken.add(row.id)
        stands = "on duty" if row.id == on_duty else "was on duty" if row.id in duty else "challenger"
        guard = report.get("guard", {})
        found.append(
            {
                "version": row.id,
                "parent": row.parent,
                "made": told(row.made),
                "people": report.get("people", 0),
                "labels": report.get("labels", 0),
                "stands": stands,
                "why": duty.get(row.id, guard.get("why")),
                "value": guard.get("value"),
                "can_be_made_again": row.id not in broken,
            }
        )
    return found


def _groups(
    by_batch: pd.DataFrame, earned: pd.DataFrame, reader: PeopleReader, cost: float
) -> list[dict[str, Any]]:
    """People, acceptance rate, and value of an accepted person with a known outcome, by group."""
    found = []
    for s, own in by_batch.groupby("s"):
        n, accepted = int(own["people"].sum()), int(own["accepted"].sum())
        labels, good = (int(earned[name].get(s, 0)) for name in ("labels", "good"))
        found.append(
            {
                "group": reader.group_name(float(s)),
                "people": n,
                "acceptance": _interval(accepted, n),
                "outcomes": labels,
                "value": [one - cost for one in _interval(good, labels)] if labels else None,
            }
        )
    return found


def _interval(k: int, n: int) -> list[float]:
    """A share of n people, and the ends of its 95 % interval (Wilson 1927)."""
    centre, spread = k / n + Z**2 / (2 * n), Z * np.sqrt(k / n * (1 - k / n) / n + Z**2 / (4 * n**2))
    return [k / n, float((centre - spread) / (1 + Z**2 / n)), float((centre + spread) / (1 + Z**2 / n))]


def _gap(by_batch: pd.DataFrame) -> dict[str, float] | None:
    """The largest gap between acceptance rates of all decisions so far, valid at every look."""
    wide = by_batch.pivot_table(
        index="batch", columns="s", values=["people", "accepted"], fill_value=0
    ).cumsum()
    if wide.empty or len(wide["people"].columns) < 2:
        return None
    n, accepted = wide["people"].to_numpy(dtype=float).T, wide["accepted"].to_numpy(dtype=float).T
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = accepted / n
        variance = (accepted + 1) / (n + 2) * (1 - (accepted + 1) / (n + 2)) / n
    gap, low, high = largest_gap(rate, variance, n.sum(0))
    return {"estimate": float(gap[-1]), "low": float(low[-1]), "high": float(high[-1])}


def _drift(connection: sql.Connection, reader: PeopleReader, n: int) -> list[dict[str, Any]]:
    """Features of which the last people differ from the first by more than chance."""
    half = min(MOST_COMPARED, n // 2)
    if half < 100:
        return []
    query = sql.select(APPLICATIONS.c.features).where(APPLICATIONS.c.features.is_not(None)).limit(half)
    ends = [
        connection.scalars(query.order_by(order)).all()
        for order in (APPLICATIONS.c.id, APPLICATIONS.c.id.desc())
    ]
    old, new = (cells_of([str(row) for row in rows], reader.names) for rows in ends)
    found = {
        one.name: stability(*binned(old[one.name], new[one.name], number=one.kind not in DISCRETE))
        for one in reader.features
    }
    corrected = false_discovery_control([one.p for one in found.values()])
    return [
        {
            "feature": name,
            "psi": one.psi,
            "p": float(p),
            "most": f"{one.most}: {one.before:.1%} → {one.after:.1%}",
        }
        for (name, one), p in zip(found.items(), corrected, strict=True)
        if p < DRIFTED
    ]


def _alarms(found: dict[str, Any], certain: bool) -> list[str]:
    """What needs attention, a sentence each."""
    alarms = []
    if certain:
        alarms.append(
            "nobody explores: who is rejected can never be judged; start a ledger with live.explore=0.02"
        )
    gap = found["gap"]
    if gap and gap["low"] > LARGEST_GAP:
        alarms.append(
            f"the gap between acceptance rates is {100 * gap['estimate']:.1f}, for certain above "
            f"{100 * LARGEST_GAP:g}"
        )
    alarms += [f"{one['feature']} has drifted ({one['most']})" for one in found["drift"]]
    if found["overdue"]:
        alarms.append(f"{found['overdue']} outcomes have not come within the horizon")
    lost = [str(one["version"]) for one in found["versions"] if not one["can_be_made_again"]]
    if lost:
        alarms.append(f"cannot be made again, since people were forgotten: version {', '.join(lost)}")
    return alarms


def show(found: dict[str, Any], place: str | Path) -> None:
    """Print what `status` returns."""
    until = f" until {found['until']}" if found["until"] else ""
    print(f"Ledger: {place}, {found['people']} people{until}, {found['accepted']} accepted")
    overdue = "" if found["overdue"] is None else f", {found['overdue']} of them overdue"
    print(f"Outcomes: {found['outcomes']} known, {found['corrected']} of them corrected")
    print(f"Waiting: {found['waiting']} outcomes{overdue}")
    print_frame(groups_frame(found), title="Groups")
    print_frame(versions_frame(found), title="Versions")
    if found["gap"]:
        gap = (100 * found["gap"][name] for name in ("estimate", "low", "high"))
        print("Gap between acceptance rates: {:.1f} [{:.1f}, {:.1f}], at every look".format(*gap))
    for alarm in found["alarms"]:
        print(f"Alarm: {alarm}")


def groups_frame(found: dict[str, Any]) -> pd.DataFrame:
    """The groups as texts, a row each."""

    def shown(values: list[float] | None) -> str:
        return "" if values is None else "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * one for one in values))

    rows = {
        one["group"]: [
            str(one["people"]),
            shown(one["acceptance"]),
            str(one["outcomes"]),
            shown(one["value"]),
        ]
        for one in found["groups"]
    }
    columns = ["people", "acceptance", "outcomes", "value of an acceptance"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def versions_frame(found: dict[str, Any]) -> pd.DataFrame:
    """The versions as texts, a row each."""
    columns = ["parent", "made", "people", "labels", "stands", "why"]
    rows = {
        str(one["version"]): ["" if one[name] is None else str(one[name]) for name in columns]
        for one in found["versions"]
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)
