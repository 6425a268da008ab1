"""Columns with a role (label, decision, groups, people, times, amounts): what they must be, and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.words import nearest
from fairall.errors import Collected, FairAllError, count
from fairall.tables.cells import (
    identifiers,
    listed,
    numbers_of,
    refuse,
    spelling,
    taken,
    values_of,
)
from fairall.tables.declared import Declared
from fairall.tables.features import MISSING_LEVEL
from fairall.tables.files import Cells
from fairall.tables.groups import display_name

LARGEST_GROUPS, MOST_GROUPS = 20, 50  # groups that a method can learn with, and that a log can have
SUMS_TO_1 = 0.01  # largest distance from 1 of a sum of probabilities of groups
MOST_VERSIONS = 50  # of policies; more are a number or a name
CHANCE = 1e-6  # largest probability of what is reported as no chance
POSITIVE = {"label": "positive", "decision": "accepted"}  # key of the value that counts as 1
AMOUNTS = ("gain", "loss")  # keys of columns that may be features too
# By key the largest possible number, from 0, and what it must be in words.
LIMITS = {
    "propensity": (1.0, "above 0 and at most 1"),
    **dict.fromkeys(AMOUNTS, (np.finfo(float).max, "of at least 0")),
}
UNLABELLED = (
    "which labels are known is modelled from features and group, given which it is taken to be random",
    "taken to be a random part of the accepted",
)
ZONE = re.compile(r".*:\d\d.*?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)", re.IGNORECASE)
# A year with a month, or three numbers; pandas takes the time of a day alone for one of today.
DATE = re.compile(
    r".*(?:\d{4}[-/.TW]|\d{4} [a-z]|[a-z]{3}.*\d{4}|\d{8}T|\d[-/. ]\d+[-/. ]\d\d).*", re.IGNORECASE
)
DAY_AND_MONTH = r"^(\d{1,2})[-/. ](\d{1,2})[-/. ]"

Reading = dict[str, Any]
"""Values of the rows by key, as far as they are read, and lists of `notes` and `warnings`."""


def roles(declared: Declared, columns: Sequence[str], faults: Collected) -> dict[str, str]:
    """Key by column; a key that names no column, or one that another key names too, is a fault."""
    keys: dict[str, str] = {}
    for key, name in declared.named:
        with faults.one():
            require_column(key, name, columns, declared)
            if key not in AMOUNTS and (other := keys.setdefault(name, key)) != key:
                keys[name] = "drop"
                raise FairAllError(f"column {name!r} cannot be both {other} and {key}")
    return keys


def require_column(key: str, name: str, columns: Sequence[str], declared: Declared) -> None:
    """Raise FairAllError where `key` names a column that is not there."""
    if name not in columns:
        hint = nearest(name, columns) or f"; there are {', '.join(columns[:20])}"
        raise FairAllError(f"{key}={name}: {declared.path} has no such column{hint}")


def complete(cells: Cells, key: str, name: str) -> None:
    """Raise FairAllError, with its row, where a cell of the column of a key is missing."""
    for row in cells.frame.index[cells.frame[name].isna()]:
        message = f"{cells.empty(name, row)} is no {key.replace('_', ' ')}"
        raise FairAllError(f"column {name!r}, row {row + 1}: {message}: complete or remove the row")


def holds(words: np.ndarray, value: str, name: str, key: str) -> np.ndarray:
    """Which words (K,) of a column are the value of a key, in any spelling; FairAllError where none is."""
    equal = np.array([spelling(word) == spelling(value) for word in words], dtype=bool)
    if not equal.any():
        message = listed(list(words), "value")
        raise FairAllError(f"{key}={value}: column {name!r} has no such value; it has {message}")
    return equal


def emptied(cells: Cells, name: str) -> str:
    """A word that means no value by default, and how many cells have it, after a semicolon; "" for none."""
    words = cells.emptied[name][~cells.emptied[name].isin(cells.declared.missing)]
    settle = "leave it out of missing_by_default= if it is a value, or give it in missing= too"
    return "".join(f"; {word!r} in {count(len(words), 'row')} means no value: {settle}" for word in words[:1])


def binary(cells: Cells, key: str, reading: Reading) -> np.ndarray:
    """Whether rows have the value of `POSITIVE`, shape (N,): decisions, or labels 1, 0 and NaN for no value.

    Raises:
        FairAllError: where a column has more than two values, or not the positive one, which a label of one
            value may lack; where decisions are all the same, unless they may be (`Declared.accepts_all`);
            where a word that means no value by default may be the second label.
    """
    declared, notes, is_label = cells.declared, reading["notes"], key == "label"
    name, value = getattr(declared, key), getattr(declared, POSITIVE[key]) or ""
    codes, words, spelt = values_of(cells.frame[name])
    notes += spelt
    message, doubt = f"column {name!r} has {listed(list(words), 'value')}", emptied(cells, name)
    if doubt and len(words) < 2:
        raise FairAllError(message + doubt)
    if doubt:
        notes.append(f"column {name!r}: cells without a value are no {key}{doubt}")
    if len(words) not in ((1, 2) if is_label or declared.accepts_all else (2,)):
        raise FairAllError(f"{message}; a {key} must have two, as those of all who applied")
    if is_label and len(words) == 1 and value and spelling(value) != spelling(words[0]):
        notes.append(f"column {name!r} is always {words[0]!r}: no label is positive={value}")
        return np.where(codes < 0, np.nan, 0.0)
    positive = holds(words, value, name, POSITIVE[key])
    return taken(positive.astype(float), codes, np.nan) if is_label else positive[codes]


def reveal(reading: Reading, declared: Declared, *, to_learn: bool) -> None:
    """Leave the labels that the decisions revealed, with notes on the others; all, if they are to be learnt.

    The propensity of the decision gives the probability that such a label is known, but not that of a
    rejected person's label. Rejected people who all have the negative label, by what is no chance, get a
    warning.

    Raises:
        FairAllError: where rejected people alone have labels.
    """
    label, accepted, notes = reading["label"], reading["decision"], reading["notes"]
    known, rejected = ~np.isnan(label), label[~accepted]
    seen, extra = label[known & accepted], int((known & ~accepted).sum())
    if not len(seen):
        raise FairAllError(f"accepted={declared.accepted}: no accepted row has a label: are they swapped?")
    if seen.any() and (rejected == 0).all() and (1.0 - seen.mean()) ** len(rejected) <= CHANCE:
        message = f"all {count(extra, 'rejected row')} have a negative label in column {declared.label!r}"
        meaning = "if rejection alone made it so, these are no outcomes: empty their cells"
        reading["warnings"].append(f"{message}: {meaning}")
    if to_learn and known.all():
        return
    if extra:
        notes.append(f"{count(extra, 'rejected row')} with a label: not used, since no decision revealed it")
    if lacking := int((accepted & ~known).sum()):
        notes.append(f"{count(lacking, 'accepted row')} without a label: {UNLABELLED[to_learn]}")
    reading["label"] = np.where(accepted, label, np.nan)


def numbers(cells: Cells, key: str, reading: Reading) -> np.ndarray:
    """Propensities or amounts of the rows, shape (N,); rejected rows may have no propensity, or 0.

    Raises:
        FairAllError: with the row of a number that is not possible.
    """
    (most, what), column = LIMITS[key], cells.frame[getattr(cells.declared, key)]
    values = numbers_of(column)
    wrong = ~((values >= 0) & (values <= most))
    if key == "propensity":
        wrong = np.where(reading.get("decision", False), wrong | (values == 0), wrong & column.notna())
    refuse(column, wrong, f"is no {key}, a number {what}")
    if key == "loss" and "gain" in reading:
        refuse(column, values + reading["gain"] == 0, "is the loss, and the gain too: one must be above 0")
    return values


def groups(cells: Cells, reading: Reading) -> np.ndarray:
    """Number of the group of each row, shape (N,), in the order of the values, which are added to `reading`.

    Where probabilities of groups are known only, everybody is of one group.

    Raises:
        FairAllError: where there are fewer than two groups, or too many, or as `probabilities`.
    """
    frame, texts = cells.frame[cells.declared.grouping], list[np.ndarray]()
    chances = None if cells.declared.intersections else probabilities(frame)
    if chances is not None and (chances % 1).any():
        reading |= {"probabilities": chances, "groups": [("everybody",)]}
        return np.zeros(len(chances), dtype=int)
    if chances is not None:  # 1 in the column of the group, 0 in the others
        frame = pd.DataFrame({"group": frame.columns.to_numpy()[chances.argmax(1)]})
    for name, column in frame.items():
        if n := int(column.isna().sum()):
            doubt = emptied(cells, str(name))
            message = (
                f"{count(n, 'emptied cell' if doubt else 'empty cell')}, taken for a group, {MISSING_LEVEL}"
            )
            reading["notes"].append(f"column {name!r}: {message}{doubt}")
        codes, words, spelt = values_of(column)
        reading["notes"] += spelt
        texts.append(taken(words, codes, MISSING_LEVEL))
    rows = pd.MultiIndex.from_arrays(texts)
    values = rows.unique().sort_values()
    if not 2 <= len(values) <= MOST_GROUPS:
        message = f"{', '.join(frame)}: {listed(list(map(display_name, values)), 'group')}"
        raise FairAllError(f"{message}; from 2 to {MOST_GROUPS} are needed: merge or remove rows")
    reading["groups"] = list(values)
    return values.get_indexer(rows)


def groups_to_learn(cells: Cells, reading: Reading) -> np.ndarray:
    """As `groups`, for a method that learns: in the order of `groups.sides`, −1 in rows of none.

    The groups are the words of `Declared.groups`, else `advantaged` and its one other word, else all words.

    Raises:
        FairAllError: where a cell is missing, there are fewer than two groups, a declared one is not in the
            table, or the keys leave open which one is S = +1.
    """
    (name,), listed_groups, first = cells.declared.grouping, cells.declared.groups, cells.declared.advantaged
    complete(cells, "sensitive_attribute", name)
    codes, words, notes = values_of(cells.frame[name])
    others = [word for word in sorted(words) if spelling(word) != spelling(first)]
    chosen = listed_groups or [*filter(None, [first]), *others]
    unclear = first if listed_groups else (len(words) == 2) != bool(first)
    if unclear or not 2 <= len(chosen) <= LARGEST_GROUPS:
        message = f"column {name!r} has {listed(list(words), 'value')}"
        raise FairAllError(
            f"{message}: give the one of two that is S = +1, advantaged=A, or all, groups=[A,B,C]"
        )
    number = np.full(len(words), -1)
    for k, word in enumerate(chosen):
        number[holds(words, word, name, "advantaged" if first else "groups")] = k
    if n := int((number[codes] < 0).sum()):
        notes.append(f"{count(n, 'row')} of other values of column {name!r} left out")
    reading["notes"] += notes
    reading["groups"] = [tuple(words[number == k]) for k in range(len(chosen))]
    return number[codes]


def probabilities(columns: pd.DataFrame) -> np.ndarray | None:
    """Probabilities of the K groups, of which each has one of the columns, shape (N, K).

    Returns:
        None for one column, for words, and for whole numbers other than a 1 for the group of each row.

    Raises:
        FairAllError: with the row that has no probability, or does not sum to 1 within `SUMS_TO_1`.
    """
    columns = columns.astype({name: int for name in columns if columns[name].dtype == bool})
    values = np.stack([numbers_of(column) for _, column in columns.items()], axis=1)
    sums, unknown = values.sum(1, keepdims=True), np.isnan(values)
    indicators = np.isin(values, (0, 1)).all() and (sums == 1).all()
    whole = (unknown | (values % 1 == 0)).all() and not indicators
    if whole or values.shape[1] < 2 or (unknown & columns.notna()).any(axis=None):
        return None
    wrong = ~((values >= 0).all(1) & (np.abs(sums.ravel() - 1) <= SUMS_TO_1))
    others = f"and the others of {', '.join(columns)} are no probabilities of groups, which sum to 1"
    refuse(columns.iloc[:, 0], wrong, others)
    return values / sums


def names(cells: Cells, key: str, _: Reading) -> np.ndarray | None:
    """`cells.identifiers` of the column of a key, shape (N,); None where one policy version decided.

    Raises:
        FairAllError: where a cell is a rounded number, or there are too many policy versions.
    """
    texts = identifiers(cells.frame[getattr(cells.declared, key)])
    n_versions = len(set(texts)) if key == "policy_version" else 0
    if n_versions > MOST_VERSIONS:
        raise FairAllError(f"{key}: at most {MOST_VERSIONS} can be modelled, and there are {n_versions}")
    return None if n_versions == 1 else texts


def times(cells: Cells, key: str, reading: Reading) -> np.ndarray:
    """Numbers or dates (datetime64, UTC where they have a zone), shape (N,); a note is added on their order.

    Dates are read by pandas. All have a zone or none, and one order of day and month, which a day above 12
    tells.

    Raises:
        FairAllError: with the row of what is no time, or may be two.
    """
    column = cells.frame[getattr(cells.declared, key)]
    time = numbers_of(column)
    if np.isnan(time).all():
        words = column.astype(str)
        zoned = words.str.fullmatch(ZONE)
        refuse(column, zoned != zoned.iloc[0], "is a time with a zone, or without one, unlike row 1")
        first, second = words.str.extract(DAY_AND_MONTH).to_numpy(dtype=float).T
        day_first = bool((first > 12).any())
        if not day_first and not (second > 12).any():
            refuse(column, np.abs(first - second) > 0, "may be two dates: write them as 2025-12-31")
        dates = words.where(words.str.fullmatch(DATE) & ~(day_first & ~(second <= 12)))
        dates = pd.to_datetime(dates, format="mixed", dayfirst=day_first, utc=True, errors="coerce")
        time = dates.dt.tz_localize(None).to_numpy()
    refuse(column, ~np.isfinite(time), "is no time: write numbers, or dates as 2025-12-31, in all rows")
    if not (time[1:] >= time[:-1]).all():
        message = "rows are not in the order of time; they are watched in it"
        reading["notes"].append(f"column {column.name!r}: {message}")
    return time


READERS: Mapping[str, Callable[[Cells, str, Reading], Any]] = {
    **dict.fromkeys(("decision", "label"), binary),
    "propensity": numbers,
    **dict.fromkeys(("person", "decision_maker", "policy_version"), names),
    "time": times,
    **dict.fromkeys(AMOUNTS, numbers),
}
