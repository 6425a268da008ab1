"""People and acceptance of a run by group of the sensitive attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall import metrics
from fairall.data.people import People
from fairall.data.prepared import PreparedData

SPLITS = ("train", "validation", "test")
# Of everybody and of S = +1 and S = −1: the sign of s, and the measure of the applicants' acceptance.
GROUPS = {
    "all": (None, "acceptance_rate"),
    "advantaged": (1, "acceptance_rate_advantaged"),
    "disadvantaged": (-1, "acceptance_rate_disadvantaged"),
}


def groups(data: PreparedData, table: pd.DataFrame, window: tuple[int, int]) -> dict[str, Any]:
    """Sizes, base rates and acceptance of everybody and of either group.

    Args:
        data: the people of the run.
        table: see `summary.measure_table`.
        window: t1 and t2 of the temporal measures.

    Returns:
        `column`: raw column of the sensitive attribute, or None. For each of `GROUPS`: `values`, its raw
        values; `people`, a number per split; `labelled`, how many of them have a label, which the run need
        not see; `base_rate`, the share of label 1 in the population (None without labels); `accepted` and
        `accepted_in_window`, the acceptance rate of applicants over all time steps and over the window: mean,
        standard deviation and interval over seeds (None where a seed has no value).
    """
    sensitive = data.pool_table.sensitive
    described: dict[str, Any] = {"column": None if sensitive is None else sensitive.column}
    splits = {name: getattr(data, name) for name in SPLITS}
    of_window = table["time_step"].between(*window)
    for group, (sign, measure) in GROUPS.items():
        values = [] if sensitive is None or sign is None else list(getattr(sensitive, group))
        members = {name: _members(people, sign) for name, people in splits.items()}
        described[group] = {
            "values": values,
            "people": {name: int(rows.sum()) for name, rows in members.items()},
            "labelled": sum(int(splits[name].labelled[rows].sum()) for name, rows in members.items()),
            "base_rate": _base_rate(data.train, members["train"]),
            "accepted": _over_seeds(table, measure),
            "accepted_in_window": _over_seeds(table[of_window], measure),
        }
    return described


def _members(people: People, sign: int | None) -> torch.Tensor:
    return torch.ones_like(people.s, dtype=torch.bool) if sign is None else people.s == sign


def _base_rate(people: People, rows: torch.Tensor) -> float | None:
    """Share of label 1, by the weights of labels where some are unknown."""
    weight = None if people.label_weight is None else people.label_weight[rows].double()
    rate = float(metrics.weighted_mean(people.label[rows].double(), weight))
    return rate if np.isfinite(rate) else None


def _over_seeds(table: pd.DataFrame, measure: str) -> dict[str, Any] | None:
    """Mean per seed that has not diverged, over the time steps that have such applicants."""
    sound = table.groupby("seed")["utility"].transform(lambda values: values.notna().all())
    of_seeds = table[sound].groupby("seed")[measure].mean().to_numpy()
    spread = metrics.Spread.over_seeds(of_seeds, bounds=metrics.SHARE)
    return None if spread is None else vars(spread)
