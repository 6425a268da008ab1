"""Measures of a run: a row per seed and time step, and a summary over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    together, tables = max(1, BLOCK // (n_steps * n_applicants)), []
    for some in torch.arange(n_seeds).split(together):  # some seeds after the others, to save memory
        series = {name: values[:, some] for name, values in recorded.measures.items()}
        data = {name: values.index_select(1, some) for name, values in applicants.items()}
        no_value = torch.full((1, len(some)), torch.nan)  # at time step 0, which has no applicants
        for measure in measures:
            of_seeds = measure({"cost": cost} | data) if measure.of == "applicants" else None
            if of_seeds is not None:
                series[measure.name] = torch.cat([no_value, of_seeds])
        sound = series["utility"].isfinite().int().cummin(0).values.bool()
        keys = torch.tensor(seeds)[some].tolist(), range(n_steps + 1)
        tables.append(
            pd.DataFrame(
                {name: torch.where(sound, of, torch.nan).T.flatten().numpy() for name, of in series.items()},
                pd.MultiIndex.from_product(keys, names=["seed", "time_step"]),
            )
        )
    return pd.concat(tables).reset_index().reindex(columns=columns(measures))


def summarise(
    table: pd.DataFrame,
    *,
    window: tuple[int, int],
    further: Mapping[str, np.ndarray] | None = None,
    measures: Sequence[Measure] = STANDARD,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measures of a whole run, per seed and over seeds.

    Args:
        table: see `measure_table`.
        window: t1 and t2 of the temporal measures.
        further: other measures, one value per seed, shape (E,); None for none.
        measures: of the table.

    Returns:
        `Result.per_seed` and `Result.aggregate`, which is over the seeds that have not diverged.
    """
    seeds = table["seed"].unique()
    # In the precision of each column; the last axis is that of the seeds.
    series = {
        name: torch.from_numpy(table[name].to_numpy().reshape(len(seeds), -1).T.copy()) for name in table
    }
    values = {measure.name: series[measure.name][-1].numpy() for measure in measures if measure.cumulative}
    for quantity in metrics.curves(measures):
        if quantity.of == "policy":
            of_steps = series[quantity.name]
            values[quantity.variation().name] = metrics.temporal_variation(of_steps, window).numpy()
            values[quantity.mean().name] = metrics.temporal_mean(of_steps, window).numpy()
    values |= further or {}

    bounds = {quantity.name: quantity.bounds for quantity in metrics.summaries(measures)} | metrics.LATENT
    sound = ~series["utility"][-1].isnan().numpy()
    aggregate = {
        name: metrics.Spread.over_seeds(of_seeds[sound], bounds=bounds.get(name, metrics.UNBOUNDED))
        for name, of_seeds in values.items()
    }
    per_seed = pd.DataFrame(values, index=pd.Index(seeds, name="seed"), dtype=float)
    return per_seed.where(np.isfinite(per_seed)), spreads(aggregate)
