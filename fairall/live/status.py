"""Where a ledger stands: versions, waiting outcomes, acceptance and value by group, drift, alarms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.schema import ExplorationRule
from fairall.data.drift import DRIFTED, drift_by_column
from fairall.display.format import interval, number
from fairall.live.overrides import accepted_value, overrides, share
from fairall.live.people import cells_of, told
from fairall.live.record import FORGOTTEN, WITHDRAWN, Record, with_descendants
from fairall.live.settings import Settings
from fairall.live.versions import Version
from fairall.measuring.sequences import LARGEST_GAP, largest_gap
from fairall.policy import Policy
from fairall.tables.features import DISCRETE
from fairall.tables.people import PeopleReader

MOST_COMPARED = 5000  # people at the beginning and at the end, whose features are compared
LEAST_COMPARED = 100
NOT_COMPARED = {"why": None, "value": None, "doubt": None}


def status(rows: Record, version: Version, settings: Settings, lacks: str | None) -> dict[str, Any]:
    """Everything that `fairall live status` shows, as JSON allows it, of a ledger whose rows are all checked.

    Args:
        rows: of the ledger.
        version: on duty.
        settings: of the ledger.
        lacks: what a comparison of versions still lacks (`guard.lacking`).

    Returns:
        `duty`, `duties`, who was on duty since when and why, `versions`, with `doubt`, why the outcomes of
        one are doubtful or it was not compared, `lacks`, `people`, `accepted`, `withdrawn`, who count nowhere
        else, `referred` to a person, of whom nobody has decided on the `undecided`, `overrides`
        (`live.overrides`), `outcomes`, `corrected`, `waiting`, `overdue` (None without a horizon), `until`,
        `groups` with acceptance and value and their 95 % intervals, `courses`, the same acceptance of each
        batch with the `date` of its last application and the `version` that decided, `gap` between acceptance
        rates as a confidence sequence, `drift`, features that differ between the first people and the last,
        `rows` and `head`, the number of rows in the chain of hashes and the last hash (`live.chain`), and
        `alarms`, a sentence each.
    """
    people, reader = rows.applications, version.policy.reader
    until = rows.clock - (settings.horizon or 0)
    waits = people["accepted"] & people["label"].isna() & ~people["forgotten"]
    known = int(people["label"].notna().sum())
    by_batch = people.groupby(["batch", "version", "s"], as_index=False).agg(
        date=("time", "max"), people=("accepted", "size"), accepted=("accepted", "sum")
    )
    courses = by_batch.assign(
        date=by_batch["date"].map(told),
        group=by_batch["s"].map(lambda s: reader.group_name(float(s))),
        acceptance=list(map(share, by_batch["accepted"], by_batch["people"])),
    )
    found: dict[str, Any] = {
        "duty": version.number,
        "duties": [
            {"since": told(at), "version": number, "why": why}
            for at, number, why in rows.duty[["at", "version", "why"]].itertuples(index=False)
        ],
        "versions": _versions(rows),
        "people": len(people),
        "accepted": int(people["accepted"].sum()),
        "withdrawn": int((rows.removed["how"] == WITHDRAWN).sum()),
        "outcomes": known,
        "corrected": len(rows.outcomes) - known,
        "waiting": int(waits.sum()),
        "overdue": int((waits & (people["time"] <= until)).sum()) if settings.horizon else None,
        "until": told(rows.clock) if rows.clock else None,
        "drift": _drift(people, reader),
        "rows": len(rows.links),
        "head": rows.links[-1],
        "lacks": lacks,
        "groups": _groups(people, until, version.policy),
        "referred": int(people["decision"].isna().sum()),
        "undecided": int(people["undecided"].sum()),
        "overrides": overrides(rows, version.policy, until),
        "courses": courses.drop(columns=["s", "accepted"]).to_dict("records"),
        "gap": _gap(by_batch),
    }
    rule = version.process.exploration.rule
    found["alarms"] = _alarms(found, explores=settings.explore > 0 or rule is ExplorationRule.epsilon)
    return found


def _groups(people: pd.DataFrame, until: int, policy: Policy) -> list[dict[str, Any]]:
    """Acceptance of each group, and the value of its accepted people who applied at `until` or earlier.

    With now less the horizon, outcomes that came early are left out, which are unlike the others.
    """
    found = []
    for s, own in people.groupby("s"):
        old = own[own["time"] <= until]
        value, outcomes = accepted_value(old, policy)["value"], int(old["label"].notna().sum())
        shares = {"acceptance": share(int(own["accepted"].sum()), len(own)), "outcomes": outcomes}
        name = policy.reader.group_name(float(s))
        found.append({"group": name, "people": len(own), **shares, "value": value})
    return found


def _versions(rows: Record) -> list[dict[str, Any]]:
    """Each version with what it was made from, where it stands, and why."""
    forgotten = rows.removed.loc[rows.removed["how"] == FORGOTTEN, "application"]
    learnt = rows.learnt.loc[rows.learnt["application"].isin(forgotten), "version"]
    broken = with_descendants(rows.versions.itertuples(), learnt)
    duty, found = dict(zip(rows.duty["version"], rows.duty["why"], strict=True)), []
    for row in rows.versions.itertuples():
        report = {"people": 0, "labels": 0, "guard": NOT_COMPARED, **json.loads(row.report)}
        guard, stood = report["guard"], "was on duty" if row.id in duty else "challenger"
        found.append(
            {
                "version": row.id,
                "parent": None if pd.isna(row.parent) else int(row.parent),
                "made": told(row.at),
                "people": report["people"],
                "labels": report["labels"],
                "stands": "on duty" if row.id == rows.duty["version"].iloc[-1] else stood,
                "why": duty.get(row.id, guard["why"]),
                "value": guard["value"],
                "until": told(report["clock"]) if "clock" in report else None,
                "doubt": guard["doubt"] or (None if guard["value"] else guard["why"]),
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


def _drift(people: pd.DataFrame, reader: PeopleReader) -> list[dict[str, Any]]:
    """Features of which the last people differ from the first by more than chance."""
    texts, most = people["features"].dropna(), min(MOST_COMPARED, len(people) // 2)
    if most < LEAST_COMPARED or texts.empty:
        return []
    old, new = (cells_of(part.tolist(), reader.names) for part in (texts[:most], texts[-most:]))
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

    left_out = {"versions": ["value", "doubt", "can_be_made_again"]}
    return {
        key: pd.DataFrame(found[key], dtype=object)
        .set_index(name)
        .rename(str)
        .drop(columns=left_out.get(key, []))
        .map(shown)
        for key, name in (("groups", "group"), ("versions", "version"), ("duties", "since"))
        if found[key]
    }
