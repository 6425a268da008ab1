"""Samplers: which untried point of the grid is next, by `sweep.sampler`."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from fairall.tuning.space import Point, Space

if TYPE_CHECKING:
    from optuna import Study

STARTUP_TRIALS = 10  # random trials before TPE is used, at most half of all
PATIENCE = 20  # proposals of tried points by TPE before a random one is taken

Key = frozenset
"""Hashable form of a point."""

Sampler = Callable[["Study", Space, Collection[Key], int], Point | None]
"""Next point for a study, its space, the points that are taken and the number of points to try."""


def key_of(point: Point) -> Key:
    """Hashable form of a point."""
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
    running = create_trial(state=TrialState.RUNNING)
    results = [trial.values for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))]
    # Optuna 2 divides by the range of each of several objectives.
    differ = all(len(set(of_objective)) > 1 for of_objective in zip(*results, strict=True))
    for _ in range(PATIENCE if differ else 0):
        point = sampler.sample_relative(study, running, distributions)
        if not point:
            break  # too few trials to learn from
        if key_of(point) not in taken:
            return point
    return in_random_order(study, space, taken, target)


SAMPLERS: dict[str, Sampler] = {"grid": in_order, "random": in_random_order, "tpe": by_tpe}
