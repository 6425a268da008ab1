"""Measure a finished training."""

from __future__ import annotations

import numpy as np
import torch

from fairall.measuring.decisions import renamed
from fairall.measuring.diagnostics import preset_warnings, warm_up_warnings, warnings_of
from fairall.measuring.groups import groups
from fairall.measuring.latent_quality import representation_measures
from fairall.measuring.references import oracle_decisions, reference_histories, references
from fairall.measuring.summary import measure_table, summarise
from fairall.online.evaluation import DPU_ERROR, UTILITY_ERROR
from fairall.online.training import Training
from fairall.results.result import EvaluationPeople, Result, WarmUp
from fairall.storage.cache import Cache
from fairall.tables.overlap import effective_sample_size
from fairall.worlds.drift import Course, Drift
from fairall.worlds.measures import adaptation_time


def measure(training: Training, cache: Cache) -> Result:
    """The result of a training, not saved.

    Args:
        training: after the last time step.
        cache: of the fits of the oracles.
    """
    config, data, evaluation = training.config, training.data, training.evaluation
    window = (config.evaluation.window[0], config.evaluation.window[1])
    histories = reference_histories(training, cache)
    table = measure_table(
        training.history.recorded(),
        evaluation.seeds,
        evaluation.cost,
        evaluation.measures,
        oracle_decisions(histories),
    )
    per_seed, aggregate = summarise(
        table, window=window, further=_further(training), measures=evaluation.measures
    )
    of_references = references(histories, training, window)
    del histories  # decisions of several policies
    sensitive, decided = data.pool_table.sensitive, training.decided.accepted
    return Result(
        config=config.stored(),
        steps=table,
        measures=evaluation.measures,
        per_seed=per_seed,
        aggregate=aggregate,
        references=of_references,
        groups=groups(data, table, window),
        sensitive_column=None if sensitive is None else sensitive.column,
        evaluation=_evaluation_people(training),
        warm_up=WarmUp(decided.shape[1], float(decided.double().mean())),
        fingerprint=data.fingerprint(),
        notes=[*data.notes, *training.notes(), *(renamed(data) if config.evaluation.decisions else ())],
        warnings=[
            *preset_warnings(config.preset),
            *data.warnings,
            *training.warnings(),
            *warm_up_warnings(training.decided),
            *warnings_of(per_seed, config, learns=training.learner.learns),
        ],
    )


def _evaluation_people(training: Training) -> EvaluationPeople:
    """The standard errors are those of the last policy, averaged over the seeds that have not diverged."""
    people = training.evaluation.people.replicate(0)  # all splits have as many, all with a label
    weight = people.labelled if people.label_weight is None else people.label_weight
    errors = {}
    for name in (UTILITY_ERROR, DPU_ERROR):
        of_seeds = training.history.measures[name][-1]
        error = float(of_seeds[of_seeds.isfinite()].mean())
        errors[name] = error if np.isfinite(error) else None
    return EvaluationPeople(
        split=training.config.evaluation.split,
        people=len(people),
        labelled=int(people.labelled.sum()),
        effective_sample_size=effective_sample_size(weight.double().numpy()),
        **errors,
    )


def _further(training: Training) -> dict[str, np.ndarray]:
    """Measures of the learner by name, one value per seed, shape (E,)."""
    config, data = training.config, training.data
    people = getattr(data, config.evaluation.split)
    n_seeds = len(training.evaluation.seeds)
    measures = representation_measures(training.learner, data.schema, data.train, people, n_seeds)
    if config.evaluation.split == "validation":
        from fairall.measuring.selection import selection_metrics  # slow, as in fairall.experiment

        measures |= selection_metrics(training.learner, data.train, people, config.cost.value)
    if training.curves is not None:
        measures |= {
            "phase1_best_epoch": training.curves.best_epoch.numpy(),
            "phase1_validation_loss": training.curves.kept_loss.numpy(),
        }
    decided, history, drift = training.decided, training.history, training.world.parts.get("drift")
    if isinstance(drift, Drift) and drift.config.course is Course.step:
        utility = history.measures["utility"].double().numpy()
        measures["adaptation_time"] = adaptation_time(utility, drift.config.start)
    at_first = torch.where(decided.accepted, 1.0 / decided.propensity, 1.0).amax(-1)
    return measures | {
        "largest_ips_weight": torch.maximum(at_first, history.largest_weight).double().numpy(),
        "longest_rejection": history.longest_rejection.double().numpy(),
    }
