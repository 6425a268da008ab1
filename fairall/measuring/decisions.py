"""The log of a run's decisions: applicants of Phase II as raw values, propensities, decisions, labels."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.data.features import DISCRETE, Feature, Schema
from fairall.data.prepared import PreparedData, Scaler
from fairall.online.training import Training
from fairall.tables.groups import sides
from fairall.tables.people import CODED

COLUMNS = ("seed", "time_step", "propensity", "decision", "label")
PREFIX = "run_"  # of a column of the log whose name is that of a feature or of the sensitive attribute
MOST_DIGITS = 17  # after the point, where a number is rounded


def decision_table(training: Training) -> pd.DataFrame:
    """One row per seed, time step 1..T and applicant, E·T·N rows in this order.

    The columns are `seed`, `time_step`, the features and the sensitive attribute as in the raw data,
    `propensity` (float32) and `decision` (0 or 1) of the policy that decided, and the revealed `label` (0 or
    1, missing for rejected applicants and where it never comes); see `column_names`. The sensitive attribute
    is the column `s` where several raw values mean the same group. A seed that has diverged has
    no propensities.

    Features are categoricals, which take a byte of a row where there are few values.

    Args:
        training: after the last time step, with `evaluation.decisions`.
    """
    data = training.data
    names, observed, scaler = column_names(data), training.history.steps.read(), data.scaler
    group, words = _group(data)
    n_steps, _, n_applicants = observed["accepted"].shape
    seeds, steps = training.evaluation.seeds, np.arange(1, n_steps + 1).repeat(n_applicants)
    x = torch.stack([people.x for _, people in training.replayed()], 1).flatten(0, 2).numpy()
    features = {}
    for feature, mean, scale, column in zip(scaler.schema, scaler.mean, scaler.scale, x.T, strict=True):
        codes, values = pd.factorize(column)
        own = Scaler(Schema([feature], mean=[mean], scale=[scale]))
        features[feature.name] = pd.Categorical.from_codes(codes, raw_values(feature, own, values))
    revealed = observed.get("revealed_label", observed["label"])
    known = observed["accepted"] & ~observed.get("censored", torch.tensor(False))
    columns = {
        names["seed"]: np.repeat(seeds, len(steps)),
        names["time_step"]: np.tile(steps, len(seeds)),
        **features,
        group: pd.Series(_in_rows(observed["s"])).map(words),
        names["propensity"]: _in_rows(observed["propensity"]).astype(np.float32),
        names["decision"]: _in_rows(observed["accepted"]).astype(np.int8),
        names["label"]: pd.Series(_in_rows(revealed), dtype="Int8").where(_in_rows(known)),
    }
    return pd.DataFrame(columns)


def column_names(data: PreparedData) -> dict[str, str]:
    """Names in the log of the columns `COLUMNS`; one that the data set has too gets `PREFIX`."""
    return free_names(COLUMNS, {*data.schema.names, _group(data)[0]}, PREFIX)


def free_names(names: Iterable[str], taken: Container[str], prefix: str) -> dict[str, str]:
    """A name that is not taken for each of `names`, with `prefix` as often as needed."""
    free = {}
    for name in names:
        free[name] = name
        while free[name] in taken:
            free[name] = prefix + free[name]
    return free


def renamed(data: PreparedData) -> list[str]:
    """A note per renamed column of the log."""
    return told_of_renamed(column_names(data), "run's", "decisions.csv", "the data set")


def told_of_renamed(names: Mapping[str, str], whose: str, log: str, source: str) -> list[str]:
    """A note per renamed column of `log`, of `free_names`; the name is one of `source`."""
    return [
        f"{log} has the {whose} {name.replace('_', ' ')} in {column!r}; {name!r} is a column of {source}"
        for name, column in names.items()
        if column != name
    ]


def _in_rows(values: Tensor) -> np.ndarray:
    """Values (T, E, N) by seed, time step and applicant, shape (E·T·N,)."""
    return values.transpose(0, 1).flatten().numpy()


def _group(data: PreparedData) -> tuple[str, dict[float, str | int]]:
    """Name of the column of the sensitive attribute, and what it says of each value of s.

    The raw column, or s itself where that is a feature or a group has several values.
    """
    raw, n_groups = data.pool_table.sensitive, data.schema.n_groups
    if raw is None or raw.column in data.schema.names or len(raw.meaning) > n_groups:
        return CODED, {s: int(s) for s in sides(n_groups)}
    return raw.column, {s: word for word, s in raw.meaning.items()}


def raw_values(feature: Feature, scaler: Scaler, x: np.ndarray) -> np.ndarray:
    """The raw values that `PeopleReader` reads as given ones.

    Args:
        feature: of one column of x.
        scaler: of that column alone.
        x: its values, float32, shape (N,).

    Returns:
        Shape (N,): words of a discrete feature; numbers of the fewest decimal digits that give x, integers
        where all are whole.
    """
    if feature.kind in DISCRETE:
        position = np.searchsorted(np.array(feature.codes, dtype=np.float32), x)
        return np.array(feature.words, dtype=object)[position]
    exact = x.astype(float) * scaler.scale + scaler.mean
    numbers, largest = exact, int(np.log10(np.abs(exact).max(initial=1.0)))
    for decimals in reversed(range(-largest - 1, MOST_DIGITS)):  # the first one has 0 alone
        rounded = np.round(exact, decimals) + 0.0  # no −0
        fits = scaler.transform(rounded[:, None]).numpy()[:, 0] == x
        numbers = np.where(fits, rounded, numbers)
    whole = (numbers % 1 == 0).all() and np.abs(numbers).max() < 2**53
    return numbers.astype(np.int64) if whole else numbers
