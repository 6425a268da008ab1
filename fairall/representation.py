"""What a latent knows: how well s and the label can be read from it, and how well x comes back."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from fairall.data.features import Kind, Schema
from fairall.data.people import People
from fairall.models.learner import Learner

ENOUGH = 10_000  # people to learn a regression on a latent of some tens of dimensions from


def representation_figures(
    learner: Learner, schema: Schema, train: People, held_out: People, n_seeds: int
) -> dict[str, np.ndarray]:
    """Quality of the latent, by figure one value per seed, shape (E,); empty for methods without a latent.

    `latent_<target>_balanced_accuracy` and `latent_<target>_auc` for targets `s` and `label`: a logistic
    regression on E[z | x, s] of the training people (the first `ENOUGH` of them), scored on the held-out
    ones; 0.5 is chance, and NaN where the target has one value only.
    `reconstruction_error_<feature>`: mean absolute error on held-out people for real features (in training
    standard deviations) and counts, share of wrong values for the others.
    """
    train = train.rows(torch.arange(min(ENOUGH, len(train))))
    z_train, z_held_out = latent(learner, train, n_seeds), latent(learner, held_out, n_seeds)
    if z_train is None or z_held_out is None:
        return {}
    figures = {}
    for target in ("s", "label"):
        known = getattr(train, target).numpy() > 0
        asked = getattr(held_out, target).numpy() > 0
        scores = [_readability(*pair, known, asked) for pair in zip(z_train, z_held_out, strict=True)]
        figures[f"latent_{target}_balanced_accuracy"] = np.array([score[0] for score in scores])
        figures[f"latent_{target}_auc"] = np.array([score[1] for score in scores])

    x, s = _stacked(held_out, n_seeds)
    restored = learner.reconstruction(x, s)
    if restored is not None:
        for i, feature in enumerate(schema):
            error = (restored[..., i] - x[..., i]).abs()
            if feature.kind in (Kind.BINARY, Kind.CATEGORICAL):
                error = (error > 0).float()
            figures[f"reconstruction_error_{feature.name}"] = error.mean(-1).numpy()
    return figures


def latent(learner: Learner, people: People, n_seeds: int) -> np.ndarray | None:
    """E[z | x, s] of N people, shape (E, N, Z), or None for methods without a latent."""
    z = learner.representation(*_stacked(people, n_seeds))
    return None if z is None else z.numpy()


def _stacked(people: People, n_seeds: int) -> tuple[torch.Tensor, torch.Tensor]:
    return people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)


def _readability(
    z_train: np.ndarray, z_held_out: np.ndarray, known: np.ndarray, asked: np.ndarray
) -> tuple[float, float]:
    if not (np.isfinite(z_train).all() and np.isfinite(z_held_out).all()):
        return np.nan, np.nan  # a seed that diverged
    if len(set(known)) < 2 or len(set(asked)) < 2:
        return np.nan, np.nan
    scale = z_train.std(0) + 1e-6
    model = LogisticRegression(class_weight="balanced", max_iter=1000).fit(z_train / scale, known)
    score = model.decision_function(z_held_out / scale)
    return balanced_accuracy_score(asked, score > 0), roc_auc_score(asked, score)
