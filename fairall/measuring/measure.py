"""Measure a finished training."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import torch

from fairall import metrics
from fairall.data.prepared import PreparedData
from fairall.measuring.decisions import renamed
from fairall.measuring.diagnostics import (
    no_better_than_everybody,
    preset_warnings,
    warm_up_warnings,
    warnings_of,
)
from fairall.measuring.latent_quality import label_weight, representation_measures
from fairall.measuring.references import RUN, tables
from fairall.measuring.summary import summarise
from fairall.online.evaluation import DPU_ERROR, UTILITY_ERROR
from fairall.online.training import Training
from fairall.results.result import GROUPS, EvaluationPeople, Group, Result, WarmUp
from fairall.storage.checkpoint import Cache
from fairall.tables.groups import sides
from fairall.tables.overlap import effective_sample_size

SPLITS = ("train", "validation", "test")


def measure(training: Training, cache: Cache) -> Result:
    """The result of a training, not saved.

    Args:
        training: after the last time step.
        cache: of the fits of the oracles.
    """
    config, data, evaluation = training.config, training.data, training.evaluation
    window = (config.evaluation.window[0], config.evaluation.window[1])
    summarised = partial(summarise, window=window, measures=evaluation.measures)
    of_policies = tables(training, cache)
    table = of_policies.pop(RUN)
    per_seed, aggregate = summarised(table, further=_further(training))
    references = {name: summarised(of_policy)[1] for name, of_policy in of_policies.items()}
    of_references = pd.concat(references, names=["policy", "measure"])
    everybody = float(of_references.loc[("accept_all", "effective_utility"), "mean"])
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
            *(no_better_than_everybody(aggregate, everybody) if training.learner.learns else ()),
            *warnings_of(per_seed, config, learns=training.learner.learns),
        ],
    )


def _evaluation_people(training: Training) -> EvaluationPeople:
    """The standard errors are those of the last policy, averaged over the seeds that have not diverged."""
    people = training.evaluation.people.replicate(0)  # all splits have as many, all with a label
    errors: dict[str, float | None] = {}
    for name in (UTILITY_ERROR, DPU_ERROR):
        of_seeds = training.history.measures[name][-1]
        known = of_seeds[of_seeds.isfinite()]
        errors[name] = float(known.mean()) if len(known) else None
    return EvaluationPeople(
        split=training.config.evaluation.split,
        people=len(people),
        labelled=int(people.labelled.sum()),
        effective_sample_size=effective_sample_size(label_weight(people).numpy()),
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

        measures |= selection_metrics(training.learner, data.train, people)
    if training.curves is not None:
        measures |= {
            "phase1_best_epoch": training.curves.best_epoch.numpy(),
            "phase1_validation_loss": training.curves.kept_loss.numpy(),
        }
    decided, history = training.decided, training.history
    steps = history.steps.read()
    measures |= training.world.summary(history.measures["utility"].double().numpy())
    at_first = torch.where(decided.accepted, 1.0 / decided.propensity, 1.0).amax(-1)
    return measures | {
        "largest_ips_weight": torch.maximum(at_first, steps["largest_weight"].amax(0)).double().numpy(),
        "longest_rejection": steps["rejections"].amax(0).double().numpy(),
    }


def groups(data: PreparedData, table: pd.DataFrame, window: tuple[int, int]) -> dict[str, Group]:
    """Sizes, base rates and acceptance of everybody and of each group; sizes are means over splits.

    Args:
        data: the people of the run.
        table: see `summary.measure_table`.
        window: t1 and t2 of the temporal measures.
    """
    sensitive, train = data.pool_table.sensitive, data.train
    splits = {name: getattr(data, name) for name in SPLITS}
    words = {} if sensitive is None else sensitive.groups
    keys = (sensitive and sensitive.keys) or GROUPS[1:]
    in_window, by_group = table[table["time_step"].between(*window)], {}
    for group, s in zip((GROUPS[0], *keys), (None, *sides(len(keys))), strict=True):
        members = {name: people.s == (people.s if s is None else s) for name, people in splits.items()}
        rate = "acceptance_rate" if s is None else f"acceptance_rate_{group}"
        # Share of label 1, by the weights of labels where some are unknown.
        rows = members["train"]
        weight = None if train.label_weight is None else train.label_weight[rows].double()
        base_rate = float(metrics.weighted_mean(train.label[rows].double(), weight))
        by_group[group] = Group(
            values=[] if s is None else list(words.get(s, ())),
            people={name: _mean_size(rows) for name, rows in members.items()},
            labelled=sum(_mean_size(splits[name].labelled & rows) for name, rows in members.items()),
            base_rate=base_rate if np.isfinite(base_rate) else None,
            accepted=_over_seeds(table, rate),
            accepted_in_window=_over_seeds(in_window, rate),
        )
    return by_group


def _mean_size(members: torch.Tensor) -> int:
    """Number of members (N,), or its mean over replicates (E, N)."""
    return round(members.sum(-1).double().mean().item())


def _over_seeds(table: pd.DataFrame, measure: str) -> metrics.Spread | None:
    """Mean per seed that has not diverged, over the time steps that have such applicants."""
    sound = table["utility"].notna().groupby(table["seed"]).transform("all")
    # In double precision, since pandas 2 and 3 round means of single precision otherwise.
    of_seeds = table[sound].astype({measure: float}).groupby("seed")[measure].mean().to_numpy()
    return metrics.Spread.over_seeds(of_seeds, bounds=metrics.SHARE)
