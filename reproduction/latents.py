"""Latent spaces of finished runs."""

from __future__ import annotations

import numpy as np

from fairall import FairAllError, Result, load_policy, people_of_run
from fairall.measuring import latent

Space = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Latent means of shape (N, Z), s in {−1, +1} of shape (N,), and labels in {0, 1} of shape (N,)."""


def latent_space(run: Result, seed: int | None = None) -> Space | None:
    """Latent means of the people of `evaluation.split`, their s and labels, by the policy of a seed.

    Args:
        run: finished.
        seed: whose policy; the first of the run by default.

    Returns:
        None for a method without a latent, a policy that is missing or of another version, missing data, and
        a seed that has diverged.
    """
    try:
        policy = load_policy(run.path / "policy")
        setting = policy.learner.setting
        data = people_of_run(run.config, len(setting.seeds), setting.splits, setting.protocol.scaler)
    except (FairAllError, RuntimeError):
        return None
    people = getattr(data, run.config.evaluation.split)
    z = latent(policy.learner, people, len(run.seeds))
    k = 0 if seed is None else run.seeds.index(seed)
    if z is None or not np.isfinite(z[k]).all():
        return None
    own = people.replicate(k)
    return z[k], own.s.numpy(), own.label.numpy()
