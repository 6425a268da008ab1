"""Meaning of columns with a role: labels, decisions, propensities, groups, people, times and amounts."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import Collected, FairAllError, count
from fairall.tables.cells import (
    identifiers,
    listed,
    numbers_of,
    refuse,
    row_number,
    shown,
    spelling,
    taken,
    values_of,
    words_of,
)
from fairall.tables.declared import Declared
from fairall.tables.features import MISSING_LEVEL
from fairall.tables.files import Cells
from fairall.tables.groups import Grouped, display_name, intersections

LARGEST_GROUPS, MOST_GROUPS = 20, 50  # groups that a method can learn with, and that a log can have
SUMS_TO_1 = 0.01  # largest distance from 1 of a sum of probabilities of groups
MOST_VERSIONS = 50  # more are a number or a name
CHANCE = 1e-6  # largest probability of what is reported as no chance
ALIKE = 0.8  # of two words of which one is taken for a misspelling of the other
ZONE = re.compile(r".*\d[T ]?\d.*:\d\d(?:[.,]\d+)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)")
# With the first two numbers of a date that does not begin with the year.
DATE = re.compile(
    r"\d{4}(?:\D|\d{4}T|W).*|(\d{1,2})[-/. ](\d{1,2})[-/. ]\d{2,4}(?!\d).*|.*[a-z]{3,} .*\d.*", re.IGNORECASE
)


ValuesAndNotes = tuple[np.ndarray, list[str]]  # values of the rows, and notes on how they were read


def roles(declared: Declared, columns: Sequence[str], collected: Collected) -> dict[str, str]:
    """Columns that are declared, and the key that names each; faults are collected.

    A fault is a key that names no column, or two keys that name the same one.
    """
    found: dict[str, str] = {}
    clashing = set()
    for key, name in declared.named:
        with collected.one():
            require_column(key, name, columns, declared)
            if found.setdefault(name, key) != key:
                clashing.add(name)
                both = " and ".join(map(declared.spelling.key, (found[name], key)))
                raise FairAllError(f"column {name!r} cannot be both {both}")
    return {name: "drop" if name in clashing else key for name, key in found.items()}


def require_column(key: str, name: str, columns: Sequence[str], declared: Declared) -> None:
    """Raise FairAllError where `key` names a column that is not there."""
    if name not in columns:
        close = difflib.get_close_matches(name, columns, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(columns[:20])}"
        given = declared.spelling.given(key, name)
        raise FairAllError(f"{given}: {declared.path} has no such column; {hint}")


def holds(words: np.ndarray, value: str, name: str, key: str, declared: Declared) -> np.ndarray:
    """Which words (K,) are a value: that text, or if none is, another spelling of it (`cells.spelling`).

    Raises:
        FairAllError: naming the key that has the value, if no word is.
    """
    found = words == value
    if not found.any():
        found = np.array([spelling(word) == spelling(value) for word in words], dtype=bool)
    if not found.any():
        values = ", ".join(shown(word) for word in sorted(words))
        given = declared.spelling.given(key, shown(value))
        raise FairAllError(f"{given}: column {name!r} has no such value; it has {values}")
    return found


def complete(cells: Cells, name: str, what: str, remedy: str = "complete it") -> pd.Series:
    """The column, which must have no missing cell.

    Raises:
        FairAllError: where a cell is missing, with its column and row.
    """
    column = cells.frame[name]
    if (wrong := column.isna().to_numpy()).any():
        row = row_number(column, int(wrong.argmax()))
        cell = cells.empty(name, row - 1)
        raise FairAllError(f"column {name!r}, row {row}: {cell} is no {what}: {remedy}")
    return column


def labels(cells: Cells, declared: Declared) -> ValuesAndNotes:
    """1 or 0, NaN where the label is unknown, shape (N,), and notes.

    Raises:
        FairAllError: where the column has other than two values, or no row has a label.
    """
    name, spell = str(declared.label), declared.spelling
    codes, words, notes = values_of(cells.frame[name])
    emptied = cells.emptied[name]
    of_default = [word for word in emptied.unique() if word not in declared.missing]
    values = listed(list(words), "value")
    if not declared.positive:
        raise FairAllError(
            f"column {name!r} has {values}: give the good one with {spell.given('positive', 'VALUE')}"
        )
    if of_default and len(words) < 2:
        none = spell.word("missing", [*declared.missing, of_default[0]])
        raise FairAllError(
            f"column {name!r} has {values} beside {of_default[0]!r} in {count(len(emptied), 'row')}, which "
            f"means no value: {declared.kept(of_default[0])} makes it a label, {none} says that it is none"
        )
    if not len(words):
        raise FairAllError(f"column {name!r}: no row has a label")
    if len(words) > 2:
        raise FairAllError(
            f"column {name!r} has {values}; a label must have two, with empty cells where it is unknown"
        )
    if of_default:
        n, told = int(emptied.isin(of_default).sum()), " or ".join(map(repr, of_default))
        makes = declared.kept(*of_default)
        notes.append(
            f"column {name!r}: {count(n, 'cell')} with {told} taken for no label; {makes} makes it one"
        )
    alike = difflib.get_close_matches(declared.positive.casefold(), map(str.casefold, words), 1, ALIKE)
    if len(words) == 1 and not alike and spelling(declared.positive) != spelling(words[0]):
        given = spell.given("positive", shown(declared.positive))
        notes.append(f"column {name!r} is always {shown(words[0])!r}: no label is {given}")
        return np.where(codes < 0, np.nan, 0.0), notes
    positive = holds(words, declared.positive, name, "positive", declared)
    return taken(positive.astype(float), codes, np.nan), notes


def decisions(cells: Cells, declared: Declared) -> ValuesAndNotes:
    """Who was accepted, shape (N,), bool, and notes.

    Raises:
        FairAllError: where the column has more than two values, or one decision never occurs; rejections
            may be missing with `Declared.accepts_all`.
    """
    name = str(declared.decision)
    codes, words, notes = values_of(complete(cells, name, "decision", "complete or remove the row"))
    if len(words) > 2:
        raise FairAllError(f"column {name!r} has {listed(list(words), 'value')}; a decision must have two")
    if len(words) == 2 or declared.accepts_all:
        return holds(words, declared.accepted, name, "accepted", declared)[codes], notes
    why = "rejected, so that there is no selection to correct for; a log holds all who applied"
    if spelling(words[0]) != spelling(declared.accepted):
        given = declared.spelling.given("accepted", declared.accepted)
        why = f"accepted, so that nothing is known of what acceptance brings; an acceptance is {given}"
    raise FairAllError(f"column {name!r} is always {shown(words[0])!r}: nobody was {why}")


def revealed(
    label: np.ndarray, accepted: np.ndarray, cells: Cells, declared: Declared, unlabelled: str
) -> ValuesAndNotes:
    """The labels (N,) that the decisions revealed, those of the accepted, and notes on the others.

    The propensity of the decision gives the probability that such a label is known, but not that of a
    rejected person's label. `unlabelled` says what is assumed of accepted rows without a label.

    Raises:
        FairAllError: where rejected people alone have labels.
    """
    known = ~np.isnan(label)
    if known.any() and not (known & accepted).any():
        words = words_of(cells.frame[declared.decision])[1]
        other = next(word for word in words if spelling(word) != spelling(declared.accepted))
        raise FairAllError(
            f"{declared.spelling.given('accepted', shown(declared.accepted))}: no accepted row has a label, "
            f"but {count(int(known.sum()), 'rejected row')} with one: are the values of column "
            f"{declared.decision!r} swapped, and it is {declared.spelling.word('accepted', other)}?"
        )
    notes = []
    if extra := int((known & ~accepted).sum()):
        notes.append(f"{count(extra, 'rejected row')} with a label: not used, since no decision revealed it")
    if lacking := int((accepted & ~known).sum()):
        notes.append(f"{count(lacking, 'accepted row')} without a label: {unlabelled}")
    return np.where(accepted, label, np.nan), notes


def failed_by_rejection(label: np.ndarray, accepted: np.ndarray, declared: Declared) -> list[str]:
    """A warning where all rejected have the negative label, by what is no chance; arrays of shape (N,)."""
    known, rejected = label[accepted & ~np.isnan(label)], label[~accepted]
    if not known.any() or np.isnan(rejected).any() or rejected.any():
        return []
    if (1.0 - known.mean()) ** len(rejected) > CHANCE:
        return []
    return [
        f"all {count(len(rejected), 'rejected row')} have a negative label in column {declared.label!r}: if "
        "rejection alone made it so, these are no outcomes: empty their cells"
    ]


def recorded_propensity(cells: Cells, declared: Declared, accepted: np.ndarray) -> ValuesAndNotes:
    """π(d=1 | x, s) of each decision, shape (N,), NaN where a rejected row has none; and no notes."""
    column = cells.frame[declared.propensity]
    propensity = numbers_of(column)
    # Rejected rows have no weight, so their propensity may be missing or 0.
    wrong = ~((propensity > 0) & (propensity <= 1)) & (accepted | column.notna().to_numpy())
    wrong &= ~((propensity == 0) & ~accepted)
    others = f" ({count(int(wrong.sum()) - 1, 'more such row')})" if wrong.sum() > 1 else ""
    refuse(column, wrong, f"is not a propensity, a number above 0 and at most 1{others}")
    return propensity, []


def groups(cells: Cells, declared: Declared) -> Grouped:
    """Number of the group of each row, shape (N,), the values of each group, and notes.

    Raises:
        FairAllError: where there are fewer than two groups, or too many.
    """
    columns, of, notes = cells.frame[declared.grouping], declared.grouping, []
    known = probabilities(cells, declared)
    if known is not None:  # 1 in the column of the group, 0 in the others
        columns = pd.DataFrame({"group": np.array(of, dtype=object)[known.argmax(1)]})
    for name in columns:
        if n := int(columns[name].isna().sum()):
            told, words = count(n, "empty cell"), cells.emptied[name].unique()
            if len(words):
                told = f"{count(n, 'cell')} without a value, such as {words[0]!r}"
                told += f" ({declared.kept(words[0])} keeps it)"
            notes.append(f"column {name!r}: {told}, taken for a group, {MISSING_LEVEL}")
    number, values, spelt = intersections(columns)
    if not 2 <= len(values) <= MOST_GROUPS:
        what = f"column {of[0]!r} has" if len(of) == 1 else f"columns {', '.join(of)} have"
        found = listed([display_name(one) for one in values], "group")
        raise FairAllError(f"{what} {found}; from 2 to {MOST_GROUPS} are needed: merge or remove rows")
    return number, values, notes + spelt


def probabilities(cells: Cells, declared: Declared) -> np.ndarray | None:
    """Probabilities of the groups, of which each has a column of `sensitive`, shape (N, K).

    Returns:
        None where the columns hold words, or whole numbers other than a 1 for the group of each row.

    Raises:
        FairAllError: with the row that has no probability, or does not sum to 1 within `SUMS_TO_1`.
    """
    names = declared.grouping
    if len(names) < 2 or declared.intersections:
        return None
    columns = [cells.frame[name] for name in names]
    values = np.column_stack([numbers_of(one * 1 if one.dtype == bool else one) for one in columns])
    if (np.isnan(values) & np.column_stack([column.notna() for column in columns])).any():
        return None
    sums = values.sum(1)
    if (np.isnan(values) | (values == np.floor(values))).all():
        return values if np.isin(values, (0, 1)).all() and (sums == 1).all() else None
    for column, of_group in zip(columns, values.T, strict=True):
        wrong = ~((of_group >= 0) & (of_group <= 1))
        refuse(column, wrong, "is no probability of a group, a number from 0 to 1")
    if (wrong := np.abs(sums - 1) > SUMS_TO_1).any():
        row = int(wrong.argmax())
        raise FairAllError(
            f"columns {', '.join(names)}, row {row_number(columns[0], row)}: the probabilities of the groups "
            f"sum to {sums[row]:g}, not to 1: give the columns of all groups"
        )
    return values / sums[:, None]


def groups_to_learn(cells: Cells, declared: Declared) -> Grouped:
    """As `groups`, for a method that learns: groups in the order of `groups.sides`, −1 in rows left out.

    The groups are the words of `declared.groups`, else `advantaged` and its one other word, else all words.

    Raises:
        FairAllError: where there are fewer than two groups, a declared one is not in the table, or the keys
            leave open which one is S = +1 or name groups twice.
    """
    name, spell = str(declared.sensitive), declared.spelling
    column = complete(cells, name, "sensitive attribute", "complete or remove the row")
    codes, found, notes = values_of(column)
    words, advantaged = declared.groups, declared.advantaged
    values = listed(list(found), "value")
    if words is not None and advantaged is not None:
        keys = f"{spell.key('advantaged')} and {spell.key('groups')}"
        raise FairAllError(f"{keys} both name groups: give one of the two")
    if words is None and (advantaged is not None or len(found) < 2):
        if len(found) != 2:
            several = f"{spell.given('advantaged', 'null')} {spell.given('groups', '[A,B,C]')}"
            raise FairAllError(
                f"column {name!r} has {values}; the sensitive attribute must have two: merge or remove rows, "
                f"or list the groups, {several}"
            )
        first = holds(found, str(advantaged), name, "advantaged", declared)
        return np.where(first, 0, 1)[codes], [tuple(found[first]), tuple(found[~first])], notes
    if words is None and len(found) == 2:
        raise FairAllError(
            f"column {name!r} has {values}: say which of them is S = +1, for instance "
            f"{spell.word('advantaged', min(found))}"
        )
    chosen = sorted(found) if words is None else list(words)
    if len(chosen) > LARGEST_GROUPS:
        raise FairAllError(
            f"column {name!r} has {values}, more groups than can be measured: merge values, or choose some "
            f"with {spell.given('groups', '[A,B,C]')}"
        )
    number = np.full(len(found), -1)
    for k, word in enumerate(chosen):
        number[holds(found, word, name, "groups", declared)] = k
    others = int((number[codes] < 0).sum())
    notes += [f"{count(others, 'row')} of other values of column {name!r} left out"] * bool(others)
    return number[codes], [tuple(sorted(found[number == k])) for k in range(len(chosen))], notes


def names(cells: Cells, declared: Declared, key: str) -> ValuesAndNotes:
    """`cells.identifiers` of the column of a key, which must have no missing cell; and no notes.

    Raises:
        FairAllError: where a cell is missing or a rounded number.
    """
    return identifiers(complete(cells, getattr(declared, key), key.replace("_", " "))), []


def versions(cells: Cells, declared: Declared) -> tuple[np.ndarray | None, list[str]]:
    """Name of the policy that decided on each row, shape (N,), None where one did; and no notes.

    Raises:
        FairAllError: where there are too many versions.
    """
    found, notes = names(cells, declared, "policy_version")
    different = np.unique(found)
    if len(different) > MOST_VERSIONS:
        raise FairAllError(
            f"column {declared.policy_version!r} has {listed(list(different), 'policy version')}; at most "
            f"{MOST_VERSIONS} can be modelled: give the column that changes with the policy"
        )
    return (found if len(different) > 1 else None), notes


def times(cells: Cells, declared: Declared) -> ValuesAndNotes:
    """Numbers or dates (datetime64, UTC where they have a zone), shape (N,), and a note on their order."""
    column = complete(cells, str(declared.time), "time")
    time = numbers_of(column)
    if pd.api.types.is_datetime64_any_dtype(column):
        time = pd.to_datetime(column, utc=True).dt.tz_localize(None).to_numpy()
    elif np.isnan(time).all():
        time = _dates(column)
    wrong = np.isnan(time) | (np.abs(numbers_of(column)) == np.inf)
    refuse(column, wrong, "is no time: every row needs a number, or a date written as in row 1")
    if (time[1:] >= time[:-1]).all():
        return time, []
    return time, [f"column {column.name!r}: rows are not in the order of time; they are watched in it"]


def _dates(column: pd.Series) -> np.ndarray:
    """Dates, shape (N,), NaT where a cell has none; the order of day and month is that of the first row."""
    codes, found = words_of(column)
    words = [re.sub(r"\s*(?:UTC|z)$", "Z", word) for word in found]

    def read(**how: Any) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # where the first tells no format
            dates = pd.to_datetime(pd.Series(words), errors="coerce", utc=True, **how)
        return dates.dt.tz_localize(None).to_numpy(copy=True)

    zoned = np.array([ZONE.fullmatch(word) is not None for word in words])[codes]
    refuse(column, zoned != zoned[0], f"is a time {'without' if zoned[0] else 'with'} a zone, unlike row 1")
    parts = [DATE.fullmatch(word) for word in words]
    no_date = np.array([part is None for part in parts])
    iso = read(format="ISO8601")
    if re.match(r"\d{4}", words[codes[0]]) or not np.isnan(iso).any():
        iso[no_date] = np.datetime64("NaT")
        return iso[codes]
    first, second = (np.array([int((part and part[k]) or 0) for part in parts]) for k in (1, 2))
    if not (first > 12).any() and not (second > 12).any():
        refuse(column, (first != second)[codes], "may be two dates: write them as 2025-12-31")
    day_first = bool(first[codes[0]] > 12 or ((first > 12).any() and second[codes[0]] <= 12))
    dates = read(format="mixed", dayfirst=day_first)
    dates[no_date | ((second if day_first else first) > 12)] = np.datetime64("NaT")
    return dates[codes]


def amounts(cells: Cells, declared: Declared) -> tuple[np.ndarray, np.ndarray]:
    """Gain and loss of each row, shape (N,).

    Raises:
        FairAllError: where one of the two columns is declared alone, or a cell is missing.
    """
    found = []
    for key, name in (("gain", declared.gain), ("loss", declared.loss)):
        if name is None:
            given = declared.spelling.given(key, "COLUMN")
            raise FairAllError(f"gain and loss are needed both: give {given} too")
        require_column(key, name, list(map(str, cells.frame)), declared)
        found.append(numbers_of(cells.frame[name]))
        wrong = ~((found[-1] >= 0) & np.isfinite(found[-1]))
        refuse(cells.frame[name], wrong, f"is no {key}: everybody needs a number that is at least 0")
    both = f"is the gain, and the loss is 0 too (column {declared.loss!r}): one must be above 0"
    refuse(cells.frame[declared.gain], sum(found) == 0, both)
    return found[0], found[1]
