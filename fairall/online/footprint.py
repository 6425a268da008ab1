"""Estimate of the memory of a run, before it starts."""

from __future__ import annotations

from fairall.models.memory import Memory
from fairall.online.training import Training
from fairall.runtime.process import available_memory

PROCESS = 500e6  # bytes of Python, torch and the other libraries
DECISION = 32  # bytes of a decision: those of reference policies, and what measures and tables take of it
FLOAT, COPIES = 4, 3  # bytes; arrays of the same people that are there at once


def memory_needed(training: Training) -> float:
    """About as many bytes as the run takes at its peak; nets and compiled code are left out.

    It grows with decisions, T·N·E, whatever of them the learner remembers, and the people of a time step and
    of the evaluation. Where places are few, everybody of a time step is compared with everybody.
    """
    schedule, n_seeds = training.config.schedule, training.config.seeds
    decisions = float(schedule.time_steps * schedule.applicants * n_seeds)
    person = (len(training.data.schema) + 4) * FLOAT
    remembers = any(
        isinstance(part, Memory) and part.limit is None
        for module in training.learner.modules()
        for part in vars(module).values()
    )
    at_once = n_seeds * (schedule.applicants + len(training.evaluation.people))
    people = at_once + (decisions if remembers else 0.0)
    pairs = float(n_seeds * schedule.applicants**2) if training.world.capacity else 0.0
    return PROCESS + DECISION * decisions + COPIES * person * people + 2 * COPIES * pairs


def short_of(training: Training) -> list[str]:
    """A note if the run may not fit in memory."""
    needed, available = memory_needed(training), available_memory()
    if available is None or needed <= available:
        return []
    return [
        f"the run may need {needed / 1e9:.1f} GB of memory and {available / 1e9:.1f} GB are available; "
        "fewer seeds, schedule.time_steps or schedule.applicants take less"
    ]
