"""Page, files and terminal output of an evaluation or of a comparison of two policies."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fairall.evaluate import figures, tables
from fairall.evaluate.shown import Shown, doubts, told
from fairall.results.page import PageFigure, write_page
from fairall.results.page import write as write_text
from fairall.results.table import Item
from fairall.results.terminal import print_table
from fairall.runtime.console import AnyConsole

JSON = "evaluation.json"
HIDDEN, CHOICES = "What the rejected may hide", "Thresholds and costs"  # sections


def write(shown: Shown, folder: Path, command: str) -> None:
    """Write evaluation.json, index.html, tables/ and figures/.

    Args:
        shown: what to write.
        folder: to write to.
        command: command line of the user.

    Raises:
        FairAllError: where the folder cannot be written.
        OSError: where evaluation.json cannot be.
    """
    of_sections = {
        "Value": [tables.value_table(shown)],
        "Fairness": [tables.fairness_table(shown), tables.groups_table(shown)],
        HIDDEN: [],
        CHOICES: [tables.thresholds_table(shown), tables.costs_table(shown)],
        "Checks": [tables.calibration_table(shown), tables.balance_table(shown)],
    }
    sections: dict[str, list[Item]] = {
        name: [*(one for one in some if one.records), *_pictures(shown, name)]
        for name, some in of_sections.items()
    }
    filled = {name: items for name, items in sections.items() if items}
    opening = [shown.title, *told(shown), *doubts(shown)]
    texts = {"opening": opening, "folded": {CHOICES: "Tables"}, "made": command}
    write_page(folder, "FairAll: evaluation from past decisions", filled, **texts)
    content = json.dumps(shown.content, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / JSON, content + "\n")


def show(shown: Shown) -> None:
    """Print the sentences and the tables of value, fairness and groups."""
    console = AnyConsole()
    console.print(shown.title, style="bold")
    for line in (*told(shown), *doubts(shown)):
        console.print(line)
    console.print()
    for table in (tables.value_table(shown), tables.fairness_table(shown), tables.groups_table(shown)):
        if table.shown:
            print_table(table)


def _pictures(shown: Shown, section: str) -> list[PageFigure]:
    """The figures of a section that there is something to show in."""
    plains = list(shown.plains.values())
    answered, groups = all(one["sensitivity"] for one in plains), len(plains[0]["groups"])
    # Section, key, title, how it is drawn, whether it is wide, and whether there is something to draw.
    known: list[tuple[str, str, str, Callable[[Any], Figure], bool, bool]] = [
        ("Value", "plane", "Value against unfairness", figures.draw_plane, True,
         shown.difference is not None and answered),
        ("Value", "estimators", "Utility by estimator", figures.draw_value, False, True),
        ("Value", "overlap", "Overlap", figures.draw_overlap, groups > 2, groups > 0),
        ("Fairness", "gaps", "What selection hides", figures.draw_fairness, len(plains) > 1, True),
        (HIDDEN, "sensitivity", "Sensitivity", figures.draw_sensitivity, True, answered),
        (HIDDEN, "contraction", "Contraction", figures.draw_contraction, False,
         all(one["contraction"] for one in plains)),
        (CHOICES, "curves", "Thresholds", figures.draw_thresholds, True,
         any(one["thresholds"] for one in plains)),
        ("Checks", "reliability", "Reliability by group", figures.draw_reliability, groups > 2,
         groups > 0 and shown.first("calibration") is not None),
    ]  # fmt: skip
    return [
        PageFigure(
            key=key, title=title, note=figures.NOTES[key], section=section, wide=wide,
            draw=partial(draw, shown.evaluations if key == "overlap" else shown.plains),
        )
        for of, key, title, draw, wide, there in known
        if of == section and there
    ]  # fmt: skip
