"""One run of a study: from its configuration to its objectives, or the reason of its failure."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from fairall.config.messages import has_line, message
from fairall.display.console import say
from fairall.display.progress import Display
from fairall.errors import FairAllError, count
from fairall.experiment import Job, cache_of, job, run
from fairall.measuring.selection import latent_selection_metrics
from fairall.models.latent_learner import LatentLearner
from fairall.nn.native import use_threads
from fairall.runtime.process import prepare_processor, short_of_memory
from fairall.tuning.objectives import worst
from fairall.tuning.study import Study, summary
from fairall.tuning.sweep import study_name


def objectives_of_trial(composed: DictConfig, hydra: DictConfig, command: str) -> float | list[float]:
    """Run a point of a study and record its outcome; an error is a failed point.

    Args:
        composed: by Hydra, of type `Config`; `sweep.name` is set.
        hydra: its own node, with the words of the point.
        command: that runs the same alone, for MLflow.

    Returns:
        The mean over seeds of the only objective, or one for each; the worst possible ones of a failed point.
    """
    composed.sweep.name = study_name(composed, hydra.sweeper)
    study = Study.load(composed.sweep.name, Path(composed.outputs_dir))
    point = study.space.point(hydra.overrides.task)
    known = study.outcome(study.number(point))
    outcome = outcome_of(composed, known, command)
    if "reason" not in outcome:
        values = study.values_of(outcome)
        for measure, by_seed in values.replace([np.inf, -np.inf], np.nan).items():
            if lacking := int(by_seed.isna().sum()):
                outcome["reason"] = f"{measure} is not a number in {lacking} of {count(len(values), 'seed')}"
    if outcome != known:
        number = study.record(point, outcome)
        result = outcome.get("reason") or summary(values)
        of = f"{study.tried} tried" if study.space.size is None else f"{study.tried} of {study.space.size}"
        say(f"{of}  {study.line(number, result)}")
    if "reason" in outcome:
        return worst([*study.objectives.values()])
    means = [float(mean) for mean in values.mean()]
    return means if len(means) > 1 else means[0]


def outcome_of(composed: DictConfig, known: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The outcome of a point for `Study.record`.

    Args:
        composed: by Hydra, of type `Config`; `sweep.trial` says what to run.
        known: what was recorded of the point before.
        command: see `objectives_of_trial`.
    """
    try:
        if composed.sweep.trial == "phase1":
            composed.objective = []  # Phase I has further ones than a run
            task = job(composed)
            if known.get("identity") == task.identity:
                return {**known}
            return {"identity": task.identity, "measures": phase1_measures(task)}
        result = run(composed, display=Display(progress_only=True), command=command)
        return {"run": "/".join(result.path.parts[-3:])}
    except Exception as error:
        if has_line(error):
            return {"reason": message(error, [])}
        traceback.print_exc()
        lines = str(error).strip().splitlines()
        return {"reason": f"{type(error).__name__}: {lines[0] if lines else ''}"}


@short_of_memory()
def phase1_measures(task: Job) -> dict[str, list[float]]:
    """Measures of Phase I, by name, one value per seed; its weights are kept in the cache.

    `reconstruction_loss` and `latent_s_dependence` as `latent_selection_metrics`; `phase1_validation_loss` as
    in a run's summary, which depends on β; `phase1_best_epoch`. Neither labels nor test people are used.

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
    task_of_vae, pretrained = learner.phase1_task(data, config.model.phase1), learner.model.vae
    vae, transferred = task_of_vae.untrained_vae(task_of_vae.streams()), dict(pretrained.named_parameters())
    for name, own in vae.named_parameters():
        own.data.copy_(transferred[name][tuple(slice(size) for size in own.shape)])
    vae.frame.copy_(pretrained.frame)
    seeds = learner.setting.seeds
    measures = latent_selection_metrics(vae, vae.encode, data.train, data.validation, seeds)
    measures["phase1_validation_loss"] = curves.kept_loss.double().numpy()
    measures["phase1_best_epoch"] = curves.best_epoch.double().numpy()
    return {name: [float(value) for value in values] for name, values in measures.items()}
