"""The log of a run's decisions: applicants of Phase II as raw values, propensities, decisions, labels."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.data.features import DISCRETE, Feature, Kind, Schema
from fairall.data.prepared import PreparedData, Scaler
from fairall.online.training import Training
from fairall.tables.groups import Sensitive
from fairall.tables.people import CODED

COLUMNS = ("seed", "time_step", "propensity", "decision", "label")
PREFIX = "run_"  # of a column of the log whose name is that of a feature or of the sensitive attribute
BLOCK = 1 << 23  # cells of a table
MOST_DIGITS = 17  # that any float64 needs


def decision_tables(training: Training) -> Iterator[pd.DataFrame]:
    """One row per seed, time step 1..T and applicant, in tables to be put one below the other.

    The columns are `seed`, `time_step`, the features and the sensitive attribute as in the raw data,
    `propensity` (float32) and `decision` (0 or 1) of the policy that decided, and the revealed `label` (0 or
    1, missing for rejected applicants and where it never comes); see `column_names`. The sensitive attribute
    is the column `s` where several raw values mean the same group. A seed that has diverged has
    no propensities.

    A table has at most `BLOCK` cells, or one time step of one seed. For each group of seeds the applicants
    are given again from time step 1 on.

    Args:
        training: after the last time step, with `evaluation.decisions`.
    """
    n_steps, n_seeds, n_applicants = training.history.accepted.shape
    cells_per_step = n_applicants * (len(training.data.schema) + len(COLUMNS) + 1)
    seeds_at_once = min(n_seeds, max(1, BLOCK // (cells_per_step * n_steps)))
    steps_at_once = max(1, BLOCK // (cells_per_step * seeds_at_once))
    whole = None
    if seeds_at_once < n_seeds or steps_at_once < n_steps:
        every, few = slice(0, n_seeds), max(1, BLOCK // (cells_per_step * n_seeds))
        whole = _whole(x for _, x in _features(training, every, few))
    for first in range(0, n_seeds, seeds_at_once):
        seeds = slice(first, min(first + seeds_at_once, n_seeds))
        for steps, x in _features(training, seeds, steps_at_once):
            yield _table(training, seeds, steps, x, whole)


def column_names(data: PreparedData) -> dict[str, str]:
    """Names in the log of the columns `COLUMNS`; one that the data set has too gets `PREFIX`."""
    raw = _group_words(data)
    return free_names(COLUMNS, {*data.schema.names, CODED if raw is None else raw.column}, PREFIX)


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


def _features(
    training: Training, seeds: slice, steps_at_once: int
) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
    """The raw values of some seeds' applicants by feature, and the time steps (from 0) that they are of."""
    scaler = training.data.scaler
    last = training.history.steps_done - 1
    steps: list[Tensor] = []
    for t, (_, people) in enumerate(training.replayed()):
        steps.append(people.x[seeds].clone())  # not a view of all seeds
        if len(steps) == steps_at_once or t == last:
            x = _in_rows(torch.stack(steps))
            columns = zip(scaler.schema, scaler.mean, scaler.scale, x.T, strict=True)
            raw = {
                feature.name: raw_values(
                    feature, Scaler(Schema([feature], mean=[mean], scale=[scale])), column
                )
                for feature, mean, scale, column in columns
            }
            yield slice(t + 1 - len(steps), t + 1), raw
            steps = []


def _whole(blocks: Iterable[Mapping[str, np.ndarray]]) -> dict[str, bool]:
    """Whether all numbers of a feature are whole, by its name."""
    whole: dict[str, bool] = {}
    for raw in blocks:
        for name, values in raw.items():
            whole[name] = whole.get(name, True) and values.dtype.kind != "f"
    return whole


def _table(
    training: Training,
    seeds: slice,
    steps: slice,
    features: Mapping[str, np.ndarray],
    whole: Mapping[str, bool] | None,
) -> pd.DataFrame:
    """The rows of some seeds and time steps; `whole` is that of the run where they are not all."""
    data, history = training.data, training.history
    names, observed = column_names(data), history.observed

    def in_rows(values: Tensor) -> np.ndarray:
        return _in_rows(values[steps, seeds])

    accepted = in_rows(history.accepted)
    known = accepted & ~in_rows(observed["censored"]) if "censored" in observed else accepted
    label = pd.array(in_rows(observed.get("revealed_label", history.label)), dtype="Int8")
    label[~known] = pd.NA
    of_seeds = training.evaluation.seeds[seeds]
    time_steps = np.repeat(np.arange(steps.start + 1, steps.stop + 1), history.accepted.shape[2])
    if whole is not None:
        features = {
            name: values.astype(float) if values.dtype.kind == "i" and not whole[name] else values
            for name, values in features.items()
        }
    columns = {
        names["seed"]: np.repeat(np.array(of_seeds), len(time_steps)),
        names["time_step"]: np.tile(time_steps, len(of_seeds)),
        **features,
        **_group_column(in_rows(history.s), data),
        names["propensity"]: in_rows(history.propensity).astype(np.float32),
        names["decision"]: accepted.astype(np.int8),
        names["label"]: label,
    }
    return pd.DataFrame(columns)


def _in_rows(values: Tensor) -> np.ndarray:
    """Values (T, E, N, ...) by seed, time step and applicant, shape (E·T·N, ...)."""
    return values.transpose(0, 1).flatten(0, 2).numpy()


def _group_words(data: PreparedData) -> Sensitive | None:
    """The raw column of the sensitive attribute; None if it is a feature or a group has several values."""
    raw = data.pool_table.sensitive
    if raw is None or raw.column in data.schema.names:
        return None
    return raw if all(len(values) == 1 for values in raw.groups.values()) else None


def _group_column(s: np.ndarray, data: PreparedData) -> dict[str, np.ndarray]:
    """The sensitive attribute s (N,) by the name of its column: raw, see `_group_words`, or s."""
    raw = _group_words(data)
    if raw is None:
        return {CODED: s.astype(np.int8)}
    words = np.array([values[0] for _, values in sorted(raw.groups.items())], dtype=object)
    return {raw.column: words[np.searchsorted(sorted(raw.groups), s)]}


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
    shortest = np.where(x == zero, 0.0, exact)
    left = np.flatnonzero((x != zero) & (exact != 0))
    places = np.floor(np.log10(np.abs(exact[left]))).astype(int)  # of the first digit
    for digits in range(1, MOST_DIGITS + 1):
        shift = digits - 1 - places
        # By positive powers of ten: the quotient is then the float64 nearest to the decimal number.
        up, down = 10.0 ** np.maximum(shift, 0), 10.0 ** np.maximum(-shift, 0)
        rounded = np.rint(exact[left] * up / down) / up * down
        fits = scaler.transform(rounded[:, None]).numpy()[:, 0] == x[left]
        shortest[left[fits]] = rounded[fits]
        left, places = left[~fits], places[~fits]
    return shortest
