"""The command line: Hydra composes, `experiment.run` runs, mistakes come back as one line."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from fairall import stopping
from fairall.config import register_schemas, register_sweeps
from fairall.errors import FairAllError
from fairall.explain import MISTAKES, tell
from fairall.help import help_text
from fairall.resources import configuration_root, sweeps_folder
from fairall.sweeps.sweeper import TARGET as SWEEPER
from fairall.sweeps.sweeper import register_sweeper


@hydra.main(version_base="1.3", config_path=str(configuration_root() / "conf"), config_name="config")
def _task(composed: DictConfig) -> float | dict[str, Any]:
    """One job; returns what the sweeper wants of it: the outcome of a trial, or the objective."""
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN and hydra_config.sweeper._target_ == SWEEPER:
        from fairall.sweeps.trial import outcome

        return outcome(composed)
    if hydra_config.mode == RunMode.MULTIRUN:
        return _trial(composed, worst=_worst(hydra_config))
    try:
        sweep = hydra_config.runtime.choices.get("sweeps")
        if sweep:
            raise FairAllError(f"sweeps={sweep} is a grid of runs: add --multirun")
        return _objective(composed)
    except MISTAKES as error:
        # Not an exception of the job: Hydra would add lines of its own.
        raise SystemExit(_say(error)) from None


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
    stopping.listen()
    # Hydra then raises what it would otherwise print over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    # A sweep's log is for its trials; the database library beneath it tells of each of its parts.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    register_schemas()
    register_sweeps(sweeps_folder())
    try:
        if {"-h", "--help"} & set(sys.argv):
            print(help_text(sys.argv[1:]))
        else:
            register_sweeper()
            _task()
    except MISTAKES as error:
        return _say(error)
    except KeyboardInterrupt as interruption:
        print("fairall: interrupted; the same command goes on from what was saved", file=sys.stderr)
        return stopping.exit_code(interruption)
    return 0


def _say(error: Exception) -> int:
    return tell(error, sys.argv[1:])
