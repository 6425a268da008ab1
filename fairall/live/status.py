"""Where a ledger stands: what decides, versions, who waits, acceptance and value by group, drift, alarms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.schema import ExplorationRule
from fairall.config.words import words_of
from fairall.data.drift import DRIFTED, drift_by_column
from fairall.live.overrides import accepted_value, overrides, share
from fairall.live.people import DAY, cells_of, told
from fairall.live.record import FORGOTTEN, WITHDRAWN, Record, with_descendants
from fairall.live.settings import Settings
from fairall.live.versions import Version
from fairall.measuring.sequences import LARGEST_GAP, largest_gap
from fairall.results.card import described
from fairall.results.result import bound_of
from fairall.tables.features import DISCRETE
from fairall.tables.groups import sides
from fairall.tables.people import PeopleReader

MOST_COMPARED = 5000  # people at the beginning and at the end, whose features are compared
LEAST_COMPARED = 100
# What the first version's report lacks.
OF_FIRST = {"people": 0, "labels": 0, "clock": 0, "guard": {"why": None, "value": None, "doubt": None}}
OUTCOME, DECISION = "outcome", "decision"  # what people wait for
PURPOSE = {
    "Decision": "accept or reject; {settings.label} is {settings.positive} where an acceptance turned out "
    "well, {settings.negative} where not",
    "Method": "{config.model[name]}: {method}",
    "Features": "{features}",
    "Groups": "{groups}: {depend}",
    "Bound on gaps": "{bound}",
    "Worth": "{worth}",
    "Begun with": "data set {config.dataset[name]} {file}",
    "Outcomes": "learnt from {old}",
    "Held out": "a share of {settings.held_out:g} of the people, on whom versions are compared",
    "Exploration": "a share of {settings.explore:g} of those whom the policy rejects is accepted, by lot",
    "Promotion": "by hand{promote}",
    "Watched": "gap between acceptance rates, drift of features, people who are waited for, exploration",
    "Not known": "who answers for the decisions, and their legal ground; what else an acceptance or a "
    "rejection does to a person; whether the outcome is what the decision is for; who never applied; other "
    "groups; what was decided outside of the ledger",
}
DRIFT = "{feature} has drifted ({most}: {from:.1%} → {to:.1%})"
BY_ITSELF = ", or by itself where a version earns more and gaps between groups grow by {:g} at most"
OLD = {None: "when those of a whole table are known", 0: "as soon as they are known"}


def status(rows: Record, version: Version, settings: Settings, lacks: str | None) -> dict[str, Any]:
    """Everything that `fairall live status` shows, as JSON allows it, of a ledger whose rows are all checked.

    Args:
        rows: of the ledger.
        version: on duty.
        settings: of the ledger.
        lacks: what a comparison of versions still lacks (`guard.lacking`).

    Returns:
        `purpose`, by name a text each, `duty`, `duties`, who was on duty since when, why and by whom,
        `versions`, with `doubt`, why the outcomes of one are doubtful or it was not compared, `lacks`,
        `people`, `accepted`, `referred` to a person, of whom nobody has decided on the `undecided`,
        `overrides` (`live.overrides`), `decisions` of people, one by one, and by whom, the `deciders`,
        `withdrawn`, who count nowhere else, `removed`, how many were
        forgotten or withdrawn on which day and by whom, `outcomes`, `corrected`, `waiting`, `overdue` (None
        without a horizon), `since`, `until`, `groups` with acceptance and value and their 95 % intervals,
        `courses`, the same acceptance of each batch with the `date` of its last application and the `version`
        that decided, `gap` between acceptance rates as a confidence sequence, `drift`, features that differ
        between the first people and the last, `money`, whether values are in it, `rows` and `head`, the
        number of rows in the chain of hashes and the last hash (`live.chain`), and `alarms`, a sentence each.
        Acceptance is of people who were decided on.
    """
    people, reader, duty, removed = rows.applications, version.policy.reader, rows.duty, rows.removed
    known, old = int(people["label"].count()), people["time"] <= rows.clock - (settings.horizon or 0)
    # Outcomes that came early are unlike the others: no value rests on them.
    people = people.assign(group=people["s"].map(reader.group_name), label=people["label"].where(old))
    queue, decided = waiting(rows, settings), people.query("not undecided")
    by_batch = decided.groupby(["batch", "version", "s", "group"], as_index=False).agg(
        date=("time", "max"), people=("accepted", "size"), accepted=("accepted", "sum")
    )
    courses = by_batch.assign(
        date=by_batch["date"].map(told),
        acceptance=list(map(share, by_batch["accepted"], by_batch["people"])),
    )
    days = removed.assign(date=(removed["at"] // DAY * DAY).map(told)).groupby(["date", "how", "by"])
    since = duty.assign(since=duty["at"].map(told))
    decisions = _decisions(rows)
    found: dict[str, Any] = {
        "purpose": _purpose(version, settings),
        "duty": version.number,
        "duties": since[["since", "version", "why", "by"]].to_dict("records"),
        "versions": _versions(rows),
        "people": len(people),
        "accepted": int(people["accepted"].sum()),
        "referred": int(people["decision"].isna().sum()),
        "undecided": int((queue["waits_for"] == DECISION).sum()),
        "withdrawn": int((removed["how"] == WITHDRAWN).sum()),
        "removed": days.size().reset_index(name="people").to_dict("records"),
        "outcomes": known,
        "corrected": len(rows.outcomes) - known,
        "waiting": int((queue["waits_for"] == OUTCOME).sum()),
        "overdue": int(queue["overdue"].count()) if settings.horizon else None,
        "since": told(people["time"].min()) if len(people) else None,
        "until": told(rows.clock) if rows.clock else None,
        "drift": _drift(people, reader),
        "rows": len(rows.links),
        "head": rows.links[-1],
        "lacks": lacks,
        "groups": _groups(people, version),
        "overrides": overrides(people, version),
        "decisions": decisions.to_dict("records"),
        "deciders": _deciders(decisions),
        "courses": courses.drop(columns=["s", "accepted"]).to_dict("records"),
        "money": version.money,
        "gap": _gap(decided),
    }
    explores = settings.explore > 0 or version.process.exploration.rule is ExplorationRule.epsilon
    return found | {"alarms": _alarms(found, explores=explores)}


def waiting(rows: Record, settings: Settings) -> pd.DataFrame:
    """Who is waited for, as of `Ledger.waiting`."""
    # A missing label is unlike itself.
    people = rows.applications.query("not forgotten and (undecided or (accepted and label != label))")
    due = (people["time"] + (settings.horizon or np.nan)).mask(people["undecided"])
    days = (rows.clock - due) // DAY
    queue = {
        settings.id: people["person"],
        "applied": pd.to_datetime(people["time"], unit="s"),
        "due": pd.to_datetime(due, unit="s"),
        "overdue": days.where(days >= 0).astype("Int64"),
        "waits_for": np.where(people["undecided"], DECISION, OUTCOME),
    }
    order = {"kind": "stable", "ignore_index": True, "na_position": "first"}  # those without a decision
    return pd.DataFrame(queue).sort_values(["due", "applied"], **order)


def _decisions(rows: Record) -> pd.DataFrame:
    """Decisions of people, in their order: of whom (`id`), `to` what, `by` whom, `why`, and when.

    The reason is None of somebody who was forgotten.
    """
    decided = rows.overrides.join(rows.applications[["person", FORGOTTEN]], on="application")
    to = decided["accepted"].map({1: "accept", 0: "reject"})
    why = decided["why"].astype(object).mask(decided[FORGOTTEN].astype(bool), None)
    made = {"id": decided["person"], "at": decided["at"].map(told), "to": to, "by": decided["by"], "why": why}
    return pd.DataFrame(made)


def _deciders(decisions: pd.DataFrame) -> list[dict[str, Any]]:
    """Who has taken the `_decisions`: how many, and from which day to which."""
    days = decisions.assign(day=decisions["at"].str[:10]).groupby("by", as_index=False)
    counts = days.agg(decisions=("id", "size"), since=("day", "min"), until=("day", "max"))
    return counts.to_dict("records")


def _purpose(version: Version, settings: Settings) -> dict[str, str]:
    """What decides on whom and how, as the ledger was started, and what the ledger does not know."""
    config, reader, age = version.config, version.policy.reader, settings.horizon
    values = {
        "settings": settings,
        "config": config,
        "method": described("model", config.name("model")) or "a method of the user",
        "features": ", ".join(f"{feature.name} ({feature.kind})" for feature in reader.features),
        "groups": ", ".join(map(reader.group_name, sides(reader.n_groups))),
        "depend": "no decision depends on them" if config.fairness.blind else "decisions may depend on them",
        "bound": bound_of(config.fairness) or "no bound",
        "worth": " ".join(words_of(config.amounts or {}, "dataset."))
        or f"an acceptance: 1 − c with a good outcome, −c with a bad one, {config.worth}",
        "file": Path(config.dataset.get("path") or "").name,
        "promote": BY_ITSELF.format(settings.gap) if settings.promote == "if_better" else "",
        "old": f"at an age of {age / DAY:g} days" if age else OLD[age],
    }
    return {name: text.format(**values) for name, text in PURPOSE.items()}


def _groups(people: pd.DataFrame, version: Version) -> list[dict[str, Any]]:
    """Acceptance of each group, and the value of its accepted people, arguments as of `overrides`."""
    found = []
    for (_, group), own in people.groupby(["s", "group"]):
        decided, value = own.query("not undecided")["accepted"], accepted_value(own, version)["value"]
        acceptance = share(int(decided.sum()), len(decided)) if len(decided) else None
        row = {"group": group, "people": len(own), "acceptance": acceptance}
        found.append(row | {"outcomes": int(own["label"].count()), "value": value})
    return found


def _versions(rows: Record) -> list[dict[str, Any]]:
    """Each version with what it was made from, where it stands, and why."""
    forgotten = rows.removed.loc[rows.removed["how"] == FORGOTTEN, "application"]
    learnt = rows.learnt.loc[rows.learnt["application"].isin(forgotten), "version"]
    broken = with_descendants(rows.versions.itertuples(), learnt)
    duty, found = rows.duty.set_index("version")["why"].to_dict(), []
    for row in rows.versions.itertuples():
        report = OF_FIRST | json.loads(row.report)
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
                "until": told(report["clock"]) if report["clock"] else None,
                "doubt": guard["doubt"] or (None if guard["value"] else guard["why"]),
                "can_be_made_again": row.id not in broken,
            }
        )
    return found


def _gap(decided: pd.DataFrame) -> dict[str, float] | None:
    """The largest gap between acceptance rates of all decisions so far, valid at every look."""
    n, accepted = decided.groupby("s")["accepted"].agg(["size", "sum"]).to_numpy(dtype=float).T[:, :, None]
    if len(n) < 2:
        return None
    smoothed = (accepted + 1) / (n + 2)
    ends = largest_gap(accepted / n, smoothed * (1 - smoothed) / n, n.sum(0))
    return dict(zip(("estimate", "low", "high"), (end.item() for end in ends), strict=True))


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
    lost = ", ".join(str(one["version"]) for one in found["versions"] if not one["can_be_made_again"])
    alarms = {
        "nobody explores: those who are rejected can never be judged (live.explore)": not explores,
        f"the gap between acceptance rates is above {100 * LARGEST_GAP:g} for certain": (
            found["gap"] and found["gap"]["low"] > LARGEST_GAP
        ),
        **dict.fromkeys((DRIFT.format(**one) for one in found["drift"]), True),
        f"{found['undecided']} referred people wait for a decision (live override)": found["undecided"],
        f"{found['overdue']} outcomes have not come within the horizon": found["overdue"],
        f"people were forgotten: version {lost} cannot be made again": lost,
    }
    return [alarm for alarm, sounds in alarms.items() if sounds]
