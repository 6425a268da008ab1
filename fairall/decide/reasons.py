"""Reasons for rejections: the features that counted most against each person of a table, in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.config.checks import whole_number
from fairall.data.prepared import Scaler
from fairall.errors import FairAllError
from fairall.models.thresholds import ByGroup
from fairall.policy import Policy, schema_of
from fairall.tables.features import DISCRETE, Kind
from fairall.tables.groups import sides
from fairall.tables.people import PeopleReader

PASSES = 20  # random orders of the features, each of another person compared with
LEAST = 0.005  # of the probability that a reason takes away
PLACES, THRESHOLD = "the number of places", "the threshold of the group"


def reasons(
    policy: Policy, x: Tensor, s: Tensor, crowded: np.ndarray, most: int, wording: Mapping[str, str], by: str
) -> np.ndarray:
    """The features that counted most against each of N rejected people, the most important one first.

    They are Shapley values as those of `explain`, estimated for all people at once: the features take the
    person's values one after the other, in place of those of `typical` people, who are the same for every
    table. Where there was no place, or the threshold of the group decided (`fairness=`, `--equal-rates`), so
    that the person would be accepted in another group, that is said instead.

    Args:
        policy: that decided.
        x: people as of `Policy.encoded`, shape (N, D).
        s: likewise, shape (N,).
        crowded: who was rejected for want of places alone, shape (N,), bool.
        most: largest number of reasons for a person, at least 1.
        wording: what to say, by the name of a feature, or by `PLACES` and `THRESHOLD`.
        by: see `Policy.combined`.

    Returns:
        Texts, shape (N,).

    Raises:
        FairAllError: where `most` is no such number.
    """
    most = whole_number("most_reasons", most, 1)
    if not len(s):
        return np.empty(0, dtype=object)

    def probability(rows: Tensor) -> np.ndarray:
        return policy.combined(policy.encoded_propensity(rows[:, :-1], rows[:, -1]), by)

    own, random = torch.cat([x, s.unsqueeze(-1)], dim=1), np.random.default_rng(0)
    effect = np.zeros(own.shape)
    for person in typical(policy.reader, PASSES, random):
        mixed = person.repeat(len(own), 1)
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
    texts = np.empty(len(s), dtype=object)
    texts[:] = ["; ".join(said[k] for k in first if effect[n, k] < -LEAST) for n, first in enumerate(order)]
    if isinstance(policy.learner, ByGroup) and policy.learner.bound and policy.learner.reads_s:
        for side in sides(policy.reader.n_groups):
            elsewhere = probability(torch.cat([x, torch.full((len(s), 1), side)], dim=1))
            texts[elsewhere >= policy.threshold] = wording.get(THRESHOLD, THRESHOLD)
    texts[crowded] = wording.get(PLACES, PLACES)
    return texts


def typical(reader: PeopleReader, n: int, random: np.random.Generator) -> Tensor:
    """Made-up people to compare with, an even number n of them: x and s, shape (n, D + 1).

    Numbers are normal with the mean and the deviation of the training data, within their range; codes and
    groups are equally likely.
    """
    shape = n, len(reader.features)
    of_training = [(one.mean, one.scale, one.lowest, one.highest) for one in reader.features]
    mean, scale, lowest, highest = np.array(of_training, dtype=float).T  # NaN for None
    values = np.clip(mean + scale * random.standard_normal(shape), lowest, highest)
    for k, feature in enumerate(reader.features):
        if feature.kind in DISCRETE:
            values[:, k] = random.choice(feature.codes, n)
        elif feature.kind is Kind.COUNT:
            values[:, k] = values[:, k].round()
    s = torch.tensor(random.choice(sides(reader.n_groups), (n, 1)), dtype=torch.float32)
    return torch.cat([Scaler(schema_of(reader)).transform(values), s], dim=1)


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
