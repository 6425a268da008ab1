"""The point of a grid that the paper selected."""

from __future__ import annotations

from typing import Any

from omegaconf import OmegaConf

from fairall.config.compose import compose_config
from fairall.errors import FairAllError
from fairall.tuning.objectives import Trial
from fairall.tuning.space import Point, Value
from fairall.tuning.study import SharedStudy

PAPER = "the paper's selection"  # what `hyperparameters` is in its files of conf/hparams/


def paper_point(study: SharedStudy) -> Point:
    """Values of the swept keys in conf/hparams/ for the model and data set of the study.

    Returns:
        Empty where those are not the paper's or a key of the grid is not among them.
    """
    words = [f"{group}={study.settings.get(f'{group}.name')}" for group in ("model", "dataset")]
    try:
        composed = compose_config(*words)
    except FairAllError:
        return {}  # a model or data set that this package does not have, or that is itself swept
    if composed.hyperparameters != PAPER:
        return {}
    point: Point = {}
    for key, values in study.space.values.items():
        selected = OmegaConf.select(composed, key)
        same = [value for value in values if _plain(value) == _plain(selected)]
        if not same:
            return {}
        point[key] = same[0]
    return point


def tried(study: SharedStudy, point: Point) -> Trial | None:
    """The finished trial of a point, if there is one."""
    found = [trial for trial in study.trials() if trial.state == "complete" and trial.point == point]
    return found[0] if found else None


def _plain(value: Value | Any) -> Any:
    """A value as YAML has it: lists are spelt as words in a grid."""
    if isinstance(value, str):
        value = OmegaConf.create(f"value: {value}").value
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
