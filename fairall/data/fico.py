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

import numpy as np
import pandas as pd

from fairall.config.checks import check_values, groups, limited, one_of, open_unit, optional, require
from fairall.data.features import Feature, Kind, Schema
from fairall.data.generated import GeneratedConfig, GeneratedDataset, Individuals
from fairall.runtime.randomness import SeedStreams
from fairall.tables.groups import Sensitive, sides

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
        share, words, other = self.advantaged_share, self.words, self.disadvantaged
        for word in words:
            check_values(word, "dataset.groups", one_of(REPORT_COLUMNS))
        require(share is None or len(words) == 2, "dataset.advantaged_share", share, "null of more than two")
        different = len({*words}) == len(words)
        require(different, "dataset.disadvantaged", other, "another group than dataset.advantaged")


@dataclass(frozen=True)
class CreditScores:
    """Distribution of R scores in G groups by `group_index`, and repayment by score."""

    score: np.ndarray  # from 0 to 100, ascending, shape (R,)
    share: np.ndarray  # of each group's people with a score, shape (G, R), rows sum to 1
    repays: np.ndarray  # P(ỹ = 1 | score, s), shape (G, R)
    group_share: np.ndarray  # shape (G,), sums to 1

    def individuals(self, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score, s and label of people from uniform numbers (..., 3) on [0, 1); shapes (...)."""
        group = np.searchsorted(self.group_share.cumsum()[:-1], uniform[..., 0], side="right")
        in_each = [np.searchsorted(row, uniform[..., 1], side="right") for row in self.share.cumsum(1)]
        level = np.take_along_axis(np.stack(in_each), group[None], 0)[0].clip(max=len(self.score) - 1)
        label = uniform[..., 2] < self.repays[group, level]
        return self.score[level], np.sort(sides(len(self.share)))[group], label.astype(float)

    def value(self, acceptance: np.ndarray, cost: float) -> float:
        """Utility per person of a policy with acceptance probabilities (G, R) by group and score."""
        return float(self.group_share @ (self.share * acceptance * (self.repays - cost)).sum(1))


class Fico(GeneratedDataset):
    """The feature is the score; ỹ = no account 90 days late within two years. P(ỹ | score, s) is known.

    With `dataset.exposures` each person asks for one of these amounts, all equally likely whatever the score,
    the group and the label: the feature `exposure`, of which `dataset.gain` and `dataset.loss` can be made.
    """

    config: FicoConfig
    config_type = FicoConfig
    stream = "fico"
    greatest = 100.0

    def __init__(self, config: FicoConfig) -> None:
        super().__init__(config)
        self.sensitive = Sensitive.of("race", [(word,) for word in config.words])
        names = ["score"] if config.exposures is None else ["score", "exposure"]
        self.state = ("score", "s") if config.exposures is None else ()
        self.schema = Schema([Feature(name, Kind.REAL) for name in names], n_groups=len(config.words))

    @cached_property
    def scores(self) -> CreditScores:
        """The tables of the report for the groups of the configuration."""
        words, advantaged = self.config.words, self.config.advantaged_share
        columns = [REPORT_COLUMNS[word] for word in (words[::-1] if len(words) == 2 else words)]
        cdf, bad, totals = (
            pd.read_csv(files("fairall.data") / "fico_tables" / f"{name}.csv")
            for name in ("transrisk_cdf_by_race_ssa", "transrisk_performance_by_race_ssa", "totals")
        )
        cumulative = cdf[columns].to_numpy().T / 100.0
        share = np.diff(cumulative, axis=1, prepend=0.0) / cumulative[:, -1:]
        people = totals[columns].to_numpy(dtype=float)[0]
        if advantaged is not None:
            people = np.array([1.0 - advantaged, advantaged])
        repays = 1.0 - bad[columns].to_numpy().T / 100.0
        return CreditScores(cdf["Score"].to_numpy(), share, repays, people / people.sum())

    def draw(self, streams: SeedStreams, n: int) -> Individuals:
        """Draw n people per seed from the tables, arrays of shape (E, n)."""
        score, s, label = self.scores.individuals(streams.uniform(n, 3).double().numpy())
        drawn = {"score": score, "s": s, "label": label}
        if self.config.exposures is not None:
            exposures = np.array(self.config.exposures)
            drawn["exposure"] = exposures[(streams.uniform(n).double().numpy() * len(exposures)).astype(int)]
        return drawn

    def determined(self, state: Individuals, streams: SeedStreams) -> Individuals:
        """People of a changed score with labels drawn from P(ỹ | score, s), arrays of shape (E, n)."""
        score, s = state["score"], state["s"]
        of_others, of_advantaged = (np.interp(score, self.scores.score, row) for row in self.scores.repays)
        repays = np.where(s > 0, of_advantaged, of_others)
        return state | {"label": streams.uniform(s.shape[1]).double().numpy() < repays}
