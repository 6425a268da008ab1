"""From what happened in a run to its figures: a row per seed and step, and a summary over seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall import metrics
from fairall.online.evaluation import Evaluation
from fairall.online.history import History

POLICY_MEASURES = [
    f"{name}{suffix}"
    for name in ("utility", "dpu", "cfu", "ground_truth_utility", "acceptance")
    for suffix in ("", "_sampled")
]
EFFECTIVE_MEASURES = [
    f"effective_{name}" for name in ("utility", "dpu", "dpu_pooled", "cfu", "ground_truth_utility")
]
ACCEPTANCE = ["acceptance_rate", "acceptance_rate_advantaged", "acceptance_rate_disadvantaged"]
DECISION_MEASURES = [*EFFECTIVE_MEASURES, *ACCEPTANCE]
FIGURES = [
    *EFFECTIVE_MEASURES,
    *(f"{part}_{name}" for name in POLICY_MEASURES for part in ("tv", "mean")),
]
MEASURES = [*POLICY_MEASURES, *DECISION_MEASURES]
COLUMNS = ["seed", "time_step", *MEASURES]


def measure_table(history: History, seeds: list[int], cost: float) -> pd.DataFrame:
    """One row per seed and time step 0..T with the columns `COLUMNS`.

    Cells are NaN where the data do not allow a measure, for what decisions make at time step 0, and from the
    step on at which a seed has diverged: where its utility is not a number.
    """
    accepted, label, s = (torch.stack(part) for part in (history.counted, history.label, history.s))
    series: dict[str, Tensor] = {
        name: torch.stack([measured[name] for measured in history.measures]) for name in history.measures[0]
    }
    advantaged, disadvantaged = metrics.acceptance_by_group(accepted, s)
    decided = {
        "effective_utility": metrics.effective_utility(accepted, label, cost),
        "effective_dpu": metrics.effective_dpu(accepted, s),
        "effective_dpu_pooled": metrics.effective_dpu_pooled(accepted, s),
        "acceptance_rate": accepted.to(label.dtype).mean(-1),
        "acceptance_rate_advantaged": advantaged,
        "acceptance_rate_disadvantaged": disadvantaged,
    }
    if history.ground_truth:
        decided["effective_ground_truth_utility"] = metrics.effective_utility(
            accepted, torch.stack(history.ground_truth), cost
        )
    if history.counterfactually_counted:
        decided["effective_cfu"] = metrics.effective_cfu(
            accepted, torch.stack(history.counterfactually_counted)
        )
    undecided = torch.full((1, len(seeds)), torch.nan)
    series |= {name: torch.cat([undecided, values]) for name, values in decided.items()}

    sound = series["utility"].isfinite().int().cummin(0).values.bool()
    series = {name: torch.where(sound, values, torch.nan) for name, values in series.items()}

    n_rows = len(history.measures)
    table = pd.DataFrame(
        {"seed": np.repeat(seeds, n_rows), "time_step": np.tile(np.arange(n_rows), len(seeds))}
    )
    for name in MEASURES:
        table[name] = series[name].T.reshape(-1).numpy() if name in series else np.nan
    return table


def summarise(
    table: pd.DataFrame, *, window: tuple[int, int], further: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Measures of a run: per seed, and their mean, standard deviation and interval over seeds.

    Args:
        table: see `measure_table`.
        window: t1 and t2 of the temporal measures.
        further: other measures, one value per seed, shape (E,).

    Returns:
        `per_seed`: a list with one dict per seed; `aggregate`: by figure its mean, std and interval over the
        seeds that have not diverged, or None where the data do not allow it. Plain units, not ×100.
    """
    seeds = table["seed"].unique()
    by_step = {name: table.pivot(index="time_step", columns="seed", values=name) for name in MEASURES}
    figures: dict[str, np.ndarray] = {name: by_step[name].iloc[-1].to_numpy() for name in EFFECTIVE_MEASURES}
    for name in POLICY_MEASURES:
        series = torch.from_numpy(by_step[name].to_numpy())
        figures[f"tv_{name}"] = metrics.temporal_variation(series, window).numpy()
        figures[f"mean_{name}"] = metrics.temporal_mean(series, window).numpy()
    figures |= further

    aggregate: dict[str, Any] = {}
    sound = by_step["utility"].iloc[-1].notna().to_numpy()
    for name, values in figures.items():
        spread = metrics.Spread.over_seeds(values[sound], bounds=bounds(name))
        aggregate[name] = None if spread is None else vars(spread)
    per_seed = [
        {"seed": int(seed)} | {name: _number(values[k]) for name, values in figures.items()}
        for k, seed in enumerate(seeds)
    ]
    return {"aggregate": aggregate, "per_seed": per_seed}


def bounds(measure: str) -> tuple[float, float]:
    """The least and the greatest value that a measure can have; infinite where they depend on the cost."""
    if measure.startswith("tv_") or measure in ("latent_variance_gap", "latent_s_dependence"):
        return 0.0, math.inf
    if any(part in measure for part in ("dpu", "cfu", "acceptance", "_auc", "balanced_accuracy")):
        return 0.0, 1.0
    return (-1.0, 1.0) if measure == "latent_label_agreement" else (-math.inf, math.inf)


def references(
    history: History, evaluation: Evaluation, seeds: list[int], cost: float, window: tuple[int, int]
) -> dict[str, dict[str, Any]]:
    """Measures of accepting everybody (`accept_all`) and of accepting nobody (`reject_all`).

    Each is the `aggregate` of `summarise` for the applicants and evaluation people of the run, at its cost.
    """
    found = {}
    for name, accepts in (("accept_all", True), ("reject_all", False)):
        constant = history.with_constant_decisions(accepts, evaluation.measure_constant(float(accepts)))
        table = measure_table(constant, seeds, cost)
        found[name] = summarise(table, window=window, further={})["aggregate"]
    return found


def _number(value: float) -> float | None:
    """A float that JSON can hold."""
    return float(value) if np.isfinite(value) else None
