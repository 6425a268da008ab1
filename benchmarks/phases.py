"""Cost of each part of a run, by method, data set and number of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.campaign import Case

NAME = "phases"
LABELS = ("model", "dataset", "seeds")
MODELS = ("fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog")
DATASETS = ("credit", "synthetic", "compas", "meps")
SEEDS = (1, 10, 100)


def cases(
    models: Sequence[str], datasets: Sequence[str], seeds: Sequence[int], overrides: Sequence[str]
) -> list[Case]:
    """Every method on every data set with every number of seeds."""
    return [
        Case(labels, [*(f"{key}={value}" for key, value in labels.items()), *overrides])
        for n_seeds in seeds
        for dataset in datasets
        for model in models
        for labels in [{"model": model, "dataset": dataset, "seeds": n_seeds}]
    ]


def render(folder: Path) -> str:
    """Writes report.md, medians.csv and a figure per data set from the measurements; returns the report."""
    # Heavy, and not to be imported where measuring is still to come.
    from benchmarks.figures import draw_stacks
    from benchmarks.report import by_part, head, markdown_table, read_medians, read_setting

    medians = read_medians(folder, LABELS)
    cpu, wall, peak = (
        by_part(medians, LABELS, quantity) for quantity in ("cpu_seconds", "wall_seconds", "peak_mib")
    )
    for dataset, of_dataset in cpu.groupby(level="dataset", sort=False):
        panels = {
            f"seeds={seeds}": table.droplevel(["dataset", "seeds"])
            for seeds, table in of_dataset.groupby(level="seeds")
        }
        draw_stacks(panels, folder / f"cpu_{dataset}.png", title=f"CPU seconds of a run on {dataset}")
    report = f"""# What the parts of a run cost

{head(read_setting(folder), medians)}

Every number is a median of its own: with several repeats, parts add up to the total only nearly.

## CPU seconds

{markdown_table(cpu, digits=2)}

## Seconds on the clock

{markdown_table(wall, digits=2)}

## Peak memory while a part was running, in MiB

{markdown_table(peak, digits=0)}
"""
    (folder / "report.md").write_text(report)
    return report
