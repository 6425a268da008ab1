"""Configurations of sweeps with Hydra's part of them."""

import functools

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from fairall.config.choices import configuration_root
from fairall.config.compose import register


@functools.cache
def composed(*words: str) -> DictConfig:
    """The configuration that `python -m fairall --multirun *words` hands to the sweeper."""
    register()
    with initialize_config_dir(str(configuration_root() / "conf"), version_base="1.3"):
        return compose("config", overrides=list(words), return_hydra_config=True)
