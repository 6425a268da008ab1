"""Phase I trained once for all that share it: kept by the content of what determines it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch

from fairall.data.people import People
from fairall.files import atomic, locked
from fairall.identity import code_and_versions
from fairall.models.learner import PretrainCurves
from fairall.models.vae import ConditionalVAE


def phase1_key(pool: People, validation: People, *settings: object) -> str:
    """Hash of x and s of the people (Phase I sees no label), settings, threads, code and versions."""
    digest = hashlib.sha256(repr((settings, torch.get_num_threads(), code_and_versions())).encode())
    for people in (pool, validation):
        digest.update(people.x.numpy().tobytes())
        digest.update(people.s.numpy().tobytes())
    return digest.hexdigest()[:16]


def cached_phase1(
    vae: ConditionalVAE, train: Callable[[], PretrainCurves], *, cache: Path, key: str
) -> PretrainCurves:
    """Loads the trained weights of `vae` and their curves, or trains and keeps them.

    Of several processes that want the same result one trains, the others wait for it.

    Args:
        vae: freshly made; trained on return.
        train: trains `vae` in place.
        cache: folder of kept results.
        key: see `phase1_key`.
    """
    path = cache / f"{key}.pt"
    with locked(cache, cache / f"{key}.lock"):
        if path.exists():
            kept = torch.load(path, weights_only=True)
            vae.load_state_dict(kept["vae"])
            return PretrainCurves(**kept["curves"])
        curves = train()
        with atomic(path) as temporary:
            torch.save({"vae": vae.state_dict(), "curves": dict(vars(curves))}, temporary)
        return curves
