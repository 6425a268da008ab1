"""Logistic regression by Newton's method, with an L2 penalty chosen by cross-validation.

scikit-learn has both. Its import alone takes a second, and every run fits this model at its end.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

PENALTIES = (1000.0, 100.0, 10.0, 1.0)  # from strong to weak: each fit starts from the one before
FOLDS = 5
MOST_STEPS = 100  # of Newton; some ten are usual
NEAR = 1e-5  # nats per row to the minimum, twice; the error after one more step is about its square


def cross_validated(x: Tensor, label: Tensor) -> Tensor:
    """Weights of p(label = 1 | x), with the penalty of `PENALTIES` of least log loss in `FOLDS` folds.

    Columns are standardised for the fit, so the penalty does not depend on their units. Folds have the same
    share of each label and do not change from call to call.

    Args:
        x: columns, shape (N, D), float64.
        label: in {0, 1}, both present, shape (N,), float64.

    Returns:
        Shape (D + 1,): the weights of the columns as given, and the intercept last.
    """
    mean, scale = x.mean(0), x.std(0, correction=0)
    scale = torch.where(scale > 0, scale, 1.0)
    columns = torch.cat([(x - mean) / scale, torch.ones_like(x[:, :1])], dim=1)
    shuffled = torch.randperm(len(label), generator=torch.Generator().manual_seed(0))
    fold = torch.empty(len(label), dtype=torch.long)
    fold[shuffled[label[shuffled].argsort(stable=True)]] = torch.arange(len(label)) % FOLDS

    loss = torch.zeros(len(PENALTIES), dtype=x.dtype)
    for k in range(FOLDS):
        held_out = fold == k
        for i, weight in enumerate(penalised(columns[~held_out], label[~held_out], PENALTIES)):
            loss[i] += _loss(columns[held_out], label[held_out], weight)
    chosen = int(loss.argmin())
    weight = penalised(columns, label, PENALTIES[: chosen + 1])[-1]

    slopes = weight[:-1] / scale
    return torch.cat([slopes, weight[-1:] - slopes @ mean])


def penalised(columns: Tensor, label: Tensor, penalties: tuple[float, ...]) -> list[Tensor]:
    """Minimisers w of −Σ log p(label | w) + λ/2·Σ w², without the last weight in the penalty.

    Args:
        columns: shape (N, D + 1), ones in the last one.
        label: in {0, 1}, shape (N,).
        penalties: λ > 0; each fit starts from the one before.

    Returns:
        For each λ, shape (D + 1,).
    """
    weight, found = columns.new_zeros(columns.shape[1]), []
    for penalty in penalties:
        ridge = torch.full_like(weight, penalty)
        ridge[-1] = 0.0
        objective = _loss(columns, label, weight) + (ridge * weight**2).sum() / 2
        for _ in range(MOST_STEPS):
            p = torch.sigmoid(columns @ weight)
            slope = columns.T @ (p - label) + ridge * weight
            curvature = (columns.T * (p * (1 - p))) @ columns + torch.diag(ridge)
            step = torch.linalg.solve(curvature, slope)
            near = slope @ step < NEAR * len(label)
            # Halved until it descends: far from the minimum the quadratic model is no guide.
            while True:
                moved = weight - step
                there = _loss(columns, label, moved) + (ridge * moved**2).sum() / 2
                if there <= objective:
                    break
                step = step / 2
            weight, objective = moved, there
            if near:
                break
        found.append(weight)
    return found


def _loss(columns: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(columns @ weight, label, reduction="sum")
