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
from fairall.policy import Policy, schema_of
from fairall.tables.features import Kind
from fairall.tables.groups import sides
from fairall.tables.people import PeopleReader

PASSES = 20  # random orders of the features, each of another person compared with
LEAST = 0.005  # of the probability that a reason takes away
PLACES = "the number of places"
BY_GROUP = (
    "the rule depends on the group: {} of {} rejected people would be {}accepted in another one, which "
    "`reasons` do not say"
)
LAWFUL = (
    "the group may be no lawful reason to reject a person; a policy learnt with fairness.blind=true decides "
    "without it"
)


def reasons(
    policy: Policy, x: Tensor, s: Tensor, crowded: np.ndarray, most: int, wording: Mapping[str, str], by: str
) -> np.ndarray:
    """The features that counted most against each of N people, the most important one first.

    The group is no feature, and is never named, whether or not it counted (`elsewhere`). Where only a place
    was lacking, that is said instead.

    Args:
        policy: that decided.
        x: people as of `Policy.encoded`, shape (N, D).
        s: likewise, shape (N,).
        crowded: who was rejected for want of places alone, shape (N,), bool.
        most: largest number of reasons for a person, at least 1.
        wording: what to say, by the name of a feature, or by `PLACES`.
        by: see `Policy.combined`.

    Returns:
        Texts, shape (N,).

    Raises:
        FairAllError: where `most` is no such number.
    """
    most = whole_number("most_reasons", most, 1)
    effect = contributions(policy, x, s, by)
    order = np.argsort(effect, axis=1, kind="stable")[:, :most]
    said = [wording.get(name, name) for name in policy.reader.names]
    texts = np.full(len(s), wording.get(PLACES, PLACES), dtype=object)
    for n in np.flatnonzero(~crowded):
        texts[n] = "; ".join(said[k] for k in order[n] if effect[n, k] < -LEAST)
    return texts


def contributions(policy: Policy, x: Tensor, s: Tensor, by: str) -> np.ndarray:
    """What each feature contributed to the probability of each of N people, shape (N, D).

    They are Shapley values as those of `explain`, estimated for all people at once: the features, and the
    group, take the person's values one after the other, in place of those of `typical` people, who are the
    same for every table. Arguments as for `reasons`.
    """
    own, random = torch.column_stack([x, s]), np.random.default_rng(0)
    effect = np.zeros(own.shape)
    for person in typical(policy.reader, PASSES, random):
        mixed = person.repeat(len(own), 1)
        before = _probability(policy, mixed, by)
        for k in random.permutation(own.shape[1]):
            mixed[:, k] = own[:, k]
            after = _probability(policy, mixed, by)
            effect[:, k] += (after - before) / PASSES
            before = after
    return effect[:, :-1]


def elsewhere(policy: Policy, x: Tensor, s: Tensor, by: str) -> np.ndarray:
    """The greatest probability of acceptance that N people would have in any group, shape (N,).

    Arguments as for `reasons`.
    """
    groups = (torch.full_like(s, side) for side in sides(policy.reader.n_groups))
    return np.max([policy.combined(policy.encoded_propensity(x, of), by) for of in groups], axis=0)


def _probability(policy: Policy, people: Tensor, by: str) -> np.ndarray:
    """Of acceptance, shape (N,), of people with s as the last column, shape (N, D + 1)."""
    return policy.combined(policy.encoded_propensity(people[:, :-1], people[:, -1]), by)


def typical(reader: PeopleReader, n: int, random: np.random.Generator) -> Tensor:
    """Made-up people to compare with, an even number n of them: x and s, shape (n, D + 1).

    Numbers are normal with the mean and the deviation of the training data, within their range; codes and
    groups are equally likely.
    """
    columns = []
    for feature in reader.features:
        if feature.codes:
            columns.append(random.choice(feature.codes, n))
            continue
        values = np.clip(random.normal(feature.mean, feature.scale, n), feature.lowest, feature.highest)
        columns.append(values.round() if feature.kind is Kind.COUNT else values)
    s = torch.tensor(random.choice(sides(reader.n_groups), (n, 1)), dtype=torch.float32)
    return torch.column_stack([Scaler(schema_of(reader)).transform(np.column_stack(columns)), s])


def read_wording(path: str | None) -> dict[str, str]:
    """Words by feature, of a CSV file with a column `feature` and a column `words`; empty without a file.

    Raises:
        FairAllError: where the file cannot be read, or has other columns.
    """
    if path is None:
        return {}
    try:
        table = pd.read_csv(Path(path), dtype=str, keep_default_na=False, index_col="feature")
        return table["words"].to_dict()
    except (OSError, ValueError, KeyError) as error:
        raise FairAllError(f"--wording {path}: give a CSV file with columns feature and words") from error
