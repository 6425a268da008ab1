"""Phase I as a trial: trained or taken from the cache, and measured on validation people."""

from __future__ import annotations

import torch
from omegaconf import DictConfig

from fairall.config.validation import checked
from fairall.data.dataset import dataset
from fairall.errors import FairAllError
from fairall.experiment import phase1_cache
from fairall.models.latent_learner import LatentLearner
from fairall.models.learner import Setting
from fairall.models.phase1 import Phase1Task
from fairall.models.vae import ConditionalVAE
from fairall.nn.native.calls import use_threads
from fairall.results.selection import latent_selection_metrics
from fairall.results.terminal import Display
from fairall.runtime.process import prepare_processor, short_of_memory


@short_of_memory()
def phase1_measures(composed: DictConfig) -> dict[str, list[float | None]]:
    """Measures of Phase I, by name, one value per seed; its weights are kept in the cache.

    `reconstruction_loss` and `latent_s_dependence` as `latent_selection_metrics`; `phase1_validation_loss` as
    in a run's summary, which depends on β; `phase1_best_epoch`. Neither labels nor test people are used.

    Args:
        composed: by Hydra, of type `Config`.

    Raises:
        FairAllError: if the method has no Phase I, the configuration is invalid, or Phase I diverges.
    """
    config = checked(composed)
    prepare_processor()
    use_threads(config.threads)
    data = dataset(config.dataset).prepare(scaler=config.protocol.scaler)
    setting = Setting.of(data.schema, config)
    learner = config.model.build(setting)
    if not isinstance(learner, LatentLearner) or learner.pretrain_units(data) == 0:
        raise FairAllError(f"sweep.trial=phase1: {config.model.name} has no Phase I")
    display = Display()
    with display.phase("Phase I", learner.pretrain_units(data)) as advance:
        curves = learner.pretrain(data, phase1_cache(config, display), advance)
    assert curves is not None
    vae = _phase1_part(learner, learner.phase1_task(data, config.model.phase1))
    measures = latent_selection_metrics(vae, vae.encode, data.train, data.validation, setting.seeds)
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
