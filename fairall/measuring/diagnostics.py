"""Warnings about seeds of a run, one line each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairall.config.schema import Config
from fairall.data.people import Decided
from fairall.errors import count

COLLAPSED = 0.01  # acceptance rate, or distance of it from 1, of a constant policy
STUCK = 10  # steps without an acceptance, 640 rejected applicants at the paper's 64
HEAVY = 1000.0  # weight of a labelled row, in applicants
APART = 0.7  # `latent_variance_gap`; in trials below 0.25 where groups share their axes, else above 1.2
OPPOSED = 0.0  # `latent_label_agreement`
READABLE = 0.6  # `latent_label_auc`
WARNED_OF = """
    mean_acceptance longest_rejection largest_ips_weight latent_variance_gap latent_label_agreement
    latent_label_auc
""".split()


def warm_up_warnings(decided: Decided) -> list[str]:
    """A line where the initial policy accepted nobody, so that the warm-up has no labels."""
    if decided.accepted.any():
        return []
    n = count(decided.accepted.shape[1], "person", "people")
    return [f"the initial policy accepted nobody of the {n} of the warm-up, which therefore had no labels"]


def no_better_than_everybody(aggregate: pd.DataFrame, everybody: float) -> list[str]:
    """A line where a method surely earns less than accepting everybody does.

    Args:
        aggregate: `Result.aggregate`.
        everybody: effective utility of accepting all of the same applicants.
    """
    earned, high = aggregate.loc["effective_utility", ["mean", "high"]]
    if not np.fmax(earned, high) < everybody:  # of one seed without an interval
        return []
    return [
        f"the decisions taken while learning earned {100 * earned:.2f} for each 100 people, less than the "
        f"{100 * everybody:.2f} of accepting everybody (effective_utility)"
    ]


def warnings_of(per_seed: pd.DataFrame, config: Config, *, learns: bool) -> list[str]:
    """A line for every kind of problem, with its seeds.

    Args:
        per_seed: `Result.per_seed`.
        config: of the run; the guards in use are named.
        learns: whether the method learns (`Learner.learns`); of another, constant decisions are no problem.
    """
    diverged = per_seed["effective_utility"].isna()
    in_phase1 = diverged & (per_seed.get("phase1_best_epoch", np.nan) == 0)
    of = per_seed.where(~diverged).reindex(columns=WARNED_OF)  # NaN, of which no comparison holds, elsewhere
    # The sign is noise where the label can hardly be predicted from z.
    agreement = of["latent_label_agreement"].where(of["latent_label_auc"] > READABLE)
    most, rule = config.protocol.max_ips_weight, config.exploration.rule.name
    bound = "null" if most is None else f"{most:g}"
    not_number = "diverged: propensities are no numbers; not in means over seeds; lower model"
    constant = "over the time steps of evaluation.window (mean_acceptance)"
    problems = {
        f"{not_number}.phase1.learning_rate": in_phase1,
        f"{not_number}.learning_rate": diverged & ~in_phase1,
        f"collapsed to accepting everybody {constant}": learns & (of["mean_acceptance"] >= 1.0 - COLLAPSED),
        f"collapsed to accepting nobody {constant}": learns & (of["mean_acceptance"] <= COLLAPSED),
        f"accepted nobody for {STUCK} or more steps in a row, with exploration={rule}": (
            learns & (of["longest_rejection"] >= STUCK)
        ),
        f"met an IPS weight above {HEAVY:g} (protocol.max_ips_weight={bound})": (
            of["largest_ips_weight"] > HEAVY
        ),
        "use other latent axes for one group than for the other (latent_variance_gap)": (
            of["latent_variance_gap"] > APART
        ),
        "read the label from z with opposite signs in the groups (latent_label_agreement)": (
            agreement < OPPOSED
        ),
    }
    return [
        f"{count(int(rows.sum()), 'seed')} ({', '.join(map(str, per_seed.index[rows]))}) {text}"
        for text, rows in problems.items()
        if rows.any()
    ]
