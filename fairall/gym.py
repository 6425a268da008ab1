"""The simulated world of a run in Gymnasium: importing this registers `fairall/Lending-v0`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from fairall.config.checks import whole_number
from fairall.config.compose import checked, compose_config
from fairall.config.schema import DecisionLuck
from fairall.data.amounts import Amounts, costs
from fairall.data.dataset import dataset
from fairall.data.features import DISCRETE, Feature, Kind
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import FURTHEST
from fairall.errors import FairAllError, needing
from fairall.experiment import job, prepare, warmed_up
from fairall.metrics import worth
from fairall.online.process import Process
from fairall.runtime.randomness import SeedStreams
from fairall.tables.features import LARGEST_COUNT
from fairall.tables.groups import sides
from fairall.worlds.part import Part
from fairall.worlds.world import World

with needing("gymnasium", "fairall.gym"):
    import gymnasium
    from gymnasium import spaces
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

ACTIONS = ("decision", "probability")
CHANGING = ("admit", "revealed", "due")  # methods of `Part`


class Simulation:
    """The applicants of E seeds who are decided on from outside, N at a time step.

    Args:
        words: of a run, as on the command line; those of methods change nothing here.
        values: the same as Python values by key, as of `fairall.compose_config`.
        batch: whether an action decides on all applicants of a time step, instead of on one.
        action: `decision`, 0 or 1; or `probability`, π, by which the environment draws the decision.
        truths: whether `info` has what no policy can see.

    Attributes:
        config: of the run.
        data: its people.

    Raises:
        FairAllError: where a value is impossible or the data are missing.
    """

    def __init__(
        self,
        words: Sequence[str] = (),
        values: dict[str, Any] | None = None,
        *,
        batch: bool = False,
        action: str = "decision",
        truths: bool = False,
    ) -> None:
        if not isinstance(words, list | tuple):
            raise FairAllError(f"words={words!r}: give a list of words")
        if action not in ACTIONS:
            raise FairAllError(f"action={action!r}: one of {', '.join(ACTIONS)}")
        self.batch, self.draws, self.truths = batch, action == "probability", truths
        composed = compose_config(*words, **(values or {}))
        composed.evaluation.window = [0, composed.schedule.time_steps]  # nothing is averaged over it here
        self.config = checked(composed)
        if self.config.splits > 1:
            raise FairAllError(f"splits={self.config.splits}: an environment has one split of the people")
        self.data = prepare(dataset(self.config.dataset), self.config)
        self.amounts = Amounts.of(self.data.schema, self.config.amounts)
        n, groups = self.config.schedule.applicants, sides(self.data.schema.n_groups)
        ends = [*map(_ends, self.data.schema), (min(groups), max(groups))]
        low, high = np.array(ends, dtype=np.float32).T
        shape = (n, len(low)) if batch else (len(low),)
        self.observations = spaces.Box(np.broadcast_to(low, shape), np.broadcast_to(high, shape))
        known = spaces.MultiBinary(n) if batch else spaces.Discrete(2)
        self.actions = spaces.Box(0.0, 1.0, (n if batch else 1,), np.float32) if self.draws else known
        self.fixed_luck = self.config.protocol.decision_luck is DecisionLuck.fixed
        self.group_names = {s: self.data.pool_table.group_name(s) for s in groups}

    def begin(self, seeds: Sequence[int]) -> None:
        """Start an episode, with the applicants that a run with these E seeds has."""
        self.seeds = list(seeds)
        self.world = World.of(self.config, self.data, self.seeds)
        parts = self.world.parts.values()
        self.at_once = all(
            getattr(type(part), name) is getattr(Part, name) for part in parts for name in CHANGING
        )
        self.luck = SeedStreams(self.seeds, "decision luck" if self.fixed_luck else "decisions")
        self._next()

    def _next(self) -> None:
        """Begin the next time step."""
        self.people, self.position = self.world.next(), 0
        self.probability = torch.zeros(self.people.s.shape)
        if not self.fixed_luck or self.world.time_step == 1:
            self.uniform = self.luck.uniform(self.world.setting.applicants)

    def step(self, action: Any) -> tuple[np.ndarray, np.ndarray, bool, dict[str, Any]]:
        """Decide on the next applicant of each seed, or on all of the time step.

        Args:
            action: of each seed, as of `actions`; or `Decisions` of a `Process` on the batch (E, N), whose
                propensities and margins count.

        Returns:
            Observations (E, ...), rewards (E,), whether the episode is over, and `info` of `Lending`.

        Raises:
            FairAllError: where an action is no decision or probability.
        """
        n, one = self.people.s.shape[1], slice(self.position, self.position + 1)
        now = slice(None) if self.batch else one
        if isinstance(action, Decisions) and self.batch:
            wanted = action
        else:
            possible = f"action {action}: {'from 0 to 1' if self.draws else '0 or 1'} is possible"
            try:
                chosen = torch.tensor(np.reshape(action, self.probability[:, now].shape), dtype=torch.float32)
            except (TypeError, ValueError) as error:
                raise FairAllError(possible) from error
            if not ((chosen >= 0) & (chosen <= 1) & (self.draws | (chosen == chosen.round()))).all():
                raise FairAllError(possible)
            self.probability[:, now] = chosen
            accepted = self.uniform < self.probability
            wanted = Decisions(self.probability, accepted, margin=self.probability, uniform=self.uniform)
        gain = self._worth(self.people)
        told: dict[str, Any] = {}
        reward = (wanted.accepted * gain * self.at_once)[:, now].mean(-1)
        self.position = n if self.batch else one.stop
        over = self.position == n and self.world.time_step == self.config.schedule.time_steps
        if self.position == n:
            taken = self.world.admit(self.people, wanted)
            due = self.world.reveal(self.people, taken)
            known = [(one.accepted * self._worth(one)).sum(-1) for one in due]
            if not self.at_once:
                reward = sum(known, torch.zeros(len(reward))) / (n if self.batch else 1)
            fields = ({name: of.numpy() for name, of in vars(one).items()} for one in due)
            told = {"accepted": taken.accepted.numpy(), "due": tuple(fields)}
            told |= {"utility": (taken.accepted * gain).mean(-1).numpy()} if self.truths else {}
            if not over:
                self._next()
        observation, info = self.seen()
        return observation, reward.double().numpy(), over, info | told

    def _worth(self, people: People | Decided) -> torch.Tensor:
        """What accepting each person brings, shape (E, B), float64."""
        return worth(people.label.double(), **costs(people, self.config.cost.value, self.amounts))

    def seen(self) -> tuple[np.ndarray, dict[str, Any]]:
        """The applicants to decide on, (E, ...), after the last time step the last ones, and their `info`."""
        rows: Any = slice(None) if self.batch else min(self.position, self.people.s.shape[1] - 1)
        s = self.people.s[:, rows]
        info = {"groups": s.numpy(), "time_step": self.world.time_step, "seed": np.array(self.seeds)}
        info |= {"labels": self.people.label[:, rows].numpy()} if self.truths else {}
        return torch.cat([self.people.x[:, rows], s.unsqueeze(-1)], dim=-1).numpy(), info


class Lending(gymnasium.Env[np.ndarray, Any]):
    """Accept or reject applicants whose labels are seen only where they are accepted.

    An episode has the T time steps of a run with N applicants each; then it is truncated. An observation is
    an applicant's features, as methods see them, and s, shape (D + 1,); with `batch` those of the time step,
    (N, D + 1). The reward is the utility of an acceptance, ỹ − c, or an amount, when the label comes, 0 for a
    rejection; of a batch the mean over its applicants. Where every label comes at once, the mean reward of an
    episode is the effective utility of `fairall.run` (definition D.1). In worlds with few places, late or
    false labels rewards come at the end of a time step, and are of the labels that are revealed by then.

    `info` has the `groups` s (named in `simulation.group_names`) and the `time_step` of what is observed, the
    `seed` of the episode, and when a time step has ended who was `accepted` (N,) and `due`, a mapping of the
    fields of `Decided` for each group of people whose labels have come. With `truths` it has `labels`, and
    the `utility` of the decisions of the time step, whether their labels come or not.

    `reset(seed=k)` has the applicants of seed k of a run; without a seed they are others each time.

    Args:
        words: of a run, as on the command line: `["world.delay.steps=3"]`.
        batch: whether an action decides on all applicants of a time step: `MultiBinary`, not `Discrete`.
        action: `decision`, or `probability` for π as a `Box`, by which the environment draws the decision.
        truths: whether `info` has labels.
        render_mode: None, since there is nothing to see.
        values: words as Python values by key: `dataset="credit"`, `schedule={"time_steps": 50}`.

    Raises:
        FairAllError: where a value is impossible or the data are missing.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  as Gymnasium declares it

    def __init__(
        self,
        *,
        words: Sequence[str] = (),
        batch: bool = False,
        action: str = "decision",
        truths: bool = False,
        render_mode: None = None,
        **values: Any,
    ) -> None:
        self.render_mode = render_mode
        self.simulation = Simulation(words, values, batch=batch, action=action, truths=truths)
        self.observation_space = self.simulation.observations
        self.action_space = self.simulation.actions

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; raises FairAllError where `seed` is no whole number of at least 0."""
        seed = None if seed is None else whole_number("seed", seed)
        super().reset(seed=seed)
        self.simulation.begin([_drawn(self.np_random) if seed is None else seed])
        observation, info = self.simulation.seen()
        return observation[0], _first(info)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Decide; raises FairAllError for an action that is no decision or probability."""
        observation, reward, over, info = self.simulation.step(action)
        return observation[0], float(reward[0]), False, over, _first(info)


class LendingVector(VectorEnv[np.ndarray, Any, np.ndarray]):
    """The same for E seeds at once, in one computation, as `gymnasium.make_vec` makes it.

    Arrays have a leading axis E. `reset(seed=k)` has the seeds k, ..., k + E − 1, or those of a sequence. The
    step after the last one begins a new episode, with other seeds: for each environment those that `Lending`
    has after the same seed. None in a sequence goes on as `reset()` does.

    Args:
        num_envs: E.
        options: of `Lending`.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(self, num_envs: int = 1, **options: Any) -> None:
        single, num_envs = Lending(**options), whole_number("num_envs", num_envs, 1)
        self.randoms = [seeding.np_random()[0] for _ in range(num_envs)]
        self.num_envs, self.simulation, self.over = num_envs, single.simulation, False
        self.single_observation_space, self.single_action_space = (
            single.observation_space,
            single.action_space,
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Any = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode of each seed.

        Raises:
            FairAllError: where there are not E seeds, or one is no whole number of at least 0.
        """
        given: Any = [None] * self.num_envs if seed is None else seed
        if not isinstance(given, Iterable) or getattr(given, "ndim", None) == 0:
            first = whole_number("seed", given)
            given = range(first, first + self.num_envs)
        seeds: list[Any] = [None if value is None else whole_number("seed", value) for value in given]
        if len(seeds) != self.num_envs:
            raise FairAllError(f"seed: {len(seeds)} seeds for {self.num_envs} environments")
        for position, value in enumerate(seeds):
            if value is None:
                seeds[position] = _drawn(self.randoms[position])
            else:
                self.randoms[position] = seeding.np_random(value)[0]
        self.simulation.begin(seeds)
        self.over = False
        return self.simulation.seen()

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Decide for each seed; raises FairAllError for an action that is no decision or probability."""
        never = np.zeros(self.num_envs, dtype=bool)
        if self.over:
            observation, info = self.reset()
            return observation, np.zeros(self.num_envs), never, never.copy(), info
        observation, reward, self.over, info = self.simulation.step(actions)
        return observation, reward, never, np.full(self.num_envs, self.over), info


def warmed_up_process(*words: str, **values: Any) -> Process:
    """A method of ours after Phase I and the warm-up of a run, to decide in an environment with `batch`.

    Args:
        words: of the run, as on the command line, with the method.
        values: the same as Python values by key, as of `fairall.compose_config`.

    Raises:
        FairAllError: as `fairall.run`.
    """
    return warmed_up(job(compose_config(*words, **values))).process


def people_of(observation: np.ndarray) -> People:
    """The applicants of a batch, (N, D + 1) or (E, N, D + 1), for `Process.decide`; their labels are 0."""
    seen = torch.as_tensor(observation if observation.ndim == 3 else observation[None])
    return People(seen[..., :-1], seen[..., -1], torch.zeros(seen.shape[:-1]))


def decided_of(info: dict[str, Any]) -> list[Decided]:
    """The people whose labels have come, (E, B), for `Process.learn`; none before a time step has ended."""
    due = ({name: torch.as_tensor(of) for name, of in one.items()} for one in info.get("due", ()))
    return [
        Decided(**(one if one["s"].dim() == 2 else {k: of[None] for k, of in one.items()})) for one in due
    ]


def _ends(feature: Feature) -> tuple[float, float]:
    """The smallest and the largest value of a feature as methods see it (`Scaler`)."""
    if feature.kind in DISCRETE:
        return float(min(feature.codes)), float(max(feature.codes))
    return (-FURTHEST, FURTHEST) if feature.kind is Kind.REAL else (0.0, LARGEST_COUNT)


def _first(info: Any) -> Any:
    """What an `info` of one seed has, without the leading axis."""
    if isinstance(info, dict):
        return {name: _first(of) for name, of in info.items()}
    if isinstance(info, tuple):
        return tuple(map(_first, info))
    return info[0] if isinstance(info, np.ndarray) else info


def _drawn(random: np.random.Generator) -> int:
    """A seed."""
    return int(random.integers(2**31))


gymnasium.register(
    id="fairall/Lending-v0",
    entry_point="fairall.gym:Lending",
    vector_entry_point="fairall.gym:LendingVector",
)
