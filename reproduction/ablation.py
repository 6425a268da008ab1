"""What each part of a method is worth with the others fixed: the runs of sweeps/ablation_*.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from fairall import Config, Result
from fairall.display import PageTable, Row, mean_interval
from fairall.metrics import Quantity, Spread
from fairall.report import dataset_label, measures, paired_difference
from reproduction.board import DPU, TEST_DPU, TEST_UTILITY, UTILITY
from reproduction.items import difference_of, means_of, table_of
from reproduction.plan import ABLATION, ABLATION_BIAS, ABLATION_WORLDS, PARTS, Planned, grid
from reproduction.study import Study
from reproduction.tables import by_dataset

# Measures by heading of their column.
MEASURES = {
    "effective utility ↑": UTILITY,
    "DPU ↓": DPU,
    "test utility ↑": TEST_UTILITY,
    "test DPU ↓": TEST_DPU,
}
EFFECTIVE_TRUE, EFFECTIVE_CFU, TEST_TRUE, TEST_CFU = measures(
    "effective_ground_truth_utility", "effective_cfu", "mean_ground_truth_utility", "mean_cfu"
)
# Where labels reorder people, utility by the label says little about them.
BIAS_MEASURES = {
    "effective utility ↑": UTILITY,
    "ground-truth utility ↑": EFFECTIVE_TRUE,
    "DPU ↓": DPU,
    "CFU ↓": EFFECTIVE_CFU,
    "test ground-truth utility ↑": TEST_TRUE,
    "test CFU ↓": TEST_CFU,
}
CLASSIFIERS = {"fairall_I_II": "VAE", "fairlog": "net", "unfairlog": "net"}  # else the name of the method
EVERY = "all data sets"


class Arm(NamedTuple):
    """A level of each factor."""

    p: str  # what estimates p(ỹ = 1 | x, s)
    fairness: str
    decision: str
    memory: str

    @property
    def label(self) -> str:
        """Its levels in words."""
        return ", ".join(self)


# Factor, level, and reference that the level is compared with.
EFFECTS = (
    ("decision", "cut", "drawn"),
    ("memory", "all", "step"),
    ("fairness", "thresholds", "none"),
    ("fairness", "latent", "none"),
    ("fairness", "latent + thresholds", "latent"),
    ("fairness", "latent + thresholds", "thresholds"),
    ("fairness", "penalty", "none"),
    ("p", "VAE", "net"),
    ("p", "ensemble", "net"),
    ("p", "stacked", "net"),
)


def arm_of(config: Config) -> Arm:
    """The levels of a run."""
    model = config.model
    name = config.name("model")
    thresholds = config.fairness.rule.name == "demographic_parity"
    terms = [
        *["latent"] * (model.get("policy") == "z_dec"),
        *["penalty"] * (name == "fairlog"),
        *["thresholds"] * thresholds,
    ]
    drawn = model.get("decision") == "sample" and not thresholds
    return Arm(
        CLASSIFIERS.get(name, name.removeprefix("parity_")),
        " + ".join(terms) or "none",
        "drawn" if drawn else "cut",
        model.get("memory", "all"),
    )


def ablation_sections(found: Sequence[Planned]) -> dict[str, list[PageTable]]:
    """Effects of the parts of methods, and the cells that they are differences of."""
    static = by_dataset([one for one in found if one.sweep in ABLATION])
    worlds: dict[str, list[Planned]] = {}
    for one in found:
        if one.sweep in ABLATION_WORLDS:
            worlds.setdefault(world_label(one), []).append(one)
    bias = {"": [one for one in found if one.sweep in ABLATION_BIAS]}
    by_label = {dataset_label(name): own for name, own in static.items()}
    return {
        "Effects": [
            effects_table("ablation", "Effects", by_label, over=EVERY),
            effects_table("ablation_worlds_effects", "Effects in other worlds", worlds),
            effects_table(
                "ablation_bias_effects", "Effects where labels reorder people", bias, of=BIAS_MEASURES
            ),
        ],
        "Cells": [
            *(
                cells_table(f"ablation_{name}", dataset_label(name), {"": own})
                for name, own in static.items()
            ),
            cells_table("ablation_worlds", "Few applicants, and drift", worlds),
            cells_table("ablation_bias", "Cells where labels reorder people", bias, BIAS_MEASURES),
        ],
    }


def world_label(one: Planned) -> str:
    """Data set, applicants per time step, and drift of a run."""
    drift = ", drift" if one.config.world else ""
    return f"{dataset_label(one.dataset)}, {one.config.schedule.applicants} applicants{drift}"


def cells_table(
    key: str,
    title: str,
    groups: Mapping[str, Sequence[Planned]],
    of: Mapping[str, Quantity] = MEASURES,
) -> PageTable:
    """A row per group and cell: means over seeds of measures `of`, ×100, with 95 % intervals."""
    rows, records = [], []
    for group, planned in groups.items():
        for arm, run in _runs(planned).items():
            cells, values = means_of(run, of.values())
            rows.append(Row(group, arm.label, cells))
            records += [{"group": group} | arm._asdict() | one for one in values]
    return table_of(
        [*of],
        rows,
        records,
        [one for planned in groups.values() for one in planned],
        key=key,
        title=title,
        note="×100, mean over seeds with its 95 % interval (Student's t). Cell: what estimates the label, "
        "fairness, decision, memory.",
    )


def effects_table(
    key: str,
    title: str,
    groups: Mapping[str, Sequence[Planned]],
    *,
    over: str = "",
    of: Mapping[str, Quantity] = MEASURES,
) -> PageTable:
    """A row per effect and group: mean differences of the pairs of cells that differ in one factor alone.

    Args:
        key: of the table.
        title: of the table.
        groups: runs by data set or world.
        over: name of a further group, the mean over all others; empty for none.
        of: measures by heading.
    """
    rows, records = [], []
    runs = {group: _runs(planned) for group, planned in groups.items()}
    for factor, level, reference in EFFECTS:
        pairs = {group: pairs_of(own, factor, level, reference) for group, own in runs.items()}
        pairs = {group: own for group, own in pairs.items() if own}
        parts = {group: [group] for group in pairs}
        if over and len(pairs) > 1:
            parts = {over: [*pairs]} | parts
        for group, members in parts.items():
            some, own = [pairs[member] for member in members], [runs[member] for member in members]
            spreads = {one.name: effect(some, own, one.name) for one in of.values()}
            n = sum(map(len, some))
            named = {"effect": f"{level} − {reference}", "group": group, "pairs": n}
            rows.append(Row(named["effect"], group, [*map(mean_interval, spreads.values()), str(n)]))
            records += [named | {"measure": key} | difference_of(spread) for key, spread in spreads.items()]
    return table_of(
        [*of, "pairs"],
        rows,
        records,
        [one for planned in groups.values() for one in planned],
        key=key,
        title=title,
        note="×100, mean difference of the pairs of cells that differ in this alone, with the 95 % interval "
        "for other seeds and splits of the same data (Student's t, paired by seed). Greater utility is "
        "better, and less DPU. Intervals are of each difference alone.",
    )


def pairs_of(runs: Mapping[Arm, Result], factor: str, level: str, reference: str) -> list[tuple[Arm, Arm]]:
    """Cells with a level of a factor, each with the one that differs in having the reference."""
    pairs = [(arm, arm._replace(**{factor: reference})) for arm in runs if getattr(arm, factor) == level]
    return [pair for pair in pairs if pair[1] in runs]


def effect(
    pairs: Sequence[Sequence[tuple[Arm, Arm]]], runs: Sequence[Mapping[Arm, Result]], measure: str
) -> Spread | None:
    """Mean difference of pairs of cells over seeds, and its interval; None where no seed has a value.

    Args:
        pairs: by group. Of each, the mean over its pairs counts once.
        runs: of the same groups.
        measure: name.
    """
    sides = []
    for side in (0, 1):
        of_groups = [
            _mean([own[pair[side]].values(measure) for pair in some])
            for some, own in zip(pairs, runs, strict=True)
        ]
        sides.append(_mean(of_groups))
    return paired_difference(*sides)


def _mean(values: Sequence[pd.Series]) -> pd.Series:
    """Mean of several measures by seed, of the seeds that all of them have."""
    return pd.concat(values, axis=1, join="inner").mean(axis=1)


def _runs(planned: Sequence[Planned]) -> dict[Arm, Result]:
    """Finished runs by cell."""
    return {arm_of(one.config): one.run for one in planned if one.run is not None}


ablation = Study(
    "ablation",
    "parts of methods",
    PARTS["ablation"],
    ablation_sections,
    lambda: [f"ablation_{name}" for name in grid(ABLATION[0]).dataset.split(",")],
)
