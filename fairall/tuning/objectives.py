"""Objectives of a sweep, the people whom they are computed on, and the selection of a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, ListConfig, OmegaConf

from fairall.config.messages import ending
from fairall.errors import FairAllError

if TYPE_CHECKING:
    import pandas as pd

DIRECTIONS = {"minimize": 1.0, "maximize": -1.0}
"""Factor by direction that makes less the better."""
WORST = 1e9  # cost of a failed point; finite, since Optuna's TPE ranks nothing beside an infinite value


class ValidationPeople(Callback):
    """Refuses, before its first run, a `--multirun` that optimises on test people."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """End the process with the line of `refuse_test_people`, if it has one."""
        with ending():
            refuse_test_people(config, config.hydra.sweeper, config.hydra.overrides.task)


def refuse_test_people(composed: DictConfig, sweeper: DictConfig, words: Sequence[str]) -> None:
    """Raise FairAllError where objectives are for an optimiser, and not computed on validation people.

    All of Hydra's sweepers optimise but the basic one, which makes a list of runs; with `objective=` among
    the words of the command line the best of that list is wanted.

    Args:
        composed: by Hydra, of type `Config`.
        sweeper: `hydra.sweeper`.
        words: KEY=VALUE of the command line.
    """
    named = any(word.lstrip("+").startswith("objective=") for word in words)
    split = OmegaConf.select(composed, "evaluation.split")
    if split != "validation" and (named or not sweeper._target_.endswith(".BasicSweeper")):
        raise FairAllError(
            f"evaluation.split={split}: a sweep looks at validation people only; add "
            "evaluation.split=validation"
        )


def directions_of(sweeper: DictConfig) -> list[str]:
    """The directions of `hydra.sweeper`, which has one or a list of them, as words or of an Enum."""
    configured = sweeper.direction if isinstance(sweeper.direction, ListConfig) else [sweeper.direction]
    return [getattr(direction, "name", direction) for direction in configured]


def worst(directions: Sequence[str]) -> float | list[float]:
    """What a failed run returns to an optimiser, which then goes on."""
    values = [DIRECTIONS[direction] * WORST for direction in directions]
    return values if len(values) > 1 else values[0]


def selected(costs: pd.DataFrame, errors: pd.DataFrame) -> int:
    """The point selected by the rule of one standard error.

    Objective after objective, the most important first, only those points stay whose mean is within one
    standard error of the best one's mean. Of those that are left after the last but one, the last
    objective's best is selected; ties go to the best in the objectives from the first on, then to the lowest
    number. A dominated point is never selected.

    Args:
        costs: a row per point by number, at least one; a column per objective, the most important first.
        errors: standard errors of the costs.
    """
    left, (*others, last) = costs.sort_index(), costs.columns
    for objective in others:
        best = left[objective].idxmin()
        left = left[left[objective] <= left.loc[best, objective] + errors.loc[best, objective]]
    return int(left.sort_values([last, *others], kind="stable").index[0])
