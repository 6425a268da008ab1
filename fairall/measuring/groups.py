"""People and acceptance of a run by group of the sensitive attribute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from fairall import metrics
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.results.result import GROUPS, Group
from fairall.tables.groups import sides

SPLITS = ("train", "validation", "test")


def groups(data: PreparedData, table: pd.DataFrame, window: tuple[int, int]) -> dict[str, Group]:
    """Sizes, base rates and acceptance of everybody and of each group; sizes are means over splits.

    Args:
        data: the people of the run.
        table: see `summary.measure_table`.
        window: t1 and t2 of the temporal measures.
    """
    sensitive = data.pool_table.sensitive
    splits = {name: getattr(data, name) for name in SPLITS}
    in_window = table[table["time_step"].between(*window)]
    keys = sensitive.keys if sensitive is not None else {}
    of_groups = dict(zip(keys or GROUPS[1:], sides(len(keys) or 2), strict=True))
    found = {}
    for group, s in {GROUPS[0]: None, **of_groups}.items():
        members = {name: _members(people, s) for name, people in splits.items()}
        rate = "acceptance_rate" if s is None else f"acceptance_rate_{group}"
        found[group] = Group(
            values=list(sensitive.values(s)) if sensitive is not None and s is not None else [],
            people={name: _mean_size(rows) for name, rows in members.items()},
            labelled=sum(_mean_size(splits[name].labelled & rows) for name, rows in members.items()),
            base_rate=_base_rate(data.train, members["train"]),
            accepted=_over_seeds(table, rate),
            accepted_in_window=_over_seeds(in_window, rate),
        )
    return found


def _members(people: People, s: float | None) -> torch.Tensor:
    return torch.ones_like(people.s, dtype=torch.bool) if s is None else people.s == s


def _mean_size(members: torch.Tensor) -> int:
    """Number of members (N,), or its mean over replicates (E, N)."""
    return round(members.sum(-1).double().mean().item())


def _base_rate(people: People, rows: torch.Tensor) -> float | None:
    """Share of label 1, by the weights of labels where some are unknown."""
    weight = None if people.label_weight is None else people.label_weight[rows].double()
    rate = float(metrics.weighted_mean(people.label[rows].double(), weight))
    return rate if np.isfinite(rate) else None


def _over_seeds(table: pd.DataFrame, measure: str) -> metrics.Spread | None:
    """Mean per seed that has not diverged, over the time steps that have such applicants."""
    sound = table.groupby("seed")["utility"].transform(lambda values: values.notna().all())
    # In double precision, since pandas 2 and 3 round means of single precision otherwise.
    of_seeds = table[sound].astype({measure: float}).groupby("seed")[measure].mean().to_numpy()
    return metrics.Spread.over_seeds(of_seeds, bounds=metrics.SHARE)
