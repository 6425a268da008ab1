"""Runs that tables and figures need: points of the sweeps of `PARTS` and `FURTHER` as single commands."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from fairall.config.compose import PLACES
from fairall.config.paths import configuration_root, sweeps_folder
from fairall.config.words import nearest
from fairall.errors import FairAllError
from fairall.report import labels
from fairall.results.finished import Run
from fairall.results.paper import paper_seeds
from fairall.results.table import Lacking
from fairall.storage.identity import configuration_key

PREFIX = "paper_"  # of the files of the paper's sweeps
# Parts of `reproduce`, and their sweeps.
PARTS = {
    "tables": ("harsh", "lenient", "published_code"),
    "figures": ("optimal", "synthetic", "policies", "costs"),
    "alignment": ("alignment",),
}
EVERY = tuple(itertools.chain(*PARTS.values()))
WORLDS = ("worlds_capacity", "worlds_delay", "worlds_noise", "worlds_shift", "worlds_feedback")
LEADERBOARD = ("leaderboard_paper", "leaderboard_rivals")
FURTHER = (*WORLDS, *LEADERBOARD)  # sweeps beside the paper's
SINGLE_VALUES = ("cost.value=", "model.policy=", "world.")  # axes that set a value, not a group


@dataclass(frozen=True)
class Planned:
    """A run of the paper."""

    sweep: str  # whose grid it is a point of
    words: tuple[str, ...]  # of its command line
    composed: DictConfig
    config: dict[str, Any]  # the same as plain containers
    run: Run | None = None  # finished run of this configuration

    @property
    def command(self) -> str:
        """The command line of the run."""
        return shlex.join(["python", "-m", "fairall", *self.words])

    @cached_property
    def key(self) -> str:
        """Equal for equal configurations."""
        return configuration_key(self.config)

    def name(self, group: str) -> str:
        """Name of the chosen file of a group of the configuration."""
        return self.config[group]["name"]

    @property
    def model(self) -> str:
        """Name of the method."""
        return self.name("model")

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.name("dataset")


def missing_runs(planned: Sequence[Planned]) -> Lacking:
    """The missing ones of some runs."""
    missing = [one for one in planned if one.run is None]
    return Lacking([(_described(one), one.command) for one in missing], len(planned))


def _described(one: Planned) -> str:
    values = [word for word in one.words if word.startswith(SINGLE_VALUES)]
    name = f"{labels.method(one.model)} on {labels.dataset(one.dataset)}"
    return f"{name} with {' '.join(values)}" if values else name


def sweeps_of(parts: Iterable[str]) -> list[str]:
    """Names of the sweeps of some parts, sweeps, or `all`.

    Raises:
        FairAllError: where there is no such part.
    """
    choices = {"all": EVERY} | PARTS | {"worlds": WORLDS, "leaderboard": LEADERBOARD}
    choices |= {sweep: (sweep,) for sweep in (*EVERY, *FURTHER)}
    wrong = [part for part in parts if part not in choices]
    if wrong:
        near = nearest(wrong[0], list(choices))
        raise FairAllError(f"there is no part {wrong[0]!r}{near}; there are {', '.join(choices)}")
    return list(dict.fromkeys(sweep for part in parts for sweep in choices[part]))


def plan(sweeps: Iterable[str], overrides: Sequence[str] = (), *, once: bool = True) -> list[Planned]:
    """The runs of some sweeps.

    Args:
        sweeps: their names.
        overrides: words of the user's. One about an axis of a sweep's grid picks from that axis, as
            `dataset=credit` does; any other is added to every command.
        once: leave out what an earlier sweep has already.

    Raises:
        FairAllError: where nothing is left, a word picks what no sweep has, or is wrong.
        omegaconf.errors.OmegaConfBaseException: where a value is missing or cannot be resolved.
    """
    from fairall.config.validation import typed

    sweeps = list(sweeps)
    _refuse_unknown(sweeps, overrides)
    planned: dict[Any, Planned] = {}
    points = [(sweep, words) for sweep in sweeps for words in _points(sweep, overrides)]
    for (sweep, words), composed in zip(points, _composed([words for _, words in points]), strict=True):
        one = Planned(sweep, words, composed, typed(composed).to_plain())
        planned.setdefault(one.key if once else len(planned), one)
    if not planned:
        raise FairAllError(f"no run is left by {' '.join(overrides)}")
    return list(planned.values())


def with_runs(planned: Iterable[Planned], runs: Iterable[Run]) -> list[Planned]:
    """The same with their finished runs; of several, made by several versions, the last to finish.

    Where there is none with the sweep's number of seeds, the run with the most takes its place, if those are
    as many as the paper's.
    """
    runs = sorted(runs, key=lambda run: run.finished)
    latest = {run.key: run for run in runs}
    most = {
        _key_but_seeds(run.config): run
        for run in sorted(runs, key=lambda run: len(run.seeds))
        if len(run.seeds) >= paper_seeds()
    }
    return [replace(one, run=latest.get(one.key) or most.get(_key_but_seeds(one.config))) for one in planned]


def _key_but_seeds(config: dict[str, Any]) -> str:
    return configuration_key({key: value for key, value in config.items() if key != "seeds"})


def added(overrides: Iterable[str]) -> list[str]:
    """The words that change every run: neither a choice on an axis nor one of `PLACES`."""
    axes = {str(key) for sweep in (*EVERY, *FURTHER) for key in _grid(sweep)}
    return [word for word in overrides if word.split("=")[0] not in axes and not word.startswith(PLACES)]


def _file(sweep: str) -> DictConfig:
    name = sweep if sweep in FURTHER else PREFIX + sweep
    return cast(DictConfig, OmegaConf.load(sweeps_folder() / f"{name}.yaml"))


def _grid(sweep: str) -> DictConfig:
    """The axes of a sweep: values by key, as Hydra's sweeper accepts them."""
    return _file(sweep).hydra.sweeper.params


def _shared(sweep: str, overrides: Sequence[str]) -> list[str]:
    """Values that a sweep sets for all of its points, as words; the user's and a preset's go before them."""
    own = {word.split("=")[0] for word in overrides}
    for word in overrides:
        preset = configuration_root() / "conf" / "preset" / f"{word.removeprefix('preset=')}.yaml"
        if word.startswith("preset=") and preset.exists():
            own |= set(map(str, OmegaConf.load(preset)))
    return [f"{key!s}={value}" for key, value in _file(sweep).items() if key != "hydra" and key not in own]


def _composed(commands: Sequence[tuple[str, ...]]) -> list[DictConfig]:
    """Configurations of command lines; those that differ in `SINGLE_VALUES` only are composed once."""
    from fairall.config.compose import compose_all

    def group(words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word for word in words if not word.startswith(SINGLE_VALUES))

    distinct = list(dict.fromkeys(map(group, commands)))
    by_group = dict(zip(distinct, compose_all(distinct), strict=True))
    found = []
    for words in commands:
        found.append(by_group[group(words)].copy())
        values = [word for word in words if word.startswith(SINGLE_VALUES)]
        for override in OverridesParser.create().parse_overrides(values):
            OmegaConf.update(found[-1], override.get_key_element(), override.value())
    return found


def _points(sweep: str, overrides: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of each point of a sweep's grid that the user's words select."""
    grid = _grid(sweep)
    picked = [word for word in overrides if word.split("=")[0] in grid]
    others = [word for word in overrides if word not in picked]
    chosen = _expanded(picked)
    return [
        (*words, *_shared(sweep, overrides), *others)
        for words in _expanded([f"{key!s}={values}" for key, values in grid.items()])
        if any(set(choice) <= set(words) for choice in chosen)
    ]


def _refuse_unknown(sweeps: Sequence[str], overrides: Sequence[str]) -> None:
    """Raise FairAllError for a word that picks a value that an axis of all sweeps does not have."""
    grids = [_grid(sweep) for sweep in sweeps]
    for word in overrides:
        key = word.split("=")[0]
        if all(key in grid for grid in grids):
            axis = [one for grid in grids for (one,) in _expanded([f"{key}={grid[key]}"])]
            names = list(dict.fromkeys(one.removeprefix(f"{key}=") for one in axis))
            for (picked,) in _expanded([word]):
                if picked not in axis:
                    near = nearest(picked.removeprefix(f"{key}="), names)
                    raise FairAllError(f"{picked}: not among these runs{near}; there are {', '.join(names)}")


def _expanded(words: list[str]) -> list[tuple[str, ...]]:
    """All combinations of the values of some words, each with one value per key."""
    axes = []
    for word in OverridesParser.create().parse_overrides(words):
        several = word.is_sweep_override()
        values = word.sweep_string_iterator() if several else [word.get_value_element_as_str()]
        axes.append([f"{word.get_key_element()}={value}" for value in values])
    return list(itertools.product(*axes))
