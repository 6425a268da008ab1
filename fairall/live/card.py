"""The card of a ledger: what `status` shows, as lines and tables for terminal, HTML and Markdown."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from fairall.display.format import interval, number
from fairall.display.table import PageTable, without_empty

# Lines, each with the value without which it is left out.
LINES = [
    ("rows", "Ledger {place}: {people} people, {accepted} accepted, {withdrawn} withdrawn"),
    ("until", "Period: {since} to {until}"),
    ("rows", "Outcomes: {outcomes} known, {corrected} corrected"),
    ("rows", "Waiting: {waiting} outcomes"),
    ("overdue", "Overdue: {overdue} outcomes"),
    ("referred", "Referred: {referred} people, {undecided} of them still undecided"),
    ("gap", "Gap between acceptance rates: {gap}, valid at every look"),
    ("lacks", "Comparisons of versions: {lacks}"),
    ("rows", "Checked: {rows} rows, head {head}"),
]
# Of each table by its key of the document: title, columns of which the first is the index, and note.
TABLES = {
    "purpose": (
        "What decides on whom",
        ["", "as the ledger was started"],
        "Written down when the ledger was started; it never changes.",
    ),
    "groups": (
        "By group",
        ["group", "people", "acceptance", "outcomes", "value"],
        "Acceptance, of people who were decided on, and value ×100, with 95 % intervals; value is of an "
        "accepted person, by outcomes as old as the horizon, with amounts in money, not ×100.",
    ),
    "overrides": (
        "Decided by a person",
        ["group", "of", "to", "people", "share", "outcomes", "value", "bounds", "lacks"],
        "What people decided on those whom the policy had rejected, accepted, or referred; share ×100 of "
        "these. Value ×100 (with amounts in money, not ×100) of such a decision, compared with the opposite "
        "one, with a 95 % interval: of rejections by others who are alike, and bounds whatever the outcomes "
        "would have been.",
    ),
    "deciders": (
        "Who decided",
        ["by", "decisions", "since", "until"],
        "Decisions that people wrote down, also those that agree with the policy, from which day to which "
        "(UTC). Each of them, with its reason, is in what live status --json prints.",
    ),
    "versions": (
        "Versions",
        ["version", "parent", "made", "people", "labels", "stands", "why"],
        "From which version each was made, when (UTC), by how many people and labels, where it stands, and "
        "why.",
    ),
    "duties": ("On duty", ["since", "version", "by", "why"], "Since when (UTC), who promoted, and why."),
    "removed": (
        "Erased and withdrawn",
        ["date", "how", "people", "by"],
        "Number of people whose features were erased (forgotten), and of applications that were mistakes "
        "(withdrawn), by day (UTC) and by whom.",
    ),
}


def sentences(found: dict[str, Any], place: str | Path) -> list[str]:
    """What `status` returns beside tables, in words."""
    shown = found | {"place": place, "gap": _shown([*(found["gap"] or {}).values()])}
    lines = [line.format(**shown) for key, line in LINES if found[key]]
    return lines + [f"Alarm: {alarm}" for alarm in found["alarms"] or ["none"]]


def tables(found: dict[str, Any]) -> list[PageTable]:
    """Tables of what `status` returns, without those that have no row."""
    made = []
    for key, (title, columns, note) in TABLES.items():
        rows = found[key].items() if isinstance(found[key], dict) else found[key]
        frame = pd.DataFrame(rows, columns=columns, dtype=object)
        shown = frame.set_index(columns[0]).rename(str)
        for name in {"value", "bounds"}.intersection(shown if found["money"] else ()):
            shown[name] = shown[name].map(partial(_shown, scale=1, digits=2))
        made.append(
            PageTable(key=key, title=title, note=note, frame=without_empty(shown.map(_shown)), records=frame)
        )
    return [table for table in made if table.shown]


def _shown(value: Any, **look: Any) -> str:
    """A cell as text: an estimate with its interval, an interval, or a value."""
    if isinstance(value, list):
        estimate, low, high = [None, None, None, *value][-3:]
        return f"{number(estimate, **look)} {interval(low, high, **look)}".strip()
    return "" if value is None else str(value)
