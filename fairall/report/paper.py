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
        Empty where the paper prints nothing for the model, data set, initial policy, cost or length of run;
        without the temporal figures where those here are of other people or another time.
    """
    printed, dataset = _printed(), config["dataset"]["name"]
    conditions = printed["conditions"]
    if (config["cost"]["value"], config["schedule"]["time_steps"]) != (
        conditions["cost"].get(dataset),
        conditions["time_steps"],
    ):
        return {}
    cell = printed.get(config["initial_policy"]["name"], {}).get(config["model"]["name"], {})
    figures = {name: (mean / 100, std / 100) for name, (mean, std) in cell.get(dataset, {}).items()}
    if config["evaluation"]["split"] == "test" and config["evaluation"]["window"] == conditions["window"]:
        return figures
    return {name: figure for name, figure in figures.items() if name.startswith("effective_")}
