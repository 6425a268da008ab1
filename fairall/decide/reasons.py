"""Reasons for rejections: the features that counted most against each person of a table, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.errors import FairAllError
from fairall.models.fairness import FairThresholds
from fairall.policy import Policy
from fairall.tables.groups import sides

PASSES = 20  # random orders of the features, each of another person compared with
THRESHOLD = "the threshold of the group"


def reasons(
    policy: Policy, x: Tensor, s: Tensor, accepted: np.ndarray, most: int, wording: Mapping[str, str], by: str
) -> np.ndarray:
    """The features that counted most against each rejected person, the most important one first.

    They are Shapley values as those of `explain`, estimated for all people at once: compared with accepted
    people of the same table, the features take the person's values one after the other. Where thresholds by
    group are the reason (`fairness=`), since the person would be accepted in another group, that is said.

    Args:
        policy: that decided.
        x: people as of `Policy.encoded`, shape (N, D).
        s: likewise, shape (N,).
        accepted: the decisions, shape (N,), bool.
        most: largest number of reasons for a person.
        wording: what to say, by the name of a feature.
        by: see `Policy.combined`.

    Returns:
        Texts, shape (N,); "" for accepted people, and where nobody is accepted to compare with.
    """
    found = np.full(len(s), "", dtype=object)
    rejected, others = np.flatnonzero(~accepted), np.flatnonzero(accepted)
    if not len(rejected) or not len(others):
        return found
    rows, random = torch.cat([x, s.unsqueeze(-1)], dim=1), np.random.default_rng(0)

    def probability(rows: Tensor) -> np.ndarray:
        return policy.combined(policy.encoded_propensity(rows[:, :-1], rows[:, -1]), by)

    own = rows[rejected]
    effect = np.zeros(own.shape)
    for _ in range(PASSES):
        mixed = rows[random.choice(others)].repeat(len(own), 1)
        before = probability(mixed)
        for k in random.permutation(own.shape[1]):
            mixed[:, k] = own[:, k]
            after = probability(mixed)
            effect[:, k] += (after - before) / PASSES
            before = after
    raw = policy.reader.sensitive
    names = [*policy.reader.names, "s" if raw is None else raw.column]
    said = np.array([wording.get(name, name) for name in names], dtype=object)
    order = np.argsort(effect, axis=1, kind="stable")[:, :most]
    lines = [[said[k] for k in first if effect[n, k] < 0] for n, first in enumerate(order)]
    if isinstance(policy.learner, FairThresholds):
        for side in sides(policy.reader.n_groups):
            elsewhere = probability(torch.cat([own[:, :-1], torch.full((len(own), 1), side)], dim=1))
            for n in np.flatnonzero(elsewhere >= policy.threshold):
                lines[n] = [wording.get(THRESHOLD, THRESHOLD)]
    found[rejected] = ["; ".join(line) for line in lines]
    return found


def read_wording(path: str | None) -> dict[str, str]:
    """Words by feature, of a CSV file with a column `feature` and a column `words`; empty without a file.

    Raises:
        FairAllError: where the file cannot be read, or has other columns.
    """
    if path is None:
        return {}
    try:
        table = pd.read_csv(Path(path), dtype=str, keep_default_na=False)
        return dict(zip(table["feature"], table["words"], strict=True))
    except (OSError, ValueError, KeyError) as error:
        raise FairAllError(f"--wording {path}: give a CSV file with columns feature and words") from error
