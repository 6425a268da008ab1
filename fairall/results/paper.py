"""What the measures of a run are compared with: reference policies, and what the paper prints."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

import yaml

from fairall.config.choices import shown
from fairall.config.schema import Config

# Policies that every run is compared with, as tables and figures name them.
REFERENCES = {name: shown(name)["label"] for name in ("accept_all", "reject_all", "oracle", "oracle_fair")}


@functools.cache
def _printed() -> dict[str, Any]:
    return yaml.safe_load(files("fairall.results").joinpath("paper_metrics.yaml").read_text())


def paper_metrics(config: Config) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation by measure, plain units, of the paper's run with this configuration.

    Args:
        config: of a run, as it is stored.

    Returns:
        Empty where the paper prints nothing for the model, its policy and way to decide, data set, initial
        policy, cost or length of run; hyperparameters and protocol may be any. Without the temporal measures
        where evaluation split or window are not the paper's.
    """
    printed, dataset, model = _printed(), config.name("dataset"), config.model
    conditions = printed["conditions"]
    pairs = (
        (config.cost.value, conditions["cost"].get(dataset)),
        (config.schedule.time_steps, conditions["time_steps"]),
        (model.get("decision"), conditions["decision"]),
        (model.get("policy"), conditions["policy"].get(model["name"])),
        (config.amounts, None),
    )
    if any(ours != of_paper for ours, of_paper in pairs):
        return {}
    cell = printed.get(config.name("initial_policy"), {}).get(model["name"], {})
    metrics = {name: (mean / 100, std / 100) for name, (mean, std) in cell.get(dataset, {}).items()}
    if config.evaluation.split == "test" and config.evaluation.window == conditions["window"]:
        return metrics
    return {name: value for name, value in metrics.items() if name.startswith("effective_")}
