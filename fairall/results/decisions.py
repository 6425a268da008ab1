"""The log of a run's decisions: applicants of Phase II as raw values, propensities, decisions, labels."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.data.features import DISCRETE, Feature, Kind
from fairall.data.people_reader import CODED, words_of
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.table import Sensitive
from fairall.online.training import Training

COLUMNS = ("seed", "time_step", "propensity", "decision", "label")
PREFIX = "logged_"  # of a column whose name is that of a feature or of the sensitive attribute
MOST_DIGITS = 17  # that any float64 needs


def decision_table(training: Training) -> pd.DataFrame:
    """One row per seed, time step 1..T and applicant.

    The columns are `seed`, `time_step`, the features and the sensitive attribute as in the raw data,
    `propensity` (float32) and `decision` (0 or 1) of the policy that decided, and the revealed `label` (0 or
    1, missing for rejected applicants and where it never comes); see `column_names`. The sensitive attribute
    is the column `s` of −1 and 1 where several raw values mean the same group. A seed that has diverged has
    no propensities.

    Args:
        training: after the last time step, with `evaluation.decisions`.
    """
    data, history, seeds = training.data, training.history, training.evaluation.seeds
    names = column_names(data)
    time_steps = np.repeat(np.arange(1, history.steps_done + 1), training.config.schedule.applicants)
    accepted = _in_rows(history.accepted)
    known = accepted
    if "censored" in history.observed:
        known = accepted & ~_in_rows(history.observed["censored"])
    label = pd.array(_in_rows(history.observed.get("revealed_label", history.label)), dtype="Int8")
    label[~known] = pd.NA
    columns = {
        names["seed"]: np.repeat(np.array(seeds), len(time_steps)),
        names["time_step"]: np.tile(time_steps, len(seeds)),
        **_raw_features(training),
        **_group_column(_in_rows(history.s), data),
        names["propensity"]: _in_rows(history.propensity).astype(np.float32),
        names["decision"]: accepted.astype(np.int8),
        names["label"]: label,
    }
    return pd.DataFrame(columns)


def column_names(data: PreparedData) -> dict[str, str]:
    """Names in the log of the columns `COLUMNS`; one that the data set has too gets `PREFIX`."""
    raw = _group_words(data)
    return free_names(COLUMNS, {*data.schema.names, CODED if raw is None else raw.column})


def free_names(names: Iterable[str], taken: Container[str]) -> dict[str, str]:
    """A name that is not taken for each of `names`, with `PREFIX` as often as needed."""
    free = {}
    for name in names:
        free[name] = name
        while free[name] in taken:
            free[name] = PREFIX + free[name]
    return free


def renamed(data: PreparedData) -> list[str]:
    """A note per renamed column of the log."""
    return told_of_renamed(column_names(data), "decisions.csv", "the data set")


def told_of_renamed(names: Mapping[str, str], log: str, source: str) -> list[str]:
    """A note per renamed column of `log`, of `free_names`; the name is one of `source`."""
    return [
        f"{log} has the {name.replace('_', ' ')} in {own!r}, since {source} has a column {name!r}"
        for name, own in names.items()
        if own != name
    ]


def _in_rows(steps: Sequence[Tensor]) -> np.ndarray:
    """Values per time step, shape (E, N, ...), by seed, time step and applicant, shape (E·T·N, ...)."""
    stacked = torch.stack(list(steps), dim=1)
    return stacked.flatten(0, 2).numpy()


def _raw_features(training: Training) -> dict[str, np.ndarray]:
    """Raw values of the applicants by feature, which the stream gives again from time step 1 on."""
    schema, scaler = training.data.schema, training.data.scaler
    x = _in_rows([people.x for _, people in training.replayed()])
    features = {}
    for i, feature in enumerate(schema):
        own = Scaler(scaler.mean[[i]], scaler.scale[[i]], scaler.real[[i]])
        features[feature.name] = raw_values(feature, own, x[:, i])
    return features


def _group_words(data: PreparedData) -> Sensitive | None:
    """The raw column of the sensitive attribute; None if it is a feature or a group has several values."""
    raw = data.pool_table.sensitive
    if raw is None or raw.column in data.schema.names:
        return None
    return raw if len(raw.advantaged) == len(raw.disadvantaged) == 1 else None


def _group_column(s: np.ndarray, data: PreparedData) -> dict[str, np.ndarray]:
    """The sensitive attribute s (N,) by the name of its column: raw, see `_group_words`, or −1 and 1."""
    raw = _group_words(data)
    if raw is None:
        return {CODED: s.astype(np.int8)}
    words = np.array([raw.disadvantaged[0], raw.advantaged[0]], dtype=object)
    return {raw.column: words[(s > 0).astype(int)]}


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
        return np.array(words_of(feature), dtype=object)[position]
    numbers = x.astype(float)
    if feature.kind is Kind.REAL:
        distinct, positions = np.unique(x, return_inverse=True)
        numbers = _shortest(distinct, scaler)[positions]
    whole = bool((np.rint(numbers) == numbers).all())
    return numbers.astype(np.int64) if whole and np.abs(numbers).max() < 2**53 else numbers


def _shortest(x: np.ndarray, scaler: Scaler) -> np.ndarray:
    """The decimal numbers of fewest digits that `scaler` maps to x (N,), float32; shape (N,)."""
    exact = x.astype(float) * scaler.scale + scaler.mean
    zero = scaler.transform(np.zeros((1, 1))).item()
    found = np.where(x == zero, 0.0, exact)
    left = np.flatnonzero((x != zero) & (exact != 0))
    places = np.floor(np.log10(np.abs(exact[left]))).astype(int)  # of the first digit
    for digits in range(1, MOST_DIGITS + 1):
        shift = digits - 1 - places
        # By positive powers of ten: the quotient is then the float64 nearest to the decimal number.
        up, down = 10.0 ** np.maximum(shift, 0), 10.0 ** np.maximum(-shift, 0)
        rounded = np.rint(exact[left] * up / down) / up * down
        fits = scaler.transform(rounded[:, None]).numpy()[:, 0] == x[left]
        found[left[fits]] = rounded[fits]
        left, places = left[~fits], places[~fits]
    return found
