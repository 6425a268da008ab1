"""Growth of the cost of a small run with each of its sizes, and its cost on several threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import own_table
from benchmarks.campaign import Case
from benchmarks.parts import TOTAL

if TYPE_CHECKING:
    import pandas as pd

NAME = "scaling"
THREADS = "threads"
LABELS = ("axis", "value")


@dataclass(frozen=True)
class Axis:
    """A size of the run that is varied.

    Attributes:
        overrides: words that set it, with {value} in them; {tables} is the folder of tables, each named by
            its numbers of rows and of features.
        values: how much of it, rising.
    """

    overrides: str
    values: Sequence[int]


ROWS, FEATURES = 1000, 20  # of the base case's table
TABLE = "dataset.path={tables}/"
AXES = {
    "seeds": Axis("seeds={value}", (1, 3, 10, 30, 100)),
    "people": Axis(TABLE + f"{{value}}_{FEATURES}.csv", (1_000, 10_000, 100_000, 1_000_000)),
    "applicants": Axis("schedule.applicants={value}", (16, 64, 256, 1024, 4096)),
    "features": Axis(TABLE + f"{ROWS}_{{value}}.csv", (5, 20, 80, 320)),
    "time_steps": Axis("schedule.time_steps={value}", (8, 16, 32, 64, 128)),
    THREADS: Axis("seeds=100 threads={value}", (1, 2)),
}
# The samples of preset=fast, and epochs and time steps few enough for a million people.
BASE = (
    "model=fairall_I_II",
    *own_table.OVERRIDES,
    "preset=fast",
    "seeds=2",
    "schedule.phase1_epochs=20",
    "schedule.warm_up_epochs=8",
    "schedule.time_steps=8",
    "evaluation.window=[4,8]",
    "tracking.enabled=false",
)


def write_tables(folder: Path, axes: Sequence[str]) -> None:
    """Write the tables that the cases of `axes` read."""
    rows = {ROWS, *(AXES["people"].values if "people" in axes else ())}
    features = {FEATURES, *(AXES["features"].values if "features" in axes else ())}
    for n_rows, n_features in {*((n, FEATURES) for n in rows), *((ROWS, n) for n in features)}:
        own_table.write_table(folder / f"{n_rows}_{n_features}.csv", n_rows, n_features)


def cases(axes: Sequence[str], tables: Path, overrides: Sequence[str]) -> list[Case]:
    """Along every axis, the base case with that one thing changed.

    Args:
        axes: names out of `AXES`.
        tables: folder of `write_tables`.
        overrides: further words of the command line.
    """
    base = [*BASE, f"{TABLE}{ROWS}_{FEATURES}.csv".format(tables=tables)]
    return [
        Case(
            {"axis": name, "value": value},
            [*base, *(word.format(value=value, tables=tables) for word in words), *overrides],
        )
        for name in axes
        for words in [AXES[name].overrides.split()]
        for value in AXES[name].values
    ]


def exponents(cpu: pd.DataFrame) -> pd.DataFrame:
    """The p of the line through cost ∝ units**p in logarithms, by axis and part.

    Args:
        cpu: CPU seconds, indexed by axis and value, a column per part.

    Returns:
        A row per axis; NaN where a part does not exist, or there are less than two values.
    """
    import numpy as np
    import pandas as pd

    def slope(seconds: pd.Series) -> float:
        units = seconds.index.get_level_values("value").to_numpy(dtype=float)
        if len(seconds) < 2 or not (seconds > 0).all():
            return np.nan
        return float(np.polyfit(np.log(units), np.log(seconds), 1)[0])

    fitted = {axis: table.apply(slope) for axis, table in cpu.groupby(level="axis", sort=False)}
    return pd.DataFrame(fitted).T.rename_axis("axis")


def _matters(cpu: pd.DataFrame) -> pd.Series:
    """Which parts (columns) take a hundredth of the total or more where there is most of everything."""
    most = cpu.iloc[-1]
    return most >= most[TOTAL] / 100


def render(folder: Path) -> str:
    """Writes report.md, medians.csv and a figure per axis from the measurements; returns the report."""
    # Heavy, and not to be imported where measuring is still to come.
    from benchmarks.figures import draw_scaling
    from benchmarks.report import by_part, head, markdown_table, read_medians, read_setting

    medians = read_medians(folder, LABELS)
    cpu, wall, peak = (
        by_part(medians, LABELS, quantity) for quantity in ("cpu_seconds", "wall_seconds", "peak_mib")
    )
    growing = cpu.drop(THREADS, level="axis", errors="ignore")  # threads share the work of one size
    for axis, table in growing.groupby(level="axis", sort=False):
        by_value = table.droplevel("axis").rename_axis(str(axis))
        draw_scaling(by_value.loc[:, _matters(by_value)], folder / f"{axis}.png")
    report = f"""# How the cost of a run grows

{head(read_setting(folder), medians)}
- base case: `{" ".join(BASE)}`, a table of {ROWS} rows and {FEATURES} features

Every number is a median of its own.

## Exponents

p of CPU seconds ∝ units^p, fitted over all values of an axis: at 0 more costs nothing, at 1 it costs in
proportion. A total has a fixed share, and grows as its largest part only in the end.

{markdown_table(exponents(growing), digits=2)}

## CPU seconds

{markdown_table(cpu, digits=3)}

## Seconds on the clock

{markdown_table(wall, digits=3)}

## Peak memory while a part was running, in MiB

{markdown_table(peak, digits=0)}
"""
    (folder / "report.md").write_text(report)
    return report
