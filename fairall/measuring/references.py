"""What reference policies would have decided on the applicants of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import pandas as pd
import torch
from torch import Tensor

from fairall.data.people import Decisions, People
from fairall.measuring.summary import measure_table, summarise
from fairall.models.learner import LEAST
from fairall.models.oracle import NoOracleError, Oracle, oracles
from fairall.online.history import Recorded
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache
from fairall.worlds.world import World

CONSTANT = {"accept_all": 1.0, "reject_all": 0.0}


def reference_histories(training: Training, cache: Cache) -> dict[str, Recorded]:
    """Decisions of the reference policies on applicants and evaluation people of a run, at its cost.

    The oracles are fitted to the training rows, and left out where that is impossible. In a world with
    drift or feedback they use P(ỹ | x, s) and the parity thresholds of each time step. Under a capacity
    they accept the applicants with the largest P. Returning applicants are as the run's decisions left them.

    Args:
        training: after the last time step.
        cache: of the fits of the oracles.
    """
    evaluation, history, run_world = training.evaluation, training.history, training.world
    try:
        policies = oracles(training.data.train, training.data.validation, training.learner.setting, cache)
    except NoOracleError:
        policies = {}
    else:
        policies["oracle"].remember(evaluation.people, cache)
    series = {name: _Series() for name in (*CONSTANT, *policies)}
    score = _score_of_day(policies, training, 0)
    _measure(series, policies, score, training, 0)
    luck = SeedStreams(evaluation.seeds, "decisions of references")
    for world, people in training.replayed():
        for name, p in CONSTANT.items():
            series[name].add(world.admit(people, _constant(people, p)))
        if run_world.moves:
            score = _score_of_day(policies, training, world.time_step)
            _measure(series, policies, score, training, world.time_step)
        if policies:
            uniform = luck.uniform(people.s.shape[1])
            other = people.counterfactual_x
            scores = score(people.x, people.s), None if other is None else score(other, -people.s)
            for name, policy in policies.items():
                series[name].add(_decisions(policy, scores, world, people, uniform))
    return {
        name: history.of_another_policy(recorded.decisions(), recorded.measured(history.steps_done + 1))
        for name, recorded in series.items()
    }


def references(
    histories: Mapping[str, Recorded], training: Training, window: tuple[int, int]
) -> pd.DataFrame:
    """Measures of reference policies, `Result.references`.

    Args:
        histories: of `reference_histories`.
        training: of the run.
        window: t1 and t2 of the temporal measures.
    """
    evaluation, measures = training.evaluation, training.evaluation.measures
    oracle = oracle_decisions(histories)
    aggregates = {}
    for name, recorded in histories.items():
        table = measure_table(recorded, evaluation.seeds, evaluation.cost, measures, oracle)
        _, aggregates[name] = summarise(table, window=window, further={}, measures=measures)
    return pd.concat(aggregates, names=["policy", "measure"])


def oracle_decisions(histories: Mapping[str, Recorded]) -> Tensor | None:
    """Decisions of the oracle, shape (T, E, N), bool; None where there is no oracle."""
    return histories["oracle"].applicants["accepted"] if "oracle" in histories else None


@dataclass
class _Series:
    """Decisions per time step from 1, and measures from 0, of one policy."""

    accepted: list[Tensor] = field(default_factory=list)
    counterfactually: list[Tensor] = field(default_factory=list)
    measures: list[dict[str, Tensor]] = field(default_factory=list)

    def add(self, decisions: Decisions) -> None:
        self.accepted.append(decisions.accepted)
        if decisions.counterfactually_accepted is not None:
            self.counterfactually.append(decisions.counterfactually_accepted)

    def decisions(self) -> dict[str, Tensor]:
        """By parameter name of measures, shapes (T, E, N), bool."""
        known = {"accepted": self.accepted, "counterfactually_accepted": self.counterfactually}
        return {name: torch.stack(steps) for name, steps in known.items() if steps}

    def measured(self, n_steps: int) -> dict[str, Tensor]:
        """By name, shapes (n_steps, E): of as many time steps, or of one, where people do not move."""
        return {
            name: torch.stack([measures[name] for measures in self.measures]).expand(n_steps, -1)
            for name in self.measures[0]
        }


Score = Callable[[Tensor, Tensor], Tensor]
"""Log odds of P(ỹ = 1 | x, s) at a time step, or with amounts `Oracle.ordered`."""


def _score_of_day(policies: Mapping[str, Oracle], training: Training, time_step: int) -> Score:
    """The oracles' score at a time step.

    The thresholds in `policies["oracle_fair"]` are chosen again for the training people of that time step.
    """
    world, free = training.world, policies.get("oracle")
    if free is None:  # no policy asks for scores
        return lambda x, s: s

    def score(x: Tensor, s: Tensor) -> Tensor:
        if not world.moves:
            return free.log_odds(x, s)
        return world.probability(free.log_odds(x, s).sigmoid(), s, time_step).logit(eps=LEAST)

    if world.moves:
        train = world.evaluated(training.data.train, time_step)
        policies["oracle_fair"].choose_thresholds(score(train.x, train.s), train.x, train.s)
    return lambda x, s: free.ordered(score(x, s), x)


def _measure(
    series: Mapping[str, _Series],
    policies: Mapping[str, Oracle],
    score: Score,
    training: Training,
    time_step: int,
) -> None:
    """Add the measures on the evaluation people of a time step."""
    evaluation = training.evaluation
    evaluation = evaluation.of(training.world.evaluated(evaluation.people, time_step))

    def propensity(name: str, x: Tensor, s: Tensor) -> Tensor:
        if name in CONSTANT:
            return torch.full_like(s, CONSTANT[name])
        return policies[name].accepted(score(x, s), s).to(x.dtype)

    for name, recorded in series.items():
        recorded.measures.append(evaluation.measure_by(partial(propensity, name)))


def _constant(people: People, p: float) -> Decisions:
    """Decisions that accept everybody, or nobody."""
    propensity = torch.full_like(people.s, p)
    decisions = propensity, propensity > 0
    return Decisions(*decisions, *(decisions if people.counterfactual_x is not None else ()))


def _decisions(
    policy: Oracle, scores: tuple[Tensor, Tensor | None], world: World, people: People, uniform: Tensor
) -> Decisions:
    """Decisions of an oracle.

    Of the people whom it accepts, those of greatest score have the places, or, with parity, those with the
    smallest share of their group ahead of them.
    """
    s, capacity, (scored, counterfactual) = people.s, world.capacity, scores
    wants = uniform < policy.accepted(scored, s)

    def value(score: Tensor, group: Tensor) -> Tensor:
        if policy.bound is None:
            return score
        same, ahead = s.unsqueeze(1) == group.unsqueeze(2), scored.unsqueeze(1) > score.unsqueeze(2)
        return -(same & ahead).sum(2) / same.sum(2).clamp(min=1)

    def accepted(score: Tensor, group: Tensor) -> Tensor:
        wanted = uniform < policy.accepted(score, group)
        if capacity is None:
            return wanted
        return wanted & capacity.finds_place(group, value(score, group), s, wants, value(scored, s))

    taken = accepted(scored, s)
    if counterfactual is None:
        return Decisions(taken.float(), taken)
    counterfactually = accepted(counterfactual, -s)
    return Decisions(taken.float(), taken, counterfactually.float(), counterfactually)
