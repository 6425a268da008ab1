"""One trial of a study: from its configuration to its objectives, or the reason of its failure."""

from __future__ import annotations

import math
import traceback
from typing import Any

import numpy as np
from omegaconf import DictConfig

from fairall.config.messages import ending, has_line, message
from fairall.config.schema import objectives_of
from fairall.display.progress import Display, say
from fairall.errors import FairAllError
from fairall.experiment import Job, cache_of, job, run
from fairall.measuring.selection import latent_selection_metrics
from fairall.models.latent_learner import LatentLearner
from fairall.runtime.process import prepare_processor, short_of_memory, use_threads
from fairall.tuning.objectives import directions_of, worst
from fairall.tuning.study import record
from fairall.tuning.sweep import study_name


def objectives_of_trial(composed: DictConfig, hydra: DictConfig, command: str) -> float | list[float]:
    """Run a point of a study and record its outcome in the study; an error is a failed trial.

    Where the database of studies cannot be used the process ends with one line.

    Args:
        composed: by Hydra, of type `Config`; `sweep.name` is set.
        hydra: its own node, with the words of the point.
        command: with the words of the point, for MLflow.

    Returns:
        The mean over seeds of the only objective, or one for each; the worst possible ones of a failed trial.
    """
    composed.sweep.name = study_name(composed, hydra.sweeper)
    outcome = outcome_of(composed, command)
    with ending():  # the point is run again at the next start
        say(record(composed.sweep.name, hydra.sweeper.storage, hydra.overrides.task, outcome))
    if "reason" in outcome:
        return worst(directions_of(hydra.sweeper))
    means = [float(np.mean(values)) for values in outcome["seeds"].values()]
    return means if len(means) > 1 else means[0]


def outcome_of(composed: DictConfig, command: str) -> dict[str, Any]:
    """The outcome of a point for `study.record`.

    Args:
        composed: by Hydra, of type `Config`; `sweep.trial` says what to run, `objective` what to measure.
        command: see `objectives_of_trial`.
    """
    objectives = objectives_of(composed.objective)
    try:
        if composed.sweep.trial == "phase1":
            composed.objective = []  # Phase I has further ones than a run
            outcome: dict[str, Any] = {}
            measures: Any = phase1_measures(job(composed))
        else:
            result = run(composed, display=Display(progress_only=True), command=command)
            outcome, measures = {"run": "/".join(result.path.parts[-3:])}, result.per_seed
        seeds = {measure: [*map(float, measures.get(measure, [math.nan]))] for measure in objectives}
        for measure, values in seeds.items():
            if not all(map(math.isfinite, values)):
                raise FairAllError(f"{measure} is not finite in some seeds")
        return outcome | {"seeds": seeds}
    except Exception as error:
        if has_line(error):
            return {"reason": message(error)}
        traceback.print_exc()
        return {"reason": f"{type(error).__name__}: {error}"}


@short_of_memory()
def phase1_measures(task: Job) -> dict[str, Any]:
    """Measures of Phase I, by name, one value per seed; its weights are kept in the cache.

    `reconstruction_loss` and `latent_s_dependence` as `latent_selection_metrics`; `phase1_validation_loss` as
    in a run's summary, which depends on β. Neither labels nor test people are used.

    Raises:
        FairAllError: if the method has no Phase I, or it diverges.
    """
    config, data, learner = task.config, task.data, task.learner
    if not isinstance(learner, LatentLearner) or learner.pretrain_units(data) == 0:
        raise FairAllError(f"sweep.trial=phase1: {config.model.name} has no Phase I")
    prepare_processor()
    use_threads(config.threads)
    display = Display(progress_only=True)
    with display.phase("Phase I", learner.pretrain_units(data)) as advance:
        curves = learner.pretrain(data, cache_of(config, display), advance)
    assert curves is not None
    # The VAE of Phase I within the learner's: the inverse of `ConditionalVAE.transfer_from`.
    phase1, phase2 = learner.phase1_task(data, config.model.phase1), learner.model.vae.state_dict()
    vae = phase1.untrained_vae(phase1.streams())
    weights = {name: phase2[name][tuple(map(slice, like.shape))] for name, like in vae.state_dict().items()}
    vae.load_state_dict(weights)
    measures = latent_selection_metrics(vae, vae.encode, data.train, data.validation, phase1.seeds)
    return {**measures, "phase1_validation_loss": curves.kept_loss}
