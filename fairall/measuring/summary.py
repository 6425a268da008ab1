"""Measures of a run: a row per seed and time step, and a summary over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall import metrics
from fairall.metrics import STANDARD, Measure
from fairall.online.history import Recorded
from fairall.results.result import spreads

BLOCK = 1 << 21  # decisions of which measures are computed at once


def columns(measures: Sequence[Measure] = STANDARD) -> list[str]:
    """The columns of metrics.csv."""
    return ["seed", "time_step", *(quantity.name for quantity in metrics.curves(measures))]


def measure_table(
    recorded: Recorded,
    seeds: Sequence[int],
    cost: float,
    measures: Sequence[Measure] = STANDARD,
    oracle: Tensor | None = None,
) -> pd.DataFrame:
    """One row per seed and time step 0..T with the columns `columns(measures)`.

    Cells are NaN where the data do not allow a measure, for measures of applicants at time step 0, and from
    the step on at which a seed has diverged: where its utility is not a number.

    Args:
        recorded: of a policy.
        seeds: the E seeds.
        cost: c in (0, 1).
        measures: of the run.
        oracle: its decisions on the same applicants, shape (T, E, N), bool, if known.
    """
    applicants = recorded.applicants | ({} if oracle is None else {"oracle_accepted": oracle})
    n_steps, n_seeds, n_applicants = applicants["accepted"].shape
    together = max(1, BLOCK // (n_steps * n_applicants))
    by_measure: dict[str, list[Tensor]] = {}
    for some in torch.arange(n_seeds).split(together):  # some seeds after the others, to save memory
        block = slice(int(some[0]), int(some[-1]) + 1)
        data: dict[str, Any] = {name: values[:, block].contiguous() for name, values in applicants.items()}
        for measure in measures:
            of_seeds = measure({"cost": cost} | data) if measure.of == "applicants" else None
            if of_seeds is not None:
                by_measure.setdefault(measure.name, []).append(of_seeds)
    no_value = torch.full((1, n_seeds), torch.nan)  # at time step 0, which has no applicants
    later = {name: torch.cat([no_value, torch.cat(parts, dim=1)]) for name, parts in by_measure.items()}
    series = recorded.measures | later
    sound = series["utility"].isfinite().int().cummin(0).values.bool()
    series = {name: torch.where(sound, values, torch.nan) for name, values in series.items()}

    n_rows = len(sound)
    table = pd.DataFrame(
        {"seed": np.repeat(seeds, n_rows), "time_step": np.tile(np.arange(n_rows), len(seeds))}
    )
    for quantity in metrics.curves(measures):
        values = series.get(quantity.name)
        table[quantity.name] = np.nan if values is None else values.T.reshape(-1).numpy()
    return table


def summarise(
    table: pd.DataFrame,
    *,
    window: tuple[int, int],
    further: Mapping[str, np.ndarray],
    measures: Sequence[Measure] = STANDARD,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measures of a whole run, per seed and over seeds.

    Args:
        table: see `measure_table`.
        window: t1 and t2 of the temporal measures.
        further: other measures, one value per seed, shape (E,).
        measures: of the table.

    Returns:
        `Result.per_seed` and `Result.aggregate`, which is over the seeds that have not diverged.
    """
    by_step = {
        name: table.pivot(index="time_step", columns="seed", values=name) for name in table.columns[2:]
    }
    values = {
        measure.name: by_step[measure.name].iloc[-1].to_numpy() for measure in measures if measure.cumulative
    }
    for quantity in metrics.curves(measures):
        if quantity.of == "policy":
            series = torch.from_numpy(by_step[quantity.name].to_numpy(copy=True))
            values[quantity.variation().name] = metrics.temporal_variation(series, window).numpy()
            values[quantity.mean().name] = metrics.temporal_mean(series, window).numpy()
    values |= further

    bounds = {quantity.name: quantity.bounds for quantity in metrics.summaries(measures)} | metrics.LATENT
    sound = by_step["utility"].iloc[-1].notna().to_numpy()
    aggregate = {
        name: metrics.Spread.over_seeds(of_seeds[sound], bounds=bounds.get(name, metrics.UNBOUNDED))
        for name, of_seeds in values.items()
    }
    columns = {name: np.asarray(of_seeds, dtype=float) for name, of_seeds in values.items()}
    per_seed = pd.DataFrame(columns, index=pd.Index(table["seed"].unique(), name="seed"))
    return per_seed.where(np.isfinite(per_seed)), spreads(aggregate)
