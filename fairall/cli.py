"""The command line: Hydra composes, `experiment.run` runs, mistakes come back as one line."""

from __future__ import annotations

import os
import sys

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from fairall.config import register_schemas
from fairall.errors import FairAllError
from fairall.explain import explain
from fairall.resources import configuration_root


class SweepsSearchPath(SearchPathPlugin):
    """Lets `sweeps=NAME` find the files of sweeps/, which lies beside conf/."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra before it composes."""
        search_path.append("fairall", f"file://{configuration_root()}")


@hydra.main(version_base="1.3", config_path=str(configuration_root() / "conf"), config_name="config")
def _task(composed: DictConfig) -> float:
    """One job; returns the objective that a sweep optimises."""
    from fairall.experiment import run

    figures = run(composed)["aggregate"].get(composed.objective)
    if figures is None:
        raise FairAllError(f"objective={composed.objective} is no figure of this run; see its summary.json")
    return figures["mean"]


def main() -> int:
    """Runs the command line; returns the exit code."""
    # Hydra then raises what it would otherwise print over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    register_schemas()
    Plugins.instance().register(SweepsSearchPath)
    try:
        _task()
    except (FairAllError, HydraException, OmegaConfBaseException) as error:
        print(f"fairall: {explain(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fairall: interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    return 0
