"""Latent means of people under the policy of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairall.errors import FairAllError
from fairall.results.finished import Run

Space = tuple[np.ndarray, np.ndarray, np.ndarray]


def latent_space(run: Run) -> Space | None:
    """Latent means of the people of `evaluation.split` by the first seed's policy, their s, their labels.

    Shapes (N, Z), (N,) and (N,). None for a method without a latent, a policy that is missing or of another
    version, missing data, and a seed that has diverged.
    """
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from fairall.config.compose import compose_config
    from fairall.config.schema import ScalerRows
    from fairall.config.target import typed_node
    from fairall.data.dataset import dataset
    from fairall.policy import Policy
    from fairall.results.latent_quality import latent

    folder: Path = run.path / "policy"
    if not (folder / "weights.pt").exists():
        return None
    try:
        policy = Policy.load(folder)
        composed = compose_config(f"dataset={run.name('dataset')}").dataset
        node: Any = OmegaConf.to_object(
            typed_node(OmegaConf.merge(composed, run.config["dataset"]), "dataset")
        )
        data = dataset(node).prepare(scaler=ScalerRows[run.config["protocol"]["scaler"]])
    except (FairAllError, HydraException, OmegaConfBaseException, KeyError, RuntimeError):
        return None
    people = getattr(data, run.config["evaluation"]["split"])
    z = latent(policy.learner, people, len(run.seeds))
    if z is None or not np.isfinite(z[0]).all():
        return None
    return z[0], people.s.numpy(), people.label.numpy()
