"""People and acceptance of a run by group of the sensitive attribute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from fairall import metrics
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.results.result import GROUPS, Group

SPLITS = ("train", "validation", "test")
# Measure of the applicants' acceptance.
RATES = {
    "all": "acceptance_rate",
    "advantaged": "acceptance_rate_advantaged",
    "disadvantaged": "acceptance_rate_disadvantaged",
}


def groups(data: PreparedData, table: pd.DataFrame, window: tuple[int, int]) -> dict[str, Group]:
    """Sizes, base rates and acceptance of everybody and of either group.

    Args:
        data: the people of the run.
        table: see `summary.measure_table`.
        window: t1 and t2 of the temporal measures.
    """
    sensitive = data.pool_table.sensitive
    splits = {name: getattr(data, name) for name in SPLITS}
    in_window = table[table["time_step"].between(*window)]
    found = {}
    for group, sign in GROUPS.items():
        members = {name: _members(people, sign) for name, people in splits.items()}
        found[group] = Group(
            values=list(getattr(sensitive, group)) if sensitive is not None and sign else [],
            people={name: int(rows.sum()) for name, rows in members.items()},
            labelled=sum(int(splits[name].labelled[rows].sum()) for name, rows in members.items()),
            base_rate=_base_rate(data.train, members["train"]),
            accepted=_over_seeds(table, RATES[group]),
            accepted_in_window=_over_seeds(in_window, RATES[group]),
        )
    return found


def _members(people: People, sign: int) -> torch.Tensor:
    return people.s == sign if sign else torch.ones_like(people.s, dtype=torch.bool)


def _base_rate(people: People, rows: torch.Tensor) -> float | None:
    """Share of label 1, by the weights of labels where some are unknown."""
    weight = None if people.label_weight is None else people.label_weight[rows].double()
    rate = float(metrics.weighted_mean(people.label[rows].double(), weight))
    return rate if np.isfinite(rate) else None


def _over_seeds(table: pd.DataFrame, measure: str) -> metrics.Spread | None:
    """Mean per seed that has not diverged, over the time steps that have such applicants."""
    sound = table.groupby("seed")["utility"].transform(lambda values: values.notna().all())
    of_seeds = table[sound].groupby("seed")[measure].mean().to_numpy()
    return metrics.Spread.over_seeds(of_seeds, bounds=metrics.SHARE)
