"""Thresholds of groups chosen on the very table that is decided on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fairall.config.schema import FairnessConfig, FairnessRule
from fairall.errors import FairAllError
from fairall.models.fairness import FairThresholds
from fairall.models.learner import LEAST, DecisionRule, FixedPolicy
from fairall.models.thresholds import ByGroup
from fairall.policy import DECIMALS, Policy
from fairall.runtime.randomness import SeedStreams
from fairall.tables.groups import sides


class EqualRates(ByGroup, FixedPolicy):
    """Decides by thresholds of groups on what all seeds of a policy together estimate of p(ỹ = 1 | x, s).

    The thresholds are those of greatest estimated utility that keep a bound in one table
    (`models.thresholds`).

    Args:
        policy: whose estimates are used.
        which: of its seeds, see `Policy.combined`.
        bound: see `bound_of_policy`.
    """

    rule = DecisionRule(threshold=10.0**-DECIMALS)  # whoever is drawn at a threshold reaches it

    def __init__(self, policy: Policy, which: str, bound: FairnessConfig) -> None:
        one = replace(policy.learner.setting, seeds=policy.seeds[:1])
        super().__init__(policy.learner.config, one, bound, n_replicates=1)
        self.policy = policy
        self.which = which

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams | None = None) -> Tensor:
        """Log odds of the estimates, shape (1, B), float64."""
        p = self.policy.combined(self.policy.encoded_label_probability(x[0], s[0]), self.which)
        return torch.from_numpy(p)[None].logit(eps=LEAST)

    def acceptance(self, p: np.ndarray, x: Tensor, s: Tensor, places: float) -> np.ndarray:
        """Choose the thresholds on a table, and return its acceptance probabilities, shape (N,).

        They are 0 or 1, but for people who are equal at a threshold.

        Args:
            p: estimates of p(ỹ = 1 | x, s) with `DECIMALS` decimals, shape (N,); NaN of people who do not
                count, and are not accepted.
            x: people as of `Policy.encoded`, shape (N, D).
            s: likewise, shape (N,).
            places: largest sum of the probabilities.

        Raises:
            FairAllError: where a group has nobody.
        """
        known = ~np.isnan(p)
        for side in {*sides(self.n_groups)} - {*s[known].tolist()}:
            nobody = self.policy.reader.group_name(side)
            raise FairAllError(f"--equal-rates: the table has nobody with {nobody}; leave it out")
        self.share = places / known.sum()
        log_odds, x, s = torch.from_numpy(p)[None].logit(eps=LEAST), x[None], s[None]
        self.choose(self.columns(log_odds, x), s)
        return self.accepted(log_odds, x, s)[0].numpy()


def bound_of_policy(policy: Policy) -> FairnessConfig:
    """The bound that `EqualRates` keeps: the policy's own, or equal acceptance rates where it has none.

    Raises:
        FairAllError: where the policy has no estimates, or may not decide by s.
    """
    refused = f"--equal-rates: model={policy.learner.config.name}"
    if not policy.estimates_label:
        raise FairAllError(f"{refused} has no estimate of p(label = 1) to choose thresholds by; leave it out")
    if not isinstance(policy.learner, FairThresholds):
        return FairnessConfig(FairnessRule.demographic_parity, slack=0.0, blind=False)
    if policy.learner.fairness.blind:
        raise FairAllError(f"{refused} has fairness.blind=true and may not decide by group; leave it out")
    return policy.learner.fairness
