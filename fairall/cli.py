"""The command line: Hydra composes, `experiment.run` runs, mistakes come back as one line."""

from __future__ import annotations

import os
import sys

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from fairall.config import register_schemas, register_sweeps
from fairall.errors import FairAllError
from fairall.explain import explain
from fairall.resources import configuration_root


@hydra.main(version_base="1.3", config_path=str(configuration_root() / "conf"), config_name="config")
def _task(composed: DictConfig) -> float:
    """One job; returns the objective that a sweep optimises."""
    try:
        from fairall.experiment import run

        return run(composed)["aggregate"][composed.objective]["mean"]
    except (FairAllError, OmegaConfBaseException) as error:
        # Not an exception of the job: Hydra would add lines of its own.
        raise SystemExit(_say(error)) from None


def main() -> int:
    """Runs the command line; returns the exit code."""
    # Hydra then raises what it would otherwise print over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    register_schemas()
    register_sweeps(configuration_root() / "sweeps")
    try:
        _task()
    except (HydraException, OmegaConfBaseException) as error:
        return _say(error)
    except KeyboardInterrupt:
        print("fairall: interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


def _say(error: Exception) -> int:
    print(f"fairall: {explain(error, sys.argv[1:])}", file=sys.stderr)
    return 1
