"""The sweeper of `--multirun sweeps=NAME`: Hydra's Optuna sweeper on a study that several processes share.

The plugin reads the keys of `hydra.sweeper` and runs its loop of ask, launch and tell, one batch a call.
Added are points that are tried once whichever process works on the study, trials of killed processes that
are run again, values per seed, and reasons of failures. Of the plugin's `sweeper` only public attributes are
set, which its releases 1.3 and 1.4 have in common.
"""

from __future__ import annotations

import logging
import math
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import HydraContext, TaskFunction
from hydra_plugins.hydra_optuna_sweeper.optuna_sweeper import OptunaSweeper
from omegaconf import DictConfig, ListConfig, OmegaConf, read_write

from fairall.config.checks import at_least, check, one_of, plain_name, require
from fairall.config.schema import SweepConfig, objectives_of
from fairall.config.words import override
from fairall.errors import FairAllError, count
from fairall.results.interpretable import interpretable, own_name
from fairall.runtime.credentials import hidden
from fairall.tuning.objectives import Objective
from fairall.tuning.space import Space, words_of

if TYPE_CHECKING:
    from optuna.trial import Trial as OptunaTrial

    from fairall.tuning.study import SharedStudy


TARGET = "hydra_plugins.fairall.StudySweeper"
"""`hydra.sweeper._target_` in sweeps/_study.yaml; Hydra instantiates only names below `hydra_plugins`."""
BEST = "optimization_results.yaml"  # of the plugin


class StudySweeper(OptunaSweeper):
    """Runs the trials of a study until none remains; configured by `hydra.sweeper` and `sweep`."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra."""
        keys = config.hydra.sweeper
        if keys.study_name and not interpretable(config):
            self.sweeper.study_name = own_name(keys.study_name, config)
            with read_write(config.hydra):
                keys.study_name = self.sweeper.study_name
                # The configurations of trials are composed anew, with `hydra.sweep.dir` in them.
                config.hydra.overrides.hydra.append(override("hydra.sweeper.study_name", keys.study_name))
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)
        self._config, self._keys = config, keys
        self._loader = hydra_context.config_loader
        self._launcher = self.sweeper.launcher

    def sweep(self, arguments: list[str]) -> None:
        """Called by Hydra with the overrides of the command line.

        Raises:
            FairAllError: if a value of `sweep` or `hydra.sweeper` is invalid, or no trial succeeded.
        """
        from fairall.tuning.progress import Progress
        from fairall.tuning.tracking import SweepTracker

        logging.getLogger(OptunaSweeper.__module__).parent.setLevel(logging.CRITICAL)  # type: ignore[union-attr]
        params = OmegaConf.to_container(self._keys.params or OmegaConf.create(), resolve=True)
        space, self._fixed = Space.parse(cast(dict[str, str], params), arguments)
        first = self._composed([*self._fixed, *words_of(next(space.points()))])
        self._rules = cast(SweepConfig, OmegaConf.to_object(first.sweep))
        objectives = validated(self._rules, self._keys, space, first)
        self._target = min(self._keys.n_trials, space.size)
        self._study = study = self._begun(first, space, objectives)
        progress = Progress(study, self._target, self._place(first))
        progress.begin()
        with SweepTracker.following(first, study) as tracker:
            while outcomes := self._next_batch():
                for number, outcome in outcomes.items():
                    ended = study.trial(number)
                    progress.log(ended)
                    tracker.log_trial(ended, outcome.get("measures", {}))
            tracker.log_selected(study.selected())
        progress.end()
        if not study.complete():
            failed = [trial for trial in study.trials() if trial.state == "fail"]
            if failed:
                raise FairAllError(
                    f"no trial of {study.name} succeeded; the first: {failed[0].notes['reason']}"
                )

    def _begun(self, first: DictConfig, space: Space, objectives: Sequence[Objective]) -> SharedStudy:
        """The study, which the plugin is set to work on."""
        from fairall.tuning.paper import paper_point
        from fairall.tuning.samplers import is_grid
        from fairall.tuning.storage import open_storage, storage_url
        from fairall.tuning.study import SharedStudy

        plugin, settings = self.sweeper, _settings(first, space)  # raises before a database is made
        given: Any = plugin.storage  # None, an address, or an object where the configuration has a `_target_`
        storage = open_storage(storage_url(getattr(given, "url", given), first.outputs_dir))
        study = SharedStudy.begin(
            storage,
            self._keys.study_name,
            space=space,
            objectives=objectives,
            settings=settings,
            target=self._target,
        )
        # A part of a grid begins with the paper's point, to compare with; a whole grid contains it.
        study.enqueue_once(
            {} if is_grid(self._keys.sampler) else paper_point(study), failed=self._rules.retry_failed
        )
        plugin.params = OmegaConf.create(space.words())
        plugin.storage, plugin.sampler = storage, study.optuna_study.sampler
        plugin.direction = ListConfig([objective.direction for objective in objectives])
        plugin.custom_search_space_extender = self._asked
        plugin.launcher = self
        return study

    def _next_batch(self) -> dict[int, dict[str, Any]]:
        """Run some trials; returns their outcomes by number, none where nothing remains."""
        from fairall.tuning.storage import exclusive
        from fairall.tuning.study import TakenOverError

        study, plugin = self._study, self.sweeper
        self._outcomes: dict[int, dict[str, Any]] = {}
        with ExitStack() as self._turn:
            self._turn.enter_context(exclusive(study.url))
            study.release_abandoned(self._rules)
            plugin.n_jobs = plugin.n_trials = study.enqueue_up_to(
                self._keys.n_jobs, self._target, self._keys.sampler
            )
            try:
                if plugin.n_trials:
                    super().sweep([])
                    if study.no_selection:  # the plugin has written the best points to a file
                        (Path(self._config.hydra.sweep.dir) / BEST).unlink(missing_ok=True)
            except TakenOverError:
                return self._outcomes or self._next_batch()
            except ValueError:  # Optuna has no best trial to print where none has succeeded
                if study.complete() or not self._outcomes or not all(self._outcomes.values()):
                    raise
        return self._outcomes

    def _asked(self, config: DictConfig, trial: OptunaTrial) -> None:
        """Called by the plugin for each trial of a batch, once it has its point."""
        self._study.own(trial.number)
        self._outcomes[trial.number] = {}

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Called by the plugin as its launcher: run the trials of a batch, and record all but their values.

        Raises:
            study.TakenOverError: if another process has taken over one of the trials.
        """
        from fairall.tuning.study import TakenOverError

        self._turn.close()  # other processes may take their points now
        study, numbers = self._study, list(self._outcomes)
        words = [
            [*self._fixed, *words_of(study.trial(number).point), "tracking.enabled=false"]
            for number in numbers
        ]
        with study.kept_alive(numbers, self._rules.grace_seconds):
            self._outcomes = dict(zip(numbers, self._launched(words, initial_job_idx), strict=True))
        returns = [JobReturn(status=JobStatus.COMPLETED) for _ in numbers]
        for returned, (number, outcome) in zip(returns, [*self._outcomes.items()], strict=True):
            try:
                returned.return_value = study.record(number, *result_of(outcome, study.objectives))
            except TakenOverError:
                del self._outcomes[number]
        if len(self._outcomes) < len(numbers):
            # The plugin would record a value for each trial of the batch, those of others included.
            for number, returned in zip(numbers, returns, strict=True):
                if number in self._outcomes:
                    study.finish(number, returned.return_value)
            raise TakenOverError
        return returns

    def _place(self, first: DictConfig) -> str:
        """Words that tell `python -m fairall.tuning` where the study is, each after a space."""
        if self._keys.storage is not None:
            return f" hydra.sweeper.storage={hidden(self._study.url)}"
        return "" if first.outputs_dir == "outputs" else f" outputs_dir={first.outputs_dir}"

    def _launched(self, words: list[list[str]], initial_job_idx: int) -> list[dict[str, Any]]:
        """Outcomes of trials run by the launcher; an exception of the launcher fails all of them."""
        try:
            returns = self._launcher.launch(words, initial_job_idx=initial_job_idx)
            return [job.return_value for job in returns]
        except Exception as error:
            traceback.print_exc()
            reason = str(error).strip().split("\n")[0]
            return [{"failed": f"the launcher: {type(error).__name__}: {reason}"} for _ in words]

    def _composed(self, words: Sequence[str]) -> DictConfig:
        """Configuration of a trial without the hydra node."""
        composed = self._loader.load_sweep_config(self._config, list(words)).copy()
        OmegaConf.set_struct(composed, False)
        del composed["hydra"]
        return composed


def register_sweeper() -> None:
    """Register the sweeper with Hydra without a `hydra_plugins` package, which every Hydra program loads."""
    Plugins.instance().class_name_to_class[TARGET] = StudySweeper
    # Hydra makes the sampler before this sweeper; Optuna warns of the arguments that users of it set.
    warnings.filterwarnings("ignore", ".* is (an? )?experimental", module="hydra")


def result_of(
    outcome: Mapping[str, Any], objectives: Sequence[Objective]
) -> tuple[dict[str, list[float]] | None, dict[str, Any]]:
    """Result of a trial for its study.

    Args:
        outcome: of `trial.outcome`.
        objectives: of the study.

    Returns:
        Values per seed by objective, None where the trial failed; and notes, with the `reason` of a failure.
    """
    if "failed" in outcome:
        return None, {"reason": outcome["failed"]}
    per_seed = {}
    for objective in objectives:
        values = outcome["measures"].get(objective.measure, [None])
        known = [value for value in values if value is not None and math.isfinite(value)]
        if len(known) < len(values):
            missing = f"{len(values) - len(known)} of {count(len(values), 'seed')}"
            return None, {"reason": f"{objective.measure} is not a number in {missing}"}
        per_seed[objective.measure] = values
    return per_seed, {"seconds": outcome["seconds"], **outcome["notes"]}


def validated(
    requested: SweepConfig, sweeper: DictConfig, space: Space, first: DictConfig
) -> list[Objective]:
    """The objectives; raises FairAllError naming the key if a value is invalid.

    Args:
        requested: `sweep`.
        sweeper: `hydra.sweeper`.
        space: the grid.
        first: configuration of a trial.
    """
    from fairall.config.validation import check_values
    from fairall.metrics import load_measures
    from fairall.tuning.samplers import SAMPLERS
    from fairall.tuning.trial import TRIALS

    check("hydra.sweeper.study_name", sweeper.study_name, plain_name())
    if sweeper.sampler._target_ not in SAMPLERS:
        raise FairAllError(
            f"hydra.sweeper.sampler._target_={sweeper.sampler._target_} proposes no points of a grid; "
            "use hydra/sweeper/sampler=grid, random or tpe"
        )
    if {"dataset", "preset"} & set(space.values) or ("model" in space.values and len(space.values) > 1):
        raise FairAllError("a sweep is of one data set, one preset and one method: start one for each")
    of_problem = space.of_problem
    if of_problem and len(of_problem) < len(space.values):
        raise FairAllError(
            f"{of_problem[0]} defines the problem, and hyperparameters are selected for one problem: start a "
            f"sweep for each, with {of_problem[0]}=VALUE"
        )
    for key, only in {"max_failure_rate": 1.0, "custom_search_space": None, "search_space": None}.items():
        require(sweeper.get(key) == only, f"hydra.sweeper.{key}", sweeper.get(key), f"{only} with sweeps=")
    check_values(requested, "sweep")
    check("sweep.trial", requested.trial, one_of(TRIALS))
    for key in ("n_trials", "n_jobs"):
        check(f"hydra.sweeper.{key}", sweeper[key], at_least(1))
    register = first.tracking.register
    require(register is None, "tracking.register", register, "null: register a run of the best trial instead")
    if first.evaluation.split != "validation":
        raise FairAllError(
            f"evaluation.split={first.evaluation.split}: a sweep looks at validation people only; "
            "add evaluation.split=validation"
        )
    measures, directions = objectives_of(first.objective), directions_of(sweeper)
    if len(directions) != len(measures):
        raise FairAllError(
            f"hydra.sweeper.direction={directions} does not match objective={measures}: "
            "it must be minimize or maximize for each, as [minimize,maximize]"
        )
    for direction in directions:
        check("hydra.sweeper.direction", direction, one_of(["minimize", "maximize"]))
    known = TRIALS[requested.trial].objectives(load_measures(first.evaluation.measures))
    for measure in measures:
        if measure not in known:
            raise FairAllError(
                f"objective: sweep.trial={requested.trial} has no {measure}; there are {', '.join(known)}"
            )
    return [Objective(*pair) for pair in zip(measures, directions, strict=True)]


def directions_of(sweeper: DictConfig) -> list[str]:
    """The directions of `hydra.sweeper`, which has one or a list of them, as words or of an Enum."""
    given = sweeper.direction if isinstance(sweeper.direction, ListConfig) else [sweeper.direction]
    return [getattr(direction, "name", direction) for direction in given]


def _settings(first: DictConfig, space: Space) -> dict[str, str]:
    """Values by key that determine the result of a trial besides its point."""
    from fairall.config.validation import typed
    from fairall.storage.identity import determining, flattened

    settings = {"sweep.trial": first.sweep.trial, **flattened(determining(typed(first).to_plain()))}
    swept = tuple(space.values)
    return {
        key: str(value)
        for key, value in settings.items()
        if not any(key == name or key.startswith(f"{name}.") for name in swept)
    }
