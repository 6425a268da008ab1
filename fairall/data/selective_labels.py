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


def coverage_warnings(table: Table) -> list[str]:
    """Warnings on people whose labels the past decisions could not reveal, which no weight can correct.

    The first are on `closed_regions` for who accepts everybody. Another follows if Σ 1/π over the accepted is
    far from N, its expectation (Horvitz & Thompson 1952), as where some people could not be accepted or the
    propensities are not those of the decisions. That is checked for all people, then each group; only the
    first deviation is told.
    """
    if table.labelled.all():
        return []
    everybody, names = np.ones(len(table), dtype=bool), table.schema.names
    inputs = np.empty((len(table), len(names) + 1), dtype=np.float32)
    for k, column in enumerate((*(table.x[name] for name in names), table.s)):
        values = np.asarray(column, dtype=float)
        inputs[:, k] = (values - values.mean()) / (values.std() or 1.0)
    groups = {f"of the {name} group": rows for name, rows in table.groups.items()}
    warnings = [
        f"{region} has a known label: the utility of accepting such people cannot be estimated"
        for region, _ in closed_regions(
            groups, table.schema, table.x, inputs, [*names, ""], table.labelled, everybody
        )
    ]
    if table.logged is None:
        return warnings
    for name, rows in {"people": everybody, **table.groups}.items():
        weight = 1.0 / table.label_propensity[rows & table.logged.accepted]
        total, noise = weight.sum() / rows.sum(), np.sqrt((weight * (weight - 1.0)).sum()) / rows.sum()
        if abs(total - 1.0) > max(TOTAL_TOLERANCE, DEVIATIONS * noise):
            return [
                *warnings,
                f"1/π of the accepted adds up to {total:.2g} times the number of all {name} instead of 1: "
                "some had almost no chance to be accepted, or π is not that of these decisions; utility is "
                "not that of the population",
            ]
    return warnings
