"""What `--multirun sweeps=NAME` does before and after the trials: Hydra's Optuna sweeper does the rest."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, flag_override

from fairall.config.checks import at_least, check_values, one_of, plain_name, require
from fairall.config.choices import flattened
from fairall.config.messages import ending
from fairall.config.schema import objectives_of
from fairall.config.words import override
from fairall.display.format import own_name
from fairall.display.progress import say
from fairall.errors import FairAllError
from fairall.tuning.objectives import DIRECTIONS, directions_of
from fairall.tuning.study import (
    AGAIN,
    DESCRIPTION,
    STORAGE,
    address_in,
    load_studies,
    of_problem,
    storage_of,
    usable,
    words_of,
)

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial


BEST = "optimization_results.yaml"  # of the plugin: the best points by means alone


class StudyCallback(Callback):
    """Begins a study, and prints what it selects; an entry of `hydra.callbacks` in sweeps/_study.yaml."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the sweep and begin the study; ends the process with one line where that is impossible."""
        with ending():
            sweeper, name = config.hydra.sweeper, study_name(config, config.hydra.sweeper)
            space, params = search_space(sweeper, config.hydra.overrides.task)
            description = described(config, space)
            changed = begin(name, description, sweeper)
            say(f"{name}: {changed['n_trials']} trials to do")
            # The plugin logs the address of a storage that is given as a text, password included.
            storage = {"_target_": f"{storage_of.__module__}.storage_of", "address": sweeper.storage}
            changed |= {"study_name": name, "params": params, "storage": storage}
            with flag_override(config.hydra, ["readonly", "struct"], False):
                config.hydra.sweeper = {**sweeper, **changed}

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print what the study selects."""
        with ending():
            sweeper = config.hydra.sweeper
            (Path(config.hydra.sweep.dir) / BEST).unlink(missing_ok=True)
            (study,) = load_studies(sweeper.storage.address, [sweeper.study_name])
            say(f"{study.name}: {study.standing}")
            say(study.selection)
            if not study.finished:
                raise FairAllError(f"no trial of {study.name} succeeded")
            place = override("outputs_dir", config.outputs_dir)
            if sweeper.storage.address != address_in(Path(config.outputs_dir)):
                place = f"{STORAGE}{sweeper.storage.address}"
            say(f"More: python -m fairall tune report {shlex.join([study.name, place])}")


@dataclass
class Continued:
    """A sampler of Optuna that proposes the same points whether or not a study was interrupted.

    Attributes:
        make: makes a sampler, with a seed; one is made for each trial.
        n_trials: how many trials the study had, which changes the seed.
    """

    make: partial[optuna.samplers.BaseSampler]
    n_trials: int

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Any:
        """Make the sampler of a trial, of which Optuna calls this method first."""
        (seed,) = np.random.SeedSequence([self.make.keywords["seed"], self.n_trials]).generate_state(1)
        self.n_trials += AGAIN not in trial.user_attrs
        self.sampler = self.make(seed=int(seed))
        return self.sampler.infer_relative_search_space(study, trial)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sampler, name)


def study_name(config: DictConfig, sweeper: DictConfig) -> str:
    """Name of the study of a sweep, which ends in `_quick` for preset=quick."""
    return own_name(sweeper.study_name, config.preset)


def search_space(sweeper: DictConfig, words: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a sweep tries.

    Args:
        sweeper: `hydra.sweeper`.
        words: KEY=VALUE of the command line, which win over `hydra.sweeper.params`.

    Returns:
        The distribution of Optuna by key, and the entries of `hydra.sweeper.params` that no word replaces.

    Raises:
        FairAllError: where no key is swept, or the sampler cannot try the values.
    """
    from hydra_plugins.hydra_optuna_sweeper._impl import create_params_from_overrides

    replaced = [word.partition("=")[0] for word in words]
    params = {key: value for key, value in (sweeper.params or {}).items() if key not in replaced}
    try:
        space, _ = create_params_from_overrides([*words_of(params), *words])
    except (ValueError, AssertionError) as error:
        raise FairAllError(f"the values to try are not possible: {error}") from error
    if not space:
        raise FairAllError("there is nothing to sweep: give a key several values, as model.alpha=1,5,10")
    for key, distribution in space.items():
        choices = getattr(distribution, "choices", ())
        kinds = {isinstance(choice, str) for choice in choices}
        sortable = len(kinds) == 1 and len({None, *choices}) == len(choices) + 1
        if not sortable and (choices or of_grid(sweeper)):
            raise FairAllError(
                f"{key}: give its values one by one, numbers or texts, each once, as {key}=1,5,10; "
                "an interval takes hydra/sweeper/sampler=tpe or random"
            )
    return space, params


def of_grid(sweeper: DictConfig) -> bool:
    """Whether `hydra.sweeper` goes through a grid."""
    return sweeper.sampler._target_.endswith("GridSampler")


def described(config: DictConfig, space: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Study` that do not depend on trials, by name.

    Args:
        config: by Hydra, with its own node, without values of the keys that are swept.
        space: the distribution of Optuna by key.

    Raises:
        FairAllError: where the sweep is not possible.
    """
    from fairall.config.compose import typed
    from fairall.storage.identity import determining

    first, sweeper, n_points = config.copy(), config.hydra.sweeper, 1
    check_values(sweeper.study_name, "hydra.sweeper.study_name", plain_name())
    OmegaConf.set_struct(first, False)
    del first["hydra"]
    for key, values in space.items():
        choices = getattr(values, "choices", ())
        n_points *= len(choices)
        if "." in key:
            value = choices[0] if choices else values.low
            OmegaConf.update(first, key.lstrip("+"), read(value), force_add=True)
    settings = flattened(determining(typed(first).to_plain()))
    objectives = validated(first, sweeper, space)
    shared = {
        "objective": ", ".join(f"{direction} {measure}" for measure, direction in objectives.items()),
        "sweep.trial": first.sweep.trial,
        **{key: str(value) for key, value in {**settings, **space}.items()},
    }
    return {"objectives": objectives, "settings": shared, "n_points": n_points or None}


@usable()
def begin(name: str, description: Mapping[str, Any], sweeper: DictConfig) -> dict[str, Any]:
    """Create a study in the database, or resume it; its failed trials are put into Optuna's queue again.

    Args:
        name: of the study.
        description: of `described`.
        sweeper: `hydra.sweeper`.

    Returns:
        The number of trials to do and the sampler, as keys of `hydra.sweeper`.

    Raises:
        FairAllError: where the trials of a study of that name cannot be compared with these, or the database
            cannot be used.
    """
    import optuna
    from optuna.trial import TrialState, create_trial

    created = optuna.create_study(
        study_name=name,
        storage=storage_of(sweeper.storage),
        directions=[*description["objectives"].values()],
        load_if_exists=True,
    )
    if DESCRIPTION not in created.user_attrs:
        created.set_user_attr(DESCRIPTION, description)
    (known,) = load_studies(sweeper.storage, [name])
    there, here = known.settings, description["settings"]
    if differing := {*there.items()} ^ {*here.items()}:
        key, _ = min(differing)
        raise FairAllError(
            f"the study {name} was begun with {key}={there.get(key)}, not {here.get(key)}; give this sweep "
            "another name with hydra.sweeper.study_name=NAME"
        )
    # A process that was killed may have put them there already.
    queued = [trial.params for trial in created.get_trials(states=(TrialState.WAITING,))]
    for trial in (trial for trial in known.failed if trial.params not in queued):
        parts = {part: getattr(trial, part) for part in ("params", "distributions", "system_attrs")}
        created.add_trial(create_trial(state=TrialState.WAITING, user_attrs={AGAIN: True}, **parts))
    states = [(trial.state, AGAIN in trial.user_attrs) for trial in created.get_trials()]
    n_again, n_ended = states.count((TrialState.WAITING, True)), states.count((TrialState.COMPLETE, False))
    n_done = len(known.finished) + len(known.failed) if of_grid(sweeper) else n_ended
    n_trials = max(min(sweeper.n_trials, known.n_points or math.inf) - n_done, 0) + n_again
    changed: dict[str, Any] = {"n_trials": n_trials}
    if sweeper.sampler.get("seed") is not None:
        made = {**sweeper.sampler, "_partial_": True}
        changed["sampler"] = {"_target_": f"{__name__}.Continued", "make": made, "n_trials": n_ended}
    return changed


def validated(first: DictConfig, sweeper: DictConfig, space: Mapping[str, Any]) -> dict[str, str]:
    """Directions by objective; raises FairAllError naming the key if a value is invalid.

    Args:
        first: configuration of a run of the sweep.
        sweeper: `hydra.sweeper`.
        space: the distribution of Optuna by key.
    """
    from fairall.measuring.selection import LATENT_SELECTION, SELECTION
    from fairall.metrics import load_measures, summaries

    if "evaluation.split" in space:
        raise FairAllError("evaluation.split: a sweep looks at validation people only")
    problem = [*filter(of_problem, space)]
    if 0 < len(problem) < len(space):
        raise FairAllError(f"{problem[0]} defines the problem: start a sweep for each of its values")
    check_values(first.sweep.trial, "sweep.trial", one_of(["run", "phase1"]))
    for key in ("n_trials", "n_jobs"):
        check_values(sweeper[key], f"hydra.sweeper.{key}", at_least(1))
    register = first.tracking.register
    require(register is None, "tracking.register", register, "null: register a run of the best point instead")
    measures, directions = objectives_of(first.objective), directions_of(sweeper)
    if len(directions) != len(measures) or not {*directions} <= {*DIRECTIONS}:
        raise FairAllError(
            f"hydra.sweeper.direction={directions} does not match objective={measures}: "
            "it must be minimize or maximize for each, as [minimize,maximize]"
        )
    known = [*LATENT_SELECTION, "phase1_validation_loss"]
    if first.sweep.trial == "run":
        known = [
            *(measure.name for measure in summaries(load_measures(first.evaluation.measures))),
            *SELECTION,
        ]
    for measure in measures:
        check_values(measure, "objective", one_of(known))
    return dict(zip(measures, directions, strict=True))


def read(value: Any) -> Any:
    """A value to try as YAML has it: lists are spelt as words there."""
    return OmegaConf.create(f"value: {value}").value if isinstance(value, str) else value
