"""Where a ledger stands: versions, waiting outcomes, acceptance and value by group, drift, alarms."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sql
from scipy.stats import binomtest

from fairall.config.schema import ExplorationRule
from fairall.data.drift import DRIFTED, drift_by_column
from fairall.display.format import interval, number
from fairall.errors import FairAllError
from fairall.live import chain, versions
from fairall.live.due import STANDS, by_group, clock, latest_outcomes
from fairall.live.guard import lacking, log_of
from fairall.live.people import cells_of, told
from fairall.live.settings import Settings
from fairall.live.store import (
    APPLICATIONS,
    BATCHES,
    DUTY,
    FORGOTTEN,
    LEARNT,
    OUTCOMES,
    VERSIONS,
    WITHDRAWN,
    Store,
    stored,
)
from fairall.live.versions import Version
from fairall.measuring.sequences import LARGEST_GAP, largest_gap
from fairall.tables.features import DISCRETE
from fairall.tables.people import PeopleReader

MOST_COMPARED = 5000  # people at the beginning and at the end, whose features are compared
LEAST_COMPARED = 100
ACCEPTED = sql.func.sum(sql.cast(APPLICATIONS.c.accepted, sql.Integer))


def status(
    store: Store,
    about: dict[str, str],
    settings: Settings,
    acceptance: Callable[[Version, pd.DataFrame], np.ndarray],
    *,
    modules: Collection[str],
    head: str | None,
) -> dict[str, Any]:
    """Everything that `fairall live status` shows, as JSON allows it, of a ledger whose rows are all checked.

    Args:
        store: of the ledger.
        about: of the ledger.
        settings: of the ledger.
        acceptance: of the ledger.
        modules: of the ledger.
        head: `head` of the same ledger at an earlier time, which it must go on from.

    Returns:
        `duty`, `duties`, who was on duty since when and why, `versions`, with `doubt`, why the outcomes of
        one are doubtful or it was not compared, `lacks`, what a comparison of versions still lacks
        (`guard.lacking`), `people`, `accepted`, `withdrawn`, who count nowhere else, `outcomes`,
        `corrected`, `waiting`, `overdue` (None without a horizon), `until`, `groups` with acceptance and
        value and their 95 % intervals, `courses`, the same acceptance of each batch with the `date` of its
        last application and the `version` that decided, `gap` between acceptance rates as a confidence
        sequence, `drift`, features that differ between the first people and the last, `rows` and `head`, the
        number of rows in the chain of hashes and the last hash (`live.chain`), and `alarms`, a sentence each.

    Raises:
        FairAllError: as `Ledger`; where the chain of hashes does not go on from `head`.
    """
    with store.reading() as connection:
        hashes = chain.verify(connection)
        if head is not None and head.lower() not in hashes:
            raise FairAllError(
                f"{store.name}: does not go on from the head {head:.64}: rows were removed or changed "
                "since then, or the head is not whole; compare with a copy"
            )
        columns = (DUTY.c.at, DUTY.c.version, DUTY.c.why)
        duty = connection.execute(sql.select(*columns).order_by(DUTY.c.id)).all()
        version = versions.read(connection, about, duty[-1].version, modules=modules)
        reader, now, last = version.policy.reader, clock(connection), latest_outcomes(1)
        of_batch = APPLICATIONS.c.batch, BATCHES.c.version, APPLICATIONS.c.s
        counts = sql.select(*of_batch, sql.func.max(APPLICATIONS.c.time), sql.func.count(), ACCEPTED)
        rows = connection.execute(
            counts.join(BATCHES).where(STANDS).group_by(*of_batch).order_by(APPLICATIONS.c.batch)
        )
        names = ["batch", "version", "s", "date", "people", "accepted"]
        by_batch = pd.DataFrame(rows.all(), columns=names).astype(int)
        until = now - (settings.horizon or 0)
        groups = by_group(connection, until)
        waiting, overdue = connection.execute(
            sql.select(sql.func.count(), sql.func.sum(sql.cast(APPLICATIONS.c.time <= until, sql.Integer)))
            .select_from(APPLICATIONS.outerjoin(last, last.c.application == APPLICATIONS.c.id))
            .where(APPLICATIONS.c.accepted, last.c.id.is_(None), APPLICATIONS.c.features.is_not(None), STANDS)
        ).one()
        numbers = sql.func.count(), sql.func.count(sql.distinct(OUTCOMES.c.application))
        entered, known = connection.execute(
            sql.select(*numbers).select_from(OUTCOMES.join(APPLICATIONS)).where(STANDS)
        ).one()
        found = {
            "duty": duty[-1].version,
            "duties": [{"since": told(row.at), "version": row.version, "why": row.why} for row in duty],
            "versions": _versions(connection, {row.version: row.why for row in duty}, duty[-1].version),
            "people": int(by_batch["people"].sum()),
            "accepted": int(by_batch["accepted"].sum()),
            "withdrawn": connection.scalar(sql.select(sql.func.count()).select_from(WITHDRAWN)),
            "outcomes": known,
            "corrected": entered - known,
            "waiting": waiting,
            "overdue": overdue or 0 if settings.horizon else None,
            "until": told(now) if now else None,
            "drift": _drift(connection, reader),
            "rows": len(hashes),
            "head": hashes[-1],
        }
        held = log_of(connection, version.policy, settings, held=True)
    found["lacks"] = lacking(held, acceptance(version, held.rows))
    cost = versions.config_of(version.policy).cost.value
    by_batch["group"] = by_batch["s"].map(lambda s: reader.group_name(float(s)))
    found["groups"] = []
    for row in groups.itertuples():
        value = [one - cost for one in _share(row.good, row.outcomes)] if row.outcomes else None
        shares = {"acceptance": _share(row.accepted, row.people), "outcomes": row.outcomes, "value": value}
        found["groups"].append({"group": reader.group_name(float(row.s)), "people": row.people} | shares)
    shown = by_batch.assign(
        acceptance=list(map(_share, by_batch["accepted"], by_batch["people"])),
        date=by_batch["date"].map(told),
    )
    found["courses"] = shown.drop(columns=["s", "accepted"]).to_dict("records")
    found["gap"] = _gap(by_batch)
    rule = version.process.exploration.rule
    found["alarms"] = _alarms(found, explores=settings.explore > 0 or rule is ExplorationRule.epsilon)
    return found


def _share(k: int, n: int) -> list[float]:
    """A share of n people, and the ends of its 95 % interval (Wilson 1927)."""
    ends = binomtest(k, n).proportion_ci(method="wilson")
    return [k / n, float(ends.low), float(ends.high)]


def _versions(connection: sql.Connection, duty: dict[int, str], on_duty: int) -> list[dict[str, Any]]:
    """Each version with what it was made from, where it stands, and why."""
    touched = sql.select(LEARNT.c.version).join(FORGOTTEN, FORGOTTEN.c.application == LEARNT.c.application)
    broken, found = versions.with_descendants(connection, connection.scalars(touched.distinct()).all()), []
    for row in chain.read(connection, VERSIONS):
        report = stored(versions.Report, row.report)
        stands = "on duty" if row.id == on_duty else "was on duty" if row.id in duty else "challenger"
        guard = report.guard
        found.append(
            {
                "version": row.id,
                "parent": row.parent,
                "made": told(row.at),
                "people": report.people,
                "labels": report.labels,
                "stands": stands,
                "why": duty.get(row.id, guard.why),
                "value": guard.value,
                "until": None if report.clock is None else told(report.clock),
                "doubt": guard.doubt or (None if guard.value else guard.why),
                "can_be_made_again": row.id not in broken,
            }
        )
    return found


def _gap(by_batch: pd.DataFrame) -> dict[str, float] | None:
    """The largest gap between acceptance rates of all decisions so far, valid at every look."""
    wide = by_batch.pivot_table(index="batch", columns="s", values=["people", "accepted"], fill_value=0)
    if wide.shape[1] < 4:
        return None
    n, accepted = (wide.cumsum()[name].to_numpy(dtype=float).T for name in ("people", "accepted"))
    smoothed = (accepted + 1) / (n + 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        ends = largest_gap(accepted / n, smoothed * (1 - smoothed) / n, n.sum(0))
    return dict(zip(("estimate", "low", "high"), (float(one[-1]) for one in ends), strict=True))


def _drift(connection: sql.Connection, reader: PeopleReader) -> list[dict[str, Any]]:
    """Features of which the last people differ from the first by more than chance."""
    known = sql.select(APPLICATIONS.c.features).where(APPLICATIONS.c.features.is_not(None), STANDS)
    n = connection.execute(sql.select(sql.func.max(APPLICATIONS.c.id))).scalar_one() or 0
    if n < 2 * LEAST_COMPARED:
        return []
    query = known.limit(min(MOST_COMPARED, n // 2))
    orders = (APPLICATIONS.c.id, APPLICATIONS.c.id.desc())
    texts = [[str(row) for row in connection.scalars(query.order_by(order))] for order in orders]
    if not all(texts):  # all were forgotten
        return []
    old, new = (cells_of(rows, reader.names) for rows in texts)
    columns = {one.name: (old[one.name], new[one.name], one.kind not in DISCRETE) for one in reader.features}
    return [
        {
            "feature": name,
            "index": one.psi,
            "p": one.p,
            "most": one.most,
            "from": one.before,
            "to": one.after,
        }
        for name, one in drift_by_column(columns).items()
        if one.p < DRIFTED
    ]


def _alarms(found: dict[str, Any], *, explores: bool) -> list[str]:
    """What needs attention, a sentence each."""
    alarms = (
        [] if explores else ["nobody explores: those who are rejected can never be judged (live.explore)"]
    )
    if (gap := found["gap"]) and gap["low"] > LARGEST_GAP:
        alarms.append(f"the gap between acceptance rates is above {100 * LARGEST_GAP:g} for certain")
    for one in found["drift"]:
        alarms.append(f"{one['feature']} has drifted ({one['most']}: {one['from']:.1%} → {one['to']:.1%})")
    if found["overdue"]:
        alarms.append(f"{found['overdue']} outcomes have not come within the horizon")
    lost = ", ".join(str(one["version"]) for one in found["versions"] if not one["can_be_made_again"])
    return alarms + [f"people were forgotten: version {lost} cannot be made again"] * bool(lost)


def sentences(found: dict[str, Any], place: str | Path) -> list[str]:
    """What `status` returns, in words."""
    overdue = "" if found["overdue"] is None else f", {found['overdue']} of them overdue"
    until = f" until {found['until']}" if found["until"] else ""
    lines = [
        f"Ledger {place}: {found['people']} people{until}, {found['accepted']} accepted, "
        f"{found['withdrawn']} withdrawn",
        f"Outcomes: {found['outcomes']} known, {found['corrected']} corrected",
        f"Waiting: {found['waiting']} outcomes{overdue}",
    ]
    if gap := found["gap"]:
        ends = interval(gap["low"], gap["high"])
        lines.append(f"Gap between acceptance rates: {number(gap['estimate'])} {ends}, valid at every look")
    if found["lacks"]:
        lines.append(f"Comparisons of versions: {found['lacks']}")
    lines.append(f"Checked: {found['rows']} rows, head {found['head']}")
    return lines + [f"Alarm: {alarm}" for alarm in found["alarms"]]


def frames(found: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """Tables of groups, of versions and of who was on duty, as texts."""

    def shown(value: Any) -> str:
        if isinstance(value, list):
            return f"{number(value[0])} {interval(*value[1:])}"
        return str(value or "")

    made = {}
    left_out = ["value", "doubt", "can_be_made_again"]
    for key, name in (("groups", "group"), ("versions", "version"), ("duties", "since")):
        if not found[key]:
            continue
        frame = pd.DataFrame(found[key], dtype=object).set_index(name)
        frame.index = frame.index.astype(str)
        made[key] = frame.drop(columns=left_out if key == "versions" else []).map(shown)
    return made
