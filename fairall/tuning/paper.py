"""The point of a grid that the paper selected."""

from __future__ import annotations

from typing import Any

from omegaconf import OmegaConf

from fairall.config.compose import compose_config
from fairall.config.sources import hyperparameters
from fairall.tuning.space import Point
from fairall.tuning.study import Study
from fairall.tuning.sweep import read

PAPER = "the paper's selection"  # what `hyperparameters` is in its files of conf/hparams/


def paper_point(study: Study) -> int | None:
    """Number of the point that conf/hparams/ has for the method and data set of a study.

    Returns:
        None where those values are not the paper's, or not of a grid.
    """
    model, dataset = (str(study.settings.get(f"{group}.name")) for group in ("model", "dataset"))
    if hyperparameters(model, dataset).get("hyperparameters") != PAPER:
        return None
    composed = compose_config(f"model={model}", f"dataset={dataset}")
    point: Point = {}
    for key, values in (study.space.grid or {}).items():
        selected = _plain(OmegaConf.select(composed, key))
        same = [value for value in values if _plain(read(value)) == selected]
        if not same:
            return None
        point[key] = same[0]
    return study.number(point) if point else None


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
