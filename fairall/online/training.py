"""All phases of a run: Phase I, warm-up and Phase II, resumable after any epoch and time step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairall.config.checks import require
from fairall.config.schema import Config, DecisionLuck, EffectiveDecisions, ExplorationRule, FairnessRule
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import Amounts, PreparedData, costs
from fairall.display.progress import ProgressCallback
from fairall.metrics import STANDARD, Measure
from fairall.models.learner import Learner, PretrainCurves
from fairall.models.memory import NO_LIMIT, Memory
from fairall.online.evaluation import Evaluator, History
from fairall.online.initial_policy import InitialPolicy
from fairall.online.process import Process
from fairall.runtime import signals
from fairall.runtime.process import available_memory
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, Checkpoint, State, Stateful
from fairall.worlds.part import World

PROCESS = 500e6  # bytes of Python, torch and the other libraries
DECISION = 48  # bytes of a decision: those of reference policies, and what measures and tables take of it
ARRAYS = 12  # bytes of a number of a person: three arrays of the same people are there at once


class Training(Stateful):
    """One run of a method on a data set.

    The learner is untrained, and the world before its first time step.

    Attributes:
        decided: the people of the warm-up with the decisions of the initial policy.
        evaluation: measures the policy on the people of `evaluation.split`.
        warmed_up: epochs of the warm-up that are done.
        losses: the fields of `curves`, empty where there are none.
        process: the learner with its exploration, which decides and learns.
        history: measures and decisions of Phase II so far.

    Raises:
        FairAllError: where the initial policy needs what the data set does not have, the method is for two
            groups and there are more, or it takes no amounts and there are some.
    """

    kept = ("warmed_up", "losses")

    def __init__(
        self,
        learner: Learner,
        initial_policy: InitialPolicy,
        config: Config,
        world: World,
        measures: Sequence[Measure] = STANDARD,
    ) -> None:
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
            rule, fairness = config.exploration.rule, config.fairness.rule
            why = "another rule with dataset.gain and dataset.loss, since it has one threshold for a group"
            require(rule is not ExplorationRule.bounded, "exploration", rule.name, why)
            few = world.share < 1.0 and fairness is not FairnessRule.none
            require(not few, "fairness", fairness.name, "none with few places and dataset.gain")
        learner.training_state()  # fails here, not at the first checkpoint, for state that cannot be saved
        seeds = list(learner.setting.seeds)
        self.decided = initially_decided(initial_policy, config, data)
        people = getattr(data, config.evaluation.split)
        self.evaluation = Evaluator(people, config.cost.value, seeds, measures, amounts)
        self.warmed_up = 0
        self.losses: dict[str, Tensor] = {}
        self.history = History()
        uniform = None
        if config.protocol.decision_luck is DecisionLuck.fixed:
            uniform = SeedStreams(seeds, "decision luck").uniform(world.setting.applicants)
        self.process = Process(learner, config.exploration, by_rank=world.by_rank, uniform=uniform)

    @property
    def learner(self) -> Learner:
        """The method."""
        return self.process.learner

    @property
    def curves(self) -> PretrainCurves | None:
        """Losses of Phase I; None before it has ended and for methods without one."""
        return PretrainCurves(**self.losses) if self.losses else None

    def notes(self) -> list[str]:
        """Remarks of the learner and of the world, one sentence each."""
        return [*self.learner.notes(self.data), *self.world.notes(drawn=self._drawn)]

    def warnings(self) -> list[str]:
        """Reasons of the world why numbers need care, one sentence each; some are known after a run only."""
        return self.world.warnings(drawn=self._drawn)

    @property
    def _drawn(self) -> bool:
        """Whether the method and its exploration leave decisions to chance."""
        rule = self.process.exploration.rule
        # `stuck` leaves propensities of 0 and 1 while somebody is accepted.
        explores = rule in (ExplorationRule.epsilon, ExplorationRule.bounded)
        return self.learner.rule.drawn or explores or type(self.learner).explore is not Learner.explore

    def replayed(self) -> Iterator[tuple[World, People]]:
        """The applicants of the time steps so far, with a world in which their time step has begun."""
        world = self.world.at_first()
        for accepted in self.history.steps["accepted"]:
            people = world.next()
            yield world, people
            world.decided(people, accepted)

    def run(self, checkpoint: Checkpoint, cache: Cache, display: Any) -> None:
        """Run all phases, or what the last checkpoint leaves to do of them; raises Stopped after saving.

        `display`, such as a `display.progress.Display`, shows the progress.
        """
        state = checkpoint.load()
        if state is None:
            self.pretrain(cache, display)
        else:
            self.load_state_dict(state)
        save = partial(checkpoint.maybe_save, self.state_dict)
        steps = self.config.schedule.time_steps
        with signals.deferred():
            self.warm_up(display, save)
            with display.phase("Phase II", steps, done=self.process.taken.steps) as advance:
                self.learn_online(steps, advance, save)
            checkpoint.save(self.state_dict)

    def pretrain(self, cache: Cache, display: Any) -> None:
        """Train Phase I."""
        with display.phase("Phase I", self.learner.pretrain_units(self.data)) as advance:
            curves = self.learner.pretrain(self.data, cache, advance)
        self.losses = {} if curves is None else dict(vars(curves))

    def warm_up(self, display: Any, after_epoch: Callable[[], None]) -> None:
        """Train on the decisions of the initial policy, for the epochs that are left."""
        epochs = self.config.schedule.warm_up_epochs
        with display.phase("Warm-up", epochs, done=self.warmed_up) as advance:
            while self.warmed_up < epochs:
                advance(**self.learner.warm_up_epoch(self.decided, self.warmed_up))
                self.warmed_up += 1
                after_epoch()

    def learn_online(
        self, time_steps: int, advance: ProgressCallback, after_step: Callable[[], None]
    ) -> None:
        """Decide and learn up to time step T; both functions are called after every step.

        `advance` gets the current utility and DPU, `after_step` may for instance save a checkpoint.
        """
        process, world, evaluation = self.process, self.world, self.evaluation
        if not self.history.measured.read():
            self.history.measured.append(self._measured())
        while process.taken.steps < time_steps:
            applicants = world.next()
            taken = counted = self.decide(applicants)
            process.learn(world.reveal(applicants, taken))
            if self.config.protocol.effective is EffectiveDecisions.decided_again:
                counted = self.decide(applicants)
            process.taken.add(taken.accepted)
            other = counted.counterfactual
            values = {
                "s": applicants.s,
                "label": applicants.label,
                "accepted": taken.accepted,
                "counted": counted.accepted,
                "ground_truth": applicants.ground_truth,
                "counterfactually_accepted": None if other is None else other.accepted,
                "largest_weight": torch.where(taken.accepted, 1.0 / taken.propensity, 1.0).amax(-1),
                "rejections": process.taken.rejections,
                "propensity": taken.propensity if self.config.evaluation.decisions else None,
                **world.observed(),
            }
            if evaluation.amounts is not None:
                values |= costs(applicants, evaluation.cost, evaluation.amounts)
            measures = self._measured()
            self.history.steps.append({name: of for name, of in values.items() if of is not None})
            self.history.measured.append(measures)
            advance(utility=measures["utility"].mean().item(), dpu=measures["dpu"].nanmean().item())
            after_step()

    def decide(self, applicants: People) -> Decisions:
        """The decisions on applicants for which the world has places."""
        return self.world.admit(applicants, self.process.decide(applicants))

    def _measured(self) -> dict[str, Tensor]:
        """Measures of the policy on the evaluation people as the world has moved them, shapes (E,)."""
        evaluation = self.evaluation
        return evaluation.of(self.world.evaluated(evaluation.people, self.world.time_step)).measure(
            self.learner
        )


def progress_of(state: State | None) -> tuple[int, int]:
    """Epochs of the warm-up and time steps that a state of `Training.state_dict` has behind it."""
    return (0, 0) if state is None else (state["warmed_up"], state["process"]["taken"]["steps"])


def initially_decided(policy: InitialPolicy, config: Config, data: PreparedData) -> Decided:
    """Decisions of the initial policy on the first people of the pool, for the warm-up (appendix D.2)."""
    people = data.warm_up(config.schedule.warm_up_applicants)
    of_splits = []
    for number, table in enumerate(data.pool_tables):
        own = policy.of_split(number)
        of_splits.append([values[: len(people)] for values in (own.propensity(table), own.decide(table))])
    split = np.arange(config.seeds) % len(of_splits)
    propensity, accepted = torch.tensor(np.array(of_splits)[split]).unbind(1)
    everyone = people.rows(torch.arange(len(people)).expand(config.seeds, -1))
    return Decided.reveal(everyone, propensity.float(), accepted.bool(), data.sample_weight)


def memory_needed(training: Training) -> float:
    """About as many bytes as the run takes at its peak; nets and compiled code are left out.

    It grows with decisions, T·N·E, whatever of them the learner remembers, and the people of a time step and
    of the evaluation. Where places are few, everybody of a time step is compared with everybody.
    """
    schedule, n_seeds = training.config.schedule, training.config.seeds
    applicants = float(n_seeds * schedule.applicants)
    decisions = applicants * schedule.time_steps
    people = applicants + n_seeds * len(training.evaluation.people)
    parts = [part for module in training.learner.modules() for part in vars(module).values()]
    if any(isinstance(part, Memory) and part.keep != "step" and part.limit == NO_LIMIT for part in parts):
        people += decisions
    pairs = applicants * schedule.applicants if training.world.places else 0.0
    values = (len(training.data.schema) + 4) * people + 2 * pairs
    return PROCESS + DECISION * decisions + ARRAYS * values


def short_of(training: Training) -> list[str]:
    """A note if the run may not fit in memory."""
    needed, available = memory_needed(training), available_memory()
    if available is None or needed <= available:
        return []
    return [
        f"the run may need {needed / 1e9:.1f} GB of memory and {available / 1e9:.1f} GB are available; "
        "fewer seeds, schedule.time_steps or schedule.applicants take less"
    ]
