"""The command line: Hydra composes, `experiment.run` runs, mistakes come back as one line."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import shlex
import sys
import traceback
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.types import RunMode
from omegaconf import DictConfig

from fairall.config import register_schemas, register_sweeps
from fairall.errors import FairAllError
from fairall.explain import MISTAKES, tell
from fairall.help import help_text
from fairall.resources import configuration_root, sweeps_folder
from fairall.sweeps.sweeper import TARGET as SWEEPER
from fairall.sweeps.sweeper import register_sweeper


class _Work:
    """How far the command has come."""

    begun = False
    jobs_failed = False


GRID = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"


@hydra.main(version_base="1.3", config_path=str(configuration_root() / "conf"), config_name="config")
def _task(composed: DictConfig) -> float | dict[str, Any]:
    """One job; returns what the sweeper wants of it: the outcome of a trial, or the objective."""
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN and hydra_config.sweeper._target_ == SWEEPER:
        from fairall.sweeps.trial import outcome

        return outcome(composed)
    if hydra_config.mode == RunMode.MULTIRUN:
        return _trial(composed, worst=_worst(hydra_config))
    _Work.begun = True
    try:
        sweep = hydra_config.runtime.choices.get("sweeps")
        if sweep:
            raise FairAllError(f"sweeps={sweep} is a grid of runs: add --multirun")
        return _objective(composed)
    except MISTAKES as error:
        # Not an exception of the job: Hydra would add lines of its own.
        raise SystemExit(_say(error)) from None


def _watch(sweeper: Any) -> None:
    """Lets Hydra's own sweeper tell us whether all jobs did what they should."""
    sweep = sweeper.sweep

    def watched(self: Any, arguments: list[str]) -> Any:
        batches = sweep(self, arguments)
        returned = [job.return_value for batch in batches for job in batch]
        _Work.jobs_failed = any(isinstance(value, float) and math.isinf(value) for value in returned)
        return batches

    sweeper.sweep = watched


def _trial(composed: DictConfig, *, worst: float) -> float:
    """One job of several: what goes wrong in it is told, and does not end the others."""
    try:
        return _objective(composed)
    except MISTAKES as error:
        _say(error)
    except Exception:
        traceback.print_exc()
    return worst


def _objective(composed: DictConfig) -> float:
    from fairall.experiment import run

    try:
        summary, _ = run(composed)
    except RuntimeError as error:
        if "allocate memory" in str(error):  # torch has no exception of its own for it
            raise MemoryError from error
        raise
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
    # A sweep's log is for its trials; the database library beneath it tells of each of its parts.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    register_schemas()
    register_sweeps(sweeps_folder())
    # Hydra wants options before or after, but not among, what is about the configuration.
    sys.argv[1:] = sorted(sys.argv[1:], key=_is_override)
    try:
        if {"-h", "--help"} & set(sys.argv):
            print(help_text(sys.argv[1:]))
        else:
            _refuse_unknown_options(sys.argv[1:])
            register_sweeper()
            _watch(Plugins.instance().class_name_to_class[GRID])
            _task()
    except MISTAKES as error:
        return _say(error)
    except Exception as error:
        if _Work.begun:
            raise
        # Hydra's own code met words that it did not expect.
        return _say(FairAllError(f"cannot read {shlex.join(sys.argv[1:])}: {error}"))
    return 1 if _Work.jobs_failed else 0


def _is_override(word: str) -> bool:
    return "=" in word and not word.startswith("-")


def _refuse_unknown_options(words: list[str]) -> None:
    """Raises FairAllError where Hydra's parser would show its usage over many lines."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            get_args_parser().parse_args(words)
    except SystemExit as end:
        if end.code:
            raise FairAllError(said.getvalue().strip().split("error: ")[-1] + "; see --help") from end
        raise


def _say(error: Exception) -> int:
    return tell(error, sys.argv[1:])
