"""What a run has otherwise than by default, by which runs of a method on a data set are told apart."""

from __future__ import annotations

import functools
import re
from typing import Any

from omegaconf import OmegaConf

from fairall.config.choices import flattened
from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.storage.identity import determining

REFERENCE = re.compile(r"\$\{([\w.]+)\}")
# Groups whose choice is a difference, and the key that names it.
CHOSEN = {
    "protocol": "protocol.name",
    "initial_policy": "initial_policy.name",
    "fairness": "fairness.rule",
    "exploration": "exploration.rule",
}


def differences(config: Config) -> str:
    """The values of a run that are not the defaults of its method, data set and preset, as KEY=VALUE words.

    Empty for a method, data set or preset of the user's, whose defaults are unknown.
    """
    stored = flattened(determining(config.to_plain()))
    words = [f"{group}={config.name(group)}" for group in ("model", "dataset")]
    words += [f"preset={config.preset}"] if config.preset else []
    chosen: list[str] = []
    try:
        for group, key in CHOSEN.items():
            if stored[key] != _composed(*words, *chosen)[key]:
                chosen.append(f"{group}={stored[key]}")
        usual = _composed(*words, *chosen)
    except FairAllError:
        return ""
    return " ".join([*chosen, *(f"{key}={stored[key]}" for key in stored if not _same(key, stored, usual))])


@functools.cache
def _composed(*words: str) -> dict[str, Any]:
    """The configuration of a command line by dotted key, with references."""
    from fairall.config.compose import compose_config  # with Hydra

    composed = OmegaConf.to_container(compose_config(*words), enum_to_str=True)
    return flattened(determining(composed))  # type: ignore[arg-type]


def _same(key: str, stored: dict[str, Any], usual: dict[str, Any]) -> bool:
    """Whether a value is its default, that of the key that its default refers to, or has no known default."""
    value, default = stored[key], usual.get(key, "???")
    if isinstance(default, str) and (reference := REFERENCE.fullmatch(default)):
        default = stored.get(reference[1], "???")
    return value == default or (isinstance(default, str) and ("${" in default or default == "???"))
