"""A monitor beside the online loop: what somebody who sees groups and decisions knows at each time step.

It estimates the gap between the groups' acceptance rates over all applicants so far. The policy may change,
and with it this mean; a policy that favours one group and later the other may have none. Given the
applicants, each decision has the expectation π of the policy of its time step, so that the truth is the same
gap of the mean π, which only the decision maker knows; for a rule without chance it is the observed gap. The
bets are about the population that applicants come from: with probability 95 % there never is an alarm if no
policy of a time step has a gap above ε there.

Intervals and alarm are those of `fairall evaluate --monitor` on decisions.csv.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairall.measuring.sequences import ALARM, LARGEST_GAP, OBSERVATIONS, gap_wealth, largest_gap
from fairall.online.training import Training
from fairall.results.monitor import Monitor
from fairall.tables.overlap import LEAST_EFFECTIVE


def monitored(training: Training) -> Monitor:
    """What is known of each seed at each time step; no cell has a value from where a seed has diverged.

    Args:
        training: after the last time step, with `evaluation.monitor`.
    """
    history = training.history
    s, accepted, propensity = (
        values.transpose(0, 1).numpy() for values in (history.s, history.accepted, history.propensity)
    )
    sound = history.measures["utility"].isfinite().int().cummin(0).values.bool()[1:].T.numpy()
    codes = np.unique(s)
    tables = []
    for e, seed in enumerate(training.evaluation.seeds):
        table = known(s[e], accepted[e], propensity[e], codes)
        table[~sound[e]] = np.nan
        table.insert(0, "seed", seed)
        table.insert(1, "time_step", np.arange(1, len(table) + 1))
        tables.append(table)
    return Monitor(LARGEST_GAP, pd.concat(tables, ignore_index=True))


def known(s: np.ndarray, accepted: np.ndarray, propensity: np.ndarray, codes: np.ndarray) -> pd.DataFrame:
    """What is known of one seed after each time step, over all applicants so far.

    Args:
        s: group of each applicant, shape (T, N).
        accepted: decisions, shape (T, N), bool.
        propensity: π of the decisions, shape (T, N).
        codes: of the G ≥ 2 groups, shape (G,).

    Returns:
        A row per time step. `gap`: largest difference of acceptance rates between two groups; `low`, `high`:
        its 95 % confidence sequence; `truth`: the same of the mean π. All are NaN until every group has
        `LEAST_EFFECTIVE` applicants. `wealth`: the largest so far of bets that the gap is above
        `LARGEST_GAP`; `found`: 1 once it is `ALARM` or more; `excluded`: 1 where `high` is at most
        `LARGEST_GAP`.
    """
    members = s == codes[:, None, None]

    def so_far(values: np.ndarray) -> np.ndarray:
        return (members * values).sum(-1).cumsum(-1)

    people = members.sum(-1).cumsum(-1)
    enough = np.where(people >= LEAST_EFFECTIVE, people, np.nan)
    rate, truth = so_far(accepted) / enough, so_far(propensity.astype(float)) / enough
    variance = (enough * rate * (1.0 - rate) + OBSERVATIONS) / enough**2
    gap, low, high = largest_gap(rate, variance, people.sum(0))
    wealth = gap_wealth(accepted.ravel().astype(float), s.ravel(), codes, LARGEST_GAP)
    most = np.maximum.accumulate(wealth).reshape(s.shape)[:, -1]
    return pd.DataFrame({
        "gap": gap, "low": low, "high": high, "truth": truth.max(0) - truth.min(0), "wealth": most,
        "found": (most >= ALARM).astype(float),
        "excluded": (high <= LARGEST_GAP).astype(float),
    })  # fmt: skip
