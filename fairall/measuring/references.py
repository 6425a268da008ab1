"""What reference policies would have decided on the applicants of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from fairall.data.people import Decisions
from fairall.models.learner import LEAST
from fairall.models.oracle import NoOracleError, Oracle, oracles
from fairall.online.evaluation import Recorded, Records
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache
from fairall.worlds.capacity import finds_place

RUN = "run"
Constant = Callable[[Tensor], Tensor]
"""π of people of given s, of its shape."""
DECISIONS = ("accepted", "counterfactually_accepted")  # the second where counterfactuals are known


def recorded_policies(training: Training, cache: Cache) -> dict[str, Recorded]:
    """Decisions and measures of the run, named `RUN`, and of reference policies on its people, at its cost.

    The oracles are fitted to the training rows, and left out where that is impossible. In a world with
    drift or feedback they use P(ỹ | x, s) and the parity thresholds of each time step. Under a capacity
    they accept the applicants with the largest P, or, with parity, those with the smallest share of their
    group ahead of them. Returning applicants are as the run's decisions left them.

    Args:
        training: after the last time step.
        cache: of the fits of the oracles.
    """
    data = training.data
    policies: dict[str, Oracle | Constant] = {"accept_all": torch.ones_like, "reject_all": torch.zeros_like}
    try:
        found = oracles(data, training.learner.setting, cache)
        found["oracle"].remember([training.evaluation.people], cache)
        if data.draw is not None and "feedback" not in training.world.parts:
            # People who are drawn are the same for every method, so that their scores are worth keeping.
            found["oracle"].remember([people for _, people in training.replayed()], cache)
        policies |= found
    except NoOracleError:
        pass
    recorded = {RUN: training.history.recorded()}
    recorded |= {name: _recorded(policy, training) for name, policy in policies.items()}
    if "oracle" in recorded:
        for one in recorded.values():
            one.applicants["oracle_accepted"] = recorded["oracle"].applicants["accepted"]
    return recorded


def _recorded(policy: Oracle | Constant, training: Training) -> Recorded:
    """Decisions and measures of a reference policy."""
    evaluation, history = training.evaluation, training.history
    decided, measured = Records(), Records()
    luck = SeedStreams(evaluation.seeds, "decisions of references")
    world = training.world.at_first()  # then the one replayed, at its time step

    def score(oracle: Oracle, x: Tensor, s: Tensor) -> Tensor:
        """Log odds of P(ỹ = 1 | x, s) at the time step."""
        still = oracle.log_odds(x, s)
        return (
            world.probability(still.sigmoid(), s, world.time_step).logit(eps=LEAST) if world.moves else still
        )

    def measure() -> None:
        """Measure on the evaluation people, with parity for the training people of the time step."""
        if isinstance(policy, Oracle) and policy.bound is not None and world.moves:
            train = world.evaluated(training.data.train, world.time_step)
            policy.choose_thresholds(train, score(policy, train.x, train.s))
        of_step = evaluation.of(world.evaluated(evaluation.people, world.time_step))
        measured.append(of_step.measure_by(lambda x, s: propensity(x, s).to(x.dtype)))

    def propensity(x: Tensor, s: Tensor) -> Tensor:
        if isinstance(policy, Oracle):
            return policy.accepted(score(policy, x, s), x, s)
        return policy(s)

    measure()
    for world, people in training.replayed():
        if world.moves:
            measure()
        both = [(people.x, people.s)]
        if people.counterfactual_x is not None:
            both.append((people.counterfactual_x, -people.s))
        uniform = luck.uniform(len(people))
        accepted = [uniform < propensity(*of) for of in both]
        if not isinstance(policy, Oracle):
            own, other = (Decisions(of.float(), of) for of in (accepted[0], accepted[-1]))
            admitted = world.admit(people, replace(own, counterfactual=other))
            accepted = [of.accepted for of in (admitted, admitted.counterfactual) if of]
        elif world.places is not None:
            ordered = [policy.ordered(score(policy, x, s), x) for x, s in both]
            values = [
                _value(policy, one, s, ordered[0], people.s)
                for one, (_, s) in zip(ordered, both, strict=True)
            ]
            accepted = [
                wanted & finds_place(value, accepted[0], values[0], world.places)
                for wanted, value in zip(accepted, values, strict=True)
            ]
        decided.append(dict(zip(DECISIONS[: len(both)], accepted, strict=False)))
    n_steps = training.process.taken.steps + 1  # people who do not move are measured once
    measures = {name: values.expand(n_steps, -1) for name, values in measured.read().items()}
    applicants = history.recorded().applicants | decided.read()
    applicants.pop("group_score", None)  # what the decisions of the run have made of groups
    return Recorded(measures, applicants)


def _value(policy: Oracle, score: Tensor, s: Tensor, others: Tensor, others_s: Tensor) -> Tensor:
    """What places of people with given score and s go by, shape (E, N): the score, or with parity −share.

    That is the share of the `others` of their group who are ahead.
    """
    if policy.bound is None:
        return score
    same = others_s.unsqueeze(1) == s.unsqueeze(2)
    ahead = same & (others.unsqueeze(1) > score.unsqueeze(2))
    return -ahead.sum(2) / same.sum(2).clamp(min=1)
