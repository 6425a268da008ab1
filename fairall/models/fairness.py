"""Thresholds per group on top of a method, chosen from everybody seen, accepted or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.schema import Config, FairnessConfig, FairnessRule
from fairall.data.features import Schema
from fairall.data.people import Decided, group_index
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError, count
from fairall.models.learner import DecisionRule, Learner, PretrainCurves, ProgressCallback, Setting
from fairall.models.memory import Memory
from fairall.models.thresholds import acceptance, fair_thresholds
from fairall.randomness import SeedStreams
from fairall.storage.cache import Cache

FEW = 100  # people of a group: the standard error of their acceptance rate can be 5 points
# Utility per person that the nearest to the thresholds of the time step before may lose. Estimates of the
# utility of nearly equal thresholds differ by more, and jumps are unfairness that labels do not ask for.
import os
GROWTH = float(os.environ.get("GROWTH", "1.15"))
TOLERANCE = float(os.environ.get("TOL", "1e-3"))


def learner_of(config: Config, schema: Schema, share: float = 1.0) -> Learner:
    """The untrained learner of a run: that of `config.model`, with thresholds where `config.fairness` asks for them.

    Args:
        config: of the run.
        schema: the features of its people.
        share: places per applicant.

    Raises:
        FairAllError: where the method has no score that thresholds could be chosen for.
    """
    learner: Learner = config.model.build(Setting.of(schema, config))
    if config.fairness.rule is FairnessRule.none:
        return learner
    return FairThresholds(config.fairness, learner, share)


@dataclass(frozen=True)
class Scored(Decided):
    """Decided people with the log odds by which they were decided on, shape (E, B), float64."""

    log_odds: Tensor


class FairThresholds(Learner):
    """A learner that decides by one threshold per group on its estimate of p(ỹ = 1 | x, s).

    The thresholds are the ones of greatest estimated utility under a bound on the gap between the groups'
    acceptance rates, or true positive rates (`models.thresholds`). They are chosen after every update from the
    last `window` people seen. That needs their estimates and no labels, so that rejected people count too, and
    the rates are those of all applicants, not of those whom earlier policies have accepted. A person has the
    estimate by which they were decided on, when nothing had been learnt from their label.

    The estimate of true positive rates is Σ π·p̂ / Σ p̂ over everybody, with p̂ the learner's.

    Args:
        fairness: rates that are compared, slack and window.
        learner: untrained; it is trained as without thresholds, on the decisions that these make.
        share: places per applicant; with few of them the best rates are those under the thresholds at which
            the expected number of accepted people is that of the places.

    Attributes:
        threshold: log odds from which on a group's people are accepted, float64, shape (E, G).
        tied_share: acceptance probability at these log odds, shape (E, G).
        least_rate: least of the groups' rates at the last choice, shape (E,); NaN before the first.

    Raises:
        FairAllError: where the learner has no estimate of p(ỹ = 1 | x, s).
    """

    threshold: Tensor
    tied_share: Tensor
    least_rate: Tensor

    def __init__(self, fairness: FairnessConfig, learner: Learner, share: float = 1.0) -> None:
        super().__init__(learner.config, learner.setting)
        if not learner.estimates_label:
            raise FairAllError(
                f"fairness={fairness.rule.name}: model={self.config.name} has no estimate of p(label = 1) that "
                "thresholds could be chosen for; take fairness=none, or for instance model=ensemble"
            )
        self.fairness, self.learner, self.share = fairness, learner, share
        self.two_groups = learner.two_groups
        self.rule = DecisionRule()  # people tied at a threshold have a probability
        self.seen = Memory("all", fairness.window, of=Scored)
        self.streams = SeedStreams(self.setting.seeds, "scores of fairness")
        self.n_groups = self.setting.schema.n_groups
        shape = len(self.setting.seeds), self.n_groups
        cost = torch.tensor(self.setting.cost, dtype=torch.float64)
        self.register_buffer("threshold", cost.logit().expand(shape).clone())
        self.register_buffer("tied_share", torch.ones(shape, dtype=torch.float64))
        self.register_buffer("scored_at", torch.zeros((), dtype=torch.long))
        self.register_buffer("least_rate", torch.full(shape[:1], torch.nan, dtype=torch.float64))

    @override
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train the learner; after the last epoch choose the first thresholds."""
        values = self.learner.warm_up_epoch(decided, epoch)
        if epoch == self.setting.schedule.warm_up_epochs - 1:
            self._see(decided)
            self._choose()
        return values

    @override
    def update(self, decided: Decided) -> None:
        """Note the applicants' estimates, train the learner, and choose thresholds."""
        self._see(decided)
        self.learner.update(decided)
        self._choose()

    @torch.no_grad()
    def _see(self, decided: Decided) -> None:
        log_odds = self.learner.log_odds(decided.x, decided.s, self.streams)
        self.seen.add(Scored(**vars(decided), log_odds=log_odds))

    def _choose(self) -> None:
        seen = self.seen.rows()
        if int(self.seen.added.max()) >= GROWTH * self.scored_at:
            self.scored_at.fill_(int(self.seen.added.max()))
            seen.log_odds.copy_(self.learner.log_odds(seen.x, seen.s, self.streams))
        for e, n in enumerate(self.seen.counts.tolist()):
            log_odds, group = seen.log_odds[e, :n], group_index(seen.s[e, :n], self.n_groups)
            # A group nobody of which has been seen, or a seed that has diverged, keeps the thresholds it has.
            if len(group.unique()) < self.n_groups or not log_odds.isfinite().all():
                continue
            before = self.least_rate[e].item()
            chosen = fair_thresholds(
                log_odds,
                group,
                self.n_groups,
                self.fairness,
                self.setting.cost,
                places=self.share * n,
                before=None if before != before else before,
                tolerance=TOLERANCE * n,
            )
            self.threshold[e], self.tied_share[e] = chosen.threshold, chosen.tied_share
            self.least_rate[e] = chosen.least_rate

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The acceptance probability, shape (E, B); 0 or 1 but at a threshold."""
        log_odds, group = self.learner.log_odds(x, s, streams), group_index(s, self.n_groups)
        of_group = self.threshold.gather(1, group), self.tied_share.gather(1, group)
        return acceptance(log_odds, *of_group).to(x.dtype)

    @override
    @torch.no_grad()
    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        threshold = self.threshold.gather(1, group_index(s, self.n_groups))
        log_odds = self.learner.log_odds(x, s, streams)
        return log_odds.sigmoid().to(x.dtype), threshold.sigmoid().to(x.dtype)

    @override
    def notes(self, data: PreparedData) -> list[str]:
        """Those of the learner, and one for each group whose rate rests on few people."""
        table, people = data.pool_table, data.train
        lines = self.learner.notes(data)
        for s in people.s.unique().tolist():
            share = (people.s == s).double().mean().item()
            if (n := round(share * self.fairness.window)) < FEW:
                lines.append(
                    f"thresholds of fairness={self.fairness.rule.name} for {table.group_name(s)} rest on about "
                    f"{count(n, 'person', 'people')} of the last fairness.window={self.fairness.window}, so that its rate has "
                    f"a standard error of {100 * (0.25 / max(n, 1)) ** 0.5:.0f} points"
                )
        return lines

    @override
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        return self.learner.explore(x, s, propensity, uniform)

    @override
    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        return self.learner.pretrain(data, cache, progress)

    @override
    def pretrain_units(self, data: PreparedData) -> int:
        return self.learner.pretrain_units(data)

    @override
    def representation(self, x: Tensor, s: Tensor) -> Tensor | None:
        return self.learner.representation(x, s)

    @override
    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor | None:
        return self.learner.reconstruction(x, s)

    @override
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return self.learner.log_odds(x, s, streams)
