"""The entry point: Hydra composes the configuration, `experiment.run` runs it."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

import fairall
from fairall.config.compose import register
from fairall.config.help import help_text
from fairall.config.messages import USER_ERRORS, raised_by_hydra, report_error
from fairall.config.paths import configuration_root
from fairall.config.schema import objectives_of
from fairall.errors import FairAllError
from fairall.runtime.process import prepare_process, run_command
from fairall.tuning.sweeper import TARGET as STUDY_SWEEPER
from fairall.tuning.sweeper import directions_of, register_sweeper


class JobFailedError(Exception):
    """A job of `--multirun` failed; its reason has been printed."""


@hydra.main(version_base="1.3", config_path=str(configuration_root() / "conf"), config_name="config")
def main(composed: DictConfig) -> float | list[float] | dict[str, Any]:
    """Run one job and return what its sweeper needs: the outcome of a trial, or the objectives."""
    prepare_process()  # again, since a launcher may have started a process for the job
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN:
        sources = hydra_config.runtime.config_sources
        folders = [source.path for source in sources if source.provider == "command-line"]
        words = [word for folder in folders for word in ("-cd", folder)]
        return _job_of_several(composed, hydra_config.sweeper, [*words, *hydra_config.overrides.task])
    try:
        sweep = hydra_config.runtime.choices.get("sweeps")
        if sweep:
            raise FairAllError(f"sweeps={sweep} is a grid of runs: add --multirun")
        return _objective(composed, sys.argv[1:])
    except USER_ERRORS as error:
        # SystemExit, since Hydra adds lines of its own to an exception of the job.
        raise SystemExit(report_error(error, sys.argv[1:])) from None


def _job_of_several(
    composed: DictConfig, sweeper: DictConfig, words: list[str]
) -> float | list[float] | dict[str, Any]:
    """A job of `--multirun`; a failing one does not end the others."""
    if sweeper._target_ == STUDY_SWEEPER:
        from fairall.tuning.trial import outcome

        return outcome(composed)
    try:
        return _objective(composed, words)
    except USER_ERRORS as error:
        report_error(error, words)
    except Exception:
        traceback.print_exc()
    if "direction" not in sweeper:
        raise JobFailedError
    # An optimiser, which goes on after a bad trial.
    worst = [math.inf if direction == "minimize" else -math.inf for direction in directions_of(sweeper)]
    return worst if len(worst) > 1 else worst[0]


def _objective(composed: DictConfig, words: list[str]) -> float | list[float]:
    from fairall.experiment import run

    result = run(composed, command=shlex.join(["python", "-m", "fairall", *words]))
    values = []
    for objective in objectives_of(composed.objective):
        measured = result.spread(objective)
        if measured is None:
            raise FairAllError(f"objective={objective} has no value in this run: see its summary.json")
        values.append(measured.mean)
    return values[0] if isinstance(composed.objective, str) else values


def cli() -> int:
    """Run the command line and return the exit code."""
    return run_command(_run)


def _run(words: list[str]) -> int:
    try:
        register()
        register_sweeper()
        if "--version" in words:  # Hydra's parser would print that of Hydra
            print(f"fairall {fairall.__version__}")
            return 0
        options = _options(words)
        if options.help:
            print(help_text(options.overrides, options.config_dir))
        elif options.overrides[:1] == ["list"]:
            from fairall.report.listing import show_list

            show_list(options.overrides[1:], options.config_dir)
        elif options.overrides[:1] == ["show"]:
            from fairall.report.show import show

            show(options.overrides[1:])
        else:
            main()
    except JobFailedError:
        return 1
    except USER_ERRORS as error:
        return report_error(error, words)
    except Exception as error:
        if not raised_by_hydra(error):
            raise
        return report_error(FairAllError(f"cannot read {shlex.join(words)}: {error}"), words)
    return 0


def _options(words: list[str]) -> argparse.Namespace:
    """The options of Hydra's command line, by its own parser.

    Raises:
        FairAllError: where Hydra could not read the words.
    """
    parser = get_args_parser()
    parser.allow_abbrev = False
    parser.error = _refuse
    options = parser.parse_intermixed_args(words)
    try:
        parser.parse_args(words)
    except FairAllError as error:
        first = [word for word in words if word not in options.overrides]
        ordered = shlex.join(["python", "-m", "fairall", *first, *options.overrides])
        raise FairAllError(f"options go before or after all KEY=VALUE: {ordered}") from error
    if options.config_dir is not None and not Path(options.config_dir).is_dir():
        raise FairAllError(f"-cd {options.config_dir}: there is no such folder")
    return options


def _refuse(message: str) -> NoReturn:
    """Raise FairAllError, where argparse would print its usage over many lines."""
    raise FairAllError(f"{message}; see --help")


if __name__ == "__main__":
    sys.exit(cli())
