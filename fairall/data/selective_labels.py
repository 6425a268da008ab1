"""Diagnostics of selectively labelled tables: inverse-propensity weights and overlap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from fairall.data.features import DISCRETE, Feature, Schema
from fairall.data.splits import Splits
from fairall.data.table import Table
from fairall.errors import count
from fairall.metrics import effective_sample_size

EXPECTED = 10  # least expected labels of a reported region; none has probability < e^-10 = 1/22,000
LEAST_EFFECTIVE = 30  # effective sample size below which mean utility is too uncertain
TOTAL_TOLERANCE, DEVIATIONS = 0.1, 4.0  # of the sum of 1/π: relative, and in standard deviations
BINS = 10  # of a real feature or a count
MOST_WARNINGS = 5  # regions reported by name


def weighting(table: Table, splits: Splits) -> tuple[list[str], list[str]]:
    """Notes and warnings on how the known labels represent the population.

    Measures that need labels weigh each known one by w = 1/π of the logged decision (`Table.label_weight`).
    The effective sample size is (Σ w)² / Σ w² (Kish 1965).
    """
    weight = table.label_weight
    if weight is None:
        return [], []
    held_out = {"validation": splits.validation, "test": splits.test}
    known = ", ".join(
        f"of {int(table.labelled[rows].sum())} of {len(rows)} {part} people"
        for part, rows in held_out.items()
    )
    if table.logged is None:
        return ["measures that need no label (DPU, acceptance, latent) use all people"], [
            f"labels are known {known}, and the decisions that revealed them are not recorded: utility is "
            "that of the labelled people, who may differ from the population; give dataset.decision=COLUMN"
        ]
    sizes = {part: effective_sample_size(weight[rows]) for part, rows in held_out.items()}
    effective = ", ".join(f"{size:.0f} ({part})" for part, size in sizes.items())
    origin = "estimated" if table.logged.estimated else "recorded"
    note = (
        f"labels are known {known}; utility weighs them by 1/π of the logged decision (π {origin}), with an "
        f"effective sample size of {effective}; applicants are drawn in proportion to 1/π; measures that "
        "need no label use all people"
    )
    warnings = total_warnings(table) + [
        f"the labels of the {part} people have an effective sample size of {size:.0f}: too small to "
        "estimate utility"
        for part, size in sizes.items()
        if size < LEAST_EFFECTIVE
    ]
    return [note], warnings


def total_warnings(table: Table) -> list[str]:
    """A warning if Σ 1/π over the accepted is far from N, its expectation (Horvitz & Thompson 1952).

    The sum deviates if some people could not be accepted or if the propensities are not those of the
    decisions. Checked for all people, then each group; only the first deviation is returned.
    """
    if table.logged is None or table.labelled.all():
        return []
    logged, told = table.logged, []
    everybody = np.ones(len(table), dtype=bool)
    groups = {f"the {name}": rows for name, rows in table.groups.items()}
    for name, rows in {"all people": everybody, **groups}.items():
        weight = 1.0 / table.label_propensity[rows & logged.accepted]
        total, noise = weight.sum() / rows.sum(), np.sqrt((weight * (weight - 1.0)).sum()) / rows.sum()
        if abs(total - 1.0) > max(TOTAL_TOLERANCE, DEVIATIONS * noise):
            told.append(
                f"1/π of the accepted adds up to {total:.2g} times the number of {name} instead of 1: some "
                "had almost no chance to be accepted, or π is not that of these decisions; utility is not "
                "that of the population"
            )
    return told[:1]


def overlap_warnings(table: Table) -> list[str]:
    """Warnings on `empty_regions` without any known label, which no weight can correct."""
    if table.labelled.all():
        return []
    groups = {f"of the {name} group": rows for name, rows in table.groups.items()}
    empty = empty_regions(groups, table.schema, table.x, table.labelled)
    verb = "has a label" if table.logged is None else "was accepted with a known label"
    told = [
        f"none of {count(int(rows.sum()), 'row')} {name} {verb}: the utility of accepting such people "
        "cannot be estimated"
        for name, rows in empty[:MOST_WARNINGS]
    ]
    if len(empty) > MOST_WARNINGS:
        told.append(f"{len(empty) - MOST_WARNINGS} more regions without any label")
    return told


def empty_regions(
    groups: Mapping[str, np.ndarray], schema: Schema, x: pd.DataFrame, found: np.ndarray
) -> list[tuple[str, np.ndarray]]:
    """Names and masks (N,) of groups and regions of a feature in which nobody is `found`.

    A region is a level of a discrete feature or consecutive deciles of a real feature or count, overall or
    within a group. It is returned if the share of the found predicts at least `EXPECTED` of them in it,
    unless it is part of another. Wider regions come first. NaN in x (N, D), where a number is missing, is a
    region of its own.
    """
    rate = found.mean()
    empty: list[tuple[str, np.ndarray]] = []
    for name, rows in _regions(groups, schema, x, found):
        within_another = any((rows <= others).all() for _, others in empty)
        if rows.sum() * rate >= EXPECTED and not within_another:
            empty.append((name, rows))
    return empty


def _regions(
    groups: Mapping[str, np.ndarray], schema: Schema, x: pd.DataFrame, found: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Names and masks (N,) of all groups and regions in which nobody is `found`."""
    yield from ((name, members) for name, members in groups.items() if not found[members].any())
    columns = [(feature, x[feature.name].to_numpy(dtype=float)) for feature in schema]
    cells = [(feature, values, _cells(feature, values)) for feature, values in columns]
    for group, members in {"": np.ones(len(found), dtype=bool), **groups}.items():
        for feature, values, cell in cells:
            empty = np.flatnonzero(np.bincount(cell[found & members], minlength=int(cell.max()) + 1) == 0)
            # Neighbouring empty deciles are one region.
            apart = (np.diff(empty) > 1) | (empty[1:] == BINS) | (feature.kind in DISCRETE)
            for run in np.split(empty, np.flatnonzero(apart) + 1):
                rows = np.isin(cell, run)
                if rows.any():
                    yield f"{group} {_name(feature, values[rows])}".lstrip(), rows & members


def feature_regions(feature: Feature, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Names and masks (N,) of the levels of a discrete feature, else of the deciles of its values and NaN."""
    cell = _cells(feature, values)
    for i in np.unique(cell):
        rows = cell == i
        yield _name(feature, values[rows]), rows


def _cells(feature: Feature, values: np.ndarray) -> np.ndarray:
    """Number of the level or decile of each value, `BINS` of a missing number, shape (N,)."""
    if feature.kind in DISCRETE:
        return np.searchsorted(feature.codes, values).astype(np.int16)
    missing = np.isnan(values)
    edges = np.unique(np.quantile(values[~missing], np.linspace(0, 1, BINS + 1)))
    return np.where(missing, BINS, np.searchsorted(edges[1:-1], values, side="left")).astype(np.int16)


def _name(feature: Feature, values: np.ndarray) -> str:
    """A region by the values in it."""
    low, high = values.min(), values.max()
    if feature.kind in DISCRETE:
        return f"with {feature.name}={feature.words[feature.codes.index(low)]}"
    return f"with {feature.name} " + ("missing" if np.isnan(low) else f"from {low:g} to {high:g}")
