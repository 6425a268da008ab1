"""The report: tables and figures of the paper's runs, finished or missing, beside the printed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fairall import Result, load_logged_results, load_results, places
from fairall.display import Item, PageFigure, PageTable
from fairall.report import UNTESTED
from reproduction.alignment import alignment_figure, alignment_table
from reproduction.claims import REAL, SYNTHETIC, claims_table, counts_table, judge
from reproduction.figures import costs, over_time, planes
from reproduction.items import figure_of
from reproduction.pages import publish, refuse
from reproduction.plan import (
    DATASETS,
    EVERY,
    PAPER,
    PLACES,
    SPLITS,
    Planned,
    interpretable,
    plan,
    runs_of,
    with_runs,
)
from reproduction.printed import printed_items
from reproduction.study_figures import draw_panels
from reproduction.tables import acceptance_table, hyperparameter_table, methods_table
from reproduction.values import by_words, chosen, facts_of, words
from reproduction.words import words_of

WORDS = words_of("report")
OF_CLAIMS = {"real": REAL, "synthetic": SYNTHETIC}
JUDGING = ("claims", "printed")  # kinds that need numbers which may be interpreted


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
    items, planned = contents(found.results, overrides)
    of_paper = {one.key: one.run for one in planned if one.sweep not in (*PAPER["alignment"], *SPLITS)}
    here = sum(run is not None for run in of_paper.values())
    quick = not interpretable(config.preset)
    opening = [WORDS["opening"].format(here=here, needed=len(of_paper)), *[UNTESTED] * quick]
    print(*opening, sep="\n")
    keys, shown = {one.key for one in planned}, {run.path for run in runs_of(planned)}
    # Made by other versions than the run that is shown.
    passed_over = sorted(str(run.path) for run in found.results if run.key in keys and run.path not in shown)
    publish(
        "report",
        WORDS["title"],
        {name: [item for item in items if item.section == name] for name in WORDS["sections"]},
        config,
        folder=folder,
        into=into,
        known=lambda: [item.key for item in contents([], [])[0]],
        runs=[one for one in planned if one.sweep in SPLITS],
        opening=opening,
        left_out=[f"{path}: {reason}" for path, reason in found.left_out],
        passed_over=passed_over,
        not_run=[item for item in items if not item.shown and item.lacking],
    )


def contents(runs: Sequence[Result], overrides: Sequence[str]) -> tuple[list[Item], list[Planned]]:
    """Tables and figures of some runs, those without any run too, and the runs, finished or missing.

    Args:
        runs: finished.
        overrides: as of `report`.
    """
    by_dataset = sorted(
        plan((*EVERY, *SPLITS), overrides, once=False), key=lambda one: DATASETS.index(one.dataset)
    )
    planned = with_runs(by_dataset, runs)
    items = [item for group in WORDS["items"] for item in items_of(group, planned)]
    if interpretable(planned[0].config.preset):
        items.insert(0, counts_table([item for item in items if isinstance(item, PageTable) and item.shown]))
    return sorted(items, key=lambda item: WORDS["sections"].index(item.section)), planned


def items_of(group: str, planned: Sequence[Planned]) -> list[Item]:
    """Tables and figures of a group of report.yaml, those without a planned run left out.

    Args:
        group: its name.
        planned: runs, finished or missing.
    """
    runs, found = facts_of(planned, WORDS["facts"]), []
    for spec in WORDS["items"][group]:
        if spec["kind"] in JUDGING and not all(interpretable(one.config.preset) for one in planned):
            continue
        for some in by_words(chosen(runs, spec.get("of", {})), spec["key"]).values():
            facts = some[0] | {"setting": words(spec.get("setting", ""), some[0])}
            own = {
                name: words(of, facts) if isinstance(of, str) else of
                for name, of in spec.items()
                if name not in ("kind", "of")
            }
            if "besides" in spec:
                own["besides"] = [run["planned"] for run in chosen(runs, {"sweep": spec["besides"]})]
            made = KINDS[spec["kind"]]([run["planned"] for run in some], **own)
            found.append((facts["policy"], [made] if isinstance(made, Item) else made))
    # Those of an initial policy stand together.
    return [item for _, items in sorted(found, key=itemgetter(0)) for item in items]


def _figure(
    draw: Callable[..., Figure], planned: Sequence[Planned], besides: Sequence[Planned] = (), **shown: Any
) -> PageFigure:
    """A figure of runs and of further ones, without which it can be drawn."""
    return figure_of(draw=partial(draw, [*planned, *besides]), planned=planned, besides=besides, **shown)


KINDS: dict[str, Callable[..., Iterable[Item] | Item]] = {
    "claims": lambda planned, claims, **shown: claims_table(
        judge(OF_CLAIMS[claims], planned), planned, **shown
    ),
    "methods": methods_table,
    "printed": printed_items,
    "over time": partial(_figure, over_time),
    "costs": partial(_figure, lambda planned: draw_panels(costs(planned))),
    "planes": partial(_figure, lambda planned: draw_panels(planes(planned))),
    "alignment": lambda planned, key: [alignment_table(planned), alignment_figure(planned)],
    "acceptance": acceptance_table,
    "hyperparameters": hyperparameter_table,
}
"""What makes items of runs, by kind."""
