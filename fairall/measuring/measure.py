"""Measure a finished training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch

from fairall import metrics
from fairall.data.prepared import PreparedData
from fairall.display.format import CAUTION, interpretable
from fairall.measuring.decisions import renamed
from fairall.measuring.diagnostics import no_better_than_everybody, warm_up_warnings, warnings_of
from fairall.measuring.latent_quality import label_weight, representation_measures
from fairall.measuring.references import RUN, recorded_policies
from fairall.measuring.summary import Series, series_of, summarise, table_of
from fairall.online.evaluation import DPU_ERROR, UTILITY_ERROR
from fairall.online.training import Training
from fairall.results.result import GROUPS, OF_REFERENCES, EvaluationPeople, Group, Result, WarmUp
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
    summarised = partial(
        summarise, seeds=evaluation.seeds, window=config.evaluation.window, measures=evaluation.measures
    )
    policies = recorded_policies(training, cache)
    of = {name: series_of(one, evaluation.cost, evaluation.measures) for name, one in policies.items()}
    series = of.pop(RUN)
    per_seed, aggregate = summarised(series, _further(training))
    levels = {name: summarised(values, {})[1] for name, values in of.items()}
    references = pd.concat(levels, names=OF_REFERENCES)
    everybody = float(references.loc[("accept_all", "effective_utility"), "mean"])
    sensitive, decided = data.pool_table.sensitive, training.decided.accepted
    return Result(
        config=config.stored(),
        steps=table_of(series, evaluation.seeds),
        measures=evaluation.measures,
        per_seed=per_seed,
        aggregate=aggregate,
        references=references,
        groups=groups(data, series, config.evaluation.window),
        sensitive_column=None if sensitive is None else sensitive.column,
        evaluation=_evaluation_people(training),
        warm_up=WarmUp(decided.shape[1], float(decided.double().mean())),
        fingerprint=data.fingerprint(),
        notes=[*data.notes, *training.notes(), *(renamed(data) if config.evaluation.decisions else ())],
        warnings=[
            *[CAUTION] * (not interpretable(config.preset)),
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
    errors = (training.history.measured[name][-1].nanmean().item() for name in (UTILITY_ERROR, DPU_ERROR))
    return EvaluationPeople(
        training.config.evaluation.split,
        len(people),
        int(people.labelled.sum()),
        effective_sample_size(label_weight(people).numpy()),
        *map(_known, errors),
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
    measures |= training.world.summary(history.measured["utility"].double().numpy())
    at_first = torch.where(decided.accepted, 1.0 / decided.propensity, 1.0).amax(-1)
    return measures | {
        "largest_ips_weight": torch.maximum(at_first, steps["largest_weight"].amax(0)).double().numpy(),
        "longest_rejection": steps["rejections"].amax(0).double().numpy(),
    }


def groups(data: PreparedData, series: Series, window: Sequence[int]) -> dict[str, Group]:
    """Sizes, base rates and acceptance of everybody and of each group; sizes are means over splits.

    Args:
        data: the people of the run.
        series: measures of the run.
        window: t1 and t2 of the temporal measures.
    """
    sensitive, weight, start, end = data.pool_table.sensitive, label_weight(data.train), *window
    splits = {name: getattr(data, name) for name in SPLITS}
    words = {} if sensitive is None else sensitive.groups
    keys, by_group = (sensitive and sensitive.keys) or GROUPS[1:], {}
    for group, s in zip((GROUPS[0], *keys), (None, *sides(len(keys))), strict=True):
        members = {name: people.s == (people.s if s is None else s) for name, people in splits.items()}
        rows = members["train"]
        # Mean per seed that has not diverged, over the time steps that have such applicants.
        rates = series["acceptance_rate" if s is None else f"acceptance_rate_{group}"].double()
        rates = rates[:, series["utility"][-1].isfinite()]
        by_group[group] = Group(
            [] if s is None else [*words.get(s, ())],
            {name: _mean_size(of) for name, of in members.items()},
            sum(_mean_size(splits[name].labelled & of) for name, of in members.items()),
            # Share of label 1, by the weights of labels where some are unknown.
            _known(float(metrics.weighted_mean(data.train.label[rows].double(), weight[rows]))),
            *(
                metrics.Spread.over_seeds(of.nanmean(0).numpy(), bounds=metrics.SHARE)
                for of in (rates, rates[start : end + 1])
            ),
        )
    return by_group


def _mean_size(members: torch.Tensor) -> int:
    """Number of members (N,), or its mean over replicates (E, N)."""
    return round(members.sum(-1).double().mean().item())


def _known(value: float) -> float | None:
    """The value, or None where it is no number."""
    return value if np.isfinite(value) else None
