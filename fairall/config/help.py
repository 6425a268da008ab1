"""What `--help` and `list` say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from string import Template

from omegaconf import OmegaConf

from fairall.config.compose import compose_config, searched_folder
from fairall.config.paths import configuration_root, sweeps_folder

# The groups that users choose from.
MAIN = ("model", "dataset", "initial_policy", "cost", "protocol", "preset", "sweeps")


def help_text(overrides: Sequence[str], own: str | None = None) -> str:
    """Groups with their choices, and every key with its value.

    Hydra would say the same, but also lists choices that hold types only, and takes a second: it copies all
    that is registered for each of a hundred questions about groups, most of them its own.

    Args:
        overrides: KEY=VALUE of the command line; the help is of the configuration that they choose.
        own: a folder of the user's configurations (`-cd`).

    Raises:
        hydra.errors.HydraException: as `compose_config`.
    """
    searched = [] if own is None else [searched_folder(Path(own))]
    template = OmegaConf.load(configuration_root() / "conf" / "config.yaml").hydra.help.template
    config = OmegaConf.to_yaml(compose_config(*searched, *overrides))
    groups = "".join(f"{group}: {', '.join(names)}\n" for group, names in sorted(_choices(own).items()))
    return Template(template).substitute(APP_CONFIG_GROUPS=groups, CONFIG=config)


def list_text(own: str | None = None) -> str:
    """What there is to choose from, a line for each group; `own` as in `help_text`."""
    lines = [f"{group}: {', '.join(names)}" for group, names in choices_of_groups(own).items()]
    return "\n".join(["Choose with GROUP=CHOICE; --help says more, and lists every key.", "", *lines])


def choices_of_groups(own: str | None = None) -> dict[str, list[str]]:
    """The choices of the groups that users choose from; `own` as in `help_text`."""
    choices = _choices(own)
    return {group: choices[group] for group in MAIN}


def _choices(own: str | None = None) -> dict[str, list[str]]:
    """The files of each folder of conf/, of sweeps/ and of the user's folder."""
    choices = defaultdict(list)
    for folder in (configuration_root() / "conf", *([] if own is None else [Path(own)])):
        for path in sorted(folder.glob("*/**/*.yaml")):
            if not path.is_relative_to(folder / "fewer"):  # preset=fast takes these by itself
                choices[path.parent.relative_to(folder).as_posix()].append(path.stem)
    choices["sweeps"] += sorted(path.stem for path in sweeps_folder().glob("[!_]*.yaml"))
    return choices
