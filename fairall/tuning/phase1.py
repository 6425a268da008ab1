"""Phase I as a trial: trained or taken from the cache, and measured on validation people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from omegaconf import DictConfig

from fairall.errors import FairAllError
from fairall.experiment import Job, cache_of, job
from fairall.measuring.selection import latent_selection_metrics
from fairall.models.latent_learner import LatentLearner
from fairall.models.phase1 import Phase1Task
from fairall.models.vae import ConditionalVAE
from fairall.nn.threads import use_threads
from fairall.results.terminal import Display
from fairall.runtime.process import prepare_processor, short_of_memory


def phase1_outcome(composed: DictConfig, known: Mapping[str, Any]) -> dict[str, Any]:
    """Identity and measures of Phase I of a configuration; `known`, if it is of the same identity.

    Args:
        composed: by Hydra, of type `Config`.
        known: outcome of an earlier call; it may be empty.

    Raises:
        FairAllError: if the configuration is invalid, or as `phase1_measures`.
    """
    composed.objective = []  # Phase I has further ones than a run
    task = job(composed)
    if known.get("identity") == task.identity:
        return {**known}
    return {"identity": task.identity, "measures": phase1_measures(task)}


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
    vae = _phase1_part(learner, learner.phase1_task(data, config.model.phase1))
    seeds = learner.setting.seeds
    measures = latent_selection_metrics(vae, vae.encode, data.train, data.validation, seeds)
    measures["phase1_validation_loss"] = curves.kept_loss.double().numpy()
    measures["phase1_best_epoch"] = curves.best_epoch.double().numpy()
    return {name: [float(value) for value in values] for name, values in measures.items()}


@torch.no_grad()
def _phase1_part(learner: LatentLearner, task: Phase1Task) -> ConditionalVAE:
    """The VAE of Phase I within a pretrained learner's: the inverse of `ConditionalVAE.transfer_from`."""
    pretrained = learner.model.vae
    vae = task.untrained_vae(task.streams())
    transferred = dict(pretrained.named_parameters())
    for name, own in vae.named_parameters():
        own.copy_(transferred[name][tuple(slice(size) for size in own.shape)])
    vae.frame.copy_(pretrained.frame)
    return vae
