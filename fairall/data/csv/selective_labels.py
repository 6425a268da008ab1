"""Diagnostics of selectively labelled tables: inverse-propensity weights and overlap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairall.data.features import DISCRETE, Feature
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
    groups = {"all people": everybody, "the advantaged": table.s == 1, "the disadvantaged": table.s == -1}
    for name, rows in groups.items():
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
    """Warnings on groups and regions of a feature without any known label, which no weight can correct.

    A region is a level of a discrete feature or consecutive deciles of a real feature or count, overall or
    within a group. It is reported if the average rate of labels predicts at least `EXPECTED` in it.
    """
    if table.labelled.all():
        return []
    rate = table.labelled.mean()
    empty: dict[str, np.ndarray] = {}
    for name, rows in _regions(table):
        within_another = any((rows <= others).all() for others in empty.values())
        if rows.sum() * rate >= EXPECTED and not table.labelled[rows].any() and not within_another:
            empty[name] = rows
    verb = "has a label" if table.logged is None else "was accepted with a known label"
    told = [
        f"none of {count(int(rows.sum()), 'row')} {name} {verb}: the utility of accepting such people "
        "cannot be estimated"
        for name, rows in list(empty.items())[:MOST_WARNINGS]
    ]
    if len(empty) > MOST_WARNINGS:
        told.append(f"{len(empty) - MOST_WARNINGS} more regions without any label")
    return told


def _regions(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Names and masks (N,) of regions, the wider ones first."""
    groups = {"of the advantaged group": table.s == 1, "of the disadvantaged group": table.s == -1}
    yield from groups.items()
    for group, members in {"": np.ones(len(table), dtype=bool), **groups}.items():
        for feature in table.schema:
            values = table.x[feature.name].to_numpy(dtype=float)
            for name, rows in _regions_of(feature, values, table.labelled & members):
                yield f"{group} {name}".lstrip(), rows & members


def _regions_of(
    feature: Feature, values: np.ndarray, labelled: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Levels of a discrete feature; else runs of deciles in which nobody is `labelled` (N,)."""
    if feature.kind in DISCRETE:
        levels = feature.levels or tuple(f"{code:g}" for code in feature.codes)
        for level, code in zip(levels, feature.codes, strict=True):
            yield f"with {feature.name}={level}", values == code
        return
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)))
    bins = np.searchsorted(edges[1:-1], values, side="left")
    with_labels = np.bincount(bins[labelled], minlength=len(edges) - 1) > 0
    # Neighbouring bins without a label are one region.
    start = 0
    for end in (*np.flatnonzero(with_labels), len(with_labels)):
        if end > start:
            rows = (bins >= start) & (bins < end)
            if rows.any():
                yield f"with {feature.name} from {values[rows].min():g} to {values[rows].max():g}", rows
        start = end + 1
