"""Points that Optuna's samplers propose, without those that are tried already."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from hydra.utils import instantiate
from omegaconf import DictConfig

from fairall.tuning.space import Key, Point, Space, key_of

if TYPE_CHECKING:
    from optuna import Study

GRID = "optuna.samplers.GridSampler"

SAMPLERS = (GRID, "optuna.samplers.RandomSampler", "optuna.samplers.TPESampler")
"""Possible `hydra.sweeper.sampler._target_`."""

PATIENCE = 20  # proposals of tried points before a random one of the remaining is taken


def is_grid(config: DictConfig) -> bool:
    """Whether `hydra.sweeper.sampler` is that of a grid."""
    return config._target_ == GRID


def next_point(study: Study, space: Space, taken: Collection[Key], config: DictConfig) -> Point:
    """The point of a grid to try next.

    Args:
        study: with the results so far.
        space: the grid.
        taken: points that are tried or claimed, not all of the grid.
        config: `hydra.sweeper.sampler`. Its seed is increased by the number of points that are taken: what is
            proposed depends on the state of the study alone, not on interruptions.

    Returns:
        The first remaining point in the order of the grid; or the one that another sampler proposes, and a
        random one where it proposes only tried ones.
    """
    left = [point for point in space.points() if key_of(point) not in taken]
    if is_grid(config):
        return left[0]
    for point in _proposed(study, space, instantiate(config, seed=(config.seed or 0) + len(taken))):
        if key_of(point) not in taken:
            return point
    return random.Random(f"{study.study_name} {len(taken)}").choice(left)


def _proposed(study: Study, space: Space, sampler: Any) -> Iterator[Point]:
    """Points that a sampler proposes, asked in a copy of the study."""
    import optuna

    finished = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    values = zip(*(trial.values for trial in finished), strict=True)
    if any(len(set(of_objective)) == 1 for of_objective in values):
        return  # TPE divides by the range of each of several objectives
    copy = optuna.create_study(directions=study.directions, sampler=sampler)
    copy.add_trials(finished)
    grid = {key: optuna.distributions.CategoricalDistribution(known) for key, known in space.values.items()}
    for _ in range(PATIENCE):
        yield copy.ask(grid).params
