"""One trial of a study: from a composed configuration to its measures, or the reason of its failure."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from fairall.config.messages import USER_ERRORS, message
from fairall.metrics import Measure, summaries
from fairall.results.selection import LATENT_SELECTION, SELECTION

Measures = dict[str, list[float | None]]
"""One value per seed, by name."""


def outcome(composed: DictConfig) -> dict[str, Any]:
    """Run a trial; return errors instead of raising them, so that the other trials run.

    Args:
        composed: by Hydra, of type `Config`; `sweep.trial` says what to run.

    Returns:
        `measures` (by name, one value per seed), `notes` and `seconds`; or `failed`, the reason.
    """
    started = time.monotonic()
    try:
        measures, notes = TRIALS[composed.sweep.trial].do(composed)
    except USER_ERRORS as error:
        return {"failed": message(error, [])}
    except Exception as error:
        traceback.print_exc()
        return {
            "failed": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
        }
    return {"measures": measures, "notes": notes, "seconds": round(time.monotonic() - started, 1)}


def _whole_run(composed: DictConfig) -> tuple[Measures, dict[str, Any]]:
    """Measures of a whole run on validation people, and its folder."""
    from fairall.experiment import run
    from fairall.results.terminal import Display

    summary, folder = run(composed, Display(progress_only=True))
    names = [name for name in summary["per_seed"][0] if name != "seed"]
    figures = {name: [seed[name] for seed in summary["per_seed"]] for name in names}
    return figures, {"run": str(folder)}


def _phase1(composed: DictConfig) -> tuple[Measures, dict[str, Any]]:
    """Phase I alone."""
    from fairall.tuning.phase1 import phase1_measures

    return phase1_measures(composed), {}


@dataclass(frozen=True)
class Kind:
    """A kind of trial.

    Attributes:
        do: from a composed configuration to measures and notes.
        objectives: names of its measures that can be objectives, from the measures of the configuration.
    """

    do: Callable[[DictConfig], tuple[Measures, dict[str, Any]]]
    objectives: Callable[[Sequence[Measure]], list[str]]


TRIALS = {
    "run": Kind(_whole_run, lambda measures: [*(one.name for one in summaries(measures)), *SELECTION]),
    "phase1": Kind(_phase1, lambda _: [*LATENT_SELECTION, "phase1_validation_loss"]),
}
"""Kinds of trial by value of `sweep.trial`."""
