"""What reference policies would have decided on the applicants of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd
import torch
from torch import Tensor

from fairall.data.people import Decisions, People
from fairall.measuring.summary import measure_table
from fairall.models.learner import LEAST
from fairall.models.oracle import NoOracleError, Oracle, oracles
from fairall.online.history import Recorded, Records
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache
from fairall.worlds.world import World

RUN = "run"
CONSTANT = {"accept_all": 1.0, "reject_all": 0.0}
DECISIONS = ("accepted", "counterfactually_accepted")  # the second where counterfactuals are known
Score = Callable[[Tensor, Tensor], Tensor]
"""Log odds of P(ỹ = 1 | x, s) at a time step, or with amounts `Oracle.ordered`."""


def reference_histories(training: Training, cache: Cache) -> dict[str, Recorded]:
    """Decisions of the reference policies on applicants and evaluation people of a run, at its cost.

    The oracles are fitted to the training rows, and left out where that is impossible. In a world with
    drift or feedback they use P(ỹ | x, s) and the parity thresholds of each time step. Under a capacity
    they accept the applicants with the largest P. Returning applicants are as the run's decisions left them.

    Args:
        training: after the last time step.
        cache: of the fits of the oracles.
    """
    evaluation, history = training.evaluation, training.history
    try:
        policies = oracles(training.data.train, training.data.validation, training.learner.setting, cache)
    except NoOracleError:
        policies = {}
    else:
        oracle = policies["oracle"]
        oracle.remember([evaluation.people], cache)
        if training.data.draw is not None and "feedback" not in training.world.parts:
            # People who are drawn are the same for every method, so that their scores are worth keeping.
            oracle.remember([people for _, people in training.replayed()], cache)
    decided, measured = ({name: Records() for name in (*CONSTANT, *policies)} for _ in range(2))
    score = _begin(policies, measured, training, 0)
    luck = SeedStreams(evaluation.seeds, "decisions of references")
    for world, people in training.replayed():
        if training.world.moves:
            score = _begin(policies, measured, training, world.time_step)
        accepted = {name: _by_constant(p, world, people) for name, p in CONSTANT.items()}
        if policies:
            uniform, both = luck.uniform(people.s.shape[1]), [(people.x, people.s)]
            if people.counterfactual_x is not None:
                both.append((people.counterfactual_x, -people.s))
            scored = [(score(x, s), s) for x, s in both]
            accepted |= {name: _by_oracle(own, scored, world, uniform) for name, own in policies.items()}
        for name, decisions in accepted.items():
            decided[name].append(dict(zip(DECISIONS, decisions, strict=False)))
    n_steps = history.steps_done + 1  # people who do not move are measured once
    return {
        name: history.of_another_policy(
            records.read(), {key: of.expand(n_steps, -1) for key, of in measured[name].read().items()}
        )
        for name, records in decided.items()
    }


def tables(training: Training, cache: Cache) -> dict[str, pd.DataFrame]:
    """`measure_table` of the run, named `RUN`, and of each reference policy on the same applicants.

    Arguments are those of `reference_histories`.
    """
    histories, of = reference_histories(training, cache), training.evaluation
    oracle = histories["oracle"].applicants["accepted"] if "oracle" in histories else None
    return {
        name: measure_table(recorded, of.seeds, of.cost, of.measures, oracle)
        for name, recorded in {RUN: training.history.recorded(), **histories}.items()
    }


def _begin(
    policies: Mapping[str, Oracle], measured: Mapping[str, Records], training: Training, time_step: int
) -> Score:
    """The oracles' score at a time step, at which all policies are measured on the evaluation people.

    The thresholds in `policies["oracle_fair"]` are chosen again where the training people have moved.
    """
    world, evaluation = training.world, training.evaluation

    def log_odds(x: Tensor, s: Tensor) -> Tensor:
        still = policies["oracle"].log_odds(x, s)
        return world.probability(still.sigmoid(), s, time_step).logit(eps=LEAST) if world.moves else still

    def score(x: Tensor, s: Tensor) -> Tensor:
        return policies["oracle"].ordered(log_odds(x, s), x)

    def propensity(name: str, x: Tensor, s: Tensor) -> Tensor:
        if name in CONSTANT:
            return torch.full_like(s, CONSTANT[name])
        return policies[name].accepted(score(x, s), s).to(x.dtype)

    if policies and world.moves:
        train = world.evaluated(training.data.train, time_step)
        policies["oracle_fair"].choose_thresholds(log_odds(train.x, train.s), train.x, train.s)
    evaluation = evaluation.of(world.evaluated(evaluation.people, time_step))
    for name, records in measured.items():
        records.append(evaluation.measure_by(partial(propensity, name)))
    return score


def _by_constant(p: float, world: World, people: People) -> list[Tensor]:
    """The values of `DECISIONS` of a policy that wants everybody, or nobody."""
    propensity = torch.full_like(people.s, p)
    known = 1 if people.counterfactual_x is None else 2
    admitted = world.admit(people, Decisions(*known * (propensity, propensity > 0)))
    return [getattr(admitted, name) for name in DECISIONS[:known]]


def _by_oracle(
    policy: Oracle, scored: list[tuple[Tensor, Tensor]], world: World, uniform: Tensor
) -> list[Tensor]:
    """The values of `DECISIONS` of an oracle on people, and counterfactuals, with given score and s.

    Of the people whom it accepts, those of greatest score have the places, or, with parity, those with the
    smallest share of their group ahead of them.
    """
    others, s = scored[0]
    wants = uniform < policy.accepted(others, s)

    def value(score: Tensor, group: Tensor) -> Tensor:
        if policy.bound is None:
            return score
        same, ahead = s.unsqueeze(1) == group.unsqueeze(2), others.unsqueeze(1) > score.unsqueeze(2)
        return -(same & ahead).sum(2) / same.sum(2).clamp(min=1)

    def accepted(score: Tensor, group: Tensor) -> Tensor:
        wanted = uniform < policy.accepted(score, group)
        if world.capacity is None:
            return wanted
        return wanted & world.capacity.finds_place(value(score, group), wants, value(others, s))

    return [accepted(*of_people) for of_people in scored]
