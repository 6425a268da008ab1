"""Compose configurations from Python."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from fairall.config.choices import configuration_root
from fairall.config.messages import in_one_line
from fairall.config.schema import GROUPS, Config
from fairall.config.sources import register_sources
from fairall.config.validation import typed
from fairall.config.words import override, words_of
from fairall.errors import FairAllError

PLACES = ("outputs_dir=", "tracking.", "tracking=")  # overrides that do not change results


@functools.cache
def register() -> None:
    """Make the schema, sweeps/ and conf/hparams/ known to Hydra, once in a process.

    The nodes of `GROUPS` accept any key here, so that entries can be added to their mappings on the command
    line; `typed` refuses the unknown ones after composition.
    """
    schema = OmegaConf.structured(Config)
    for group in GROUPS:
        schema[group] = {}
        OmegaConf.set_struct(schema[group], False)
    ConfigStore.instance().store(name="schema", node=schema)
    register_sources()


def searched_folder(folder: Path) -> str:
    """The override that adds `folder` to the search path after conf/, as `-cd FOLDER` does."""
    return override("hydra.searchpath", [f"file://{folder.absolute()}"])


def compose_config(*overrides: str, **values: Any) -> DictConfig:
    """Compose the configuration of `python -m fairall *overrides`, unresolved, untyped and unchecked.

    Args:
        overrides: words as on the command line, one by one.
        values: the same as Python values by key, after them: `model="greedy", seeds=3`, with a mapping for
            the keys below: `schedule={"time_steps": 8}`.

    Raises:
        FairAllError: as `compose_all` and `words_of`, or where a word is no text.

    Examples:
        >>> compose_config("model=greedy", seeds=3).seeds
        3
        >>> compose_config(["model=greedy"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        fairall.errors.FairAllError: a list is no word: give words one by one, as *words, or keywords, ...
    """
    words = [*overrides, *words_of(values)]
    for word in words:
        if not isinstance(word, str):
            kind = type(word).__name__
            raise FairAllError(
                f"a {kind} is no word: give words one by one, as *words, or keywords, KEY=VALUE"
            )
    return compose_all([words])[0]


def compose_all(commands: Iterable[Sequence[str]]) -> list[DictConfig]:
    """Compose the configurations of many command lines, in half the time that single calls take.

    Raises:
        FairAllError: where there is no such key, choice or value, or a file is not valid YAML.
    """
    register()
    GlobalHydra.instance().clear()
    composed = []
    with initialize_config_dir(str(configuration_root() / "conf"), version_base="1.3"):
        for overrides in commands:
            with in_one_line(overrides):
                composed.append(compose("config", overrides=list(overrides)))
    return composed


def places(overrides: Iterable[str]) -> Config:
    """A configuration with values of `outputs_dir`, `preset` and `tracking` alone, by the words about them.

    Raises:
        FairAllError: as `compose_all`.
    """
    return places_of(compose_config(*(word for word in overrides if word.startswith((*PLACES, "preset=")))))


def places_of(composed: DictConfig) -> Config:
    """As `places`, of a composed configuration."""
    tracking: Any = OmegaConf.to_object(composed.tracking)
    return Config(outputs_dir=composed.outputs_dir, preset=composed.preset, tracking=tracking)


def typed_config(*overrides: str) -> Config:
    """Compose a configuration as dataclasses, ranges unchecked; raises as `compose_config` and `typed`."""
    return typed(compose_config(*overrides))


def stored_config(composed: DictConfig) -> Config:
    """A composed configuration as results have theirs (`Config.stored`), with types checked as in `typed`."""
    return typed(composed).stored()
