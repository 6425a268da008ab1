"""Contents of the report: tables and figures of the paper's runs, finished or missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairall.report import alignment, figures, labels
from fairall.report.claims import REAL, SYNTHETIC, Claim, Verdict, claims_table, in_words, judge
from fairall.report.comparable import UNTESTED
from fairall.report.plan import EVERY, PARTS, Planned, plan, with_runs
from fairall.report.printed import printed_tables
from fairall.report.tables import (
    SOURCES,
    acceptance_table,
    hyperparameter_table,
    methods_table,
    other_runs,
)
from fairall.results.finished import Collection
from fairall.results.interpretable import interpretable
from fairall.results.page import cautioned
from fairall.results.table import Item, Table

INITIAL_POLICIES = ("harsh", "lenient")
MAIN_POLICY = "harsh"  # of the paper's main text, whose claims the opening paragraph counts
MAIN, BESIDE = "corrected", "published_code"
SECTIONS = [
    "What reproduced", "Printed values", "Tables", "Synthetic data",
    "Figures: methods over time", "Figures: synthetic data", "Figures: utility against unfairness",
    "Figures: costs and policies", "Figures: acceptance by group", "Figures: latent spaces",
    alignment.SECTION, "Settings",
]  # fmt: skip


@dataclass(frozen=True)
class Contents:
    """Contents of the report."""

    items: list[Item]  # in order, those without any run too
    opening: list[str]  # what reproduced and what did not: a paragraph, then lines of details
    left_out: list[str]  # folders that could not be used, with the reason
    passed_over: list[str]  # earlier runs of a configuration that is shown
    n_shown: int  # finished runs of the paper's configurations
    others: Table | None  # all other runs

    @property
    def shown(self) -> list[Item]:
        """Tables with rows, and figures that are drawn."""
        return [item for item in self.items if item.shown]

    @property
    def not_run(self) -> list[Item]:
        """Tables and figures without any run."""
        return [item for item in self.items if not item.shown and item.lacking.commands]


def contents(collection: Collection, overrides: Sequence[str]) -> Contents:
    """Contents of the report of some runs.

    Args:
        collection: of `finished.collect`.
        overrides: words added to every command of the paper's.
    """
    needed = sorted(plan(EVERY, overrides, once=False), key=_order)
    keys = {one.key for one in needed}
    of_paper = {one.key for one in needed if one.sweep not in PARTS["alignment"]}
    planned = with_runs(needed, collection.runs)
    shown = {one.run.path: one.run.name("dataset") for one in planned if one.run is not None}
    config = needed[0].config
    compared = interpretable(config)
    finished = {one.key: one for one in planned if one.run is not None and one.key in of_paper}
    items: list[Item] = []
    verdicts: list[Verdict] = []

    def of(sweep: str, initial_policy: str = "", protocol: str = "") -> list[Planned]:
        wanted = {"initial_policy": initial_policy, "protocol": protocol}
        return [
            one
            for one in planned
            if one.sweep == sweep and all(one.name(group) == name for group, name in wanted.items() if name)
        ]

    def judged(claims: Sequence[Claim], some: Sequence[Planned], policy: str, key: str, title: str) -> None:
        own = judge(claims, some) if compared else []
        if compared:
            items.append(claims_table(own, some, f"{key}_{policy}", f"The paper's claims{title}"))
        if policy == MAIN_POLICY:
            verdicts.extend(own)
            items.extend(figures.latent_figures(some))

    for policy in INITIAL_POLICIES:
        real, beside = of(policy, policy, MAIN), of(BESIDE, policy, BESIDE)
        if real:
            judged(REAL, real, policy, "claims", f", {policy} initial policy, protocol {MAIN}")
            items += figures.real_figures(real, policy)
        for protocol, some in ((MAIN, real), (BESIDE, beside)):
            if some:
                items.append(methods_table("effective", some, policy, protocol))
                items += [methods_table("temporal", some, policy, protocol, kind) for kind in SOURCES]
                items += printed_tables(some, policy, protocol) if compared else []
    optimal = of("optimal")
    for policy in INITIAL_POLICIES:
        if some := of("synthetic", policy):
            title = f" on synthetic data, {policy} initial policy"
            judged(SYNTHETIC, some, policy, "claims_synthetic", title)
            items += [methods_table("synthetic", [*some, *optimal], policy, kind=kind) for kind in SOURCES]
            items.append(figures.synthetic_figure(some, optimal, policy))
    if costs := of("costs"):
        items.append(figures.cost_figure(costs))
    items += figures.policy_figures(of("policies"))
    if aligned := of("alignment"):
        items += [alignment.alignment_table(aligned), alignment.alignment_figure(aligned)]
    items.append(acceptance_table([name for name in labels.DATASETS if name in shown.values()]))
    items.append(hyperparameter_table(planned))
    others = [run for run in collection.runs if run.key not in keys and run.path not in shown]
    beside_print = [item for item in items if isinstance(item, Table) and item.setting]
    opening = in_words(
        f"{MAIN_POLICY} initial policy, protocol {MAIN}",
        verdicts,
        beside_print if compared else [],
        len(of_paper),
        len(finished),
        sum(one.run.key != one.key for one in finished.values() if one.run is not None),
    )
    return Contents(
        items=cautioned(sorted(items, key=lambda item: SECTIONS.index(item.section)), config),
        opening=opening if compared else [*opening, UNTESTED],
        left_out=[f"{path}: {reason}" for path, reason in collection.left_out],
        # Made by other versions than the run that is shown.
        passed_over=sorted(
            str(run.path) for run in collection.runs if run.key in keys and run.path not in shown
        ),
        n_shown=len(shown),
        others=other_runs(others) if others else None,
    )


def _order(one: Planned) -> tuple[int, int]:
    """Order of the paper's tables: by data set, then by method, unknown ones last."""
    methods = (*labels.METHODS, *labels.OPTIMAL, one.model)
    return (*labels.DATASETS, one.dataset).index(one.dataset), methods.index(one.model)
