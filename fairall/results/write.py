"""What a run learnt, and the files it leaves of it."""

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
from fairall.online.evaluation import Evaluation
from fairall.online.history import History
from fairall.policy import Policy
from fairall.results.diagnostics import preset_warnings, warm_up_warnings, warnings_of
from fairall.results.latent_quality import latent, representation_figures
from fairall.results.paper import paper_figures
from fairall.results.selection import criteria
from fairall.results.summary import measure_table, references, summarise
from fairall.results.title import run_title
from fairall.storage.run_folder import RunFolder


@dataclass(frozen=True)
class Learned:
    """The end of a run.

    Attributes:
        learner: after the last time step.
        decided: the people of the warm-up.
        history: measures and decisions of all steps.
        curves: of Phase I, for methods that have one.
        seeds: the E seeds.
        evaluation: what measured the policy.
    """

    learner: Learner
    decided: Decided
    history: History
    curves: PretrainCurves | None
    seeds: list[int]
    evaluation: Evaluation


def write_result(
    learned: Learned, config: Config, plain: dict[str, Any], data: PreparedData, folder: RunFolder
) -> dict[str, Any]:
    """Writes metrics.csv, summary.json, policy/ and figures/; returns the summary.

    Args:
        learned: what the run ended with.
        config: of the run.
        plain: the same as plain containers.
        data: everyone the run met.
        folder: of the run.
    """
    seeds, cost = learned.seeds, config.cost.value
    window = (config.evaluation.window[0], config.evaluation.window[1])
    table = measure_table(learned.history, seeds, cost)
    summary = summarise(table, window=window, further=_further_figures(learned, config, data))
    summary["references"] = references(learned.history, learned.evaluation, seeds, cost, window)
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
    """Whom the policy was measured on, and the standard error that their number leaves on its utility.

    The standard error is that of the last policy, averaged over the seeds that have not diverged.
    """
    people = learned.evaluation.people
    weight = people.labelled if people.label_weight is None else people.label_weight
    errors = learned.evaluation.utility_standard_error(learned.learner)
    error = float(errors[errors.isfinite()].mean())
    return {
        "split": config.evaluation.split,
        "people": len(people),
        "labelled": int(people.labelled.sum()),
        "effective_sample_size": effective_sample_size(weight.double().numpy()),
        "utility_standard_error": error if np.isfinite(error) else None,
    }


def _further_figures(learned: Learned, config: Config, data: PreparedData) -> dict[str, np.ndarray]:
    people = getattr(data, config.evaluation.split)
    figures = representation_figures(learned.learner, data.schema, data.train, people, len(learned.seeds))
    if config.evaluation.split == "validation":
        figures |= criteria(learned.learner, data.train, people, config.cost.value)
    if learned.curves is not None:
        figures |= {
            "phase1_best_epoch": learned.curves.best_epoch.numpy(),
            "phase1_validation_loss": learned.curves.kept_loss.numpy(),
        }
    decided, history = learned.decided, learned.history
    at_first = torch.where(decided.accepted, 1.0 / decided.propensity, 1.0).amax(-1)
    return figures | {
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
    # Here, so that a command that finds its run done does without matplotlib.
    from fairall.results.figures import draw_latent, draw_learning, draw_phase1

    drawings, split, title = folder.path / "figures", config.evaluation.split, run_title(plain)
    draw_learning(
        table,
        drawings / "learning.png",
        title=title,
        split=split,
        paper=paper_figures(plain),
        accept_all=references["accept_all"],
    )
    if learned.curves is not None:
        draw_phase1(learned.curves, drawings / "phase1.png", title=f"Phase I of {title}")
    people = getattr(data, split)
    z = latent(learned.learner, people, len(learned.seeds))
    if z is not None and np.isfinite(z[0]).all():
        draw_latent(
            z[0],
            people.s.numpy(),
            people.label.numpy(),
            people.labelled.numpy(),
            drawings / "latent.png",
            title=f"{title}, seed {learned.seeds[0]}, {split} set",
        )
