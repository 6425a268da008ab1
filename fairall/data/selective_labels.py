"""Diagnostics of selectively labelled tables: inverse-propensity weights and overlap."""

from __future__ import annotations

import numpy as np

from fairall.data.table import Table
from fairall.tables.overlap import (
    LEAST_EFFECTIVE,
    TOTAL_TOLERANCE,
    closed_regions,
    effective_sample_size,
)

DEVIATIONS = 4.0  # of the sum of 1/π, in standard deviations


def weighting(table: Table) -> tuple[list[str], list[str]]:
    """Notes and warnings on how the known labels of a split table represent the population.

    Measures that need labels weigh each known one by w = 1/π of the logged decision (`Table.label_weight`).
    The effective sample size is (Σ w)² / Σ w² (Kish 1965).
    """
    weight, splits = table.label_weight, table.splits
    if weight is None or splits is None:
        return [], []
    known = f"labels are known of {table.labelled.sum()} of {len(table)} people"
    if table.logged is None:
        return [], [
            f"{known}, and the decisions that revealed them are not recorded: utility is that of these, "
            "who may differ from the population; give decision=COLUMN"
        ]
    origin = "estimated" if table.logged.estimated else "recorded"
    notes = [f"{known}; utility and applicants are weighted by 1/π of the logged decision (π {origin})"]
    warnings = []
    for part, rows in {"validation": splits.validation, "test": splits.test}.items():
        size, n = effective_sample_size(weight[rows]), table.labelled[rows].sum()
        notes[0] += f"; {n} of {len(rows)} {part} people, an effective sample size of {size:.0f}"
        if size < LEAST_EFFECTIVE:
            warnings.append(
                f"the labels of the {part} people have an effective sample size of {size:.0f}: too small to "
                "estimate utility"
            )
    return notes, warnings


def total_warnings(table: Table) -> list[str]:
    """A warning if Σ 1/π over the accepted is far from N, its expectation (Horvitz & Thompson 1952).

    The sum deviates if some people could not be accepted or if the propensities are not those of the
    decisions. Checked for all people, then each group; only the first deviation is returned.
    """
    if table.logged is None or table.labelled.all():
        return []
    for name, rows in {"people": np.ones(len(table), dtype=bool), **table.groups}.items():
        weight = 1.0 / table.label_propensity[rows & table.logged.accepted]
        total, noise = weight.sum() / rows.sum(), np.sqrt((weight * (weight - 1.0)).sum()) / rows.sum()
        if abs(total - 1.0) > max(TOTAL_TOLERANCE, DEVIATIONS * noise):
            return [
                f"1/π of the accepted adds up to {total:.2g} times the number of all {name} instead of 1: "
                "some had almost no chance to be accepted, or π is not that of these decisions; utility is "
                "not that of the population"
            ]
    return []


def overlap_warnings(table: Table) -> list[str]:
    """Warnings on `closed_regions` for who accepts everybody, which no weight can correct."""
    if table.labelled.all():
        return []
    inputs = np.column_stack(
        [
            ((values - values.mean()) / (values.std() or 1.0)).astype(np.float32)
            for values in (*table.features.T, table.s)
        ]
    )
    groups = {f"of the {name} group": rows for name, rows in table.groups.items()}
    names = [*table.schema.names, ""]
    closed = closed_regions(groups, table.schema, table.x, inputs, names, table.labelled, np.ones(len(table)))
    why = "has a known label: the utility of accepting such people cannot be estimated"
    return [f"{region} {why}" for region, _ in closed]
