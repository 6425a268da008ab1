"""Contents of the report: tables and figures of the paper's runs, finished or missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairall.report import figures, labels
from fairall.report.claims import REAL, SYNTHETIC, Claim, Verdict, claims_table, in_words, judge
from fairall.report.figures import ReportFigure
from fairall.report.plan import EVERY, Planned, Requested, find, plan
from fairall.report.table import Table
from fairall.report.tables import (
    acceptance_table,
    effective_table,
    hyperparameter_table,
    other_runs,
    synthetic_table,
    temporal_table,
)
from fairall.results.finished import Collection, Run

INITIAL_POLICIES = ("harsh", "lenient")
MAIN_POLICY = "harsh"  # of the paper's main text, whose claims the opening paragraph counts
MAIN, BESIDE = "corrected", "published_code"
SECTIONS = [
    "What reproduced",
    "Tables",
    "Synthetic data",
    "Figures: methods over time",
    "Figures: synthetic data",
    "Figures: utility against unfairness",
    "Figures: costs and policies",
    "Figures: acceptance by group",
    "Figures: latent spaces",
    "Settings",
]


@dataclass
class Contents:
    """Contents of the report.

    Attributes:
        tables: in order, those without any run too.
        figures: in order, those without any run too.
        verdicts: on the claims that the opening counts.
        opening: what reproduced and what did not: a paragraph, then lines of details.
        left_out: folders that could not be used, with the reason.
        passed_over: earlier runs of a configuration that is shown.
        shown: finished runs of the paper's configurations.
        others: a table of all other runs; None where there are none.
    """

    tables: list[Table] = field(default_factory=list)
    figures: list[ReportFigure] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    opening: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    shown: list[Run] = field(default_factory=list)
    others: Table | None = None


def contents(collection: Collection, overrides: Sequence[str]) -> Contents:
    """Contents of the report of some runs.

    Args:
        collection: of `finished.collect`.
        overrides: words added to every command of the paper's.
    """
    needed = sorted(plan(EVERY, overrides, once=False), key=_order)
    requested = [Requested(one, find(one, collection.runs)) for one in needed]
    by_path = {one.run.path: one.run for one in requested if one.run is not None}
    keys = {one.key for one in needed}
    shown = Contents(shown=list(by_path.values()))
    for add in (_add_real, _add_synthetic):
        for initial_policy in INITIAL_POLICIES:
            add(requested, initial_policy, shown)
    if costs := _of(requested, "costs"):
        shown.figures.append(figures.costs(costs))
    policies = _of(requested, "policies")
    shown.figures += [figures.policies(policies, dataset) for dataset in _datasets(policies)]
    datasets = [name for name in labels.DATASETS if any(run.name("dataset") == name for run in shown.shown)]
    shown.tables += [acceptance_table(datasets), hyperparameter_table(requested)]
    shown.opening = in_words(
        f"{MAIN_POLICY} initial policy, protocol {MAIN}",
        shown.verdicts,
        [table for table in shown.tables if table.setting],
        len(keys),
        len(by_path),
    )
    shown.tables.sort(key=lambda table: SECTIONS.index(table.section))
    shown.figures.sort(key=lambda figure: SECTIONS.index(figure.section))
    shown.left_out = [(str(path), reason) for path, reason in collection.left_out]
    # Made by other versions than the run that is shown.
    earlier = [run for run in collection.runs if run.key in keys and run.path not in by_path]
    shown.passed_over = sorted(str(run.path) for run in earlier)
    others = [run for run in collection.runs if run.key not in keys]
    shown.others = other_runs(others) if others else None
    return shown


def _add_real(everything: Sequence[Requested], initial_policy: str, shown: Contents) -> None:
    """Add the paper's three real data sets with an initial policy."""
    requested = _of(everything, initial_policy, initial_policy, MAIN)
    title = f"The paper's claims, {initial_policy} initial policy, protocol {MAIN}"
    _add_claims(REAL, requested, initial_policy, f"claims_{initial_policy}", title, shown)
    beside = _of(everything, BESIDE, initial_policy, BESIDE)
    for protocol, some in ((MAIN, requested), (BESIDE, beside)):
        if some:
            shown.tables += [
                effective_table(some, initial_policy, protocol),
                temporal_table(some, initial_policy, protocol, from_sampled=False),
                temporal_table(some, initial_policy, protocol, from_sampled=True),
            ]
    if requested:
        shown.figures += [figures.over_time(requested, name, initial_policy) for name in _datasets(requested)]
        shown.figures += [
            figures.plane(requested, initial_policy),
            figures.acceptance(requested, initial_policy),
        ]


def _add_synthetic(everything: Sequence[Requested], initial_policy: str, shown: Contents) -> None:
    """Add synthetic data with an initial policy."""
    requested = _of(everything, "synthetic", initial_policy)
    optimal = _of(everything, "optimal")
    title = f"The paper's claims on synthetic data, {initial_policy} initial policy"
    _add_claims(SYNTHETIC, requested, initial_policy, f"claims_synthetic_{initial_policy}", title, shown)
    if requested:
        for sampled in (False, True):
            table = synthetic_table([*requested, *optimal], initial_policy, from_sampled=sampled)
            shown.tables.append(table)
        shown.figures.append(figures.synthetic(requested, optimal, initial_policy))


def _add_claims(
    claims: Sequence[Claim],
    requested: Sequence[Requested],
    policy: str,
    key: str,
    title: str,
    shown: Contents,
) -> None:
    """Add claims and, with the main initial policy, the verdicts that are counted and the latent spaces."""
    if requested:
        verdicts = judge(claims, requested)
        shown.tables.append(claims_table(verdicts, requested, key, title))
        if policy == MAIN_POLICY:
            shown.verdicts += verdicts
            shown.figures += [figures.latents(requested, name) for name in _datasets(requested)]


def _of(requested: Sequence[Requested], sweep: str, *names: str) -> list[Requested]:
    """The runs of a sweep, optionally of an initial policy and of a protocol."""
    groups = ("initial_policy", "protocol")[: len(names)]
    return [
        one
        for one in requested
        if one.planned.sweep == sweep and tuple(map(one.planned.name, groups)) == names
    ]


def _datasets(requested: Sequence[Requested]) -> list[str]:
    return list(dict.fromkeys(one.dataset for one in requested))


def _order(one: Planned) -> tuple[int, int]:
    """Order of the paper's tables: by data set, then by method, unknown ones last."""
    dataset, model = one.name("dataset"), one.name("model")
    return (
        (*labels.DATASETS, dataset).index(dataset),
        (*labels.METHODS, *labels.OPTIMAL, model).index(model),
    )
