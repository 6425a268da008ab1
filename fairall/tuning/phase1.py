"""Phase I alone, as a trial: trained or found in the cache, and judged on validation people."""

from __future__ import annotations

import torch
from omegaconf import DictConfig

from fairall.config.target import target_class
from fairall.config.validation import checked
from fairall.data.dataset import dataset
from fairall.errors import FairAllError
from fairall.experiment import end_start_up, phase1_cache
from fairall.models.latent_learner import LatentLearner
from fairall.models.learner import Setting
from fairall.models.vae import ConditionalVAE
from fairall.randomness import SeedStreams
from fairall.results.selection import of_latent
from fairall.results.terminal import Display
from fairall.runtime.processor import prepare_processor, short_of_memory


@short_of_memory()
def phase1_figures(composed: DictConfig) -> dict[str, list[float | None]]:
    """Figures of a Phase I, by name one value per seed; its weights are in the cache for whoever wants them.

    `reconstruction_loss` and `latent_s_dependence` as `criteria.of_latent`; `phase1_validation_loss` as in a
    run's summary, which depends on β; `phase1_best_epoch`. Neither labels nor test people are looked at.

    Args:
        composed: by Hydra, of type `Config`.

    Raises:
        FairAllError: where the method has no Phase I, the configuration asks for something impossible, or
            Phase I diverges.
    """
    config, _ = checked(composed)
    prepare_processor(config.threads)
    data = dataset(config.dataset).prepare(scaler=config.protocol.scaler)
    setting = Setting.of(data.schema, config)
    learner = target_class(config.model, "model")(config.model, setting)
    if not isinstance(learner, LatentLearner) or learner.pretrain_units() == 0:
        raise FairAllError(f"sweep.trial=phase1: {config.model.name} has no Phase I")
    end_start_up()
    display = Display()
    with display.phase("Phase I", learner.pretrain_units()) as advance:
        curves = learner.pretrain(data, phase1_cache(config, display), advance)
    assert curves is not None
    vae = _phase1_part(learner)
    figures = of_latent(vae, vae.encode, data.train, data.validation, setting.seeds)
    figures["phase1_validation_loss"] = curves.kept_loss.double().numpy()
    figures["phase1_best_epoch"] = curves.best_epoch.double().numpy()
    return {name: [float(value) for value in values] for name, values in figures.items()}


@torch.no_grad()
def _phase1_part(learner: LatentLearner) -> ConditionalVAE:
    """The VAE of Phase I out of a pretrained learner's: `ConditionalVAE.transfer_from` backwards."""
    pretrained = learner.model.vae
    vae = learner.phase1_vae(SeedStreams(learner.setting.seeds, "phase1"))
    transferred = dict(pretrained.named_parameters())
    for name, own in vae.named_parameters():
        own.copy_(transferred[name][tuple(slice(size) for size in own.shape)])
    vae.frame.copy_(pretrained.frame)
    return vae
