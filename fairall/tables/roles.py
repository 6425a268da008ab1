"""Columns with a role (label, decision, groups, people, times, amounts), and reading of whole tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.words import nearest
from fairall.display.progress import doing
from fairall.errors import FairAllError, count
from fairall.tables.applicants import Applicants
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
from fairall.tables.features import MISSING_LEVEL, Kind
from fairall.tables.files import Cells, read_cells
from fairall.tables.groups import display_name
from fairall.tables.infer import Column, LeftOut

LARGEST_GROUPS, MOST_GROUPS = 20, 50  # groups that a method can learn with, and that a log can have
SUMS_TO_1 = 0.01  # largest distance from 1 of a sum of probabilities of groups
MOST_VERSIONS = 50  # of policies; more are a number or a name
CHANCE = 1e-6  # largest probability of what is reported as no chance
POSITIVE = {"label": "positive", "decision": "accepted"}  # key of the value that counts as 1
TWO = {
    "label": "a label must have two, with empty cells where it is unknown",
    "decision": "a decision must have two: without rejected people there is no selection to correct for, and "
    "without accepted ones no label",
}
AMOUNTS = ("gain", "loss")  # keys of columns that may be features too
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


def emptied(people: Applicants, column: pd.Series) -> str:
    """A word that means no value by default, and how many cells have it, after a semicolon; "" for none."""
    words = people.table.emptied[str(column.name)]
    words = words[~words.isin(people.declared.missing)]
    settle = "leave it out of missing_by_default= if it is a value, or give it in missing= too"
    return "".join(f"; {word!r} in {count(len(words), 'row')} means no value: {settle}" for word in words[:1])


def complete(people: Applicants, column: pd.Series, key: str) -> pd.Series:
    """The column of a key; raises FairAllError with the row of a missing cell."""
    why = f"is no {key.replace('_', ' ')}: complete or remove the row{emptied(people, column)}"
    refuse(column, column.isna(), why)
    return column


def position(words: Iterable[str], value: str, column: pd.Series, key: str) -> int:
    """Number of the word (K,) of a column that is the value of a key, in any spelling.

    Raises:
        FairAllError: where no word is.
    """
    for k, word in enumerate(words):
        if spelling(word) == spelling(value):
            return k
    has = listed([*words], "value")
    raise FairAllError(f"{key}={value}: column {column.name!r} has no such value; it has {has}")


def binary(people: Applicants, column: pd.Series, key: str) -> np.ndarray:
    """Whether rows have the value of `POSITIVE`, shape (N,): decisions, or labels 1, 0 and NaN for no value.

    Raises:
        FairAllError: where a column has more than two values, or not the positive one, which a label of one
            value may lack; where a decision is missing, or all are the same, unless they may be
            (`Declared.accepts_all`); where a word that means no value by default may be the second label.
    """
    is_label = key == "label"
    codes, words, notes = values_of(column if is_label else complete(people, column, key))
    doubt, value = emptied(people, column), getattr(people.declared, POSITIVE[key])
    message = f"column {column.name!r} has {listed(list(words), 'value')}{doubt}"
    people.notes += [*notes, message] if doubt else notes
    least = 1 if is_label or people.declared.accepts_all else 2
    if not least + bool(doubt) <= len(words) <= 2:
        raise FairAllError(f"{message}; {TWO[key]}")
    if is_label and len(words) == 1 and value and spelling(value) != spelling(words[0]):
        people.notes.append(f"column {column.name!r} is always {words[0]!r}: no label is positive={value}")
        return np.where(codes < 0, np.nan, 0.0)
    good = np.equal(codes, position(words, value, column, POSITIVE[key]))
    return np.where(codes < 0, np.nan, good) if is_label else good


def reveal(people: Applicants) -> None:
    """Leave the labels that decisions, if there are any, revealed, with notes on the others.

    All are left if they are known and to be learnt. The propensity of the decision gives the probability that
    such a label is known, but not that of a rejected person's label. Rejected people who all have the
    negative label, by what is no chance, get a warning.

    Raises:
        FairAllError: where rejected people alone have labels.
    """
    label, accepted = people.label, people.accepted
    if label is None or accepted is None:
        return
    known, rejected = ~np.isnan(label), label[~accepted]
    seen = label[known & accepted]
    if not len(seen):
        value = people.declared.accepted
        raise FairAllError(f"accepted={value}: no accepted row has a label: are they swapped?")
    if (rejected == 0).all() and (1.0 - seen.mean()) ** len(rejected) <= CHANCE:
        people.warnings.append(
            f"all {len(rejected)} rejected rows have a negative label in column {people.declared.label!r}: "
            "if rejection alone made it so, these are no outcomes: empty their cells"
        )
    if people.to_learn and known.all():
        return
    for rows, who, why in (
        (known & ~accepted, "rejected row", "with a label: not used, since no decision revealed it"),
        (accepted & ~known, "accepted row", f"without a label: {UNLABELLED[people.to_learn]}"),
    ):
        if n := int(rows.sum()):
            people.notes.append(f"{count(n, who)} {why}")
    people.label = np.where(accepted, label, np.nan)


def propensity(people: Applicants, column: pd.Series, key: str) -> np.ndarray:
    """Propensities, shape (N,); rejected rows may have none, or 0. Raises with the row of another number."""
    p = numbers_of(column)
    wrong = ~((p >= 0) & (p <= 1))
    accepted = False if people.accepted is None else people.accepted
    wrong = np.where(accepted, wrong | (p == 0), wrong & column.notna())
    refuse(column, wrong, "is no propensity, a number above 0 and at most 1")
    return p


def amount(people: Applicants, column: pd.Series, key: str) -> np.ndarray:
    """Gains or losses, shape (N,); raises with the row of one that is not possible."""
    money = numbers_of(column)
    refuse(column, ~((money >= 0) & (money < np.inf)), f"is no {key}, a number of at least 0")
    if key == "loss" and people.gain is not None:
        refuse(column, money + people.gain == 0, "is the loss, and the gain too: one must be above 0")
    return money


def groups(people: Applicants, columns: pd.DataFrame, key: str) -> np.ndarray:
    """Number of the group of each row, shape (N,), in the order of the values, which `people` gets.

    Where probabilities of groups are known only, everybody is of one group. For a method that learns see
    `ordered`.

    Raises:
        FairAllError: where there are fewer than two groups, or too many, or as `probabilities`; for a method
            that learns where a cell is missing, or as `ordered`.
    """
    if people.to_learn and len(people.declared.grouping) > 1:
        raise FairAllError(f"sensitive=[{','.join(columns)}]: a method that learns takes one column")
    chances = None if people.declared.intersections else probabilities(columns)
    if chances is not None and (chances % 1).any():
        people.probabilities, people.groups = chances, [("everybody",)]
        return np.zeros(len(chances), dtype=int)
    if chances is not None:  # 1 in the column of the group, 0 in the others
        columns = pd.DataFrame({"group": columns.columns.to_numpy()[chances.argmax(1)]})
    texts = []
    for name, column in columns.items():
        if people.to_learn:
            complete(people, column, "sensitive attribute")
        codes, words, notes = values_of(column)
        if n := int((codes < 0).sum()):
            message = f"{count(n, 'row')} without a value, taken for a group, {MISSING_LEVEL}"
            notes.append(f"column {name!r}: {message}{emptied(people, column)}")
        people.notes += notes
        texts.append(taken(words, codes, MISSING_LEVEL))
    numbers, combinations = pd.factorize(pd.MultiIndex.from_arrays(texts), sort=True)
    people.groups = list(combinations)
    if people.to_learn:
        return ordered(people, numbers, columns.iloc[:, 0])
    if not 2 <= len(people.groups) <= MOST_GROUPS:
        message = f"{', '.join(columns)}: {listed([*map(display_name, people.groups)], 'group')}"
        raise FairAllError(f"{message}; from 2 to {MOST_GROUPS} are needed: merge or remove rows")
    return numbers


def ordered(people: Applicants, numbers: np.ndarray, column: pd.Series) -> np.ndarray:
    """Numbers of the groups in the order of `groups.sides`, of the M rows in one of them, shape (M,).

    The groups are the words of `Declared.groups`, else `advantaged` and its one other word, else all words.
    Rows in none of them are removed from `people`.

    Args:
        people: the table, which gets the groups.
        numbers: number of the group of each row among `people.groups`, shape (N,).
        column: of the sensitive attribute.

    Raises:
        FairAllError: where there are fewer than two groups, or too many, a declared one is not in the table,
            or the keys leave open which one is S = +1.
    """
    first, chosen = people.declared.advantaged, people.declared.groups
    words = [word for (word,) in people.groups]
    places = [position(words, word, column, "groups") for word in chosen]
    if first:
        places.append(position(words, first, column, "advantaged"))
    if not chosen:
        places += [k for k in range(len(words)) if k not in places]
    unclear = first if chosen else (len(words) == 2) != bool(first)
    if unclear or not 2 <= len({*places}) == len(places) <= LARGEST_GROUPS:
        raise FairAllError(
            f"column {column.name!r} has {listed(words, 'value')}: give the one of two that is S = +1, "
            "advantaged=A, or all, groups=[A,B,C]"
        )
    group = pd.Index(places).get_indexer(numbers)
    if n := int((group < 0).sum()):
        people.notes.append(f"{count(n, 'row')} of other values of column {column.name!r} left out")
        people.table = people.table.rows(group >= 0)
    people.groups = [people.groups[place] for place in places]
    return group[group >= 0]


def probabilities(columns: pd.DataFrame) -> np.ndarray | None:
    """Probabilities of the K groups, of which each has one of the columns, shape (N, K).

    Returns:
        None for one column, for words, and for whole numbers other than a 1 for the group of each row.

    Raises:
        FairAllError: with the row that has no probability, or does not sum to 1 within `SUMS_TO_1`.
    """
    columns = columns.astype(dict.fromkeys(columns.select_dtypes(bool), int))
    chances = columns.apply(numbers_of).to_numpy()
    sums, unknown = chances.sum(1, keepdims=True), np.isnan(chances)
    if chances.shape[1] < 2 or (unknown & columns.notna()).any(axis=None):
        return None
    wrong = ~((chances >= 0).all(1) & (np.abs(sums.ravel() - 1) <= SUMS_TO_1))
    if wrong.any() and (unknown | (chances % 1 == 0)).all():
        return None
    others = f"and the others of {', '.join(columns)} are no probabilities of groups, which sum to 1"
    refuse(columns.iloc[:, 0], wrong, others)
    return chances / sums


def names(people: Applicants, column: pd.Series, key: str) -> np.ndarray | None:
    """`cells.identifiers` of the column of a key, shape (N,); None where one policy version decided.

    Raises:
        FairAllError: where a cell is missing or a rounded number, or there are too many policy versions.
    """
    texts = identifiers(complete(people, column, key))
    n_versions = len(set(texts)) if key == "policy_version" else 0
    if n_versions > MOST_VERSIONS:
        raise FairAllError(
            f"column {column.name!r} has {n_versions} policy versions; at most {MOST_VERSIONS} can be "
            "modelled: give the column that changes with the policy"
        )
    return None if n_versions == 1 else texts


def times(people: Applicants, column: pd.Series, key: str) -> np.ndarray:
    """Numbers or dates (datetime64, UTC where they have a zone), shape (N,); a note is added on their order.

    Dates are read by pandas. All have a zone or none, and one order of year, month and day, which a day above
    12 tells.

    Raises:
        FairAllError: with the row of what is no time, or may be two.
    """
    time = numbers_of(complete(people, column, key))
    if np.isnan(time).all():
        words = column.astype(str)
        first, second = words.str.extract(DAY_AND_MONTH).to_numpy(dtype=float).T
        form = 2 * np.isnan(first) + words.str.fullmatch(ZONE)
        refuse(column, form != form.iloc[0], "is unlike row 1: write all with a zone or none, in one order")
        day_first = bool((first > 12).any())
        if day_first == (second > 12).any():
            refuse(column, np.abs(first - second) > 0, "may be two dates: write them as 2025-12-31")
        dates = words.where(words.str.fullmatch(DATE))
        dates = pd.to_datetime(dates, format="mixed", dayfirst=day_first, utc=True, errors="coerce")
        time = dates.dt.tz_localize(None).to_numpy()
    refuse(column, ~np.isfinite(time), "is no time: write numbers, or dates as 2025-12-31, in all rows")
    if not (time[1:] >= time[:-1]).all():
        message = "rows are not in the order of time; they are watched in it"
        people.notes.append(f"column {column.name!r}: {message}")
    return time


# By key, in the order in which they are read.
READERS: Mapping[str, Callable[[Applicants, Any, str], np.ndarray | None]] = {
    "grouping": groups,
    "decision": binary,
    "label": binary,
    "propensity": propensity,
    **dict.fromkeys(("person", "decision_maker", "policy_version"), names),
    "time": times,
    **dict.fromkeys(AMOUNTS, amount),
}
ATTRIBUTES = {"grouping": "group", "decision": "accepted"}  # of `Applicants`, where it is not the key


def read(
    source: Path | pd.DataFrame | Cells,
    declared: Declared,
    *,
    needs: Mapping[str, str] = MappingProxyType({}),
    to_learn: bool = False,
) -> Applicants:
    """Read a table; what is wrong with it is collected in `Applicants.faults`.

    Args:
        source: a CSV or Parquet file, a DataFrame, or cells that were read already.
        declared: meanings of columns.
        needs: keys of `declared` that must be given, and the fault where one is not.
        to_learn: order groups as `ordered`, and leave out rows of no group.

    Raises:
        FairAllError: if the file cannot be read.
    """
    people = Applicants(source if isinstance(source, Cells) else read_cells(source, declared), to_learn)
    faults, columns, keys = people.faults, [*map(str, people.cells)], dict[str, str]()
    for key, name in declared.named:
        if name not in columns:
            hint = nearest(name, columns) or f"; there are {', '.join(columns[:20])}"
            faults.told.append(f"{key}={name}: {declared.path} has no such column{hint}")
        elif key not in AMOUNTS and (other := keys.setdefault(name, key)) != key:
            faults.told.append(f"column {name!r} cannot be both {other} and {key}")
    people.roles = {name: key for name, key in keys.items() if key != "kinds"}
    faults.told += [fault for key, fault in needs.items() if not getattr(declared, key)]
    if declared.propensity and not declared.decision:
        faults.told.append("propensity= needs the decisions too: give decision=COLUMN")
    if not faults.told:
        read_roles(people)
    doing("kinds of columns")
    for name in columns:
        if name in people.roles or name in declared.not_features:
            continue
        people.columns[name] = Column(people.cells[name], declared)
        try:
            with faults.one():
                people.kinds[name] = people.columns[name].kind()
        except LeftOut as reason:
            people.left_out[name] = str(reason)
    people.notes[:0] = [f"column {name!r} is left out: {reason}" for name, reason in people.left_out.items()]
    if declared.person is None and not faults.told:
        real = [people.columns[name].numbers for name, kind in people.kinds.items() if kind is Kind.REAL]
        people.warnings += repeats(people.cells[[*people.kinds, *declared.grouping]], real)
    return people


def read_roles(people: Applicants) -> None:
    """Read the columns with a role."""
    for key, reader in READERS.items():
        if name := getattr(people.declared, key):
            with people.faults.one():
                values = reader(people, people.cells[name], key)
                setattr(people, ATTRIBUTES.get(key, key), values)
    with people.faults.one():
        reveal(people)


def repeats(rows: pd.DataFrame, numbers: Sequence[np.ndarray]) -> list[str]:
    """A warning where rows (N, D) of features and groups are equal.

    Rows are compared that have a number, of shape (N,) each; whole numbers, which are often equal, are none.
    """
    sums = np.full(len(rows), np.nan)
    for values in numbers:
        if (values > np.floor(values)).any():
            sums = np.where(np.isnan(values), sums, np.nan_to_num(sums) + values)
    known = pd.Series(sums, rows.index).dropna()
    rows = rows.loc[known.index[known.duplicated(keep=False)]]
    again = rows.index[rows.duplicated()]
    if again.empty:
        return []
    return [
        f"rows that equal an earlier one in all features and the group: {len(again)}, the first is row "
        f"{again[0] + 1}; if people have several rows, evaluate needs their column, person=COLUMN, else each "
        "row counts as a person"
    ]
