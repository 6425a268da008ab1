"""Runs that the paper's tables and figures need: the points of sweeps/paper_*.yaml as single commands."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fairall.config.paths import sweeps_folder
from fairall.errors import FairAllError
from fairall.results.finished import Run
from fairall.storage.identity import determining, ordered

PREFIX = "paper_"
PLACES = ("outputs_dir=", "tracking.")  # overrides that do not change results
# Parts of `reproduce`, and their sweeps.
PARTS = {
    "tables": ("harsh", "lenient", "published_code"),
    "figures": ("optimal", "synthetic", "policies", "costs"),
}


@dataclass(frozen=True)
class Planned:
    """A run of the paper.

    Attributes:
        sweep: whose grid it is a point of.
        words: of its command line.
        composed: the whole configuration.
        config: the same as plain containers.
    """

    sweep: str
    words: tuple[str, ...]
    composed: DictConfig
    config: dict[str, Any]

    @property
    def command(self) -> str:
        """The command line of the run."""
        return shlex.join(["python", "-m", "fairall", *self.words])

    @cached_property
    def key(self) -> str:
        """Equal for equal configurations."""
        return repr(ordered(determining(self.config)))

    def name(self, group: str) -> str:
        """Name of the chosen file of a group of the configuration."""
        return self.config[group]["name"]


def sweeps_of(parts: Iterable[str]) -> list[str]:
    """Names of the sweeps of some parts, sweeps, or `all`.

    Raises:
        FairAllError: where there is no such part.
    """
    every = [sweep for sweeps in PARTS.values() for sweep in sweeps]
    chosen: list[str] = []
    for part in parts:
        if part != "all" and part not in PARTS and part not in every:
            raise FairAllError(f"there is no part {part!r}; there are all, {', '.join([*PARTS, *every])}")
        chosen += every if part == "all" else PARTS.get(part, (part,))
    return list(dict.fromkeys(chosen))


def plan(sweeps: Iterable[str], overrides: Sequence[str] = (), *, once: bool = True) -> list[Planned]:
    """The runs of some sweeps.

    Args:
        sweeps: their names.
        overrides: words of the user's. One about an axis of a sweep's grid picks from that axis, as
            `dataset=credit` does; any other is added to every command.
        once: leave out what an earlier sweep has already.

    Raises:
        FairAllError: where nothing is left.
        hydra.errors.HydraException, omegaconf.errors.OmegaConfBaseException: where a word is wrong.
    """
    planned: list[Planned] = []
    met: set[str] = set()
    points = [(sweep, words) for sweep in sweeps for words in _points(sweep, overrides)]
    for (sweep, words), composed in zip(points, _composed([words for _, words in points]), strict=True):
        config = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True, enum_to_str=True)
        one = Planned(sweep, words, composed, cast(dict[str, Any], config))
        if not once or one.key not in met:
            met.add(one.key)
            planned.append(one)
    if not planned:
        raise FairAllError(f"none of the paper's runs is left by {' '.join(overrides)}")
    return planned


def find(planned: Planned, runs: Iterable[Run]) -> Run | None:
    """The run of a planned command; of several, made by several versions, the last to finish."""
    found = [run for run in runs if run.key == planned.key]
    return max(found, key=lambda run: run.finished, default=None)


def added(overrides: Iterable[str]) -> list[str]:
    """The words that change every run: neither a choice on an axis nor one of `PLACES`."""
    axes = {str(key) for sweep in sweeps_of(["all"]) for key in _grid(sweep)}
    return [word for word in overrides if word.split("=")[0] not in axes and not word.startswith(PLACES)]


def _grid(sweep: str) -> DictConfig:
    """The axes of a sweep: values by key, as Hydra's sweeper accepts them."""
    return OmegaConf.load(sweeps_folder() / f"{PREFIX}{sweep}.yaml").hydra.sweeper.params


def _composed(commands: Sequence[tuple[str, ...]]) -> list[DictConfig]:
    """Configurations of command lines; command lines that differ in plain values only are composed once."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from fairall.config.compose import compose_all
    from fairall.config.target import with_types

    groups = [tuple(word for word in words if not _sets_value(word)) for words in commands]
    distinct = list(dict.fromkeys(groups))
    by_group = dict(zip(distinct, map(with_types, compose_all(distinct)), strict=True))
    parser = OverridesParser.create()
    found = []
    for words, group in zip(commands, groups, strict=True):
        composed = by_group[group].copy()
        for override in parser.parse_overrides([word for word in words if _sets_value(word)]):
            OmegaConf.update(composed, override.get_key_element(), override.value())
        found.append(composed)
    return found


def _sets_value(word: str) -> bool:
    """Whether a word of a sweep sets a single value in a group, as `cost.value=0.3` does."""
    return word.split("=")[0] in ("cost.value", "model.policy")


def _points(sweep: str, overrides: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of each point of a sweep's grid that the user's words select."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    grid = _grid(sweep)
    parser = OverridesParser.create()

    def expanded(words: Iterable[str]) -> list[list[str]]:
        axes = []
        for word in parser.parse_overrides(list(words)):
            several = word.is_sweep_override()
            values = word.sweep_string_iterator() if several else [word.get_value_element_as_str()]
            axes.append([f"{word.get_key_element()}={value}" for value in values])
        return [list(point) for point in itertools.product(*axes)]

    picked = [word for word in overrides if word.split("=")[0] in grid]
    others = [word for word in overrides if word not in picked]
    chosen = expanded(picked)
    return [
        (*words, *others)
        for words in expanded(f"{key!s}={values}" for key, values in grid.items())
        if any(set(choice) <= set(words) for choice in chosen)
    ]
