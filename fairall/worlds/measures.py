"""Measures of runs in worlds other than the static one; shapes and names as in `fairall.metrics`."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from fairall.metrics import effective_utility, measure, worth

WITHIN = 0.1  # of the way from the utility at a shift to that of the end
SMOOTHED = 5  # time steps


@measure(label="utility per place", unit="gain per place", higher_is_better=True, cumulative=True)
def utility_per_place(
    accepted: Tensor, label: Tensor, cost: Tensor | float, places: Tensor, stake: Tensor | None = None
) -> Tensor:
    """Realised utility per place up to each step, Σ over accepted of (ỹ − c) / Σ of places (T, E).

    Examples:
        >>> import torch
        >>> accepted, label = torch.tensor([[[True, False]]]), torch.tensor([[[1.0, 1.0]]])
        >>> utility_per_place(accepted, label, 0.5, torch.tensor([[1.0]]))
        tensor([[0.5000]])
    """
    return (accepted * worth(label, cost, stake)).sum(-1).cumsum(0) / places.cumsum(0)


@measure(
    label="effective utility by revealed labels",
    unit="gain per applicant",
    higher_is_better=True,
    cumulative=True,
)
def effective_revealed_utility(
    accepted: Tensor, revealed_label: Tensor, cost: Tensor | float, stake: Tensor | None = None
) -> Tensor:
    """`effective_utility` computed from the revealed labels, which may be false.

    Examples:
        >>> import torch
        >>> effective_revealed_utility(torch.tensor([[[True, False]]]), torch.tensor([[[0.0, 1.0]]]), 0.5)
        tensor([[-0.2500]])
    """
    return effective_utility(accepted, revealed_label, cost, stake)


@measure(label="regret", unit="gain per applicant", higher_is_better=False, cumulative=True)
def regret(
    accepted: Tensor,
    label: Tensor,
    cost: Tensor | float,
    oracle_accepted: Tensor,
    stake: Tensor | None = None,
) -> Tensor:
    """Effective utility of the oracle on the same applicants, minus that of the decisions taken.

    The oracle knows P(ỹ | x, s) as a model of all training labels (`models.oracle.Oracle`), moved as
    the labels have moved by the time step, and gives the places to those of greatest P.

    Examples:
        >>> import torch
        >>> accepted, label = torch.tensor([[[True, False]]]), torch.tensor([[[0.0, 1.0]]])
        >>> regret(accepted, label, 0.5, ~accepted)
        tensor([[0.5000]])
    """
    of_oracle = effective_utility(oracle_accepted, label, cost, stake)
    return of_oracle - effective_utility(accepted, label, cost, stake)


@measure(label="mean score, S = +1", unit="score", higher_is_better=True, cumulative=True)
def mean_score_advantaged(accepted: Tensor, group_score: Tensor) -> Tensor:
    """Mean score after each step of all people with S = +1 who apply repeatedly.

    `group_score` has the mean scores of the groups S = −1 and S = +1, shape (T, E, 2).

    Examples:
        >>> import torch
        >>> mean_score_advantaged(torch.tensor([[[True]]]), torch.tensor([[[40.0, 50.0]]]))
        tensor([[50.]])
    """
    return group_score[..., 1]


@measure(label="mean score, S = −1", unit="score", higher_is_better=True, cumulative=True)
def mean_score_disadvantaged(accepted: Tensor, group_score: Tensor) -> Tensor:
    """Mean score after each step of all people with S = −1 who apply repeatedly.

    Examples:
        >>> import torch
        >>> mean_score_disadvantaged(torch.tensor([[[True]]]), torch.tensor([[[40.0, 50.0]]]))
        tensor([[40.]])
    """
    return group_score[..., 0]


@measure(label="score gap", unit="score", higher_is_better=None, cumulative=True)
def score_gap(accepted: Tensor, group_score: Tensor) -> Tensor:
    """Mean score of the advantaged less that of the disadvantaged.

    Examples:
        >>> import torch
        >>> score_gap(torch.tensor([[[True]]]), torch.tensor([[[40.0, 50.0]]]))
        tensor([[10.]])
    """
    return group_score[..., 1] - group_score[..., 0]


def adaptation_time(utility: np.ndarray, start: int) -> np.ndarray:
    """Time steps from a shift until nine tenths of the later gain in utility are reached.

    The utility is averaged over `SMOOTHED` steps from each on. What it will make up is the difference between
    its mean over the last tenth of the steps after the shift and its value right after it.

    Args:
        utility: of the policy at time steps 0..T, shape (T + 1, E).
        start: the first time step after the shift.

    Returns:
        Shape (E,); 0 where nothing is made up, NaN where less than `SMOOTHED` steps follow.

    Examples:
        >>> adaptation_time(np.array([[9.0]] * 10 + [[1.0]] * 10 + [[5.0]] * 80), 10)
        array([10.])
    """
    after = utility[start:]
    if len(after) < SMOOTHED:
        return np.full(utility.shape[1], np.nan)
    smooth = np.lib.stride_tricks.sliding_window_view(after, SMOOTHED, axis=0).mean(-1)
    first = smooth[0]
    final = after[-max(1, len(after) // 10) :].mean(0)
    made_up = smooth >= final - WITHIN * (final - first)
    return np.where(made_up.any(0), made_up.argmax(0), np.nan)
