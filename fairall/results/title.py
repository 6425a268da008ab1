"""Titles of runs."""

from __future__ import annotations

from typing import Any

from fairall.errors import count
from fairall.results.interpretable import marked


def run_title(config: dict[str, Any]) -> str:
    """One line with the method, data set and setting of a run.

    Args:
        config: of the run, as plain containers.
    """
    names = {group: config[group]["name"] for group in ("model", "dataset", "initial_policy", "protocol")}
    title = "{model} on {dataset}, {initial_policy} initial policy, {protocol} protocol".format(**names)
    title += f", world of {', '.join(config['world'])}" if config["world"] else ""
    title += f", c = {config['cost']['value']:g}, {count(config['seeds'], 'seed')}"
    return marked(title, config)
