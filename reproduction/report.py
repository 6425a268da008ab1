"""The report: tables and figures of the paper's runs, finished or missing, beside the printed values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairall import Result, load_logged_results, load_results, places
from fairall.display import Item, PageTable, print_table
from fairall.report import UNTESTED, dataset_label
from reproduction.alignment import alignment_figure, alignment_table
from reproduction.claims import REAL, SYNTHETIC, claims_table, counts_table, judge
from reproduction.figures import figures, latent_figures
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
from reproduction.printed import printed_items
from reproduction.tables import acceptance_table, by_dataset, hyperparameter_table, methods_table
from reproduction.words import words_of

WORDS = words_of("report")
INITIAL_POLICIES = ("harsh", "lenient")
OF_CLAIMS = {"real": REAL, "synthetic": SYNTHETIC}
CLAIMS = ("claims_splits_real", "claims_splits_synthetic")  # tables on other splits, by initial policy


@dataclass(frozen=True)
class Contents:
    """Contents of the report."""

    items: list[Item]  # in order, those without any run too
    opening: list[str]  # how many runs are there
    passed_over: list[str]  # earlier runs of a configuration that is shown
    splits: list[Planned]  # the paper's methods on other splits of the data


def report(
    overrides: Sequence[str],
    folder: Path | None = None,
    into: Sequence[Path] = (),
    *,
    from_mlflow: bool = False,
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
    publish(
        "report",
        WORDS["title"],
        {name: [item for item in own.items if item.section == name] for name in WORDS["sections"]},
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
    planned = with_runs(sorted(plan((*EVERY, *SPLITS), overrides, once=False), key=_order), runs)
    shown = {one.run.path for one in planned if one.run is not None}
    keys = {one.key: one for one in planned}
    of_paper = {one.key: one.run for one in planned if one.sweep not in (*PAPER["alignment"], *SPLITS)}
    compared = interpretable(planned[0].config.preset)
    groups = [group for group in WORDS["items"] if compared or group != "splits"]
    items = [item for group in groups for item in items_of(group, planned)]
    if compared:
        items.insert(0, counts_table([item for item in items if isinstance(item, PageTable) and item.shown]))
    here = sum(run is not None for run in of_paper.values())
    return Contents(
        items=sorted(items, key=lambda item: WORDS["sections"].index(item.section)),
        opening=[WORDS["opening"].format(here=here, needed=len(of_paper)), *([] if compared else [UNTESTED])],
        # Made by other versions than the run that is shown.
        passed_over=sorted(str(run.path) for run in runs if run.key in keys and run.path not in shown),
        splits=[one for one in planned if one.sweep in SPLITS],
    )


def items_of(group: str, planned: Sequence[Planned]) -> list[Item]:
    """Tables and figures of a group of report.yaml, those without a planned run left out.

    Args:
        group: its name.
        planned: runs, finished or missing.
    """
    items: list[Item] = []
    for policy, entry in itertools.product(INITIAL_POLICIES, WORDS["items"][group]):
        words = dict(entry)
        make, of, sweep = KINDS[words.pop("kind")], words.pop("of", {}), words.pop("sweep", None)
        every = "{policy}" not in entry["key"]
        if every and policy != INITIAL_POLICIES[0]:
            continue
        chosen = of if every else {"initial_policy": [policy]} | of
        own = [
            one
            for one in planned
            if (sweep is None or one.sweep == sweep.format(policy=policy))
            and all(one.name(name) in values for name, values in chosen.items())
        ]
        if "besides" in words and own:
            words["besides"] = [one for one in planned if one.sweep == words["besides"]]
        parts = by_dataset(own) if "{dataset}" in entry["key"] else {"": own} if own else {}
        for dataset, some in parts.items():
            facts = {"policy": policy, "dataset": dataset, "label": dataset_label(dataset)}
            for name in ("setting", "key", "title", "note"):
                if name in entry:
                    facts[name] = words[name] = entry[name].format(**facts)
            items += make(some, **words)
    return items


def _claims(planned: Sequence[Planned], claims: str, key: str, title: str, setting: str) -> list[Item]:
    """The paper's claims, not of runs whose numbers may not be interpreted."""
    if not all(interpretable(one.config.preset) for one in planned):
        return []
    return [claims_table(judge(OF_CLAIMS[claims], planned), planned, key, title, setting)]


KINDS: dict[str, Callable[..., Iterable[Item]]] = {
    "claims": _claims,
    "methods": lambda planned, **words: [methods_table(planned, **words)],
    "printed": printed_items,
    "figure": figures,
    "latents": latent_figures,
    "alignment": lambda planned, key: [alignment_table(planned), alignment_figure(planned)],
    "acceptance": lambda planned, **words: [acceptance_table(planned, **words)],
    "hyperparameters": lambda planned, **words: [hyperparameter_table(planned, **words)],
}
"""What makes items of runs, by kind."""


def _order(one: Planned) -> tuple[int, int]:
    """Order of the paper's tables: by data set, then by method, unknown ones last."""
    methods = (*METHODS, *OPTIMAL, one.model)
    return (*DATASETS, one.dataset).index(one.dataset), methods.index(one.model)
