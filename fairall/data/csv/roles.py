"""Meaning of columns with a role: labels, past decisions and their propensities."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression

from fairall.config.schema import NetInputs
from fairall.config.words import typed
from fairall.data.cells import listed, refuse, shown
from fairall.data.encoding import FeatureInputs
from fairall.data.features import Schema, is_value
from fairall.data.table import sides
from fairall.errors import FairAllError, count

MOST_GROUPS = 20  # of the sensitive attribute


def roles(named: Sequence[tuple[str, str]], columns: Sequence[str], path: str) -> dict[str, str]:
    """Columns with a role, and the key that names each; `named` are keys and names of their columns.

    Raises:
        FairAllError: if a key names no column, or two keys the same one.
    """
    found: dict[str, str] = {}
    for key, name in named:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(columns[:20])}"
            raise FairAllError(f"{key}={name}: {path} has no such column; {hint}")
        if name in found and found[name] != key:
            raise FairAllError(f"column {name!r} cannot be both {found[name]} and {key}")
        found[name] = key
    return found


def labels(column: pd.Series, positive: str) -> tuple[np.ndarray, np.ndarray]:
    """ỹ in {0, 1} of each row, 0 where unknown, and whether it is known."""
    labelled = column.notna().to_numpy()
    if not labelled.any():
        raise FairAllError(f"column {column.name!r}: no row has a label")
    label = one_of_two(
        column, positive, "dataset.positive", "a label", ", with empty cells where it is unknown"
    )
    return (label & labelled).astype(int), labelled


def decisions(column: pd.Series, accepted: str) -> np.ndarray:
    """Who was accepted, shape (N,), bool."""
    refuse(column, column.isna(), "is no decision: complete or remove the row")
    return one_of_two(column, accepted, "dataset.accepted", "a decision")


def groups(column: pd.Series, advantaged: str | None, words: list[str] | None) -> tuple[np.ndarray, int]:
    """S of each row, shape (N,), NaN in rows of no group, and the number of groups.

    The groups are `words` of the column, else `advantaged` and its one other word, else all of its words.
    """
    refuse(column, column.isna(), "is no sensitive attribute: complete or remove the row")
    found = sorted(column.unique())
    if words is None and (advantaged is not None or len(found) < 2):
        remedy = ": merge or remove rows, or list the groups, dataset.advantaged=null dataset.groups=[A,B,C]"
        first = one_of_two(column, advantaged or "", "dataset.advantaged", "the sensitive attribute", remedy)
        return np.where(first, 1, -1), 2
    if words is not None and advantaged is not None:
        raise FairAllError("dataset.advantaged and dataset.groups both name groups: give one of the two")
    if words is None and len(found) == 2:
        raise FairAllError(
            f"column {column.name!r} has two values ({', '.join(map(shown, found))}): say which of them is "
            f"S = +1, for instance {typed('dataset.advantaged', found[0])}"
        )
    if len(words or found) > MOST_GROUPS:
        raise FairAllError(
            f"column {column.name!r} has {listed(found, 'value')}, more groups than can be measured: merge "
            "values, or choose some with dataset.groups=[A,B,C]"
        )
    s = np.full(len(column), np.nan)
    for side, word in zip(sides(len(words or found)), words or found, strict=True):
        s[is_value(column, word, "dataset.groups")] = side
    return s, len(words or found)


def one_of_two(column: pd.Series, value: str, key: str, what: str, remedy: str = "") -> np.ndarray:
    """Which cells hold a value, shape (N,), bool, in a column of text that has one other (`is_value`).

    Errors say `what` the column means, and the `remedy` for a column of more or fewer values.
    """
    values = sorted(column.dropna().unique())
    if len(values) != 2:
        raise FairAllError(
            f"column {column.name!r} has {listed(values, 'value')}; {what} must have two{remedy}"
        )
    return is_value(column, value, key)


def revealed(
    labelled: np.ndarray,
    accepted: np.ndarray,
    column: pd.Series,
    value: str,
    unlabelled: str = "taken to be a random part of the accepted",
) -> tuple[np.ndarray, list[str]]:
    """Mask (N,) of the rows whose label is used, and notes on the labels that are not.

    Only labels of the accepted: the propensity of the decision gives the probability that such a label is
    known, but not that of a rejected person's label. `column` has the decisions, of which `value` means
    acceptance; `unlabelled` says what is assumed of accepted rows without a label.
    """
    if labelled.any() and not (labelled & accepted).any():
        other = typed("dataset.accepted", str(column[~accepted].iloc[0]))
        raise FairAllError(
            f"dataset.accepted={shown(value)}: no accepted row has a label, but "
            f"{count(int(labelled.sum()), 'rejected row')} with one: are the values of column "
            f"{column.name!r} swapped, and it is {other}?"
        )
    notes = []
    if extra := int((labelled & ~accepted).sum()):
        notes.append(f"{count(extra, 'rejected row')} with a label: not used, since no decision revealed it")
    if lacking := int((accepted & ~labelled).sum()):
        notes.append(f"{count(lacking, 'accepted row')} without a label: {unlabelled}")
    return labelled & accepted, notes


def recorded_propensity(column: pd.Series, accepted: np.ndarray) -> np.ndarray:
    """π(d=1 | x, s) of each decision, shape (N,); NaN where missing, which only a rejected row's may be."""
    propensity = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    # Rejected rows have no weight, so their propensity may be missing or 0.
    wrong = ~((propensity > 0) & (propensity <= 1)) & (accepted | column.notna().to_numpy())
    wrong &= ~((propensity == 0) & ~accepted)
    others = f" ({count(int(wrong.sum()) - 1, 'more such row')})" if wrong.sum() > 1 else ""
    refuse(column, wrong, f"is not a propensity, a number above 0 and at most 1{others}")
    return propensity


def estimated_propensity(
    schema: Schema, features: np.ndarray, s: np.ndarray, accepted: np.ndarray, train: np.ndarray
) -> np.ndarray:
    """Estimate π(d=1 | x, s) in (0, 1) by logistic regression on one-hot encoded x and s, shape (N,).

    It is fitted to the rows `train` (M,) of `features` (N, D), among which there are both decisions.
    """
    inputs = FeatureInputs(schema.seen_as(NetInputs.one_hot))
    design = inputs.with_s(torch.tensor(features), torch.tensor(s, dtype=torch.float64)).numpy()
    design = (design - design[train].mean(0)) / np.maximum(design[train].std(0), 1e-9)
    fit = LogisticRegression(max_iter=1000).fit(design[train], accepted[train])
    return fit.predict_proba(design)[:, 1]
