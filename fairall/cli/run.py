"""A run, and what Hydra's options ask for in its place."""

from __future__ import annotations

import sys

from hydra._internal.utils import get_args_parser

from fairall.cli.parser import parser
from fairall.config.compose import register
from fairall.config.messages import report_error
from fairall.errors import FairAllError
from fairall.main import JobFailedError, outcomes
from fairall.main import main as by_hydra


def run(words: list[str]) -> int:
    """Run what the words configure, or print what their options ask for; return the exit code."""
    try:
        register()
        hydra = get_args_parser()
        hydra.error = parser().error  # one line
        overrides = hydra.parse_intermixed_args(words).overrides
        # Hydra reads these, and takes options before all KEY=VALUE alone.
        sys.argv[1:] = [*(word for word in words if word not in overrides), *overrides]
        outcomes.clear()
        by_hydra()
        return int(set(outcomes) == {False})  # an optimiser goes on after a run that fails
    except JobFailedError:
        return 1
    except Exception as error:
        if type(error).__name__ == "StorageInternalError":  # of Optuna, which a sweep alone imports
            from fairall.tuning.study import unusable

            return report_error(FairAllError(unusable(error)))
        return report_error(error)
