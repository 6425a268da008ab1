"""Contents of the report: tables and figures of the paper's runs, finished or missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairall.report import figures, labels
from fairall.report.claims import REAL, SYNTHETIC, Verdict, claims_table, in_words, judge
from fairall.report.figure import ReportFigure
from fairall.report.other_runs import other_runs
from fairall.report.plan import Planned, find, plan, sweeps_of
from fairall.report.setting_tables import acceptance_table, hyperparameter_table
from fairall.report.table import Table
from fairall.report.tables import Requested, effective_table, synthetic_table, temporal_table
from fairall.results.finished import Collection, Run

INITIAL_POLICIES = ("harsh", "lenient")
MAIN_POLICY = "harsh"  # of the paper's main text, whose claims the opening paragraph counts
MAIN, BESIDE = "corrected", "published_code"
Sweeps = dict[str, list[Requested]]


@dataclass
class Draft:
    """Tables, figures and verdicts collected so far."""

    tables: list[Table]
    figures: list[ReportFigure]
    verdicts: list[Verdict]


@dataclass(frozen=True)
class Contents:
    """Contents of the report.

    Attributes:
        opening: what reproduced and what did not: a paragraph, then lines of details.
        tables: in order.
        figures: in order.
        left_out: folders that could not be used, with the reason.
        passed_over: earlier runs of a configuration that is shown.
        shown: finished runs of the paper's configurations.
        others: a table of all other runs; None where there are none.
    """

    opening: list[str]
    tables: list[Table]
    figures: list[ReportFigure]
    left_out: list[tuple[str, str]]
    passed_over: list[str]
    shown: list[Run]
    others: Table | None


def contents(collection: Collection, overrides: Sequence[str]) -> Contents:
    """Contents of the report of some runs.

    Args:
        collection: of `finished.collect`.
        overrides: words added to every command of the paper's.
    """
    every = sweeps_of(["all"])
    needed = plan(every, overrides, once=False)
    sweeps: Sweeps = {
        sweep: [
            Requested(one, find(one, collection.runs))
            for one in sorted(needed, key=_order)
            if one.sweep == sweep
        ]
        for sweep in every
    }
    draft = Draft([], [], [])
    _real(sweeps, draft)
    _synthetic(sweeps, draft)
    _variants(sweeps, draft)
    everything = [one for requested in sweeps.values() for one in requested]
    draft.tables += [acceptance_table(needed), hyperparameter_table(needed)]
    configurations = {one.planned.key for one in everything}
    shown = list({one.run.path: one.run for one in everything if one.run is not None}.values())
    compared = [table for table in draft.tables if table.setting]
    opening = in_words(
        f"{MAIN_POLICY} initial policy, protocol {MAIN}",
        draft.verdicts,
        compared,
        len(configurations),
        len(shown),
    )
    others = [run for run in collection.runs if run.key not in configurations]
    return Contents(
        opening,
        sorted(draft.tables, key=lambda table: SECTIONS.index(table.section)),
        sorted(draft.figures, key=lambda figure: SECTIONS.index(figure.section)),
        [(str(path), reason) for path, reason in collection.left_out],
        _passed_over(everything, collection.runs),
        shown,
        other_runs(others) if others else None,
    )


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


def _real(sweeps: Sweeps, draft: Draft) -> None:
    """Add the paper's three real data sets, with either initial policy."""
    for initial_policy in INITIAL_POLICIES:
        requested = [one for one in sweeps[initial_policy] if _is_of(one, initial_policy, MAIN)]
        if not requested:
            continue
        verdicts = judge(REAL, requested)
        title = f"The paper's claims, {initial_policy} initial policy, protocol {MAIN}"
        draft.tables.append(claims_table(verdicts, f"claims_{initial_policy}", title, "What reproduced"))
        draft.tables += _tables(requested, initial_policy, MAIN)
        beside = [one for one in sweeps["published_code"] if _is_of(one, initial_policy, BESIDE)]
        if beside:
            draft.tables += _tables(beside, initial_policy, BESIDE)
        datasets = list(dict.fromkeys(one.dataset for one in requested))
        draft.figures += [figures.over_time(requested, dataset, initial_policy) for dataset in datasets]
        draft.figures.append(figures.plane(requested, initial_policy))
        draft.figures.append(figures.acceptance(requested, initial_policy))
        if initial_policy == MAIN_POLICY:
            draft.verdicts += verdicts
            draft.figures += [figures.latents(requested, dataset) for dataset in datasets]


def _synthetic(sweeps: Sweeps, draft: Draft) -> None:
    """Add synthetic data, with either initial policy."""
    optimal = sweeps["optimal"]
    for initial_policy in INITIAL_POLICIES:
        requested = [
            one for one in sweeps["synthetic"] if one.planned.name("initial_policy") == initial_policy
        ]
        if not requested:
            continue
        verdicts = judge(SYNTHETIC, requested)
        title = f"The paper's claims on synthetic data, {initial_policy} initial policy"
        key = f"claims_synthetic_{initial_policy}"
        draft.tables.append(claims_table(verdicts, key, title, "What reproduced"))
        draft.tables += [
            synthetic_table([*requested, *optimal], initial_policy, from_sampled=sampled)
            for sampled in (False, True)
        ]
        draft.figures.append(figures.synthetic(requested, optimal, initial_policy))
        if initial_policy == MAIN_POLICY:
            draft.verdicts += verdicts
            draft.figures.append(figures.latents(requested, "synthetic"))


def _variants(sweeps: Sweeps, draft: Draft) -> None:
    """Add FairAll at other costs and with other policies."""
    if sweeps["costs"]:
        draft.figures.append(figures.costs(sweeps["costs"]))
    datasets = list(dict.fromkeys(one.dataset for one in sweeps["policies"]))
    draft.figures += [figures.policies(sweeps["policies"], dataset) for dataset in datasets]


def _tables(requested: Sequence[Requested], initial_policy: str, protocol: str) -> list[Table]:
    return [
        effective_table(requested, initial_policy, protocol),
        temporal_table(requested, initial_policy, protocol, from_sampled=False),
        temporal_table(requested, initial_policy, protocol, from_sampled=True),
    ]


def _is_of(one: Requested, initial_policy: str, protocol: str) -> bool:
    return (
        one.planned.name("initial_policy") == initial_policy
        and one.planned.name("protocol") == protocol
        and one.dataset in labels.REAL
    )


def _order(one: Planned) -> tuple[int, int]:
    """Order of the paper's tables: by data set, then by method."""
    datasets, methods = list(labels.DATASETS), [*labels.METHODS, *labels.OPTIMAL]
    return (
        datasets.index(one.name("dataset")) if one.name("dataset") in datasets else len(datasets),
        methods.index(one.name("model")) if one.name("model") in methods else len(methods),
    )


def _passed_over(everything: Sequence[Requested], runs: Sequence[Run]) -> list[str]:
    """Runs of a shown configuration that are not shown, made by other versions."""
    shown = {one.run.path: one.run.key for one in everything if one.run is not None}
    return sorted(str(run.path) for run in runs if run.path not in shown and run.key in shown.values())
