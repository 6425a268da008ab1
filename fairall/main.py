"""The command line: Hydra composes, `experiment.run` runs, mistakes come back as one line."""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.types import RunMode
from omegaconf import DictConfig

import fairall
from fairall.config.help import help_text, list_text
from fairall.config.messages import USER_ERRORS, report_error
from fairall.config.paths import configuration_root, sweeps_folder
from fairall.config.schema import register_schemas, register_sweeps
from fairall.errors import FairAllError
from fairall.runtime import signals, terminal
from fairall.tuning.sweeper import TARGET as SWEEPER
from fairall.tuning.sweeper import register_sweeper

GRID = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"


@hydra.main(version_base="1.3", config_path=str(configuration_root() / "conf"), config_name="config")
def _task(composed: DictConfig) -> float | dict[str, Any]:
    """One job; returns what the sweeper wants of it: the outcome of a trial, or the objective."""
    signals.listen()  # in a process of a launcher's, too
    terminal.prepare()
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN and hydra_config.sweeper._target_ == SWEEPER:
        from fairall.tuning.trial import outcome

        return outcome(composed)
    if hydra_config.mode == RunMode.MULTIRUN:
        return _trial(composed, worst=_worst(hydra_config))
    try:
        sweep = hydra_config.runtime.choices.get("sweeps")
        if sweep:
            raise FairAllError(f"sweeps={sweep} is a grid of runs: add --multirun")
        return _objective(composed)
    except USER_ERRORS as error:
        # Not an exception of the job: Hydra would add lines of its own.
        raise SystemExit(_say(error)) from None


def _trial(composed: DictConfig, *, worst: float) -> float:
    """One job of several: what goes wrong in it is told, and does not end the others."""
    try:
        return _objective(composed)
    except USER_ERRORS as error:
        _say(error)
    except Exception:
        traceback.print_exc()
    return worst


def _objective(composed: DictConfig) -> float:
    from fairall.experiment import run

    summary, _ = run(composed)
    figures = summary["aggregate"][composed.objective]
    if figures is None:
        raise FairAllError(f"objective={composed.objective} has no value in this run: see its summary.json")
    return figures["mean"]


def _worst(hydra_config: DictConfig) -> float:
    """The objective of a failed trial."""
    return float("inf") if hydra_config.sweeper.get("direction") == "minimize" else float("-inf")


def main() -> int:
    """Runs the command line; returns the exit code."""
    # Hydra then raises what it would otherwise print over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    register_schemas()
    register_sweeps(sweeps_folder())
    try:
        arguments = _parsed(sys.argv[1:])
        if arguments.help:
            print(help_text(arguments.overrides, arguments.config_dir))
            return 0
        if arguments.overrides == ["list"]:
            print(list_text(arguments.config_dir))
            return 0
        if "--version" in sys.argv:
            print(f"fairall {fairall.__version__}")
            return 0
        sys.argv[1:] = _options_first(sys.argv[1:], arguments.overrides)
        register_sweeper()
        with _returned_by_jobs() as returned:
            _task()
    except USER_ERRORS as error:
        return _say(error)
    except Exception as error:
        if not _raised_by_hydra(error):
            raise
        return _say(FairAllError(f"cannot read {shlex.join(sys.argv[1:])}: {error}"))
    return 1 if any(isinstance(value, float) and math.isinf(value) for value in returned) else 0


def _parsed(words: list[str]) -> argparse.Namespace:
    """The options of a command line, and its `overrides`.

    Raises:
        FairAllError: where Hydra's parser would show its usage over many lines.
    """
    parser = get_args_parser()
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return parser.parse_intermixed_args([word for word in words if word != "--version"])
    except SystemExit as end:
        raise FairAllError(said.getvalue().strip().split("error: ")[-1] + "; see --help") from end


def _options_first(words: list[str], overrides: list[str]) -> list[str]:
    """The words of the command line as Hydra's parser wants them: options first, then the configuration's."""
    options = list(words)
    for word in overrides:
        options.remove(word)
    return [*options, *overrides]


@contextlib.contextmanager
def _returned_by_jobs() -> Iterator[list[Any]]:
    """What the jobs of Hydra's own sweeper have returned, once all have ended."""
    sweeper: Any = Plugins.instance().class_name_to_class[GRID]
    sweep = sweeper.sweep
    returned: list[Any] = []

    def noted(self: Any, arguments: list[str]) -> Any:
        batches = sweep(self, arguments)
        returned.extend(job.return_value for batch in batches for job in batch)
        return batches

    sweeper.sweep = noted
    try:
        yield returned
    finally:
        sweeper.sweep = sweep


def _raised_by_hydra(error: Exception) -> bool:
    """Whether Hydra's own code met words that it did not expect; anything else is a defect of ours."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].split(".")[0] in ("hydra", "omegaconf", "antlr4", "yaml")


def _say(error: Exception) -> int:
    return report_error(error, sys.argv[1:])
