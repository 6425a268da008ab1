"""Measures of a run: their values over time, the table of these, and a summary over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import pad

from fairall import metrics
from fairall.metrics import STANDARD, Measure
from fairall.online.evaluation import Recorded
from fairall.results.result import spreads

Series = dict[str, Tensor]
"""Measures at time steps 0..T by name, shapes (T + 1, E), in the order of the columns of metrics.csv."""


def series_of(recorded: Recorded, cost: float, measures: Sequence[Measure] = STANDARD) -> Series:
    """The measures of every time step of a policy.

    Values are NaN where the data do not allow a measure, for measures of applicants at time step 0, and from
    the step on at which a seed has diverged: where its utility is not a number.

    Args:
        recorded: of the policy.
        cost: c in (0, 1).
        measures: of the run.
    """
    data, found, nothing = {"cost": cost, "stake": None}, dict(recorded.measures), torch.tensor(torch.nan)
    for measure in measures:
        values = measure(data | recorded.applicants)
        if values is not None:
            found[measure.name] = pad(values, (0, 0, 1, 0), value=torch.nan)
    sound = found["utility"].isfinite().int().cummin(0).values.bool()
    return {
        quantity.name: torch.where(sound, found.get(quantity.name, nothing), nothing)
        for quantity in metrics.curves(measures)
    }


def table_of(series: Series, seeds: Sequence[int]) -> pd.DataFrame:
    """The table of metrics.csv: a row per seed and time step, with columns for these and per measure."""
    n_steps = len(series["utility"])
    keys = pd.MultiIndex.from_product([seeds, range(n_steps)], names=["seed", "time_step"])
    columns = {name: values.T.flatten().numpy() for name, values in series.items()}
    return pd.DataFrame(columns, keys).reset_index()


def summarise(
    series: Series,
    further: Mapping[str, np.ndarray],
    *,
    seeds: Sequence[int],
    window: Sequence[int],
    measures: Sequence[Measure] = STANDARD,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measures of a whole run, per seed and over seeds.

    Args:
        series: of the measures.
        further: other measures, one value per seed, shape (E,).
        seeds: the E seeds.
        window: t1 and t2 of the temporal measures.
        measures: of the run.

    Returns:
        `Result.per_seed` and `Result.aggregate`, which is over the seeds that have not diverged.
    """
    start, end = window
    values = {measure.name: series[measure.name][-1] for measure in measures if measure.cumulative}
    for quantity in metrics.curves(measures):
        if quantity.of == "policy":
            in_window = series[quantity.name][start : end + 1]
            values[quantity.variation().name] = in_window.std(0)
            values[quantity.mean().name] = in_window.mean(0)
    of_seeds = {name: of.numpy() for name, of in values.items()} | dict(further)
    bounds = {quantity.name: quantity.bounds for quantity in metrics.summaries(measures)} | metrics.LATENT
    sound = series["utility"][-1].isfinite().numpy()
    aggregate = {
        name: metrics.Spread.over_seeds(of[sound], bounds=bounds.get(name, metrics.UNBOUNDED))
        for name, of in of_seeds.items()
    }
    per_seed = pd.DataFrame(of_seeds, pd.Index(seeds, name="seed"), dtype=float)
    return per_seed.where(np.isfinite(per_seed)), spreads(aggregate)
