"""The sweeper of `--multirun sweeps=NAME`: trials of a shared study, done by Hydra's launchers.

Hydra's Optuna plugin keeps its list of trials in one process: restarted, it begins a grid anew, and two
processes on one study run points twice. Here the remaining points are read from the database.
"""

from __future__ import annotations

import math
import os
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from fairall.config.checks import at_least, one_of, positive
from fairall.config.schema import SweepConfig
from fairall.errors import FairAllError, count
from fairall.tuning.objectives import Objective, selected
from fairall.tuning.space import Space, words_of

if TYPE_CHECKING:
    from fairall.tuning.study import Rules, SharedStudy, Trial

TARGET = "hydra_plugins.fairall.StudySweeper"
"""Name of the sweeper; Hydra instantiates only plugins whose name starts with `hydra_plugins.`."""


class StudySweeper(Sweeper):
    """Runs the trials of a study until none remains; configured by `sweep`.

    Args:
        params: swept values by key as on the command line, `choice(1, 5, 10)`.
    """

    def __init__(self, params: DictConfig | None = None) -> None:
        self.params = cast(dict[str, str], OmegaConf.to_container(params) if params else {})

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra."""
        self.config = config
        self.hydra_context = hydra_context
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Called by Hydra with the overrides of the command line.

        Raises:
            FairAllError: if a value of `sweep` is invalid, or no trial succeeded.
        """
        from fairall.tuning.paper import paper_point
        from fairall.tuning.progress import Progress
        from fairall.tuning.samplers import SAMPLERS
        from fairall.tuning.storage import storage_url
        from fairall.tuning.study import Rules, SharedStudy
        from fairall.tuning.tracking import SweepTracker

        space, fixed = Space.parse(self.params, arguments)
        first = self._composed([*fixed, *words_of(next(space.points()))])
        requested = cast(SweepConfig, OmegaConf.to_object(first.sweep))
        objectives = validated(requested, first)
        target = space.size if requested.trials is None else min(requested.trials, space.size)
        name = requested.study or self.config.hydra.runtime.choices.get("sweeps") or "sweep"
        study = SharedStudy.begin(
            storage_url(requested.storage, first.outputs_dir),
            name,
            space=space,
            objectives=objectives,
            settings=_settings(first, space),
            target=target,
        )
        rules = Rules(
            SAMPLERS[requested.sampler],
            target,
            requested.attempts,
            requested.grace_seconds,
            requested.retry_failed,
            # A part of a grid begins with the paper's point, to compare with; a whole grid contains it.
            first={} if requested.sampler == "grid" else paper_point(study),
        )
        progress = Progress(study)
        progress.begin()
        with SweepTracker.following(first, study) as tracker:
            done = 0
            batch = requested.batch or _at_once(self.config.hydra.launcher)
            while trials := _claimed(study, rules, batch):
                words = [[*fixed, *words_of(trial.point), "tracking.enabled=false"] for trial in trials]
                with study.kept_alive(trials, rules):
                    outcomes = self._launched(words, done)
                done += len(trials)
                for trial, outcome in zip(trials, outcomes, strict=True):
                    ended = study.finish(trial, *judged(outcome, objectives))
                    progress.log(ended)
                    tracker.log_trial(ended, outcome.get("measures", {}))
            tracker.log_selected(selected(study.judged(), objectives))
        progress.end()
        if not study.judged():
            failed = [trial for trial in study.trials() if trial.state == "fail"]
            if failed:
                raise FairAllError(
                    f"no trial of {study.name} succeeded; the first: {failed[0].notes['reason']}"
                )

    def _launched(self, words: Sequence[Sequence[str]], done: int) -> list[dict[str, Any]]:
        """Outcomes of trials run by the launcher; an exception of the launcher fails all of them."""
        try:
            returns = self.launcher.launch([list(of_trial) for of_trial in words], initial_job_idx=done)
            return [job.return_value for job in returns]
        except Exception as error:
            traceback.print_exc()
            reason = str(error).strip().split("\n")[0]
            return [{"failed": f"the launcher: {type(error).__name__}: {reason}"} for _ in words]

    def _composed(self, words: Sequence[str]) -> DictConfig:
        """Configuration of a trial without the hydra node."""
        composed = self.hydra_context.config_loader.load_sweep_config(self.config, list(words)).copy()
        OmegaConf.set_struct(composed, False)
        del composed["hydra"]
        return composed


def register_sweeper() -> None:
    """Register the sweeper with Hydra without a `hydra_plugins` package, which every Hydra program loads."""
    Plugins.instance().class_name_to_class[TARGET] = StudySweeper


def judged(
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


def _claimed(study: SharedStudy, rules: Rules, batch: int) -> list[Trial]:
    """Claim up to `batch` trials; none where nothing remains."""
    trials: list[Trial] = []
    while len(trials) < batch and (trial := study.claim(rules)):
        trials.append(trial)
    return trials


def _at_once(launcher: DictConfig) -> int:
    """Number of trials a launcher runs at once: all cores for joblib and ray, submitit's jobs, else 1."""
    configured = {
        "n_jobs": OmegaConf.select(launcher, "n_jobs"),
        "array_parallelism": OmegaConf.select(launcher, "array_parallelism"),
        "ray": -1 if "ray" in launcher else None,
    }
    known = [number for number in configured.values() if number is not None]
    return 1 if not known else known[0] if known[0] > 0 else os.cpu_count() or 1


def validated(asked: SweepConfig, first: DictConfig) -> list[Objective]:
    """The objectives; raises FairAllError naming the key if a value is invalid."""
    from fairall.config.checks import plain_name
    from fairall.metrics import load_measures
    from fairall.tuning.samplers import SAMPLERS
    from fairall.tuning.trial import TRIALS

    if asked.study is not None:
        plain_name("sweep.study", asked.study)
    one_of("sweep.sampler", asked.sampler, tuple(SAMPLERS))
    one_of("sweep.trial", asked.trial, tuple(TRIALS))
    if asked.batch is not None:
        at_least("sweep.batch", asked.batch, 1)
    at_least("sweep.attempts", asked.attempts, 1)
    positive("sweep.grace_seconds", asked.grace_seconds)
    if asked.trials is not None:
        at_least("sweep.trials", asked.trials, 1)
    if not asked.objectives:
        raise FairAllError("sweep.objectives is empty: it needs at least one, as [maximize mean_utility]")
    if first.evaluation.split != "validation":
        raise FairAllError(
            f"evaluation.split={first.evaluation.split}: a sweep looks at validation people only; "
            "add evaluation.split=validation"
        )
    objectives = [Objective.parse(words) for words in asked.objectives]
    known = TRIALS[asked.trial].objectives(load_measures(first.evaluation.measures))
    for objective in objectives:
        if objective.measure not in known:
            raise FairAllError(
                f"sweep.objectives: sweep.trial={asked.trial} has no {objective.measure}; "
                f"there are {', '.join(known)}"
            )
    return objectives


def _settings(first: DictConfig, space: Space) -> dict[str, str]:
    """Values by key that determine the result of a trial besides its point."""
    from fairall.config.target import with_types
    from fairall.storage.identity import determining, flattened

    plain = cast(dict[str, Any], OmegaConf.to_container(with_types(first), resolve=True, enum_to_str=True))
    settings = {"sweep.trial": first.sweep.trial, **flattened(determining(plain))}
    swept = tuple(space.values)
    return {
        key: str(value)
        for key, value in settings.items()
        if not any(key == name or key.startswith(f"{name}.") for name in swept)
    }
