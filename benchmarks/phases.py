"""Cost of each part of a run, by method, data set and number of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.campaign import Case
from benchmarks.errors import BenchmarkError
from benchmarks.parts import EVALUATION, PHASE_1, PHASE_2, WARM_UP

if TYPE_CHECKING:
    import pandas as pd

NAME = "phases"
LABELS = ("model", "dataset", "seeds")
MODELS = ("fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog")
DATASETS = ("credit", "synthetic", "compas", "meps")
SEEDS = (1, 10, 100)
WITH_NETS = (PHASE_1, WARM_UP, PHASE_2, EVALUATION)


def cases(
    models: Sequence[str], datasets: Sequence[str], seeds: Sequence[int], overrides: Sequence[str]
) -> list[Case]:
    """Every method on every data set with every number of seeds.

    Raises:
        BenchmarkError: where an override sets one of these too.
    """
    for word in overrides:
        name = word.partition("=")[0]
        if name in LABELS:
            raise BenchmarkError(f"{word}: it is chosen before --, by --{name.removesuffix('s')}s")
    return [
        Case(labels, [*(f"{key}={value}" for key, value in labels.items()), *overrides])
        for n_seeds in seeds
        for dataset in datasets
        for model in models
        for labels in [{"model": model, "dataset": dataset, "seeds": n_seeds}]
    ]


def beside_bound(medians: pd.DataFrame) -> pd.DataFrame:
    """CPU seconds beside the bound that the products of nets set, a row per case and part with nets."""
    with_nets = medians[medians["part"].isin(WITH_NETS) & (medians["multiply_adds"] > 0)]
    table = with_nets.set_index([*LABELS, "part"])
    return table.assign(
        **{"10⁹ multiply-adds": table["multiply_adds"] / 1e9},
        bound=table["bound_seconds"],
        CPU=table["cpu_seconds"],
        ratio=table["cpu_seconds"] / table["bound_seconds"],
    ).loc[:, "10⁹ multiply-adds":]


def render(folder: Path) -> str:
    """Writes report.md, medians.csv and a figure per data set from the measurements; returns the report."""
    # Heavy, and not to be imported where measuring is still to come.
    from benchmarks.figures import draw_stacks
    from benchmarks.products import SIZE
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

## CPU seconds beside their bound

The bound is what the multiply-adds of all nets, forward and backward, take on one core at the rate that it
reaches in float32 products of {SIZE} × {SIZE} matrices, which stay in its second-level cache; that rate is
measured after every run. Likelihoods, softmax, noise, optimiser and other elementwise work is not counted.

{markdown_table(beside_bound(medians), digits=3)}

## Seconds on the clock

{markdown_table(wall, digits=2)}

## Peak memory while a part was running, in MiB

{markdown_table(peak, digits=0)}
"""
    (folder / "report.md").write_text(report)
    return report
