"""A run, and what Hydra's options ask for in its place."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import NoReturn

from omegaconf import OmegaConf

import fairall
from fairall.cli.parser import COMMANDS, EXIT_CODES
from fairall.config.choices import choices, configuration_root
from fairall.config.compose import compose_config, register, searched_folder
from fairall.config.messages import USER_ERRORS, raised_by_hydra, report_error, unexpected, unreadable
from fairall.errors import FairAllError
from fairall.main import JobFailedError, outcomes
from fairall.main import main as by_hydra
from fairall.runtime.process import USAGE

# Options of Hydra's command line, without and with a value.
FLAGS = (
    "--help -h",
    "--version",
    "--hydra-help",
    "--multirun -m",
    "--run -r",
    "--resolve",
    "--shell-completion -sc",
)
WITH_VALUE = (
    "--config-dir -cd",
    "--config-name -cn",
    "--config-path -cp",
    "--package -p",
    "--experimental-rerun",
)
INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


class UsageError(FairAllError):
    """Options that a run does not take, or in a wrong place."""


def run(words: list[str]) -> int:
    """Run what the words configure, or print what their options ask for; return the exit code."""
    sys.argv[1:] = words  # which Hydra reads
    try:
        register()
        if "--version" in words:  # Hydra's parser would print that of Hydra
            print(f"fairall {fairall.__version__}")
            return 0
        if words and words[0][:1] not in "-+~" and "=" not in words[0]:
            raise FairAllError(unreadable(words[0]))  # not what the parser says of a verb's options
        options = _options(words)
        if options.help:
            print(_help(options.overrides, options.config_dir))
        else:
            outcomes.clear()
            by_hydra()
            return int(set(outcomes) == {False})  # an optimiser goes on after a run that fails
    except JobFailedError:
        return 1
    except UsageError as error:
        report_error(error, words)
        return USAGE
    except USER_ERRORS as error:
        return report_error(error, words)
    except Exception as error:
        if type(error).__name__ == "StorageInternalError":  # of Optuna, which a sweep alone imports
            from fairall.tuning.study import unusable

            return report_error(FairAllError(unusable(error)), words)
        if not raised_by_hydra(error):
            raise
        return report_error(FairAllError(unexpected(error, words)), words)
    return 0


def _help(overrides: Sequence[str], own: str | None) -> str:
    """Verbs, exit codes, groups with their choices, and every key with its value under `overrides`.

    Hydra's own help takes a second longer and lists its own groups too. `own` is the folder of `-cd`.
    """
    searched = [] if own is None else [searched_folder(Path(own))]
    template = OmegaConf.load(configuration_root() / "conf" / "config.yaml").hydra.help.template
    verbs = "".join(f"  {f'{name} {of.takes}':<24} {of.does}\n" for name, of in COMMANDS.items())
    groups = "".join(f"{group}: {', '.join(names)}\n" for group, names in sorted(choices(own).items()))
    return Template(template).substitute(
        VERBS=verbs,
        EXIT_CODES=EXIT_CODES,
        APP_CONFIG_GROUPS=groups,
        CONFIG=OmegaConf.to_yaml(compose_config(*searched, *overrides)),
    )


def _options(words: list[str]) -> argparse.Namespace:
    """The options of Hydra's command line.

    Raises:
        UsageError: where Hydra could not read the options.
        FairAllError: where the folder of `-cd` is not there.
    """
    parser = _parser()
    options = parser.parse_intermixed_args(words)
    try:
        parser.parse_args(words)
    except UsageError as error:
        first = (word for word in words if word not in options.overrides)
        ordered = shlex.join(["python", "-m", "fairall", *first, *options.overrides])
        raise UsageError(f"options go before or after all KEY=VALUE: {ordered}") from error
    if options.config_dir is not None and not Path(options.config_dir).is_dir():
        raise FairAllError(f"-cd {options.config_dir}: there is no such folder")
    return options


def _parser() -> argparse.ArgumentParser:
    """A parser of Hydra's options that raises UsageError, where Hydra's prints its usage in many lines."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = _refuse  # type: ignore[method-assign]
    parser.add_argument("overrides", nargs="*")
    for names in FLAGS:
        parser.add_argument(*names.split(), action="store_true")
    for names in WITH_VALUE:
        parser.add_argument(*names.split())
    parser.add_argument("--cfg", "-c", choices=("job", "hydra", "all"))
    parser.add_argument("--info", "-i", nargs="?", const="all", choices=INFO)
    return parser


def _refuse(message: str) -> NoReturn:
    raise UsageError(f"{message}; see --help")
