"""The report: tables and figures of the paper's runs, finished or missing, beside the printed values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairall import Result, load_logged_results, load_results, places
from fairall.display import Item, PageTable, print_table
from fairall.report import UNTESTED
from reproduction import alignment, figures
from reproduction.claims import REAL, SYNTHETIC, claims_table, counts_table, judge
from reproduction.pages import publish, refuse
from reproduction.plan import (
    DATASETS,
    EVERY,
    METHODS,
    OPTIMAL,
    PAPER,
    PLACES,
    SPLITS,
    Planned,
    interpretable,
    plan,
    with_runs,
)
from reproduction.printed import printed_figure, printed_tables
from reproduction.tables import (
    SOURCES,
    acceptance_table,
    hyperparameter_table,
    methods_table,
)

INITIAL_POLICIES = ("harsh", "lenient")
MAIN_POLICY = "harsh"  # of the paper's main text
CLAIMS = {"claims_splits_real": REAL, "claims_splits_synthetic": SYNTHETIC}  # on other splits
MAIN, BESIDE = "corrected", "published_code"
# Claims, the sweep of their runs, key and setting of their table, and protocol.
CLAIMED = (
    (REAL, "paper_{}", "claims", f"{{}} initial policy, protocol {MAIN}", MAIN),
    (SYNTHETIC, "paper_synthetic", "claims_synthetic", "synthetic data, {} initial policy", ""),
)
SECTIONS = [
    "What reproduced",
    "Printed values",
    "Tables",
    "Synthetic data",
    "Figures: methods over time",
    "Figures: synthetic data",
    "Figures: utility against unfairness",
    "Figures: costs and policies",
    "Figures: acceptance by group",
    "Figures: latent spaces",
    alignment.SECTION,
    "Settings",
]


@dataclass(frozen=True)
class Contents:
    """Contents of the report."""

    items: list[Item]  # in order, those without any run too
    opening: list[str]  # how many runs are there
    passed_over: list[str]  # earlier runs of a configuration that is shown
    splits: list[Planned]  # the paper's methods on other splits of the data


def report(
    overrides: Sequence[str], folder: Path | None, into: Sequence[Path], *, from_mlflow: bool = False
) -> None:
    """Write the report of the runs in `outputs_dir`.

    Args:
        overrides: words added to every command of the paper's, or picking from them.
        folder: of the report; None: `report` in outputs_dir.
        into: pages of the documentation with blocks to fill.
        from_mlflow: take the runs from the MLflow store, which have no policies to draw latents from.
    """
    config = places(overrides)
    refuse(into, config)
    if from_mlflow:
        found = load_logged_results(*(word for word in overrides if word.startswith(PLACES)))
    else:
        found = load_results(Path(config.outputs_dir) / "runs")
    own = contents(found.results, overrides)
    left_out = [f"{path}: {reason}" for path, reason in found.left_out]
    print("\n".join([*own.opening, *(f"Left out: {line}" for line in left_out)]))
    for item in own.items:
        if isinstance(item, PageTable) and item.key == "counts" and item.shown:
            print_table(item)
    sections = {name: [item for item in own.items if item.section == name] for name in SECTIONS}
    publish(
        "report",
        "FairAll: the paper's tables and figures",
        sections,
        config,
        folder=folder,
        into=into,
        known=lambda: [item.key for item in contents([], []).items],
        runs=own.splits,
        opening=own.opening,
        left_out=left_out,
        passed_over=own.passed_over,
        not_run=[item for item in own.items if not item.shown and item.lacking],
    )


def contents(runs: Iterable[Result], overrides: Sequence[str]) -> Contents:
    """Contents of the report of some runs; `overrides` as of `report`."""
    runs = list(runs)
    needed = sorted(plan((*EVERY, *SPLITS), overrides, once=False), key=_order)
    keys = {one.key for one in needed}
    of_paper = {one.key for one in needed if one.sweep not in (*PAPER["alignment"], *SPLITS)}
    planned = with_runs(needed, runs)
    shown = {one.run.path: one.run.name("dataset") for one in planned if one.run is not None}
    finished = {one.key for one in planned if one.run is not None and one.key in of_paper}
    compared = interpretable(needed[0].config.preset)
    items: list[Item] = []

    def of(sweep: str, initial_policy: str = "", protocol: str = "") -> list[Planned]:
        wanted = {"initial_policy": initial_policy, "protocol": protocol}
        return [
            one
            for one in planned
            if one.sweep == sweep and all(one.name(group) == name for group, name in wanted.items() if name)
        ]

    for claims, sweep, key, words, protocol in CLAIMED:
        for policy in INITIAL_POLICIES:
            if some := of(sweep.format(policy), policy, protocol):
                setting = words.format(policy)
                title = f"The paper's claims, {setting}"
                if compared:
                    verdicts = judge(claims, some)
                    items.append(claims_table(verdicts, some, f"{key}_{policy}", title, setting))
                items += figures.latent_figures(some) if policy == MAIN_POLICY else []
    optimal = of("paper_optimal")
    for policy in INITIAL_POLICIES:
        real, beside = of(f"paper_{policy}", policy, MAIN), of("paper_published_code", policy, BESIDE)
        items += figures.real_figures(real, policy) if real else []
        for protocol, some in ((MAIN, real), (BESIDE, beside)):
            if some:
                items.append(methods_table("effective", some, policy, protocol))
                items += [methods_table("temporal", some, policy, protocol, kind) for kind in SOURCES]
                both = printed_tables(some, policy, protocol) if compared else []
                items += [*map(printed_figure, both[:1]), *both]
        if some := of("paper_synthetic", policy):
            items += [methods_table("synthetic", [*some, *optimal], policy, kind=kind) for kind in SOURCES]
            items.append(figures.synthetic_figure(some, optimal, policy))
    if costs := of("paper_costs"):
        items.append(figures.cost_figure(costs))
    items += figures.policy_figures(of("paper_policies"))
    if aligned := of("paper_alignment"):
        items += [alignment.alignment_table(aligned), alignment.alignment_figure(aligned)]
    items.append(acceptance_table([name for name in DATASETS if name in shown.values()]))
    items.append(hyperparameter_table(planned))
    if compared:
        items.insert(0, counts_table([item for item in items if isinstance(item, PageTable) and item.shown]))
        items += tables_on_splits(of("paper_splits"))
    n = f"{len(finished)} of the {len(of_paper)} runs that the paper's tables and figures need are here."
    return Contents(
        items=sorted(items, key=lambda item: SECTIONS.index(item.section)),
        opening=[n] if compared else [n, UNTESTED],
        # Made by other versions than the run that is shown.
        passed_over=sorted(str(run.path) for run in runs if run.key in keys and run.path not in shown),
        splits=of("paper_splits"),
    )


def tables_on_splits(splits: Sequence[Planned]) -> list[PageTable]:
    """The paper's claims in the runs of `paper_splits`, by initial policy, real data first, and measures."""
    tables = []
    for policy in INITIAL_POLICIES:
        for key, claims in CLAIMS.items():
            synthetic = claims is SYNTHETIC
            some = [
                one
                for one in splits
                if one.name("initial_policy") == policy and (one.dataset == "synthetic") is synthetic
            ]
            title = f"{'Synthetic' if synthetic else 'Real'} data, {policy} initial policy"
            if some:
                tables.append(claims_table(judge(claims, some), some, f"{key}_{policy}", title))
            if some and not synthetic:
                own = methods_table("temporal", some, policy, kind="expected")
                title = f"Temporal variance and mean on other splits, {policy} initial policy"
                tables.append(replace(own, key=f"temporal_splits_{policy}", title=title))
    return tables


def _order(one: Planned) -> tuple[int, int]:
    """Order of the paper's tables: by data set, then by method, unknown ones last."""
    methods = (*METHODS, *OPTIMAL, one.model)
    return (*DATASETS, one.dataset).index(one.dataset), methods.index(one.model)
