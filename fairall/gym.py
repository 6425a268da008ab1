"""The simulated world of a run in Gymnasium: importing this registers `fairall/Lending-v0`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from fairall.config.checks import whole_number
from fairall.config.compose import checked, compose_config
from fairall.data.amounts import Amounts, costs
from fairall.data.dataset import dataset
from fairall.data.features import Kind
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
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

ACTIONS = ("decision", "probability")
CHANGES = attrgetter("admit", "revealed", "due")  # methods of `Part`
# Smallest and largest value, as methods see them, of features without codes (`Scaler`).
ENDS = {Kind.REAL: (-FURTHEST, FURTHEST), Kind.COUNT: (0.0, LARGEST_COUNT)}
Seen = tuple[np.ndarray, dict[str, Any]]
"""Observations and `info`."""


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
        self.simulation = LendingVector(words=words, batch=batch, action=action, truths=truths, **values)
        self.simulation.singles = [self]  # so that seeds set this `np_random`, as Gymnasium has it
        self.observation_space = self.simulation.single_observation_space
        self.action_space = self.simulation.single_action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Seen:
        """Begin an episode; raises FairAllError where `seed` is no whole number of at least 0."""
        return _first(self.simulation.reset(seed=[seed]))

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Decide; raises FairAllError for an action that is no decision or probability."""
        observation, reward, _, over, info = _first(self.simulation.step(action))
        return observation, float(reward), False, bool(over), info


class LendingVector(VectorEnv[np.ndarray, Any, np.ndarray]):
    """The same for E seeds at once, in one computation, as `gymnasium.make_vec` makes it.

    Arrays have a leading axis E. `reset(seed=k)` has the seeds k, ..., k + E − 1, or those of a sequence. The
    step after the last one begins a new episode, with other seeds: for each environment those that `Lending`
    has after the same seed. None in a sequence goes on as `reset()` does.

    Args:
        num_envs: E.
        words: this and the others as of `Lending`.
        batch: whether an action decides on all applicants of a time step.
        action: `decision` or `probability`.
        truths: whether `info` has labels.
        render_mode: None.
        values: words as Python values by key.

    Attributes:
        config: of the run.
        data: its people.
        group_names: by s.
        singles: environments of one seed, whose `np_random` draw the seeds that are not given.

    Raises:
        FairAllError: where a value is impossible or the data are missing.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        *,
        words: Sequence[str] = (),
        batch: bool = False,
        action: str = "decision",
        truths: bool = False,
        render_mode: None = None,
        **values: Any,
    ) -> None:
        if not isinstance(words, list | tuple):
            raise FairAllError(f"words={words!r}: give a list of words")
        if action not in ACTIONS:
            raise FairAllError(f"action={action!r}: one of {', '.join(ACTIONS)}")
        self.batch, self.draws, self.truths = batch, action == "probability", truths
        composed = compose_config(*words, **values)
        composed.evaluation.window = [0, composed.schedule.time_steps]  # nothing is averaged over it here
        self.config = config = checked(composed)
        if config.splits > 1:
            raise FairAllError(f"splits={config.splits}: an environment has one split of the people")
        self.data = data = prepare(dataset(config.dataset), config)
        self.amounts = Amounts.of(data.schema, config.amounts)
        n, groups = config.schedule.applicants, sides(data.schema.n_groups)
        self.group_names = {s: data.pool_table.group_name(s) for s in groups}
        self.at_a_step = n if batch else 1
        values_of = [*(feature.codes or ENDS[feature.kind] for feature in data.schema), groups]
        seen = spaces.Box(*(np.array([*map(end, values_of)], dtype=np.float32) for end in (min, max)))
        known = spaces.MultiBinary(n) if batch else spaces.Discrete(2)
        chosen = spaces.Box(0.0, 1.0, (self.at_a_step,), np.float32) if self.draws else known
        self.single_observation_space = batch_space(seen, n) if batch else seen
        self.single_action_space = chosen
        self.num_envs = whole_number("num_envs", num_envs, 1)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(chosen, self.num_envs)
        self.singles = [gymnasium.Env[Any, Any]() for _ in range(self.num_envs)]
        self.over = False

    @property
    def simulation(self) -> LendingVector:
        """This environment, as `Lending` has one."""
        return self

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: Any = None) -> Seen:
        """Begin an episode of each seed, with the applicants that a run with these seeds has.

        Raises:
            FairAllError: where there are not E seeds, or one is no whole number of at least 0.
        """
        given: Any = [None] * self.num_envs if seed is None else seed
        try:
            seeds = [*given]
        except TypeError:
            first = whole_number("seed", given)
            seeds = [*range(first, first + self.num_envs)]
        seeds = [one if one is None else whole_number("seed", one) for one in seeds]
        if len(seeds) != self.num_envs:
            raise FairAllError(f"seed: {len(seeds)} seeds for {self.num_envs} environments")
        for position, single in enumerate(self.singles):
            gymnasium.Env.reset(single, seed=seeds[position])
            if seeds[position] is None:
                seeds[position] = int(single.np_random.integers(2**31))
        self.world, self.over = World.of(self.config, self.data, seeds), False
        self.at_once = all(CHANGES(type(part)) == CHANGES(Part) for part in self.world.parts.values())
        self.luck = SeedStreams(seeds, "decision luck" if self.world.setting.fixed_luck else "decisions")
        self._next()
        return self._seen()

    def _next(self) -> None:
        """Begin the next time step."""
        self.people, self.position = self.world.next(), 0
        self.probability = torch.zeros_like(self.people.s)
        luck = self.luck.copy() if self.world.setting.fixed_luck else self.luck
        self.uniform = luck.uniform(len(self.people))

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Decide on the next applicant of each seed, or on all of the time step.

        Args:
            actions: of each seed; or with `batch` `Decisions` of a `Process` on all applicants (E, N), whose
                propensities and margins count.

        Raises:
            FairAllError: for an action that is no decision or probability.
        """
        never = np.zeros(self.num_envs, dtype=bool)
        if self.over:
            observation, info = self.reset()
            return observation, np.zeros(self.num_envs), never, never.copy(), info
        people, probability, wanted = self.people, self.probability, actions
        now = slice(self.position, self.position + self.at_a_step)
        if not (self.batch and isinstance(actions, Decisions)):
            try:
                chosen = torch.tensor(np.reshape(actions, probability[:, now].shape), dtype=torch.float32)
                if not ((chosen >= 0) & (chosen <= 1) & (self.draws | (chosen == chosen.round()))).all():
                    raise ValueError
            except (TypeError, ValueError) as error:
                possible = "from 0 to 1" if self.draws else "0 or 1"
                raise FairAllError(f"action {actions}: {possible} is possible") from error
            probability[:, now] = chosen
            accepted = self.uniform < probability
            wanted = Decisions(probability, accepted, margin=probability, uniform=self.uniform)
        gain, told = self._worth(people), dict[str, Any]()
        reward = (wanted.accepted * gain * self.at_once)[:, now].sum(-1)
        self.position = now.stop
        if self.position == len(people):
            taken = self.world.admit(people, wanted)
            due = self.world.reveal(people, taken)
            if not self.at_once:
                reward += sum((one.accepted * self._worth(one)).sum(-1) for one in due)
            told["accepted"] = taken.accepted.numpy()
            told["due"] = tuple({name: of.numpy() for name, of in vars(one).items()} for one in due)
            if self.truths:
                told["utility"] = (taken.accepted * gain).mean(-1).numpy()
            self.over = self.world.time_step == self.config.schedule.time_steps
            if not self.over:
                self._next()
        observation, info = self._seen()
        return observation, (reward / self.at_a_step).numpy(), never, never | self.over, info | told

    def _worth(self, people: People | Decided) -> torch.Tensor:
        """What accepting each person brings, shape (E, B), float64."""
        return worth(people.label.double(), **costs(people, self.config.cost.value, self.amounts))

    def _seen(self) -> Seen:
        """The applicants to decide on, (E, ...), after the last time step the last ones, and their `info`."""
        people, world = self.people, self.world
        rows: Any = slice(None) if self.batch else min(self.position, len(people) - 1)
        x, s, label = (of[:, rows].numpy() for of in (people.x, people.s, people.label))
        info = {"groups": s, "time_step": world.time_step, "seed": np.array(world.setting.seeds)}
        info |= {"labels": label} if self.truths else {}
        return np.concatenate([x, s[..., None]], axis=-1), info


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
    seen = torch.as_tensor(observation)[(None,) * (3 - observation.ndim)]
    x, s = seen[..., :-1], seen[..., -1]
    return People(x, s, torch.zeros_like(s))


def decided_of(info: dict[str, Any]) -> list[Decided]:
    """The people whose labels have come, (E, B), for `Process.learn`; none before a time step has ended."""
    return [
        # `info` of one environment has no axis of seeds.
        Decided(**{name: torch.as_tensor(of)[(None,) * (2 - one["s"].ndim)] for name, of in one.items()})
        for one in info.get("due", ())
    ]


def _first(of_seeds: Any) -> Any:
    """The same without the leading axis of its arrays, which is that of one seed."""
    if isinstance(of_seeds, dict):
        return {name: _first(of) for name, of in of_seeds.items()}
    if isinstance(of_seeds, tuple):
        return tuple(map(_first, of_seeds))
    return of_seeds[0] if isinstance(of_seeds, np.ndarray) else of_seeds


gymnasium.register(
    id="fairall/Lending-v0",
    entry_point="fairall.gym:Lending",
    vector_entry_point="fairall.gym:LendingVector",
)
