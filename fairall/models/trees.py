"""Gradient-boosted trees of E replicates, fitted by scikit-learn and kept as tensors.

References:
    Friedman: Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001.
    Ke et al.: LightGBM: a highly efficient gradient boosting decision tree, NeurIPS 2017 (histograms).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from scipy.special import logit
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn

from fairall.nn.native import tree_sums

# Of scikit-learn's HistGradientBoostingClassifier. Small trees and a penalty, since labels are often few;
# 63 bins take two thirds of the time of 255.
TREES: dict[str, Any] = {
    "max_iter": 60,
    "learning_rate": 0.1,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
    "max_bins": 63,
}


@functools.cache
def libraries() -> ThreadpoolController:
    """Libraries with threads, once scikit-learn is loaded; to look for them takes a fifth of a small fit."""
    return ThreadpoolController()


class BoostedTrees(nn.Module):
    """The log odds of a label as a sum of trees, for E replicates.

    Node 0 of a tree is its root. At an inner node a row goes on to the first child where its input is at most
    the bound; a leaf is its own child.

    Args:
        n_replicates: E.

    Attributes:
        feature: number of the input that each node asks for, shape (E, trees, nodes), int32.
        bound: float64, shape (E, trees, nodes).
        child: shape (E, trees, nodes, 2), int32.
        value: of each leaf, float64, shape (E, trees, nodes).
        base: log odds before the first tree, float64, shape (E,).
    """

    feature: Tensor
    bound: Tensor
    child: Tensor
    value: Tensor
    base: Tensor

    def __init__(self, n_replicates: int) -> None:
        super().__init__()
        shape = n_replicates, TREES["max_iter"], 2 * TREES["max_leaf_nodes"] - 1
        self.register_buffer("feature", torch.zeros(shape, dtype=torch.int32))
        self.register_buffer("bound", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("child", torch.zeros(*shape, 2, dtype=torch.int32))
        self.register_buffer("value", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("base", torch.zeros(n_replicates, dtype=torch.float64))

    def fit(self, e: int, x: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Fit the trees of replicate e.

        Args:
            e: number of the replicate.
            x: inputs, shape (N, F), float32.
            label: in {0, 1}, both present, shape (N,).
            weight: of the loss of each row, not negative, shape (N,); None: 1.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier  # takes a second

        boosting = HistGradientBoostingClassifier(**TREES, early_stopping=False)
        with libraries().limit(limits=1):  # replicates are divided over threads
            boosting.fit(x, label, weight)
        # The classifier has no public attribute of its trees; a test compares their sums with its own.
        for t, (tree,) in enumerate(boosting._predictors):
            nodes, own = tree.nodes, np.arange(len(tree.nodes))
            inner = nodes["is_leaf"] == 0
            children = np.stack([np.where(inner, nodes[side], own) for side in ("left", "right")], -1)
            of_nodes = nodes["feature_idx"], nodes["num_threshold"], children, nodes["value"]
            for kept, new in zip((self.feature, self.bound, self.child, self.value), of_nodes, strict=True):
                kept[e, t, : len(own)] = torch.from_numpy(new.astype(kept.numpy().dtype))
        self.base[e] = float(logit(np.average(label, weights=weight)))

    def forward(self, x: Tensor, e: slice = slice(None)) -> Tensor:
        """Log odds of inputs x (E, B, F), float32, by the trees of replicates e, shape (E, B), float64."""
        nodes = self.feature[e], self.bound[e], self.child[e], self.value[e]
        return self.base[e].unsqueeze(-1) + tree_sums(*nodes, x)
