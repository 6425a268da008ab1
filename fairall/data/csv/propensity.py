"""Estimation of unrecorded propensities of past decisions."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from fairall.config.schema import NetInputs
from fairall.data.encoding import FeatureInputs
from fairall.data.features import Schema


def estimated_propensity(
    schema: Schema, features: np.ndarray, s: np.ndarray, accepted: np.ndarray, train: np.ndarray
) -> np.ndarray:
    """Estimate π(d=1 | x, s) by logistic regression on one-hot encoded x and s.

    Args:
        schema: the features of x.
        features: x, shape (N, D).
        s: sensitive attribute in {−1, +1}, shape (N,).
        accepted: the decisions, shape (N,), bool.
        train: indices of the rows to fit, which hold both decisions, shape (M,).

    Returns:
        Shape (N,), in (0, 1).
    """
    inputs = FeatureInputs(schema.seen_as(NetInputs.one_hot))(torch.tensor(features)).numpy()
    design = np.column_stack([inputs, s])
    design = (design - design[train].mean(0)) / np.maximum(design[train].std(0), 1e-9)
    fit = LogisticRegression(max_iter=1000).fit(design[train], accepted[train])
    return fit.predict_proba(design)[:, 1]
