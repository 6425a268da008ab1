"""FICO: credit scores and repayment of four groups by the Federal Reserve's report of 2007, as a population.

References:
    Board of Governors of the Federal Reserve System (2007). Report to the Congress on credit scoring and its
        effects on the availability and affordability of credit.
    Liu, L. T., Dean, S., Rolf, E., Simchowitz, M. and Hardt, M. (2018). Delayed impact of fair machine
        learning. ICML.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.config.checks import check_values, groups, limited, one_of, open_unit, optional, require
from fairall.data.applicants import Dynamics, DynamicsConfig
from fairall.data.features import Feature, Kind, Schema
from fairall.data.generated import GeneratedConfig, GeneratedDataset, Individuals
from fairall.data.people import People
from fairall.data.prepared import Scaler
from fairall.runtime.randomness import SeedStreams
from fairall.tables.groups import Sensitive, sides

TABLES = "fico_tables"
REPORT_COLUMNS = {"white": "Non- Hispanic white", "black": "Black", "hispanic": "Hispanic", "asian": "Asian"}


@dataclass
class FicoConfig(GeneratedConfig):
    """Keys of the FICO data set."""

    advantaged: str = one_of(REPORT_COLUMNS)
    disadvantaged: str = one_of(REPORT_COLUMNS)
    advantaged_share: float | None = open_unit()
    groups: list[str] | None = groups()
    exposures: list[float] | None = optional(
        limited("numbers above 0, as [1000,5000]", lambda of: len(of) > 0 and min(of) > 0)
    )

    @property
    def words(self) -> list[str]:
        """The groups, of two the advantaged first."""
        return self.groups or [self.advantaged, self.disadvantaged]

    def validate(self) -> None:
        """Check that the groups are different ones of the report."""
        super().validate()
        for word in self.groups or []:
            check_values(word, "dataset.groups", one_of(REPORT_COLUMNS))
        share = self.advantaged_share
        require(
            share is None or len(self.words) == 2, "dataset.advantaged_share", share, "null of more than two"
        )
        other = self.advantaged != self.disadvantaged
        require(other, "dataset.disadvantaged", self.disadvantaged, "another group than dataset.advantaged")


@dataclass(frozen=True)
class CreditScores:
    """Distribution of R scores in G groups by `group_index`, and repayment by score."""

    score: np.ndarray  # from 0 to 100, ascending, shape (R,)
    share: np.ndarray  # of each group's people with a score, shape (G, R), rows sum to 1
    repays: np.ndarray  # P(ỹ = 1 | score, s), shape (G, R)
    group_share: np.ndarray  # shape (G,), sums to 1

    @classmethod
    def of(cls, config: FicoConfig) -> CreditScores:
        """The tables of the report for the groups of a configuration."""
        words = config.words
        columns = [REPORT_COLUMNS[word] for word in (words[::-1] if len(words) == 2 else words)]
        cdf, bad = (_read(f"transrisk_{name}_by_race_ssa.csv") for name in ("cdf", "performance"))
        cumulative = cdf[columns].to_numpy().T / 100.0
        share = np.diff(cumulative, axis=1, prepend=0.0) / cumulative[:, -1:]
        people = _read("totals.csv")[columns].to_numpy(dtype=float)[0]
        group_share, advantaged = people / people.sum(), config.advantaged_share
        if len(words) == 2:
            advantaged = group_share[1] if advantaged is None else advantaged
            group_share = np.array([1.0 - advantaged, advantaged])
        repays = 1.0 - bad[columns].to_numpy().T / 100.0
        return cls(cdf["Score"].to_numpy(), share, repays, group_share)

    def individuals(self, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score, s and label of people from uniform numbers (..., 3) on [0, 1); shapes (...)."""
        group = np.searchsorted(self.group_share.cumsum()[:-1], uniform[..., 0], side="right")
        level = np.empty(group.shape, dtype=int)
        for g, cumulative in enumerate(self.share.cumsum(1)):
            of_group = group == g
            position = np.searchsorted(cumulative, uniform[..., 1][of_group], side="right")
            level[of_group] = position.clip(max=len(self.score) - 1)
        label = uniform[..., 2] < self.repays[group, level]
        s = np.sort(sides(len(self.group_share)))[group]
        return self.score[level], s, label.astype(float)

    def draw(self, streams: SeedStreams, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score, s and label of n new people per seed, shapes (E, n)."""
        return self.individuals(streams.uniform(n, 3).double().numpy())

    def value(self, acceptance: np.ndarray, cost: float) -> float:
        """Utility per person of a policy with acceptance probabilities (G, R) by group and score."""
        return float(self.group_share @ (self.share * acceptance * (self.repays - cost)).sum(1))


@dataclass(frozen=True)
class ScoreDynamics(Dynamics):
    """Scores that rise after repayment and fall after default, clipped to their range.

    The state of a person is score and s. P(ỹ = 1 | score, s) is interpolated between scores.
    """

    scores: CreditScores
    config: DynamicsConfig
    scaler: Scaler

    def draw(self, streams: SeedStreams, n: int) -> Tensor:
        """States of n new people per seed, shape (E, n, 2)."""
        score, s, _ = self.scores.draw(streams, n)
        return torch.from_numpy(np.stack([score, s], axis=-1).astype(float))

    def people(self, state: Tensor, streams: SeedStreams, person: Tensor) -> People:
        """People as they apply, shapes (E, n, ...), with labels drawn from P(ỹ | score, s)."""
        score, s = state[..., 0].numpy(), state[..., 1]
        of_others, of_advantaged = (np.interp(score, self.scores.score, own) for own in self.scores.repays)
        repays = torch.from_numpy(np.where(s.numpy() > 0, of_advantaged, of_others))
        label = streams.uniform(state.shape[1]) < repays
        return People(self.scaler.transform(score[..., None]), s.float(), label.float(), person=person)

    def changed(self, state: Tensor, good: Tensor) -> Tensor:
        """States (E, n, 2) with the score moved by `rise` or `fall`."""
        by = torch.where(good, state.new_tensor(self.config.rise), -self.config.fall)
        least, greatest = float(self.scores.score[0]), float(self.scores.score[-1])
        return torch.stack([(state[..., 0] + by).clamp(least, greatest), state[..., 1]], dim=-1)

    def score(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Score from 0 to 1, and s, shapes (E, n)."""
        return state[..., 0] / float(self.scores.score[-1]), state[..., 1]


class Fico(GeneratedDataset[Individuals]):
    """The feature is the score; ỹ = no account 90 days late within two years. P(ỹ | score, s) is known.

    With `dataset.exposures` each person asks for one of these amounts, all equally likely whatever the score,
    the group and the label: the feature `exposure`, of which `dataset.gain` and `dataset.loss` can be made.
    """

    config: FicoConfig
    config_type = FicoConfig
    stream = "fico"

    def __init__(self, config: FicoConfig) -> None:
        super().__init__(config)
        first, second, *others = ((word,) for word in config.words)
        self.sensitive = Sensitive("race", first, second, tuple(others))
        names = ["score"] if config.exposures is None else ["score", "exposure"]
        self.schema = Schema([Feature(name, Kind.REAL) for name in names], n_groups=len(config.words))

    @classmethod
    def location(cls, config: Any) -> str:
        """The tables are included in the package."""
        return "in this package"

    @cached_property
    def scores(self) -> CreditScores:
        """The population."""
        return CreditScores.of(self.config)

    def draw(self, streams: SeedStreams, n: int) -> Individuals:
        """Draw n people per seed from the tables, arrays of shape (E, n)."""
        score, s, label = self.scores.draw(streams, n)
        if self.config.exposures is None:
            return Individuals(s, label, {"score": score})
        exposures = np.array(self.config.exposures)
        number = (streams.uniform(n).double().numpy() * len(exposures)).astype(int)
        return Individuals(s, label, {"score": score, "exposure": exposures[number]})

    def dynamics(self, scaler: Scaler) -> ScoreDynamics | None:
        """Scores rise after repayment and fall after default; unknown of people with an exposure."""
        if self.config.exposures is not None:
            return None
        return ScoreDynamics(self.scores, self.config.dynamics, scaler)


def _read(name: str) -> pd.DataFrame:
    with files("fairall.data").joinpath(TABLES, name).open() as file:
        return pd.read_csv(file)
