"""One run of a study: from its configuration to its objectives, or the reason of its failure."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from fairall.config.messages import has_line, message
from fairall.errors import count
from fairall.experiment import run
from fairall.results.terminal import Display
from fairall.runtime.console import say
from fairall.tuning.objectives import worst
from fairall.tuning.phase1 import phase1_outcome
from fairall.tuning.study import Study, summary
from fairall.tuning.sweep import study_name


def objectives_of_trial(composed: DictConfig, hydra: DictConfig, command: str) -> float | list[float]:
    """Run a point of a study and record its outcome; an error is a failed point.

    Args:
        composed: by Hydra, of type `Config`; `sweep.name` is set.
        hydra: its own node, with the words of the point.
        command: that runs the same alone, for MLflow.

    Returns:
        The mean over seeds of the only objective, or one for each; the worst possible ones of a failed point.
    """
    composed.sweep.name = study_name(composed, hydra.sweeper)
    study = Study.load(composed.sweep.name, Path(composed.outputs_dir))
    point = study.space.point(hydra.overrides.task)
    known = study.outcome(study.number(point))
    outcome = outcome_of(composed, known, command)
    if "reason" not in outcome:
        values = study.values_of(outcome)
        for measure, by_seed in values.replace([np.inf, -np.inf], np.nan).items():
            if lacking := int(by_seed.isna().sum()):
                outcome["reason"] = f"{measure} is not a number in {lacking} of {count(len(values), 'seed')}"
    if outcome != known:
        number = study.record(point, outcome)
        result = outcome.get("reason") or summary(values)
        of = f"{study.tried} tried" if study.space.size is None else f"{study.tried} of {study.space.size}"
        say(f"{of}  {study.line(number, result)}")
    if "reason" in outcome:
        return worst([*study.objectives.values()])
    means = [float(mean) for mean in values.mean()]
    return means if len(means) > 1 else means[0]


def outcome_of(composed: DictConfig, known: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The outcome of a point for `Study.record`.

    Args:
        composed: by Hydra, of type `Config`; `sweep.trial` says what to run.
        known: what was recorded of the point before.
        command: see `objectives_of_trial`.
    """
    try:
        if composed.sweep.trial == "phase1":
            return phase1_outcome(composed, known)
        result = run(composed, Display(progress_only=True), command=command)
        return {"run": "/".join(result.path.parts[-3:])}
    except Exception as error:
        if has_line(error):
            return {"reason": message(error, [])}
        traceback.print_exc()
        lines = str(error).strip().splitlines()
        return {"reason": f"{type(error).__name__}: {lines[0] if lines else ''}"}
