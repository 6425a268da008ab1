"""What `--multirun sweeps=NAME` does before and after the runs: Hydra's Optuna sweeper does the rest."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, flag_override

from fairall.config.checks import at_least, check, one_of, plain_name, require
from fairall.config.choices import configuration_root, flattened
from fairall.config.messages import ending
from fairall.config.schema import objectives_of
from fairall.display.console import say
from fairall.display.format import own_name
from fairall.errors import FairAllError
from fairall.runtime.credentials import complete, hidden
from fairall.tuning.objectives import DIRECTIONS, directions_of, refuse_test_people
from fairall.tuning.space import Space, listed
from fairall.tuning.study import Study, summary

BEST = "optimization_results.yaml"  # of the plugin: the best points by means alone
NOTHING = "Nothing is selected: {}."
TRIALS = ("run", "phase1")


class StudyCallback(Callback):
    """Begins a study, and prints what it selects; an entry of `hydra.callbacks` in sweeps/_study.yaml."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the sweep and begin the study; ends the process with one line where that is impossible."""
        with ending():
            import optuna  # slow

            optuna.logging.set_verbosity(optuna.logging.WARNING)
            warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
            sweeper, words = config.hydra.sweeper, config.hydra.overrides.task
            params: Any = OmegaConf.to_container(sweeper.params or OmegaConf.create(), resolve=True)
            grid_sampler = sweeper.sampler._target_.endswith("GridSampler")  # which counts by itself
            space = Space.parse(params, words, intervals=not grid_sampler)
            storage = sweeper.storage
            if isinstance(storage, str):
                storage = database(storage)
            study = begun(config, space)
            # Without this the plugin counts the values of keys that the command line sets.
            with flag_override(config.hydra, ["readonly", "struct"], False):
                swept = (f"{key}={value}" for key, value in params.items() if key in space.values)
                sweeper.params = dict(word.split("=", 1) for word in listed([*swept]))
                config.hydra.overrides.task = listed(words)
                if space.size is not None and not grid_sampler:
                    sweeper.n_trials = min(sweeper.n_trials, space.size)
                sweeper.storage = storage
            say(f"{study.name}: {study.standing}")

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print the selected point, or why none is."""
        with ending():
            (Path(config.hydra.sweep.dir) / BEST).unlink(missing_ok=True)
            study = Study.load(study_name(config, config.hydra.sweeper), Path(config.outputs_dir))
            say(f"{study.name}: {study.standing}")
            if study.failed and not study.finished:
                reason = next(iter(study.failed.values()))
                raise FairAllError(f"no point of {study.name} succeeded; the first: {reason}")
            if reason := study.no_selection:
                say(NOTHING.format(reason))
            elif (chosen := study.selected) is not None:
                say(f"Selected: {study.line(chosen, summary(study.values.loc[[chosen]]))}")
            place = "" if config.outputs_dir == "outputs" else f" outputs_dir={config.outputs_dir}"
            say(f"More: python -m fairall tune report {study.name}{place}")


def study_name(config: DictConfig, sweeper: DictConfig) -> str:
    """Name of the study, with an ending of its own for preset=quick."""
    return own_name(sweeper.study_name, config.preset)


def begun(config: DictConfig, space: Space) -> Study:
    """The study of a sweep, begun.

    Args:
        config: by Hydra, with its own node, without the values of the grid.
        space: the grid.

    Raises:
        FairAllError: where the sweep is not possible, or cannot be compared with what the study has.
    """
    from fairall.config.validation import typed
    from fairall.storage.identity import determining

    check("hydra.sweeper.study_name", config.hydra.sweeper.study_name, plain_name())
    first, sweeper = config.copy(), config.hydra.sweeper
    OmegaConf.set_struct(first, False)
    del first["hydra"]
    for key, value in space.first.items():
        if "." in key:
            OmegaConf.update(first, key.lstrip("+"), read(value), force_add=True)
    if "model" not in space.values:  # whose own keys depend on it
        typed(first)
    objectives = validated(first, sweeper, space)
    plain: Any = OmegaConf.to_container(first, resolve=True, enum_to_str=True)
    swept = tuple(key.lstrip("+") for key in space.values)
    settings = {
        key: str(value)
        for key, value in {"sweep.trial": first.sweep.trial, **flattened(determining(plain))}.items()
        if not any(key == name or key.startswith(f"{name}.") for name in swept)
    }
    name = study_name(config, sweeper)
    study = Study(Path(config.outputs_dir), name, objectives, space, settings)
    study.begin()
    return study


def validated(first: DictConfig, sweeper: DictConfig, space: Space) -> dict[str, str]:
    """Directions by objective; raises FairAllError naming the key if a value is invalid.

    Args:
        first: configuration of a run of the sweep.
        sweeper: `hydra.sweeper`.
        space: the grid.
    """
    from fairall.measuring.selection import LATENT_SELECTION, SELECTION
    from fairall.metrics import load_measures, summaries

    if {"dataset", "preset"} & set(space.values) or ("model" in space.values and len(space.values) > 1):
        raise FairAllError("a sweep is of one data set, one preset and one method: start one for each")
    of_problem = space.of_problem
    if of_problem and len(of_problem) < len(space.values):
        raise FairAllError(
            f"{of_problem[0]} defines the problem, and hyperparameters are selected for one problem: start a "
            f"sweep for each, with {of_problem[0]}=VALUE"
        )
    trial, register = first.sweep.trial, first.tracking.register
    check("sweep.trial", trial, one_of(list(TRIALS)))
    for key in ("n_trials", "n_jobs"):
        check(f"hydra.sweeper.{key}", sweeper[key], at_least(1))
    for key in ("search_space", "custom_search_space"):
        require(
            sweeper.get(key) is None, f"hydra.sweeper.{key}", sweeper.get(key), "null: a study tries params"
        )
    # `n_trials` where neither a sweep's file nor the command line has changed it
    every = OmegaConf.load(configuration_root() / "sweeps" / "_study.yaml").hydra.sweeper.n_trials
    if space.size is None and sweeper.n_trials == every:
        raise FairAllError(
            "a study of intervals has no last point: say how many to try, hydra.sweeper.n_trials=N"
        )
    require(register is None, "tracking.register", register, "null: register a run of the best point instead")
    refuse_test_people(first, sweeper, [])
    measures, directions = objectives_of(first.objective), directions_of(sweeper)
    if len(directions) != len(measures) or not measures:
        raise FairAllError(
            f"hydra.sweeper.direction={directions} does not match objective={measures}: "
            "it must be minimize or maximize for each, as [minimize,maximize]"
        )
    for direction in directions:
        check("hydra.sweeper.direction", direction, one_of(list(DIRECTIONS)))
    if trial == "phase1":
        known = [*LATENT_SELECTION, "phase1_validation_loss"]
    else:
        known = [*(one.name for one in summaries(load_measures(first.evaluation.measures))), *SELECTION]
    for measure in measures:
        if measure not in known:
            raise FairAllError(
                f"objective: sweep.trial={trial} has no {measure}; there are {', '.join(known)}"
            )
    return dict(zip(measures, directions, strict=True))


def database(given: str) -> str:
    """The address of a database, with its user and password, in which Optuna's tables have been made.

    Optuna 2 alone does not commit them with SQLAlchemy 2.

    Raises:
        FairAllError: where it cannot be used.
    """
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    try:
        optuna.storages.RDBStorage(complete(given), engine_kwargs={"isolation_level": "AUTOCOMMIT"})
    except (SQLAlchemyError, ImportError, RuntimeError, ValueError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise FairAllError(f"hydra.sweeper.storage: cannot use {hidden(given)} ({hidden(reason)})") from error
    return complete(given)


def read(value: Any) -> Any:
    """A value of a grid as YAML has it: lists are spelt as words there."""
    return OmegaConf.create(f"value: {value}").value if isinstance(value, str) else value
