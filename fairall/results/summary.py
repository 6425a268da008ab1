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
from fairall.online.history import History
from fairall.results.latent_quality import BOUNDS


def columns(measures: Sequence[Measure] = STANDARD) -> list[str]:
    """The columns of metrics.csv."""
    return ["seed", "time_step", *(quantity.name for quantity in metrics.curves(measures))]


def measure_table(
    history: History,
    seeds: Sequence[int],
    cost: float,
    measures: Sequence[Measure] = STANDARD,
    oracle: Sequence[Tensor] = (),
) -> pd.DataFrame:
    """One row per seed and time step 0..T with the columns `columns(measures)`.

    Cells are NaN where the data do not allow a measure, for measures of applicants at time step 0, and from
    the step on at which a seed has diverged: where its utility is not a number.

    Args:
        history: of a run.
        seeds: the E seeds.
        cost: c in (0, 1).
        measures: of the run.
        oracle: its decisions on the same applicants per time step from 1, shape (E, N), bool, if known.
    """
    series: dict[str, Tensor] = {
        name: torch.stack([measured[name] for measured in history.measures]) for name in history.measures[0]
    }
    data: dict[str, Any] = {
        "accepted": torch.stack(history.counted),
        "label": torch.stack(history.label),
        "s": torch.stack(history.s),
        "cost": cost,
    }
    if history.ground_truth:
        data["ground_truth"] = torch.stack(history.ground_truth)
    if history.counterfactually_counted:
        data["counterfactually_accepted"] = torch.stack(history.counterfactually_counted)
    data |= {name: torch.stack(values) for name, values in history.observed.items()}
    if oracle:
        data["oracle_accepted"] = torch.stack(list(oracle))
    no_value = torch.full((1, len(seeds)), torch.nan)  # at time step 0, which has no applicants
    for measure in measures:
        values = measure(data) if measure.of == "applicants" else None
        if values is not None:
            series[measure.name] = torch.cat([no_value, values])

    sound = series["utility"].isfinite().int().cummin(0).values.bool()
    series = {name: torch.where(sound, values, torch.nan) for name, values in series.items()}

    n_rows = len(history.measures)
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
) -> dict[str, Any]:
    """Measures of a run: per seed, and their mean, standard deviation and interval over seeds.

    Args:
        table: see `measure_table`.
        window: t1 and t2 of the temporal measures.
        further: other measures, one value per seed, shape (E,).
        measures: of the table.

    Returns:
        `measures`: label, unit, better direction and bounds by name. `per_seed`: a list with one dict per
        seed. `aggregate`: by name the mean, std and interval over the seeds that have not diverged, or None
        where the data do not allow it. Plain units, not ×100.
    """
    seeds = table["seed"].unique()
    by_step = {
        name: table.pivot(index="time_step", columns="seed", values=name) for name in table.columns[2:]
    }
    values = {one.name: by_step[one.name].iloc[-1].to_numpy() for one in measures if one.cumulative}
    for quantity in metrics.curves(measures):
        if quantity.of == "policy":
            series = torch.from_numpy(by_step[quantity.name].to_numpy())
            values[quantity.variation().name] = metrics.temporal_variation(series, window).numpy()
            values[quantity.mean().name] = metrics.temporal_mean(series, window).numpy()
    values |= further

    bounds = {quantity.name: quantity.bounds for quantity in metrics.summaries(measures)} | BOUNDS
    aggregate: dict[str, Any] = {}
    sound = by_step["utility"].iloc[-1].notna().to_numpy()
    for name, of_seeds in values.items():
        spread = metrics.Spread.over_seeds(of_seeds[sound], bounds=bounds.get(name, metrics.UNBOUNDED))
        aggregate[name] = None if spread is None else vars(spread)
    per_seed = [
        {"seed": int(seed)} | {name: _number(of_seeds[k]) for name, of_seeds in values.items()}
        for k, seed in enumerate(seeds)
    ]
    described = {measure.name: measure.to_plain() for measure in measures}
    return {"measures": described, "aggregate": aggregate, "per_seed": per_seed}


def _number(value: float) -> float | None:
    """A float that JSON can hold."""
    return float(value) if np.isfinite(value) else None
