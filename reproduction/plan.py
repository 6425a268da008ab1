"""Runs that tables and figures need: points of reproduction/sweeps/ as single commands."""

from __future__ import annotations

import difflib
import itertools
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from fairall import (
    Config,
    FairAllError,
    Result,
    compose_all,
    compose_config,
    configuration_key,
    stored_config,
)
from fairall.display import QUICK
from fairall.report import dataset_label, measures, method_label
from reproduction.paper import PAPER_SEEDS

METHODS = ("fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog")  # of the paper
OPTIMAL = ("opt_fair", "opt_unfair")
DATASETS = ("compas", "credit", "meps", "synthetic")  # of the paper
BASELINE = "fairlog"  # the method that the paper compares with
EFFECTIVE = measures("effective_utility", "effective_dpu")
TEMPORAL = measures("tv_utility", "mean_utility", "tv_dpu", "mean_dpu")
ON_SYNTHETIC = measures("utility", "ground_truth_utility", "dpu", "cfu")

# Parts of the paper, and the studies beside it, with their sweeps.
PAPER = {
    "tables": ("paper_harsh", "paper_lenient", "paper_published_code"),
    "figures": ("paper_optimal", "paper_synthetic", "paper_policies", "paper_costs"),
    "alignment": ("paper_alignment",),
}
EVERY = tuple(itertools.chain(*PAPER.values()))
SPLITS = ("paper_splits",)  # the paper's methods on other splits of the data
# Rows of the board by sweep.
VARIANTS = {"leaderboard_cut": "cut", "leaderboard_parity": "parity", "leaderboard_blind": "blind"}
LEADERBOARD = ("leaderboard_methods", *VARIANTS)
LOGS = ("logs",)
# What studies/*.yaml say, by name of the study: their sweeps by part, and tables.
STUDIES: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text())
    for path in sorted(Path(__file__).with_name("studies").glob("*.yaml"))
}
SWEEPS = {name: tuple(itertools.chain(*study["sweeps"].values())) for name, study in STUDIES.items()}
WORLDS = SWEEPS["worlds"]
ABLATION = STUDIES["ablation"]["sweeps"]["static"]
PARTS = PAPER | {
    "splits": SPLITS,
    "worlds": WORLDS,
    "leaderboard": LEADERBOARD,
    "ablation": SWEEPS["ablation"],
    "logs": LOGS,
}
EVERY_SWEEP = (*EVERY, *SPLITS, *LEADERBOARD, *LOGS, *itertools.chain(*SWEEPS.values()))
# Axes that set a value, not a group.
SINGLE_VALUES = (
    "cost.value=",
    "model.policy=",
    "model.decision=",
    "model.memory=",
    "schedule.applicants=",
    "dataset.structural_model.ground_truth_share=",
    "dataset.structural_model.variables.FYA.s=",
    "initial_policy.hidden=",
    "model.odds_ratio=",
    "dataset.gain=",
    "dataset.loss=",
    "dataset.decide_by=",
    "world.",
)
PLACES = ("outputs_dir=", "tracking.")  # words that do not change results


@dataclass(frozen=True)
class Planned:
    """A run that a table or figure needs."""

    sweep: str  # whose grid it is a point of
    words: tuple[str, ...]  # of its command line
    composed: DictConfig
    config: Config  # the same, as results have it
    run: Result | None = None  # finished run of this configuration

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
        return self.config.name(group)

    @property
    def model(self) -> str:
        """Name of the method."""
        return self.name("model")

    @property
    def row(self) -> str:
        """Key of its row on the leaderboard: the method, and what its sweep changes in it."""
        return f"{self.model} {VARIANTS.get(self.sweep, '')}".rstrip()

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.name("dataset")


def row_label(row: str) -> str:
    """The label of a row of the leaderboard by its key.

    Examples:
        >>> row_label("fairlog"), row_label("fairlog cut"), row_label("fairlog parity")
        ('FairLog', 'FairLog, cut', 'FairLog + parity')
    """
    model, _, variant = row.partition(" ")
    return method_label(model) + {"parity": " + parity", "": ""}.get(variant, f", {variant}")


def runs_of(planned: Iterable[Planned]) -> list[Result]:
    """The finished ones of some runs."""
    return [one.run for one in planned if one.run is not None]


def by_model(planned: Iterable[Planned]) -> dict[str, Result]:
    """The finished ones of some runs by method."""
    return {one.model: one.run for one in planned if one.run is not None}


def missing_runs(planned: Sequence[Planned]) -> list[tuple[str, str]]:
    """Name and command of the missing ones of some runs."""
    found = []
    for one in planned:
        if one.run is None:
            values = " ".join(word for word in one.words if word.startswith(SINGLE_VALUES))
            name = f"{row_label(one.row)} on {dataset_label(one.dataset)}"
            found.append((f"{name} with {values}" if values else name, one.command))
    return found


def interpretable(preset: str | None) -> bool:
    """Whether the numbers of a preset may be interpreted: not those of preset=quick."""
    return preset != QUICK


def nearest(word: str, known: Sequence[str]) -> str:
    """What a misspelt word may mean, as a part of a sentence; empty where nothing is near."""
    near = difflib.get_close_matches(word, known, n=1)
    return f", did you mean {near[0]}?" if near else ""


def sweeps_of(parts: Iterable[str]) -> list[str]:
    """Names of the sweeps of some parts, sweeps, or `all` of the paper's.

    Raises:
        FairAllError: where there is no such part.
    """
    choices = {"all": EVERY} | PARTS | {sweep: (sweep,) for sweep in EVERY_SWEEP}
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
    """
    sweeps = list(sweeps)
    _refuse_unknown(sweeps, overrides)
    points = [(sweep, words) for sweep in sweeps for words in _points(sweep, overrides)]
    if not points:
        raise FairAllError(f"no run is left by {' '.join(overrides)}")
    planned = composed_points(points)
    return distinct(planned) if once else planned


def composed_points(points: Sequence[tuple[str, tuple[str, ...]]]) -> list[Planned]:
    """The runs of some points, each the name of its sweep and the words of its command.

    Raises:
        FairAllError: where a word is wrong.
    """
    configs = _composed([words for _, words in points])
    return [
        Planned(sweep, words, config, stored_config(config))
        for (sweep, words), config in zip(points, configs, strict=True)
    ]


def distinct(planned: Iterable[Planned]) -> list[Planned]:
    """The first run of each configuration."""
    first: dict[str, Planned] = {}
    for one in planned:
        first.setdefault(one.key, one)
    return list(first.values())


def with_runs(planned: Iterable[Planned], runs: Iterable[Result]) -> list[Planned]:
    """The same with their finished runs; of several, made by several versions, the last to finish.

    Where there is none with the sweep's number of seeds, the run with the most takes its place, if those are
    as many as the paper's.
    """
    runs = sorted(runs, key=lambda run: run.finished)
    latest = {run.key: run for run in runs}
    most = {
        _key_but_seeds(run.config): run
        for run in sorted(runs, key=lambda run: len(run.seeds))
        if len(run.seeds) >= PAPER_SEEDS
    }
    return [replace(one, run=latest.get(one.key) or most.get(_key_but_seeds(one.config))) for one in planned]


def _key_but_seeds(config: Config) -> str:
    return configuration_key(replace(config, seeds=0))


def added(overrides: Iterable[str]) -> list[str]:
    """The words that change every run: neither a choice on an axis nor one of `PLACES`."""
    axes = {str(key) for sweep in EVERY_SWEEP for key in grid(sweep)}
    return [word for word in overrides if word.split("=")[0] not in axes and not word.startswith(PLACES)]


def _file(sweep: str) -> DictConfig:
    return cast(DictConfig, OmegaConf.load(Path(__file__).parent / "sweeps" / f"{sweep}.yaml"))


def grid(sweep: str) -> DictConfig:
    """The axes of a sweep: values by key, as Hydra's sweeper accepts them."""
    return _file(sweep).hydra.sweeper.params


def _shared(sweep: str, overrides: Sequence[str]) -> list[str]:
    """Values that a sweep sets for all of its points, as words; the user's and a preset's go before them."""
    shared = {str(key): value for key, value in _file(sweep).items() if key != "hydra"}
    own = {word.split("=")[0] for word in overrides}
    if shared and "preset" in own:
        usual, preset = compose_config(), compose_config(*(w for w in overrides if w.startswith("preset=")))
        own |= {key for key in shared if OmegaConf.select(usual, key) != OmegaConf.select(preset, key)}
    return [f"{key}={value}" for key, value in shared.items() if key not in own]


def _composed(commands: Sequence[tuple[str, ...]]) -> list[DictConfig]:
    """Configurations of command lines; those that differ in `SINGLE_VALUES` only are composed once."""

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
    axes = _axes(sweep)
    others = [word for word in overrides if word.split("=")[0] not in axes]
    for word in set(overrides).difference(others):
        key = word.split("=")[0]
        axes[key] = [one for one in axes[key] if one in _values(word)]
    shared = _shared(sweep, overrides)
    return [(*words, *shared, *others) for words in itertools.product(*axes.values())]


def _axes(sweep: str) -> dict[str, list[str]]:
    """The words of each axis of a sweep's grid."""
    return {str(key): _values(f"{key!s}={values}") for key, values in grid(sweep).items()}


def _refuse_unknown(sweeps: Sequence[str], overrides: Sequence[str]) -> None:
    """Raise FairAllError for a word that picks a value that an axis of all sweeps does not have."""
    grids = [*map(_axes, sweeps)]
    for word in overrides:
        key = word.split("=")[0]
        if all(key in axes for axes in grids):
            known = list(dict.fromkeys(itertools.chain(*(axes[key] for axes in grids))))
            for wrong in (one for one in _values(word) if one not in known):
                near = nearest(wrong, known).replace(f"{key}=", "")
                names = ", ".join(known).replace(f"{key}=", "")
                raise FairAllError(f"{wrong}: not among these runs{near}; there are {names}")


def _values(word: str) -> list[str]:
    """A word with each of its values."""
    (override,) = OverridesParser.create().parse_overrides([word])
    several = override.is_sweep_override()
    values = override.sweep_string_iterator() if several else [override.get_value_element_as_str()]
    return [f"{override.get_key_element()}={value}" for value in values]
