"""The monitor of a run: its table, and how soon unfairness is found or excluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import count

MONITORED = ("seed", "time_step", "gap", "low", "high", "truth", "wealth", "found", "excluded")  # columns


@dataclass(frozen=True)
class Monitor:
    """What somebody who sees groups and decisions knows (`fairall.measuring.monitor`).

    Attributes:
        largest_gap: ε.
        steps: a row per seed and time step from 1: `seed`, `time_step`, `gap`, `low`, `high`, `truth`,
            `wealth`, `found` and `excluded`; NaN where a seed has diverged.
    """

    largest_gap: float
    steps: pd.DataFrame

    def curve(self, name: str) -> pd.DataFrame:
        """A column over time: a row per time step, a column per sound seed (that has not diverged)."""
        table = self.steps.pivot(index="time_step", columns="seed", values=name)
        sound = self.steps.pivot(index="time_step", columns="seed", values="found").iloc[-1].notna()
        return table.loc[:, sound]

    def first(self, name: str) -> pd.Series:
        """The first time step at which `found` or `excluded` is 1, by sound seed; ∞ for never."""
        at = self.steps[self.steps[name] == 1].groupby("seed")["time_step"].min().astype(float)
        return at.reindex(self.curve(name).columns, fill_value=np.inf)

    def median_step(self, name: str) -> float | None:
        """The median of `first`; None where half of the seeds or more have none."""
        median = float(self.first(name).median())
        return median if np.isfinite(median) else None

    def to_plain(self) -> dict[str, Any]:
        """What summary.json has of it, of sound seeds; gaps are those at the last time step."""
        at_last = {name: float(self.curve(name).iloc[-1].mean()) for name in ("gap", "truth")}
        return {
            "largest_gap": self.largest_gap,
            **{
                name: {
                    "seeds": int(np.isfinite(self.first(name)).sum()),
                    "median_step": self.median_step(name),
                }
                for name in ("found", "excluded")
            },
            **{name: value if np.isfinite(value) else None for name, value in at_last.items()},
        }

    def sentence(self) -> str:
        """How soon unfairness is found or excluded, in words."""
        told = []
        for name in ("found", "excluded"):
            first, step = self.first(name), self.median_step(name)
            when = "" if step is None else f" (median time step {step:g})"
            told.append(f"{name} in {int(np.isfinite(first).sum())} of {count(len(first), 'seed')}{when}")
        what = f"A gap above {100 * self.largest_gap:g} points between acceptance rates so far"
        return f"{what} is {told[0]}, and {told[1]}"
