"""Files of a finished run: tables, summary, model card, policy and figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall.metrics import effective_sample_size
from fairall.online.evaluation import DPU_ERROR, UTILITY_ERROR
from fairall.online.training import Training
from fairall.policy import CONFIG, FEATURES, SUMS, WEIGHTS, Policy
from fairall.results.decisions import decision_tables, renamed
from fairall.results.diagnostics import preset_warnings, warm_up_warnings, warnings_of
from fairall.results.groups import groups
from fairall.results.latent_quality import latent, representation_measures
from fairall.results.model_card import model_card
from fairall.results.paper import paper_metrics
from fairall.results.references import oracle_decisions, reference_histories, references
from fairall.results.summary import measure_table, summarise
from fairall.results.title import run_title
from fairall.storage.run_folder import CARD, RunFolder
from fairall.worlds.drift import Course, Drift
from fairall.worlds.measures import adaptation_time


def write_result(training: Training, plain: dict[str, Any], folder: RunFolder) -> dict[str, Any]:
    """Write the files of the result; return the summary.

    Args:
        training: after the last time step.
        plain: configuration of the run as plain containers.
        folder: of the run.
    """
    config, data, evaluation = training.config, training.data, training.evaluation
    window = (config.evaluation.window[0], config.evaluation.window[1])
    histories = reference_histories(training)
    table = measure_table(
        training.history.recorded(),
        evaluation.seeds,
        evaluation.cost,
        evaluation.measures,
        oracle_decisions(histories),
    )
    summary = summarise(table, window=window, further=_further(training), measures=evaluation.measures)
    summary["references"] = references(histories, training, window)
    del histories  # decisions of several policies
    summary["data"] = {"fingerprint": data.fingerprint()}
    summary["evaluation"] = _evaluation_people(training)
    summary["groups"] = groups(data, table, window)
    summary["warm_up"] = _warm_up(training)
    summary["notes"] = [*data.notes, *training.notes()]
    if config.evaluation.decisions:
        summary["notes"] += renamed(data)
        folder.write_decisions(decision_tables(training))
    summary["warnings"] = [
        *preset_warnings(config.preset),
        *data.warnings,
        *training.warnings(),
        *warm_up_warnings(training.decided),
        *warnings_of(summary["per_seed"], config, learns=training.learner.learns),
    ]
    folder.write_table(table)
    folder.write_summary(summary)
    folder.write_text(CARD, model_card(plain, summary, folder.path.name))
    paths = [folder.file(f"policy/{name}") for name in (CONFIG, FEATURES, WEIGHTS, SUMS)]
    Policy.of(training.learner, data).save(paths[0].parent, plain)
    _draw(training, plain, table, summary["references"], folder)
    return summary


def _evaluation_people(training: Training) -> dict[str, Any]:
    """The people whom the policy was measured on, and the standard errors of utility and DPU on them.

    The standard errors are those of the last policy, averaged over the seeds that have not diverged.
    """
    people = training.evaluation.people
    weight = people.labelled if people.label_weight is None else people.label_weight
    errors = {}
    for name in (UTILITY_ERROR, DPU_ERROR):
        of_seeds = training.history.measures[name][-1]
        error = float(of_seeds[of_seeds.isfinite()].mean())
        errors[name] = error if np.isfinite(error) else None
    return {
        "split": training.config.evaluation.split,
        "people": len(people),
        "labelled": int(people.labelled.sum()),
        "effective_sample_size": effective_sample_size(weight.double().numpy()),
        **errors,
    }


def _warm_up(training: Training) -> dict[str, Any]:
    """How many people the initial policy decided on, and the share whom it accepted, averaged over seeds."""
    accepted = training.decided.accepted
    return {"people": accepted.shape[1], "accepted": float(accepted.double().mean())}


def _further(training: Training) -> dict[str, np.ndarray]:
    """Measures of the learner by name, one value per seed, shape (E,)."""
    config, data = training.config, training.data
    people = getattr(data, config.evaluation.split)
    n_seeds = len(training.evaluation.seeds)
    measures = representation_measures(training.learner, data.schema, data.train, people, n_seeds)
    if config.evaluation.split == "validation":
        from fairall.results.selection import selection_metrics  # slow, as in fairall.experiment

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


def _draw(
    training: Training,
    plain: dict[str, Any],
    table: pd.DataFrame,
    references: dict[str, Any],
    folder: RunFolder,
) -> None:
    # Imported here: a command whose run is done needs no matplotlib.
    from fairall.results.figures import draw_latent, draw_learning, draw_phase1

    split, title = training.config.evaluation.split, run_title(plain)
    draw_learning(
        table,
        folder.file("figures/learning.png"),
        title=title,
        split=split,
        paper=paper_metrics(plain),
        references=references,
        measures=training.evaluation.measures,
    )
    if training.curves is not None:
        draw_phase1(training.curves, folder.file("figures/phase1.png"), title=f"Phase I of {title}")
    people = getattr(training.data, split)
    z = latent(training.learner, people, len(training.evaluation.seeds))
    if z is not None and np.isfinite(z[0]).all():
        draw_latent(
            z[0],
            people.s.numpy(),
            people.label.numpy(),
            people.labelled.numpy(),
            folder.file("figures/latent.png"),
            title=f"{title}, seed {training.evaluation.seeds[0]}, {split} set",
        )
