"""Files of a finished run: metrics.csv, summary.json, policy/ and figures/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall.config.schema import Config
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.metrics import effective_sample_size
from fairall.models.learner import Learner, PretrainCurves
from fairall.online.evaluation import STANDARD_ERROR, Evaluation
from fairall.online.history import History
from fairall.policy import Policy
from fairall.results.diagnostics import preset_warnings, warm_up_warnings, warnings_of
from fairall.results.latent_quality import latent, representation_measures
from fairall.results.paper import paper_metrics
from fairall.results.selection import selection_metrics
from fairall.results.summary import measure_table, references, summarise
from fairall.results.title import run_title
from fairall.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Learned:
    """State at the end of a run.

    Attributes:
        learner: after the last time step.
        decided: the people of the warm-up.
        history: measures and decisions of all steps.
        curves: of Phase I, for methods that have one.
        evaluation: of the policy, with the E seeds.
    """

    learner: Learner
    decided: Decided
    history: History
    curves: PretrainCurves | None
    evaluation: Evaluation


def write_result(
    learned: Learned, config: Config, plain: dict[str, Any], data: PreparedData, folder: RunFolder
) -> dict[str, Any]:
    """Write metrics.csv, summary.json, policy/ and figures/; return the summary.

    Args:
        learned: state at the end of the run.
        config: of the run.
        plain: the same as plain containers.
        data: of the run.
        folder: of the run.
    """
    evaluation = learned.evaluation
    window = (config.evaluation.window[0], config.evaluation.window[1])
    table = measure_table(learned.history, evaluation.seeds, evaluation.cost, evaluation.measures)
    summary = summarise(
        table, window=window, further=_further(learned, config, data), measures=evaluation.measures
    )
    summary["references"] = references(learned.history, evaluation, window)
    summary["evaluation"] = _evaluation_people(learned, config)
    summary["notes"] = list(data.notes)
    summary["warnings"] = [
        *preset_warnings(config.preset),
        *data.warnings,
        *warm_up_warnings(learned.decided),
        *warnings_of(summary["per_seed"], config.protocol, learns=learned.learner.learns),
    ]
    folder.write_table(table)
    folder.write_summary(summary)
    Policy.of(learned.learner, data).save(folder.path / "policy", plain)
    _draw(learned, config, plain, data, table, summary["references"], folder)
    return summary


def _evaluation_people(learned: Learned, config: Config) -> dict[str, Any]:
    """The people whom the policy was measured on, and the standard error of the utility on them.

    The standard error is that of the last policy, averaged over the seeds that have not diverged.
    """
    people = learned.evaluation.people
    weight = people.labelled if people.label_weight is None else people.label_weight
    errors = learned.history.measures[-1][STANDARD_ERROR]
    error = float(errors[errors.isfinite()].mean())
    return {
        "split": config.evaluation.split,
        "people": len(people),
        "labelled": int(people.labelled.sum()),
        "effective_sample_size": effective_sample_size(weight.double().numpy()),
        "utility_standard_error": error if np.isfinite(error) else None,
    }


def _further(learned: Learned, config: Config, data: PreparedData) -> dict[str, np.ndarray]:
    """Measures of the learner by name, one value per seed, shape (E,)."""
    people = getattr(data, config.evaluation.split)
    n_seeds = len(learned.evaluation.seeds)
    measures = representation_measures(learned.learner, data.schema, data.train, people, n_seeds)
    if config.evaluation.split == "validation":
        measures |= selection_metrics(learned.learner, data.train, people, config.cost.value)
    if learned.curves is not None:
        measures |= {
            "phase1_best_epoch": learned.curves.best_epoch.numpy(),
            "phase1_validation_loss": learned.curves.kept_loss.numpy(),
        }
    decided, history = learned.decided, learned.history
    at_first = torch.where(decided.accepted, 1.0 / decided.propensity, 1.0).amax(-1)
    return measures | {
        "largest_ips_weight": torch.maximum(at_first, history.largest_weight).double().numpy(),
        "longest_rejection": history.longest_rejection().double().numpy(),
    }


def _draw(
    learned: Learned,
    config: Config,
    plain: dict[str, Any],
    data: PreparedData,
    table: pd.DataFrame,
    references: dict[str, Any],
    folder: RunFolder,
) -> None:
    # Imported here: a command whose run is done needs no matplotlib.
    from fairall.results.figures import draw_latent, draw_learning, draw_phase1

    figures, split, title = folder.path / "figures", config.evaluation.split, run_title(plain)
    draw_learning(
        table,
        figures / "learning.png",
        title=title,
        split=split,
        paper=paper_metrics(plain),
        references=references,
        measures=learned.evaluation.measures,
    )
    if learned.curves is not None:
        draw_phase1(learned.curves, figures / "phase1.png", title=f"Phase I of {title}")
    people = getattr(data, split)
    z = latent(learned.learner, people, len(learned.evaluation.seeds))
    if z is not None and np.isfinite(z[0]).all():
        draw_latent(
            z[0],
            people.s.numpy(),
            people.label.numpy(),
            people.labelled.numpy(),
            figures / "latent.png",
            title=f"{title}, seed {learned.evaluation.seeds[0]}, {split} set",
        )
