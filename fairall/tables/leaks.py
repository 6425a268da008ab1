"""Columns that tell what is unknown before deciding: who has a label, the label, or the decision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import gammaln

from fairall.errors import FairAllError, count
from fairall.tables.cells import listed, many_values, shown, words_of
from fairall.tables.declared import Declared
from fairall.tables.features import DISCRETE, Feature, Kind

MOST_VALUES = 10  # of a column with more, only whether a cell is empty counts
CHANCE = 1e-6  # largest probability under chance of a column that is reported
NEARLY = 0.02  # most exceptions of a rule that is reported, as a share of the rows of the rarer outcome
SAMPLED = 5000  # rows that are looked at before all
RANKS_WELL = 0.95  # area under the curve of a column that ranks the decisions too well
RANKS_SCORES = 0.75  # the same of a column whose name is that of a score
DEVIATIONS = 5.0  # of the area from ½, in standard deviations under chance
# Whole words of a name.
DECISION = re.compile(
    r"(?!.*(?:previous|prior|past|since|before))(?:.*[\W_])?(?:propensity|propensities|pscore|decision|decided|outcome|approved|approval|accepted|"
    r"acceptance|granted|rejected|refused|declined|denied|hired|p_(?:accept|grant|approv)\w*)(?:[\W_].*)?",
    re.IGNORECASE,
)
SCORE = re.compile(
    r"(?:.*[\W_])?(?:score|rating|prob|probability|prediction|proposal|pd)(?:[\W_].*)?", re.IGNORECASE
)


Remarks = Iterator[tuple[str, str]]  # names of columns, and what is said of them


def of_labelled(
    cells: pd.DataFrame, columns: Sequence[str], known: np.ndarray, declared: Declared, who: str
) -> Remarks:
    """Names of columns that reveal who has a label and should not be features, with a note on each.

    Such a column has only values that are labelled in all rows or in none, or two values of which one is
    never labelled. An empty cell counts as a value. `who` says in words what is true of the `known` (N,).
    """
    for name, none, some, whole in _revealing(cells, columns, known):
        remedy = f"leave it out (drop={name})"
        if declared.decision is None and (decision := _decision(name, none, some, declared)):
            remedy = f"if it is the past decision, declare it ({decision}), else {remedy}"
        with_some = f"{'all' if whole else 'some'} with {_listed(some)}"
        told = f"reveals who {who} ({with_some}, none with {_listed(none)}), unknown before deciding"
        yield name, f"column {name!r} {told}: {remedy}"


def of_failures(
    cells: pd.DataFrame, columns: Sequence[str], label: np.ndarray, declared: Declared
) -> Remarks:
    """Names of columns that have values with which nobody has a positive label, with a warning on each.

    Where decisions are not declared, such a column may be the decision, and the rejected coded as failures.
    The labels (N,) are 1 or 0, NaN where unknown.
    """
    for name, none, some, _ in _revealing(cells, columns, label == 1, ~np.isnan(label), several=True):
        rows = f"{count(sum(one.n for one in none), 'row')} with {_listed(none)}"
        remedy = f"leave the column out (drop={name})"
        if decision := _decision(name, none, some, declared):
            remedy = f"declare the decision ({decision}), else {remedy}"
        told = "if they were rejected, their labels are unknown, not negative"
        yield name, f"column {name!r}: none of {rows} has a positive label: {told}; {remedy}"


class _Value(NamedTuple):
    """A value of a column, None for an empty cell; rows with it, and how many of them are found."""

    word: str | None
    n: int
    hits: int


def _revealing(
    cells: pd.DataFrame,
    columns: Sequence[str],
    found: np.ndarray,
    among: np.ndarray | None = None,
    *,
    several: bool = False,
) -> Iterator[tuple[str, list[_Value], list[_Value], bool]]:
    """Columns that tell better than chance who is `found` (N,), of all rows or of those `among` (N,).

    Such a column tells it of all rows, or has two values; with `several` it may have more.

    Yields:
        The name, values with which nobody is found, the others, and whether with these everybody is.
    """
    rows = slice(None) if among is None else among
    found = found[rows]
    for name in columns if not found.all() else ():
        values = _counts(cells[name][rows], found)
        none, some = ([one for one in values if bool(one.hits) is hit] for hit in (False, True))
        whole = all(one.hits == one.n for one in some)
        # Probability that as many rows, drawn at random, are all not found.
        chance = float(np.mean(~found)) ** sum(one.n for one in none)
        if none and some and (whole or several or len(values) == 2) and chance <= CHANCE:
            yield name, none, some, whole


def _counts(column: pd.Series, found: np.ndarray) -> list[_Value]:
    """The values of a column, sorted; of many only whether there is one."""
    if many_values(column, MOST_VALUES):
        if not column.hasnans:
            return []
        codes, words = np.where(column.isna(), 1, 0), np.array(["any value"], dtype=object)
    else:
        codes, words = words_of(column)
        codes = np.where(codes < 0, len(words), codes)
    n, hits = (np.bincount(codes, weights, len(words) + 1).astype(int) for weights in (None, found))
    order = [*sorted(range(len(words)), key=words.__getitem__), len(words)]
    return [_Value([*words, None][k], int(n[k]), int(hits[k])) for k in order if n[k]]


def _decision(name: str, none: Sequence[_Value], some: Sequence[_Value], declared: Declared) -> str | None:
    """Words that declare a column of two values, of which `some` is an acceptance; None for another one."""
    if len(none) != 1 or len(some) != 1 or None in (none[0].word, some[0].word):
        return None
    return f"decision={name} accepted={some[0].word}"


def _listed(values: Sequence[_Value]) -> str:
    words = ["an empty cell" if one.word is None else repr(shown(one.word, 20)) for one in values]
    return words[0] if len(words) == 1 else listed(words, "value")


def of_label(
    features: Sequence[Feature], x: Mapping[str, np.ndarray], label: np.ndarray, declared: Declared
) -> Remarks:
    """Names of features that predict the label nearly exactly, with a warning on each.

    Args:
        features: of the table.
        x: by name their numbers and codes, shape (N,); rows in which a number is missing are passed over.
        label: 1 or 0, NaN where unknown, shape (N,).
        declared: meanings of columns.

    Raises:
        FairAllError: if a feature of two levels is the label in other words.
    """
    n = int((~np.isnan(label)).sum())
    for feature in features:
        name = feature.name
        rule = _rule(x[name], label, np.inf, discrete=feature.kind in DISCRETE)
        if rule is None:
            continue
        drop = f"drop={name}"
        if rule.values is not None and rule.wrong == 0:
            no, yes = (shown(feature.words[feature.codes.index(value)]) for value in rule.values)
            raise FairAllError(
                f"column {name!r} encodes the label {declared.label!r} ({yes!r} for "
                f"{shown(str(declared.positive))!r}, else {no!r}), unknown before deciding: leave it out "
                f"with {drop}"
            )
        told = f"predicts the label {declared.label!r} of {n - rule.wrong} of {n} rows: if it is computed"
        told = f"{told} from the label, or unknown before the decision, leave it out ({drop})"
        yield name, f"column {name!r} {told}"


def of_decision(
    features: Sequence[Feature], x: Mapping[str, np.ndarray], accepted: np.ndarray | None, declared: Declared
) -> Remarks:
    """Names of features that foretell past decisions too well, or are named so, with a warning on each.

    Arguments as of `of_label`; `accepted` are the decisions, shape (N,), None where they are not declared.
    """
    for feature in features:
        name, values, discrete, rule = feature.name, x[feature.name], feature.kind in DISCRETE, None
        if accepted is not None:
            most_auc = RANKS_SCORES if SCORE.fullmatch(name) else RANKS_WELL
            rule = _rule(values, accepted.astype(float), most_auc, discrete=discrete)
        if rule is None and not DECISION.fullmatch(name):
            continue
        why = "is named like a decision or its probability"
        if rule is not None:
            n = len(values)
            why = f"predicts the decision {declared.decision!r} of {n - rule.wrong} of {n} rows"
            if rule.auc is not None:
                why = f"ranks people nearly as the decision {declared.decision!r} does (AUC {rule.auc:.2f})"
        key, free = "decision", feature.kind is Kind.BINARY
        if declared.decision is not None:
            probability = not discrete and np.nanmin(values) >= 0 and np.nanmax(values) <= 1
            key, free = "propensity", declared.propensity is None and probability
        declare = f"declare it ({key}={name}), or " if free else ""
        drop = f"drop={name}"
        told = f"if it came with the decision, new people have no such value; {declare}leave it out ({drop})"
        yield name, f"column {name!r} {why}: {told}"


class _Leak(NamedTuple):
    """A rule from values to an outcome.

    Attributes:
        wrong: exceptions.
        auc: area under the curve, if only that is remarkable.
        values: those of the outcomes 0 and 1, where there are two.
    """

    wrong: int
    auc: float | None = None
    values: tuple[float, float] | None = None


def _rule(x: np.ndarray, outcome: np.ndarray, most_auc: float, *, discrete: bool) -> _Leak | None:
    """The best rule from values x (N,) to outcomes (N,); None where neither it nor the AUC is remarkable.

    A rule gives each value of a discrete feature an outcome, else one up to a value and the other above.
    Columns that say nothing in `SAMPLED` rows are not looked at further.
    """
    if len(x) > SAMPLED:
        some = np.random.default_rng(0).integers(len(x), size=SAMPLED)
        if _rule(x[some], outcome[some], most_auc, discrete=discrete) is None:
            return None
    known = ~(np.isnan(x) | np.isnan(outcome))
    x, outcome = x[known], outcome[known]
    values, position, total = np.unique(x, return_inverse=True, return_counts=True)
    positive = np.bincount(position, outcome, len(values))
    negative = total - positive
    n, ones = len(x), int(positive.sum())
    if not 0 < ones < n:
        return None
    if discrete:
        wrong, log_rules = int(np.minimum(positive, negative).sum()), len(values) * float(np.log(2))
    else:
        # 0 up to a value and 1 above it; the other way round all that is right is wrong.
        errors = positive.cumsum() + negative.sum() - negative.cumsum()
        wrong, log_rules = int(min(errors.min(), n - errors.max())), float(np.log(2 * len(values)))
    # Union bound of the probability that outcomes in a random order fit one of the rules so well.
    log_chance = log_rules + _log_choose(n, wrong) + np.log(wrong + 1) - _log_choose(n, ones)
    if wrong <= NEARLY * min(ones, n - ones) and log_chance <= np.log(CHANCE):
        two = discrete and len(values) == 2
        return _Leak(wrong, values=(values[positive.argmin()], values[positive.argmax()]) if two else None)
    area = float((positive * (negative.cumsum() - negative / 2)).sum() / ones / (n - ones))
    auc = max(area, 1.0 - area)
    error = np.sqrt((n + 1) / (12.0 * ones * (n - ones)))  # of the area of a column that tells nothing
    return _Leak(wrong, auc) if not discrete and auc >= most_auc and auc - 0.5 > DEVIATIONS * error else None


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
