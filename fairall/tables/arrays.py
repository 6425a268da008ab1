"""Arrays and DataFrames, as scikit-learn's estimators take them, as a log of decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight

from fairall.errors import FairAllError
from fairall.tables.cells import spelling

GROUPS = "sensitive_features"
ROLES = ("label", "decision", "propensity", GROUPS)  # names of columns beside those of X


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
        raise error if isinstance(error, InputError) else InputError(str(error)) from error


def table_of(X: Any) -> pd.DataFrame:
    """X (N, D) as a DataFrame with texts as column names, x0 and so on for those of an array.

    Raises:
        ValueError: where X has no such shape, or is sparse, complex or infinite.
    """
    if isinstance(X, pd.DataFrame) and len(X):
        return X.set_axis(list(map(str, X.columns)), axis=1).reset_index(drop=True)
    array = check_array(X, dtype=None, ensure_all_finite="allow-nan")
    return pd.DataFrame(array).infer_objects().add_prefix("x")


def names_beside(people: pd.DataFrame) -> dict[str, str]:
    """A name for each of `ROLES` that no column of X has."""
    names = {}
    for role in ROLES:
        names[role] = role
        while names[role] in people:
            names[role] = f"log_{names[role]}"
    return names


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
    typed = isinstance(y, pd.Series)  # which an array of a nullable type may lose
    given = y.reset_index(drop=True) if typed else pd.Series(column_or_1d(np.asarray(y), warn=True))
    unknown = given.isna() if pd.isna(missing) else given == missing
    known = given[~unknown].infer_objects().to_numpy()
    if len(known):
        check_array(known.reshape(-1, 1), dtype=None, input_name="y")
        check_classification_targets(known)
    found = np.unique(known)
    if classes is None and len(found) < 2:
        told = "1 class" if len(found) else "no class: nobody has a label"
        raise InputError(f"y has {told}; among the known labels there must be both")
    if classes is None and len(found) > 2:
        raise InputError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(known)}: y has {len(found)} classes, and `missing` is {missing!r}"
        )
    both = found if classes is None else np.asarray(classes)
    good = both[1] if positive is None else positive
    for what, value in [*(("y has", value) for value in found.tolist()), ("positive is", good)]:
        if value not in both.tolist():
            raise InputError(f"{what} {value!r}, which is none of the classes {both.tolist()}")
    label = np.full(len(given), np.nan)
    label[~unknown.to_numpy()] = known == good
    return label, both


def decisions_of(label: np.ndarray, accepted: Any, propensity: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Who was accepted, shape (N,), bool, and with which probability; None where it is not given.

    Args:
        label: NaN where it is unknown, shape (N,).
        accepted: the decisions, shape (N,); those who have a label, where they are not given.
        propensity: of the decisions, shape (N,), or None.

    Raises:
        InputError: where they are no decisions, or no probabilities.
        ValueError: where they have other lengths.
    """
    taken = ~np.isnan(label)
    if accepted is not None:
        check_consistent_length(label, accepted)
        given = pd.Series(np.ravel(np.asarray(accepted)))
        if not given.isin([0, 1]).all():
            raise InputError("accepted: it must be 1 or 0, or true or false, for everybody")
        taken = given.to_numpy(dtype=bool)
    if propensity is None:
        return taken, None
    check_consistent_length(label, propensity)
    p = pd.to_numeric(pd.Series(np.ravel(np.asarray(propensity))), errors="coerce").to_numpy(dtype=float)
    if not ((p > 0) & (p <= 1))[taken].all() or ((p < 0) | (p > 1)).any():
        raise InputError("propensity: it must be above 0 and at most 1 for everybody who was accepted")
    return taken, p


def weights_of(label: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Weights of labels (N,), float64; raises ValueError where they are not possible."""
    weight = _check_sample_weight(sample_weight, label, dtype=float, ensure_non_negative=True)
    if len(np.unique(label[(weight > 0) & ~np.isnan(label)])) < 2:
        raise InputError("sample_weight: it must not be zero for all labels of a class")
    return np.asarray(weight)


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
        if column is not None and column not in list(people):
            raise InputError(f"give sensitive_features, or X with the column {column!r} of the groups")
        return people, column, [column] if column else []
    given = pd.DataFrame(in_pandas(sensitive_features)).reset_index(drop=True)
    check_consistent_length(people, given)
    own = [name for name in given if name and isinstance(name, str)]
    if names and own:
        if sorted(own) != sorted(names):
            raise InputError(f"sensitive_features have the columns {own}, and fit had {names}")
        given = given[names]
    words = given.iloc[:, 0]
    if given.shape[1] > 1:  # texts of tuples, in which no comma of a value can be taken for theirs
        rows = given.itertuples(index=False)
        words = pd.Series([str((*map(spelling, row),)) for row in rows]).where(given.notna().all(axis=1))
    if names is None:
        column = column or (own[0] if given.shape[1] == len(own) == 1 else GROUPS)
        if column in people and [*map(spelling, people[column])] != [*map(spelling, words)]:
            column = names_beside(people)[GROUPS]
    return people.assign(**{str(column): words.to_numpy()}), column, own


def log_of(
    people: pd.DataFrame, label: np.ndarray, accepted: Any, propensity: Any
) -> tuple[pd.DataFrame, dict[str, str]]:
    """People (N, D) with columns of the label and, unless all were accepted, of the decisions, by role.

    Other arguments and errors as for `decisions_of`.
    """
    taken, p = decisions_of(label, accepted, propensity)
    names, values = names_beside(people), {"label": label}
    if not taken.all():
        values |= {"decision": taken.astype(int)} | ({} if p is None else {"propensity": p})
    return people.assign(**{names[role]: of for role, of in values.items()}), {
        role: names[role] for role in values
    }
