"""Text of `--help`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from omegaconf import OmegaConf

from fairall.config.choices import choices
from fairall.config.compose import compose_config, searched_folder
from fairall.config.paths import configuration_root


def help_text(overrides: Sequence[str], own: str | None = None) -> str:
    """Groups with their choices, and every key with its value.

    Hydra's own help takes a second longer and lists its own groups too.

    Args:
        overrides: KEY=VALUE of the command line, which determine the values shown.
        own: a folder of the user's configurations (`-cd`).

    Raises:
        FairAllError: as `compose_config`.
    """
    searched = [] if own is None else [searched_folder(Path(own))]
    template = OmegaConf.load(configuration_root() / "conf" / "config.yaml").hydra.help.template
    config = OmegaConf.to_yaml(compose_config(*searched, *overrides))
    groups = "".join(f"{group}: {', '.join(names)}\n" for group, names in sorted(choices(own).items()))
    return Template(template).substitute(APP_CONFIG_GROUPS=groups, CONFIG=config)
