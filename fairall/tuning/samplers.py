"""Samplers: which untried point of the grid is next, by `sweep.sampler`."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from fairall.tuning.space import Point, Space

if TYPE_CHECKING:
    from optuna import Study

STARTUP_TRIALS = 10  # random ones before TPE has something to learn from, at most half of all
PATIENCE = 20  # proposals of TPE's that have been tried already before chance decides

Key = frozenset
"""A point that can be looked up."""

Sampler = Callable[["Study", Space, Collection[Key], int], Point | None]
"""Gives the next point for a study, its space, the points that are taken and how many there will be."""


def key_of(point: Point) -> Key:
    """Hashable key of a point."""
    return frozenset(point.items())


def in_order(study: Study, space: Space, taken: Collection[Key], target: int) -> Point | None:
    """The first remaining point."""
    return next((point for point in space.points() if key_of(point) not in taken), None)


def in_random_order(study: Study, space: Space, taken: Collection[Key], target: int) -> Point | None:
    """A random remaining point; the same in every process for the same state of the study."""
    left = [point for point in space.points() if key_of(point) not in taken]
    return random.Random(f"{study.study_name} {len(taken)}").choice(left) if left else None


def by_tpe(study: Study, space: Space, taken: Collection[Key], target: int) -> Point | None:
    """The remaining point that the tree-structured Parzen estimator prefers.

    For one objective, running trials count as bad ones, so that processes try different regions; for several,
    Optuna 2 ignores them.
    """
    from optuna.distributions import CategoricalDistribution
    from optuna.samplers import TPESampler
    from optuna.trial import TrialState, create_trial

    sampler = TPESampler(
        n_startup_trials=min(STARTUP_TRIALS, target // 2),
        multivariate=True,
        constant_liar=True,
        seed=len(taken),
    )
    distributions = {key: CategoricalDistribution(values) for key, values in space.values.items()}
    asking = create_trial(state=TrialState.RUNNING)
    results = [trial.values for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))]
    # Optuna 2 divides by the range of each of several objectives.
    differ = all(len(set(of_objective)) > 1 for of_objective in zip(*results, strict=True))
    for _ in range(PATIENCE if differ else 0):
        point = sampler.sample_relative(study, asking, distributions)
        if not point:
            break  # too few trials to learn from
        if key_of(point) not in taken:
            return point
    return in_random_order(study, space, taken, target)


SAMPLERS: dict[str, Sampler] = {"grid": in_order, "random": in_random_order, "tpe": by_tpe}
