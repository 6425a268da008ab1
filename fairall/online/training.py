"""All phases of a run: Phase I, warm-up and Phase II, resumable after any epoch and time step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch

from fairall.config.checks import require
from fairall.config.schema import Config, EffectiveDecisions, ExplorationRule, FairnessRule
from fairall.data.amounts import Amounts
from fairall.data.people import Decided, People
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.metrics import STANDARD, Measure
from fairall.models.learner import Learner, PretrainCurves
from fairall.models.memory import Memory
from fairall.online.evaluation import Evaluator
from fairall.online.initial_policy import InitialPolicy
from fairall.online.loop import OnlineLearning
from fairall.online.process import NO_EXPLORATION
from fairall.runtime import signals
from fairall.runtime.process import available_memory
from fairall.storage.checkpoint import Cache, Checkpoint, State
from fairall.worlds.world import World

PROCESS = 500e6  # bytes of Python, torch and the other libraries
DECISION = 48  # bytes of a decision: those of reference policies, and what measures and tables take of it
FLOAT, COPIES = 4, 3  # bytes; arrays of the same people that are there at once


class Training:
    """One run of a method on a data set.

    The learner is untrained, and the world before its first time step.

    Attributes:
        decided: the people of the warm-up with the decisions of the initial policy.
        evaluation: measures the policy on the people of `evaluation.split`.
        curves: losses of Phase I; None before it has ended and for methods without one.
        process: the learner with its exploration, which decides and learns.
        history: measures and decisions of Phase II so far.

    Raises:
        FairAllError: where the initial policy needs what the data set does not have, the method is for two
            groups and there are more, or it takes no amounts and there are some.
    """

    def __init__(
        self,
        learner: Learner,
        initial_policy: InitialPolicy,
        config: Config,
        world: World,
        measures: Sequence[Measure] = STANDARD,
    ) -> None:
        self.learner = learner
        self.config = config
        self.world = world
        self.data = data = world.setting.data
        if learner.two_groups:
            data.schema.require_two_groups(f"model={config.model.name}", "choose model=ensemble, or ")
        amounts = Amounts.of(data.schema, config.amounts)
        if amounts is not None:
            amounts.require_positive(data)
        if learner.setting.amounts is not None:
            learner.require_amounts()
            rule = config.exploration.rule.name
            bounded = ExplorationRule.bounded
            why = "another rule with dataset.gain and dataset.loss, since it has one threshold for a group"
            require(config.exploration.rule is not bounded, "exploration", rule, why)
            few = world.share < 1.0 and config.fairness.rule is not FairnessRule.none
            require(not few, "fairness", config.fairness.rule.name, "none with few places and dataset.gain")
        learner.training_state()  # fails here, not at the first checkpoint, for state that cannot be saved
        seeds = list(learner.setting.seeds)
        people = getattr(data, config.evaluation.split)
        self.decided = initially_decided(initial_policy, config, data)
        self.evaluation = Evaluator(people, config.cost.value, seeds, measures, amounts)
        self.curves: PretrainCurves | None = None
        self._warmed_up = 0
        self._online = OnlineLearning(
            learner,
            world,
            self.evaluation,
            seeds,
            exploration=config.exploration if learner.learns else NO_EXPLORATION,
            decide_again=config.protocol.effective is EffectiveDecisions.decided_again,
            luck=config.protocol.decision_luck,
            keep_propensity=config.evaluation.decisions,
        )
        self.process = self._online.process
        self.history = self._online.history

    def notes(self) -> list[str]:
        """Remarks of the learner and of the world, one sentence each."""
        return [*self.learner.notes(self.data), *self.world.notes(drawn=self._drawn)]

    def warnings(self) -> list[str]:
        """Reasons of the world why numbers need care, one sentence each; some are known after a run only."""
        return self.world.warnings(drawn=self._drawn)

    @property
    def _drawn(self) -> bool:
        """Whether the method and its exploration leave decisions to chance."""
        # `stuck` leaves propensities of 0 and 1 while somebody is accepted.
        by_chance = (ExplorationRule.epsilon, ExplorationRule.bounded)
        explores = self.process.exploration.config.rule in by_chance
        return self.learner.rule.drawn or explores or type(self.learner).explore is not Learner.explore

    def replayed(self) -> Iterator[tuple[World, People]]:
        """The applicants of the time steps so far, with a world in which their time step has begun."""
        world = self.world.at_first()
        for accepted in self.history.accepted:
            people = world.next()
            yield world, people
            world.decided(people, accepted)

    def run(self, checkpoint: Checkpoint, cache: Cache, display: Any) -> None:
        """Run all phases, or what the last checkpoint leaves to do of them; raises Stopped after saving.

        `display`, such as a `display.progress.Display`, shows the progress.
        """
        self.pretrain(checkpoint, cache, display)
        with signals.deferred():
            self.warm_up(checkpoint, display)
            done = max(0, self.history.steps_done)
            steps = self.config.schedule.time_steps
            with display.phase("Phase II", steps, done=done) as advance:
                self._online.run(steps, advance, lambda: checkpoint.maybe_save(self.state_dict))
            checkpoint.save(self.state_dict)

    def pretrain(self, checkpoint: Checkpoint, cache: Cache, display: Any) -> None:
        """Go back to the last checkpoint; without one, train Phase I."""
        if (state := checkpoint.load()) is not None:
            self.load_state_dict(state)
            return
        units = self.learner.pretrain_units(self.data)
        unseen: AbstractContextManager[ProgressCallback] = nullcontext(lambda **_: None)
        with display.phase("Phase I", units) if units > 0 else unseen as advance:
            self.curves = self.learner.pretrain(self.data, cache, advance)

    def warm_up(self, checkpoint: Checkpoint, display: Any) -> None:
        """Train on the decisions of the initial policy, for the epochs that are left."""
        epochs = self.config.schedule.warm_up_epochs
        with display.phase("Warm-up", epochs, done=self._warmed_up) as advance:
            while self._warmed_up < epochs:
                advance(**self.learner.warm_up_epoch(self.decided, self._warmed_up))
                self._warmed_up += 1
                checkpoint.maybe_save(self.state_dict)

    def state_dict(self) -> State:
        """Everything the remaining epochs and time steps depend on, as plain containers of tensors."""
        return {
            "curves": None if self.curves is None else dict(vars(self.curves)),
            "warmed_up": self._warmed_up,
            "online": self._online.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Restore a state of `state_dict`."""
        self._online.load_state_dict(state["online"])
        self.curves = None if state["curves"] is None else PretrainCurves(**state["curves"])
        self._warmed_up = state["warmed_up"]


def progress_of(state: State | None) -> tuple[int, int]:
    """Epochs of the warm-up and time steps that a state of `Training.state_dict` has behind it."""
    return (0, 0) if state is None else (state["warmed_up"], state["online"]["history"]["taken"]["steps"])


def initially_decided(policy: InitialPolicy, config: Config, data: PreparedData) -> Decided:
    """Decisions of the initial policy on the first people of the pool, for the warm-up (appendix D.2)."""
    people = data.warm_up(config.schedule.warm_up_applicants)
    everyone = torch.arange(len(people)).expand(config.seeds, -1)
    pools = [(policy.of_split(number), table) for number, table in enumerate(data.pool_tables)]
    both = [np.stack([part.propensity(table), part.decide(table)]) for part, table in pools]
    of_seeds = np.stack([both[e % len(pools)][:, : len(people)] for e in range(config.seeds)])
    propensity, accepted = torch.tensor(of_seeds).transpose(0, 1)
    return Decided.reveal(people.rows(everyone), propensity.float(), accepted.bool(), data.sample_weight)


def memory_needed(training: Training) -> float:
    """About as many bytes as the run takes at its peak; nets and compiled code are left out.

    It grows with decisions, T·N·E, whatever of them the learner remembers, and the people of a time step and
    of the evaluation. Where places are few, everybody of a time step is compared with everybody.
    """
    schedule = training.config.schedule
    n_seeds = training.config.seeds
    decisions = float(schedule.time_steps * schedule.applicants * n_seeds)
    person = (len(training.data.schema) + 4) * FLOAT
    remembers = any(
        isinstance(part, Memory) and part.limit is None
        for module in training.learner.modules()
        for part in vars(module).values()
    )
    at_once = n_seeds * (schedule.applicants + len(training.evaluation.people))
    people = at_once + (decisions if remembers else 0.0)
    pairs = float(n_seeds * schedule.applicants**2) if training.world.capacity else 0.0
    return PROCESS + DECISION * decisions + COPIES * person * people + 2 * COPIES * pairs


def short_of(training: Training) -> list[str]:
    """A note if the run may not fit in memory."""
    needed = memory_needed(training)
    available = available_memory()
    if available is None or needed <= available:
        return []
    return [
        f"the run may need {needed / 1e9:.1f} GB of memory and {available / 1e9:.1f} GB are available; "
        "fewer seeds, schedule.time_steps or schedule.applicants take less"
    ]
