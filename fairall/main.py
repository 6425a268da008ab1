"""A job: Hydra composes the configuration, `experiment.run` runs it."""

from __future__ import annotations

import shlex
import sys
import traceback

import hydra
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from fairall.config.choices import configuration_root
from fairall.config.messages import has_line, report_error
from fairall.config.schema import objectives_of
from fairall.errors import FairAllError
from fairall.runtime.process import prepare_process
from fairall.tuning.objectives import directions_of, refuse_test_people, worst

outcomes: list[bool] = []  # whether the jobs of `--multirun` in this process have succeeded


class JobFailedError(Exception):
    """A job of `--multirun` failed; its reason has been printed."""


@hydra.main(version_base="1.3", config_path=str(configuration_root() / "conf"), config_name="config")
def main(composed: DictConfig) -> float | list[float]:
    """Run one job and return the objectives, for a sweeper."""
    prepare_process()  # again, since a launcher may have started a process for the job
    hydra_config = HydraConfig.get()
    if hydra_config.mode == RunMode.MULTIRUN:
        sources = hydra_config.runtime.config_sources
        folders = [
            word for source in sources if source.provider == "command-line" for word in ("-cd", source.path)
        ]
        return _job_of_several(composed, hydra_config, [*folders, *hydra_config.overrides.task])
    try:
        sweep = hydra_config.runtime.choices.get("sweeps")
        if sweep:
            raise FairAllError(f"sweeps={sweep} is a grid of runs: add --multirun")
        return _objective(composed, sys.argv[1:])
    except Exception as error:
        # SystemExit, since Hydra adds lines of its own to an exception of the job.
        raise SystemExit(report_error(error)) from None


def _job_of_several(composed: DictConfig, hydra_config: HydraConf, words: list[str]) -> float | list[float]:
    """A job of `--multirun`; a failing one does not end the others, one on the wrong people does."""
    try:
        # Again: a swept key may have another value than at the start.
        refuse_test_people(composed, hydra_config.sweeper, words)
    except FairAllError as error:
        report_error(error)
        raise JobFailedError from None
    if composed.sweep.trial is not None:
        from fairall.tuning.trial import objectives_of_trial

        return objectives_of_trial(composed, hydra_config, shlex.join(["python", "-m", "fairall", *words]))
    outcomes.append(True)
    try:
        return _objective(composed, words)
    except Exception as error:
        outcomes[-1] = False
        if has_line(error):
            report_error(error)
        else:
            traceback.print_exc()
    if "direction" not in hydra_config.sweeper:
        raise JobFailedError
    return worst(directions_of(hydra_config.sweeper))  # an optimiser, which goes on


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
