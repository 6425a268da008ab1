"""What a run learnt, and the files it leaves of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall.config import Config
from fairall.criteria import criteria
from fairall.data.people import Decided
from fairall.data.prepare import PreparedData
from fairall.models.learner import Learner, PretrainCurves
from fairall.online import History
from fairall.policy import Policy
from fairall.report.paper import paper_figures
from fairall.representation import latent, representation_figures
from fairall.run_folder import RunFolder
from fairall.summary import measure_table, summarise
from fairall.warnings import warnings_of


@dataclass(frozen=True)
class Learned:
    """The end of a run.

    Attributes:
        learner: after the last time step.
        decided: the people of the warm-up.
        history: measures and decisions of all steps.
        curves: of Phase I, for methods that have one.
        seeds: the E seeds.
    """

    learner: Learner
    decided: Decided
    history: History
    curves: PretrainCurves | None
    seeds: list[int]


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
    table = measure_table(learned.history, learned.seeds, config.cost.value)
    summary = summarise(
        table,
        window=(config.evaluation.window[0], config.evaluation.window[1]),
        further=_further_figures(learned, config, data),
        resamples=config.evaluation.bootstrap,
    )
    summary["warnings"] = warnings_of(summary["per_seed"], config.protocol)
    folder.write_table(table)
    folder.write_summary(summary)
    Policy.of(learned.learner, data).save(folder.path / "policy", plain)
    _draw(learned, config, plain, data, table, folder)
    return summary


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
    folder: RunFolder,
) -> None:
    # Here, so that a command that finds its run done does without matplotlib.
    from fairall.report.figures import draw_latent, draw_learning, draw_phase1

    drawings, split = folder.path / "figures", config.evaluation.split
    title = f"{config.model.name} on {config.dataset.name}, {config.initial_policy.name}"
    title += f", {config.protocol.name} protocol, c = {config.cost.value:g}"
    draw_learning(table, drawings / "learning.png", title=title, split=split, paper=paper_figures(plain))
    if learned.curves is not None:
        draw_phase1(learned.curves, drawings / "phase1.png", title=f"Phase I on {config.dataset.name}")
    people = getattr(data, split)
    z = latent(learned.learner, people, len(learned.seeds))
    if z is not None and np.isfinite(z[0]).all():
        draw_latent(
            z[0],
            people.s.numpy(),
            people.label.numpy(),
            drawings / "latent.png",
            title=f"{title}, seed {learned.seeds[0]}, {split} set",
        )
