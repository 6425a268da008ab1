"""What `--help` says: the template of conf/config.yaml, filled in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from string import Template

from omegaconf import OmegaConf

from fairall.compose import compose_config
from fairall.resources import configuration_root, sweeps_folder


def help_text(words: Sequence[str]) -> str:
    """Groups with their choices, and every key with its value.

    Hydra would say the same, but also lists choices that hold types only, and takes a second: it copies all
    that is registered for each of a hundred questions about groups, most of them its own.

    Args:
        words: of the command line; the help is of the configuration that they choose.

    Raises:
        hydra.errors.HydraException: as `compose_config`.
    """
    overrides = [word for word in words if not word.startswith("-")]
    template = OmegaConf.load(configuration_root() / "conf" / "config.yaml").hydra.help.template
    config = OmegaConf.to_yaml(compose_config(*overrides))
    return Template(template).substitute(APP_CONFIG_GROUPS=_groups(), CONFIG=config)


def _groups() -> str:
    """A line for each folder of conf/, and for sweeps/, with the names of the files in it."""
    folder = configuration_root() / "conf"
    choices = defaultdict(list)
    for path in sorted(folder.glob("*/**/*.yaml")):
        if path.is_relative_to(folder / "fewer"):
            continue  # preset=fast takes these by itself
        choices[path.parent.relative_to(folder).as_posix()].append(path.stem)
    choices["sweeps"] = sorted(path.stem for path in sweeps_folder().glob("[!_]*.yaml"))
    return "".join(f"{group}: {', '.join(names)}\n" for group, names in sorted(choices.items()))
