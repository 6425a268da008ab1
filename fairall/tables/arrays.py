"""Arrays and DataFrames, as scikit-learn's estimators take them, as a log of decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from fairall.errors import FairAllError, count
from fairall.tables.cells import spelling

GROUPS = "sensitive_features"


class InputError(FairAllError, ValueError):
    """Input that cannot be used; scikit-learn expects a ValueError."""


@contextmanager
def of_input() -> Iterator[None]:
    """A block whose errors become errors of input.

    Raises:
        InputError: instead of FairAllError.
    """
    try:
        yield
    except FairAllError as error:
        raise InputError(str(error)) from error


def table_of(X: Any) -> pd.DataFrame:
    """X (N, D) as a DataFrame with texts as column names, x0 and so on for those of an array.

    Raises:
        ValueError: where X has no such shape, or is sparse, complex or infinite.
    """
    if isinstance(X, pd.DataFrame) and len(X):
        return X.rename(columns=str).reset_index(drop=True)
    array = check_array(X, dtype=None, ensure_all_finite="allow-nan")
    return pd.DataFrame(array).infer_objects().add_prefix("x")


def _beside(people: pd.DataFrame, name: str) -> str:
    """The name, or one like it that no column has."""
    return _beside(people, f"log_{name}") if name in people else name


def labels_of(
    y: Any, missing: Any, classes: np.ndarray | None = None, positive: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Labels 1, 0 or NaN where they are unknown, shape (N,), and the two classes.

    Args:
        y: the labels, shape (N,).
        missing: what an unknown label is.
        classes: both; by default those of y, sorted.
        positive: the class whose label is 1; None: the second one.

    Raises:
        InputError: where y has other than two classes, or y or `positive` has one that is none of `classes`.
        ValueError: where y is no array of classes.
    """
    if not pd.api.types.is_scalar(missing):
        raise InputError(f"missing={missing!r}: give the one value that an unknown label has, such as -1")
    # An array of a Series may lose its nullable type.
    cells = y if isinstance(y, pd.Series) else pd.Series(column_or_1d(y, warn=True))
    unknown = (cells.isna() if pd.isna(missing) else cells == missing).to_numpy(dtype=bool)
    known = cells[~unknown].infer_objects().to_numpy()
    check_classification_targets(known)
    both = np.unique(known) if classes is None else classes
    if len(both) != 2:
        raise InputError(
            "Only binary classification is supported. The known labels have "
            f"{count(len(both), 'class', 'classes')}, and `missing` is {missing!r}"
        )
    good = both[1] if positive is None else positive
    for value in {*known.tolist(), good} - {*both.tolist()}:
        raise InputError(f"{value!r} is none of the classes {both.tolist()}")
    label = np.full(len(cells), np.nan)
    label[~unknown] = known == good
    return label, both


def decisions_of(label: np.ndarray, accepted: Any, propensity: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Who was accepted, shape (N,), bool, and with which probability; None where it is not given.

    Args:
        label: NaN where it is unknown, shape (N,).
        accepted: the decisions, shape (N,); those who have a label, where they are not given.
        propensity: of the decisions, shape (N,), or None.

    Raises:
        InputError: where they are no decisions, or no probabilities.
        ValueError: where they have other lengths, or propensities are no numbers.
    """
    check_consistent_length(label, accepted, propensity)
    taken = ~np.isnan(label) if accepted is None else column_or_1d(accepted)
    if not np.isin(taken, (0, 1)).all():
        raise InputError("accepted: it must be 1 or 0, or true or false, for everybody")
    taken = taken.astype(bool)
    if propensity is None:
        return taken, None
    p = column_or_1d(propensity, dtype=float)
    if ((p < 0) | (p > 1) | (taken & ~(p > 0))).any():
        raise InputError("propensity: it must be above 0 and at most 1 for everybody who was accepted")
    return taken, p


def weights_of(label: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Weights of labels (N,), float64; raises ValueError where they are not possible."""
    weight: np.ndarray = check_array(
        sample_weight, ensure_2d=False, dtype=float, ensure_non_negative=True, input_name="sample_weight"
    )
    weight = column_or_1d(weight)
    check_consistent_length(label, weight)
    if len(np.unique(label[(weight > 0) & ~np.isnan(label)])) < 2:
        raise InputError("sample_weight: it must not be zero for all labels of a class")
    return weight


def in_pandas(values: Any) -> Any:
    """The DataFrame or Series of what has a method `to_pandas`, as polars and pyarrow; else the same."""
    return values.to_pandas() if hasattr(values, "to_pandas") else values


def with_groups(
    people: pd.DataFrame, sensitive_features: Any, column: str | None, names: Sequence[str] | None = None
) -> tuple[pd.DataFrame, str | None, list[str]]:
    """People (N, D) with the sensitive attribute in a column, its name, and those of `sensitive_features`.

    Args:
        people: columns of X, of which no feature is replaced.
        sensitive_features: the attribute, shape (N,), or several to be combined, (N, K); None: that of X.
        column: its name; by default that of `sensitive_features`. None where nothing gives one.
        names: those returned when the policy was learnt, empty where they had none; None: it is to be learnt.

    Raises:
        InputError: where X has to have the column, and has it not, or names differ.
        ValueError: where the lengths differ.
    """
    if sensitive_features is None:
        if column is not None and column not in [*people]:
            raise InputError(f"give sensitive_features, or X with the column {column!r} of the groups")
        return people, column, [column] if column else []
    attributes = pd.DataFrame(in_pandas(sensitive_features)).reset_index(drop=True)
    check_consistent_length(people, attributes)
    own = [name for name in attributes if name and isinstance(name, str)]
    if names and own:
        if {*own} != {*names}:
            raise InputError(f"sensitive_features have the columns {own}, and fit had {names}")
        attributes = attributes[names]
    words = attributes.iloc[:, 0]
    if len(attributes.columns) > 1:  # texts of tuples, in which no comma of a value can be taken for theirs
        rows = attributes.map(spelling).itertuples(index=False, name=None)
        words = pd.Series(map(str, rows)).where(attributes.notna().all(axis=1))
    if names is None:
        column = column or (own[0] if [*attributes] == own[:1] else GROUPS)
        if column in people and (people[column].map(spelling) != words.map(spelling)).any():
            column = _beside(people, GROUPS)
    return people.assign(**{str(column): words.to_numpy()}), column, own


def log_of(
    people: pd.DataFrame, label: np.ndarray, accepted: Any, propensity: Any
) -> tuple[pd.DataFrame, dict[str, str]]:
    """People (N, D) with columns of the label and, unless all were accepted, of the decisions, by role.

    Other arguments and errors as for `decisions_of`.
    """
    taken, p = decisions_of(label, accepted, propensity)
    columns = {"label": label}
    if not taken.all():
        columns |= {"decision": taken.astype(int)} | ({} if p is None else {"propensity": p})
    names = {role: _beside(people, role) for role in columns}
    return people.assign(**{names[role]: values for role, values in columns.items()}), names
