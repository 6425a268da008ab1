"""The figures printed in the paper, to stand beside ours."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

import yaml


@functools.cache
def _printed() -> dict[str, Any]:
    return yaml.safe_load(files("fairall.report").joinpath("paper_figures.yaml").read_text())


def paper_figures(config: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation by figure, plain units, of the paper's run with this configuration.

    Args:
        config: of a run, as plain containers.

    Returns:
        Empty where the paper prints nothing for the model, data set, initial policy or cost.
    """
    if config["cost"]["value"] != config["dataset"]["cost"]:
        return {}
    cell = _printed().get(config["initial_policy"]["name"], {}).get(config["model"]["name"], {})
    printed = cell.get(config["dataset"]["name"], {})
    return {name: (mean / 100, std / 100) for name, (mean, std) in printed.items()}
