"""The page of a ledger: what `status` shows, and acceptance and value over its batches and versions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall.live.status import Z, groups_frame, versions_frame
from fairall.results.page import PageFigure, write_page
from fairall.results.style import PALETTE
from fairall.results.table import Item, PageTable


def write(found: dict[str, Any], place: str, folder: Path, command: str) -> None:
    """Write index.html, with a file for each table and figure.

    Args:
        found: by `status`.
        place: of the ledger.
        folder: to write to.
        command: command line of the user.

    Raises:
        FairAllError: where the folder cannot be written.
    """
    tables = [
        _table(
            "groups", "Groups", "×100, with 95 % intervals; value of an accepted person.", groups_frame(found)
        ),
        _table("versions", "Versions", "Who stands where, and why.", versions_frame(found)),
    ]
    figures = [
        PageFigure(
            key="acceptance",
            title="Acceptance by group",
            note="Share of the people of a batch who were accepted, with 95 % intervals.",
            section="Over time",
            draw=(lambda: draw_courses(found)) if found["courses"] else None,
            wide=True,
        ),
        PageFigure(
            key="value",
            title="Value of the versions",
            note="Challenger less policy on duty per 100 people, with intervals that hold at every look.",
            section="Over time",
            draw=(lambda: draw_value(found)) if any(one["value"] for one in found["versions"]) else None,
        ),
    ]
    opening = [
        f"{found['people']} people, {found['accepted']} accepted; version {found['duty']} is on duty.",
        f"{found['outcomes']} outcomes are known, {found['waiting']} are waited for.",
        *(f"Alarm: {alarm}." for alarm in found["alarms"]),
    ]
    sections: dict[str, Sequence[Item]] = {
        "Tables": tables,
        "Over time": [one for one in figures if one.shown],
    }
    write_page(folder, f"FairAll: {place}", sections, opening=opening, made=command)


def _table(key: str, title: str, note: str, frame: pd.DataFrame) -> PageTable:
    indexed = frame.set_axis(pd.MultiIndex.from_product([[title], frame.index]), axis=0)
    records = frame.rename_axis(title.lower()).reset_index()
    return PageTable(key=key, title=title, note=note, frame=indexed, records=records)


def draw_courses(found: dict[str, Any]) -> Figure:
    """Acceptance rates of the groups over batches."""
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.subplots()
    frame = pd.DataFrame(found["courses"])
    for colour, (group, own) in zip(PALETTE, frame.groupby("group"), strict=False):
        rate, n = own["acceptance"].to_numpy(), own["people"].to_numpy()
        half = Z * np.sqrt(rate * (1 - rate) / n)
        axes.plot(own["batch"], rate, color=colour, label=group)
        axes.fill_between(own["batch"], rate - half, rate + half, color=colour, alpha=0.2, lw=0)
    axes.set(xlabel="batch", ylabel="acceptance rate", ylim=(0, 1))
    axes.legend()
    return figure


def draw_value(found: dict[str, Any]) -> Figure:
    """Value of each version less that of the policy that was on duty when it was made."""
    figure = Figure(figsize=(4, 2.6), layout="constrained")
    axes = figure.subplots()
    for one in found["versions"]:
        if value := one["value"]:
            ends = [100 * value["low"], 100 * value["high"]]
            axes.plot([one["version"]] * 2, ends, color=PALETTE[0])
            axes.plot(one["version"], 100 * value["estimate"], "o", color=PALETTE[0])
    axes.axhline(0, color="0.5", lw=0.5)
    axes.set(xlabel="version", ylabel="difference in value")
    return figure
