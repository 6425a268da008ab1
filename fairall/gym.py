"""The simulated world of a run in Gymnasium: importing this registers `fairall/Lending-v0`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fairall.config.checks import require, whole_number
from fairall.config.compose import checked, compose_config
from fairall.data.dataset import dataset
from fairall.data.features import Kind
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import FURTHEST, Amounts, costs
from fairall.errors import needing
from fairall.experiment import job, prepare, warmed_up
from fairall.metrics import worth
from fairall.online.process import Process
from fairall.runtime.randomness import SeedStreams
from fairall.tables.features import LARGEST_COUNT
from fairall.tables.groups import sides
from fairall.worlds.part import World

with needing("gymnasium", "fairall.gym"):
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

ACTIONS = ("decision", "probability")
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
        words: keywords of `LendingVector` but `num_envs`.

    Raises:
        FairAllError: where a value is impossible or the data are missing.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  as Gymnasium declares it

    def __init__(self, **words: Any) -> None:
        self.simulation = LendingVector(1, **words)
        self.simulation.singles = [self]  # so that seeds set this `np_random`, as Gymnasium has it
        self.observation_space = self.simulation.single_observation_space
        self.action_space = self.simulation.single_action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Seen:
        """Begin an episode; raises FairAllError where `seed` is no whole number of at least 0."""
        return _first(self.simulation.reset(seed=[seed]))

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Decide; raises FairAllError for an action that is no decision or probability."""
        return _first(self.simulation.step(action))


class LendingVector(VectorEnv[np.ndarray, Any, np.ndarray]):
    """The same for E seeds at once, in one computation, as `gymnasium.make_vec` makes it.

    Arrays have a leading axis E. `reset(seed=k)` has the seeds k, ..., k + E − 1, or those of a sequence. The
    step after the last one begins a new episode, with other seeds: for each environment those that `Lending`
    has after the same seed. None in a sequence goes on as `reset()` does.

    Args:
        num_envs: E.
        words: of a run, as on the command line: `["world.delay.steps=3"]`.
        batch: whether an action decides on all applicants of a time step: `MultiBinary`, not `Discrete`.
        action: `decision`, or `probability` for π as a `Box`, by which the environment draws the decision.
        truths: whether `info` has labels.
        render_mode: None, since there is nothing to see.
        values: words as Python values by key: `dataset="credit"`, `schedule={"time_steps": 50}`.

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
        require(isinstance(words, list | tuple), "words", words, "a list of words")
        require(action in ACTIONS, "action", action, " or ".join(ACTIONS))
        self.batch, self.draws, self.truths = batch, action == "probability", truths
        composed = compose_config(*words, **values)
        composed.evaluation.window = [0, composed.schedule.time_steps]  # nothing is averaged over it here
        self.config = config = checked(composed)
        require(config.splits == 1, "splits", config.splits, "1 in an environment")
        self.data = data = prepare(dataset(config.dataset), config)
        self.amounts = Amounts.of(data.schema, config.amounts)
        n, groups = config.schedule.applicants, sides(data.schema.n_groups)
        self.group_names = {s: data.pool_table.group_name(s) for s in groups}
        self.at_a_step = n if batch else 1
        values_of = [*(feature.codes or ENDS[feature.kind] for feature in data.schema), groups]
        seen = spaces.Box(*(np.array([*map(end, values_of)], dtype=np.float32) for end in (min, max)))
        self.single_observation_space = batch_space(seen, n) if batch else seen
        self.single_action_space = spaces.MultiBinary(n) if batch else spaces.Discrete(2)
        if self.draws:
            self.single_action_space = spaces.Box(0.0, 1.0, (self.at_a_step,), np.float32)
        self.num_envs = whole_number("num_envs", num_envs, 1)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.singles = [gymnasium.Env[Any, Any]() for _ in range(self.num_envs)]
        self.over = False

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: Any = None) -> Seen:
        """Begin an episode of each seed, with the applicants that a run with these seeds has.

        Raises:
            FairAllError: where there are not E seeds, or one is no whole number of at least 0.
        """
        given: Any = [None] * self.num_envs if seed is None else seed
        if np.ndim(given) == 0:
            first = whole_number("seed", given)
            given = range(first, first + self.num_envs)
        require(len(given) == self.num_envs, "len(seed)", len(given), str(self.num_envs))
        seeds = []
        for single, one in zip(self.singles, given, strict=True):
            known = None if one is None else whole_number("seed", one)
            gymnasium.Env.reset(single, seed=known)
            seeds.append(int(single.np_random.integers(2**31)) if known is None else known)
        self.over = False
        self.world = World(self.config, self.data, seeds)
        # Rewards come with decisions.
        self.at_once = not self.world.changes("admit", "revealed", "due")
        self.luck = SeedStreams(seeds, "decision luck" if self.world.setting.fixed_luck else "decisions")
        self.position = self.config.schedule.applicants
        return self._seen()

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
            return observation, np.zeros(self.num_envs), never, never, info
        people = self.people
        now = slice(self.position, self.position + self.at_a_step)
        wanted = actions if isinstance(actions, Decisions) else self._wanted(actions, now)
        gain = self._worth(people)
        reward = (wanted.accepted * gain * self.at_once)[:, now].sum(-1)
        told: dict[str, Any] = {}
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
        observation, info = self._seen()
        return observation, (reward / self.at_a_step).numpy(), never, never | self.over, info | told

    def _wanted(self, actions: Any, now: slice) -> Decisions:
        """The decisions on all applicants of the time step so far, with those of `actions` on the next.

        Raises:
            FairAllError: for an action that is no decision or probability.
        """
        probability = self.probability
        try:
            chosen = torch.tensor(np.reshape(actions, probability[:, now].shape), dtype=torch.float32)
        except (TypeError, ValueError):
            chosen = torch.tensor(torch.nan)
        possible = chosen.clamp(0, 1) if self.draws else (chosen > 0).float()
        require(torch.equal(chosen, possible), "action", actions, "from 0 to 1" if self.draws else "0 or 1")
        probability[:, now] = chosen
        accepted = self.uniform < probability
        return Decisions(probability, accepted, margin=probability, uniform=self.uniform)

    def _worth(self, people: People | Decided) -> torch.Tensor:
        """What accepting each person brings, shape (E, B), float64."""
        return worth(people.label.double(), **costs(people, self.config.cost.value, self.amounts))

    def _seen(self) -> Seen:
        """The applicants to decide on, (E, ...), after the last time step the last ones, and their `info`."""
        world = self.world
        n = self.config.schedule.applicants
        if self.position == n and not self.over:
            self.people = world.next()
            self.position = 0
            self.probability = torch.zeros_like(self.people.s)
            luck = self.luck.copy() if world.setting.fixed_luck else self.luck
            self.uniform = luck.uniform(n)
        people = self.people
        rows: Any = slice(None) if self.batch else min(self.position, n - 1)
        x, s, label = (of[:, rows].numpy() for of in (people.x, people.s, people.label))
        info = {"groups": s, "time_step": world.time_step, "seed": np.array(world.setting.seeds)}
        if self.truths:
            info["labels"] = label
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
    if not isinstance(of_seeds, np.ndarray):
        return of_seeds
    return of_seeds[0] if of_seeds.ndim > 1 else of_seeds[0].item()


gymnasium.register(
    id="fairall/Lending-v0",
    entry_point="fairall.gym:Lending",
    vector_entry_point="fairall.gym:LendingVector",
)
