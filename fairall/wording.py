"""Wording that messages, tables and pictures share."""

from __future__ import annotations

from typing import Any

REHEARSAL = "quick"  # the preset whose numbers mean nothing


def run_title(config: dict[str, Any]) -> str:
    """What a run is, in one line, of its configuration as plain containers."""
    names = {group: config[group]["name"] for group in ("model", "dataset", "initial_policy", "protocol")}
    title = "{model} on {dataset}, {initial_policy} initial policy, {protocol} protocol".format(**names)
    title += f", c = {config['cost']['value']:g}, {count(config['seeds'], 'seed')}"
    return f"{title} (preset=quick: its numbers mean nothing)" if config["preset"] == REHEARSAL else title


def count(n: int, thing: str, things: str | None = None) -> str:
    """`n` with the noun in singular or plural; the plural ends in s unless given."""
    return f"{n} {thing}" if n == 1 else f"{n} {things or thing + 's'}"
