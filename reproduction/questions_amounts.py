"""Amounts by person: what methods earn by them, and what that is beyond deciding by one cost for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import Config, Result, load_dataset
from fairall.display import (
    GREY,
    Cell,
    Item,
    PageTable,
    Row,
    handles_of,
    legend_below,
    mean_interval,
)
from fairall.report import (
    LEVEL,
    dataset_label,
    holm,
    look_of,
    measures,
    method_label,
    paired_difference,
    paired_p,
)
from fairall.results import interval
from reproduction.items import difference_of, figure_of, grid_of, label_grid, table_of
from reproduction.plan import Planned
from reproduction.questions_tables import first_table, means_table

EFFECTIVE, LATER, DPU = measures("effective_utility", "mean_utility", "mean_dpu")
MEASURES = {
    "money per 100 applicants ↑": EFFECTIVE,
    "money per 100 test people ↑": LATER,
    "DPU ↓": DPU,
}
DIGITS = {EFFECTIVE.name: 0, LATER.name: 0}  # decimals of money
AMOUNTS, COST = "by amounts", "by one cost"
CONSTANT = "intercept"  # in `dataset.gain` and `dataset.loss`, of the part that is the same for everybody
KNOWN = "P(ỹ | score, group) known, no fairness rule"


class Terms(NamedTuple):
    """On what terms people of a data set borrow."""

    dataset: str
    interest: float  # gain per unit of the amount lent

    @property
    def label(self) -> str:
        """Both in words."""
        return f"{dataset_label(self.dataset)}, interest {100 * self.interest:g} %"


def terms_of(config: Config) -> Terms:
    """The terms of a run, from its `dataset.gain`."""
    gain = (config.amounts or {}).get("gain", {})
    return Terms(config.name("dataset"), sum(of for name, of in gain.items() if name != CONSTANT))


def tool_of(config: Config) -> str:
    """The method, and what it decides by."""
    way = COST if config.decided_amounts is None else AMOUNTS
    return f"{method_label(config.name('model'))}, {way}"


def pairs_of(runs: Mapping[str, Result]) -> dict[str, tuple[Result, Result]]:
    """Runs by amounts and by one cost of each method that has both, by its label.

    Args:
        runs: of some terms, by tool.
    """
    methods = dict.fromkeys(method_label(run.name("model")) for run in runs.values())
    both = {method: [runs.get(f"{method}, {way}") for way in (AMOUNTS, COST)] for method in methods}
    return {method: (a, b) for method, (a, b) in both.items() if a is not None and b is not None}


def known_difference(one: Planned) -> float:
    """What deciding by amounts earns beyond one cost where P(ỹ = 1 | score, group) is known, on FICO.

    By amounts everybody is accepted whose expected amount w = p·g − (1 − p)·l is above 0, by the cost c
    everybody with p ≥ c. The expectations are sums over groups, scores and exposures.

    Args:
        one: a run on FICO with `dataset.exposures`.

    Returns:
        Money per person.
    """
    data: Any = load_dataset(one.dataset, *(word for word in one.words if word.startswith("dataset.")))
    scores, exposures = data.scores, np.array(one.config.dataset["exposures"], dtype=float)
    share = (scores.group_share[:, None] * scores.share)[..., None] / len(exposures)
    p = scores.repays[..., None]
    gain, loss = (
        of.get(CONSTANT, 0.0) + of.get("exposure", 0.0) * exposures
        for of in (one.config.amounts or {}).values()
    )
    worth = share * (p * gain - (1 - p) * loss)
    by_cost = worth * (p >= one.config.dataset["cost"])
    return float(worth.clip(min=0).sum() - by_cost.sum())


def amounts_items(planned: Sequence[Planned]) -> list[Item]:
    """What amounts earn beyond one cost as a figure and in numbers, the first tools, and all numbers."""
    found: dict[Terms, dict[str, Result]] = {}
    known: dict[Terms, float] = {}
    for one in planned:
        terms = terms_of(one.config)
        if one.run is None:
            continue
        found.setdefault(terms, {})[tool_of(one.config)] = one.run
        if terms not in known and one.config.dataset.get("exposures"):
            known[terms] = known_difference(one)
    figure = figure_of(
        "questions_amounts",
        "What decisions by each person's amounts earn beyond decisions by one cost",
        "Money per 100 people by each person's amounts, less that of the same method by one cost c: mean "
        "over seeds, paired, with 95 % intervals (Student's t). Filled: test people of the last policies; "
        "hollow: applicants. Dashed: the expected difference where P(ỹ | score, group) is known, without a "
        "fairness rule.",
        lambda: draw_earned(found, known),
        planned,
        drawn=any(map(pairs_of, found.values())),
        wide=True,
    )
    first = first_table(
        found,
        MEASURES,
        planned,
        DIGITS,
        key="questions_amounts_first",
        title="The first method by terms",
        note="The first method, how far it is from the next (×100, 95 % interval, paired by seed), and the "
        "next; bold where they differ at the 5 % level, corrected for all pairs of the terms.",
    )
    means = means_table(
        found,
        MEASURES,
        planned,
        DIGITS,
        key="questions_amounts_means",
        title="Methods by amounts and by one cost",
        note="×100, mean over seeds with its 95 % interval (Student's t); all but the first column of test "
        "people over evaluation.window.",
    )
    return [figure, paired_table(found, planned), first, means]


def paired_table(found: Mapping[Terms, Mapping[str, Result]], planned: Sequence[Planned] = ()) -> PageTable:
    """A row per terms and method: measures by amounts less those by one cost.

    Args:
        found: runs by terms and tool.
        planned: all runs, finished or missing.
    """
    rows, records = [], []
    for terms, runs in found.items():
        pairs = pairs_of(runs)
        cells: dict[str, list[Cell]] = {method: [] for method in pairs}
        for measure in MEASURES.values():
            values = [[run.values(measure.name) for run in pair] for pair in pairs.values()]
            corrected = holm([paired_p(*both) for both in values])
            for method, both, p in zip(pairs, values, corrected, strict=True):
                spread = paired_difference(*both)
                text = mean_interval(spread, digits=DIGITS.get(measure.name, 1))
                cells[method].append(Cell(text, best=p is not None and p < LEVEL))
                record = terms._asdict() | {"method": method, "measure": measure.name, "p": p}
                records.append(record | difference_of(spread))
        rows += [Row(terms.label, method, own) for method, own in cells.items()]
    return table_of(
        [*MEASURES],
        rows,
        records,
        planned,
        key="questions_amounts_paired",
        title="By amounts, less by one cost",
        note="×100, difference with its 95 % interval (Student's t, paired by seed); bold where it is not 0 "
        "at the 5 % level (Wilcoxon signed-rank test, Holm-corrected over the methods of the terms). All but "
        "the first column of test people over evaluation.window.",
    )


def draw_earned(found: Mapping[Terms, Mapping[str, Result]], known: Mapping[Terms, float]) -> Figure:
    """Draw a panel per terms: money by amounts less that by one cost, a row per method.

    Args:
        found: runs by terms and tool.
        known: the difference in closed form, in money per person, where there is one.
    """
    paired = {terms: pairs for terms, runs in found.items() if (pairs := pairs_of(runs))}
    methods = list(dict.fromkeys(method for pairs in paired.values() for method in pairs))[::-1]
    across = min(2, len(paired))
    down = -(-len(paired) // across)
    figure, panels = grid_of(down, across, down * (0.25 * len(methods) + 0.6) + 0.1, sharey=True)
    for axes in panels.flat[len(paired) :]:
        axes.set_axis_off()
    for (terms, pairs), axes in zip(paired.items(), panels.flat, strict=False):
        draw_panel(axes, pairs, methods)
        if terms in known:
            axes.axvline(100 * known[terms], color=GREY, ls="--", lw=1, label=KNOWN)
        axes.axvline(0.0, color=GREY, lw=0.6)
        axes.set_title(terms.label)
        axes.set_yticks(range(len(methods)), methods)
        axes.set_ylim(-0.5, len(methods) - 0.5)
        axes.locator_params(axis="x", nbins=6)  # money has long numbers
    label_grid(panels, "difference in money per 100 people")
    if handles := handles_of(panels.flat):
        legend_below(figure, handles, 1)
    return figure


def draw_panel(axes: Axes, pairs: Mapping[str, tuple[Result, Result]], methods: Sequence[str]) -> None:
    """Draw the differences of some terms, the first of `methods` at the bottom."""
    for method, (amounts, cost) in pairs.items():
        colour = look_of(amounts.name("model"))["color"]
        for measure, shift, filled in ((LATER, 0.12, True), (EFFECTIVE, -0.12, False)):
            spread = paired_difference(amounts.values(measure.name), cost.values(measure.name))
            if spread is None:
                continue
            height = (methods.index(method) + shift) / 100  # `interval` draws coordinates ×100
            look = {"color": colour, "mfc": colour if filled else "white", "marker": "o", "ms": 4}
            interval(axes, spread, height, **look)
