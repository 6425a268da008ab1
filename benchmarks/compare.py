"""Comparison of two revisions of the code on the same commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import phases
from benchmarks.campaign import Case

if TYPE_CHECKING:
    import pandas as pd

NAME = "compare"
LABELS = (*phases.LABELS, "revision")


def cases(commands: Sequence[Case], trees: Mapping[str, Path]) -> list[Case]:
    """Every command in every revision, one revision right after the other.

    Pairs are compared, since the machine may have other work that comes and goes.

    Args:
        commands: of `phases.cases`.
        trees: checkouts by the name of their revision, A and B.
    """
    return [
        Case({**command.labels, "revision": name}, command.overrides, tree)
        for command in commands
        for name, tree in trees.items()
    ]


def ratios(measurements: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Medians of A and of B, and median and range of B/A over pairs, by command and part.

    Args:
        measurements: a row per case, repeat and part.
        quantity: its column to compare.

    Returns:
        Five rows per command, a column per part; NaN where a revision does not measure the part.
    """
    import pandas as pd

    from benchmarks.report import by_part

    labels = list(phases.LABELS)
    values = by_part(measurements, [*LABELS, "repeat"], quantity)
    revision = values.index.get_level_values("revision")
    a, b = (values[revision == name].droplevel("revision") for name in "AB")
    of_a, of_b, ratio = (table.groupby(labels) for table in (a, b, b / a))
    rows = {"A": of_a.median(), "B": of_b.median()}
    rows |= {"B/A": ratio.median(), "least": ratio.min(), "most": ratio.max()}
    table = pd.concat(rows, names=["revision"]).reorder_levels([*labels, "revision"])
    return table.sort_index(level=labels, sort_remaining=False, kind="stable")[values.columns]


def render(folder: Path) -> str:
    """Write report.md and medians.csv from the measurements; return the report."""
    # Heavy, and not to be imported where measuring is still to come.
    import pandas as pd

    from benchmarks.report import head, markdown_table, read_medians, read_setting

    medians = read_medians(folder, LABELS)
    measurements = pd.read_csv(folder / "measurements.csv")
    cpu, wall = (
        markdown_table(ratios(measurements, quantity), digits=3)
        for quantity in ("cpu_seconds", "wall_seconds")
    )
    report = f"""# Two revisions in pairs

{head(read_setting(folder), medians)}

A and B are medians in seconds; B/A is the median of the ratios of pairs, followed by the least and the most.

## CPU seconds

{cpu}

## Seconds on the clock

{wall}
"""
    (folder / "report.md").write_text(report)
    return report
