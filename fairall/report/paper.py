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
        Empty where the paper prints nothing for the model, its policy and way to decide, data set, initial
        policy, cost or length of run; hyperparameters and protocol may be any. Without the temporal figures
        where those here are of other people or another time.
    """
    printed, dataset, model = _printed(), config["dataset"]["name"], config["model"]
    conditions = printed["conditions"]
    of_paper = {
        "cost": conditions["cost"].get(dataset),
        "time_steps": conditions["time_steps"],
        "decision": conditions["decision"],
        "policy": conditions["policy"].get(model["name"]),
    }
    ours = {
        "cost": config["cost"]["value"],
        "time_steps": config["schedule"]["time_steps"],
        "decision": model.get("decision"),
        "policy": model.get("policy"),
    }
    if ours != of_paper:
        return {}
    cell = printed.get(config["initial_policy"]["name"], {}).get(model["name"], {})
    figures = {name: (mean / 100, std / 100) for name, (mean, std) in cell.get(dataset, {}).items()}
    if config["evaluation"]["split"] == "test" and config["evaluation"]["window"] == conditions["window"]:
        return figures
    return {name: figure for name, figure in figures.items() if name.startswith("effective_")}
