"""Points that Optuna's samplers propose, without those that are tried already."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from hydra.utils import instantiate
from omegaconf import DictConfig

from fairall.tuning.space import Key, Point, Space, key_of

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler

GRID = "optuna.samplers.GridSampler"

SAMPLERS = (GRID, "optuna.samplers.RandomSampler", "optuna.samplers.TPESampler")
"""Possible `hydra.sweeper.sampler._target_`."""

PATIENCE = 20  # proposals to ask for before choosing a remaining point at random


def is_grid(config: DictConfig) -> bool:
    """Whether `hydra.sweeper.sampler` is that of a grid."""
    return config._target_ == GRID


def next_point(study: Study, space: Space, taken: Collection[Key], config: DictConfig) -> Point:
    """The point of a grid to try next.

    Args:
        study: with the results so far.
        space: the grid.
        taken: points that are tried or claimed, not all of the grid.
        config: `hydra.sweeper.sampler`. What is proposed depends on its seed, the name of the study and the
            state of the study, not on interruptions.

    Returns:
        The first remaining point in the order of the grid; or the one that another sampler proposes, and a
        random one where it proposes only tried ones.
    """
    left = [point for point in space.points() if key_of(point) not in taken]
    if is_grid(config):
        return left[0]
    drawn = random.Random(f"{study.study_name} {config.seed} {len(taken)}")
    seed = drawn.randrange(2**31)
    for point in _proposed(study, space, instantiate(config, seed=seed), seed):
        if key_of(point) not in taken:
            return point
    return drawn.choice(left)


def _proposed(study: Study, space: Space, sampler: BaseSampler, seed: int) -> Iterator[Point]:
    """Points that a sampler proposes, asked in a copy of the study."""
    import optuna

    finished = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    values = zip(*(trial.values for trial in finished), strict=True)
    if len(study.directions) > 1 and any(len(set(of_objective)) == 1 for of_objective in values):
        sampler = optuna.samplers.RandomSampler(seed)  # TPE divides by the range of each objective
    copy = optuna.create_study(directions=study.directions, sampler=sampler)
    copy.add_trials(finished)
    grid = {key: optuna.distributions.CategoricalDistribution(known) for key, known in space.values.items()}
    for _ in range(PATIENCE):
        yield copy.ask(grid).params
