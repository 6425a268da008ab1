"""The page docs/findings.md: its text and figures from the tables of results in docs/.

The text is `findings.md.jinja`, whose numbers are cells of these tables.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import FairAllError, places
from fairall.display import (
    BLUE,
    GREY,
    ORANGE,
    PageFigure,
    handles_of,
    legend_below,
    mean_interval,
    rendered,
    write,
)
from fairall.metrics import Spread
from reproduction.claims import REAL as REAL_CLAIMS
from reproduction.claims import REPRODUCED, SYNTHETIC
from reproduction.items import grid_of, label_grid
from reproduction.pages import DOCS, publish, read_table, refuse
from reproduction.plan import ABLATION, grid
from reproduction.questions_groups import ALIKE
from reproduction.questions_truth import COLOURS

NUMBER = r"(−?\d+(?:\.\d+)?)"
# What cells of tables of results hold.
MEAN = re.compile(NUMBER)
SPREAD = re.compile(rf"{NUMBER} (?:\(|± ){NUMBER}")  # mean and standard deviation
INTERVAL = re.compile(rf"{NUMBER} \[{NUMBER}, {NUMBER}\]")  # mean and 95 % interval
PRINTED = re.compile(rf"\({NUMBER}, (?:in|out)side {NUMBER} to {NUMBER}\)")  # with our predictive interval
COVERAGE = re.compile(rf"{NUMBER} %")

WIDTH = 6.8  # inches
METHODS = 5  # of the paper, above the reference policies of a table
GROUP = "harsh initial policy"
REAL = ("COMPAS", "German Credit", "MEPS")
EVERY = "all data sets"
SHIFTS = (-0.15, 0.15)  # of two series in a row
MEMORIES = ("step", "all")
UTILITY, DPU, TEST = "effective utility ↑", "DPU ↓", "test utility ↑"
# Effects of docs/ablation.md, as they are called here.
PARTS = {
    "cut − drawn": "a threshold, not a draw",
    "all − step": "memory of everybody",
    "stacked − net": "stacked models, not a net",
    "penalty − none": "FairLog's penalty",
    "latent − none": "the latent",
    "thresholds − none": "thresholds of equal rates",
    "latent + thresholds − thresholds": "the latent under thresholds",
}


def cell(key: str, group: str, name: str, column: str) -> str:
    """Text of a cell of a table of results.

    Raises:
        FairAllError: where there is no such table or cell.
    """
    try:
        return str(read_table(key).loc[(group, name), column])
    except KeyError as error:
        raise FairAllError(f"{DOCS}: the table {key} has no cell {error}") from error


def matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    """What a cell holds; FairAllError where it is not of that pattern."""
    if match := pattern.search(text):
        return match
    raise FairAllError(f"{text!r} is not a cell as in {pattern.pattern}")


def numbers(pattern: re.Pattern[str], key: str, column: str) -> pd.DataFrame:
    """The numbers of a column's cells by group and name; NaN where a cell is not of the pattern."""
    found = read_table(key)[column].str.extract(pattern)
    return found.replace("−", "-", regex=True).astype(float)


def spreads(key: str, column: str) -> pd.DataFrame:
    """As `numbers`, the mean and one deviation to either side."""
    found = numbers(SPREAD, key, column)
    return pd.DataFrame({0: found[0], 1: found[0] - found[1], 2: found[0] + found[1]})


def findings(
    overrides: Sequence[str], folder: Path | None = None, into: Sequence[Path] = (), jobs: int | None = None
) -> bool:
    """Write the text of a page and its figures from the tables of results in docs/; return True.

    Args:
        overrides: `outputs_dir=`, of the figures' page.
        folder: of the figures' page; None: `findings` in outputs_dir.
        into: pages that get the text and the figures, docs/findings.md.
        jobs: without effect; there are no runs.

    Raises:
        FairAllError: where a table of results, a cell or a page is missing.
    """
    config = places(overrides)
    refuse(into, config)
    for page in into:
        write(page, text())
    publish("findings", "FairAll: findings", {"": FIGURES}, config, folder=folder, into=into)
    return True


def text() -> str:
    """The page in Markdown, with empty blocks of its figures.

    Raises:
        FairAllError: where a table of results or a cell is missing.
    """

    def part(pattern: re.Pattern[str], number: int = 0) -> Callable[..., str]:
        return lambda *place: str(matched(pattern, cell(*place))[number])

    shown: dict[str, object] = {"mean": part(MEAN), "deviation": part(SPREAD, 2), "interval": part(INTERVAL)}
    shown |= {"share": part(COVERAGE), "cell": cell, "test_utility": TEST, "test_dpu": "mean DPU ↓"}
    functions = inside, reproduced, effects, like_with_like, over_data_sets, rarely, below_everybody
    shown |= {function.__name__: function for function in functions}
    return rendered("findings.md.jinja", shown, "reproduction")


def inside() -> str:
    """How many printed means are inside our predictive intervals with the switches of the authors' code."""
    keys = [f"printed_mean_{policy}_published_code" for policy in ("harsh", "lenient")]
    cells = pd.concat([read_table(key).stack() for key in keys])
    inside, outside = (cells.str.contains(word).sum() for word in ("inside", "outside"))
    return f"{inside} of the {inside + outside}"


def reproduced(policy: str, splits: bool = True, kinds: Sequence[bool] = (False, True)) -> str:
    """How many claims of the paper are reproduced after an initial policy, such as `24 of 27`.

    Args:
        policy: the initial one.
        splits: a split of the data for each seed; False: one split.
        kinds: of claims that count: False that a method is better, True that it is no worse.
    """
    names = [claim.text for claim in (*REAL_CLAIMS, *SYNTHETIC) if claim.no_worse in kinds]
    keys = ("claims_splits_real", "claims_splits_synthetic") if splits else ("claims", "claims_synthetic")
    cells = pd.concat([read_table(f"{key}_{policy}").stack() for key in keys])
    counted = cells[cells.index.get_level_values("name").isin(names)]
    return f"{counted.str.startswith(REPRODUCED).sum()} of {len(counted)}"


def effects(effect: str, column: str) -> pd.Series:
    """Mean differences ×100 of an effect of the ablation by data set."""
    return numbers(INTERVAL, "ablation", column)[0].loc[effect].drop(EVERY)


def like_with_like(level: str, reference: str, column: str) -> pd.Series:
    """Mean difference ×100 between two levels of fairness by data set, others the same.

    It is of the VAE with cut decisions, averaged over both memories: the cells of the ablation that have
    every level. Effects such as `latent − none` are of further cells, which differ between levels.
    """
    names = grid(ABLATION[0]).dataset.split(",")
    means = pd.DataFrame({name: numbers(INTERVAL, f"ablation_{name}", column)[0].loc[""] for name in names})
    one, other = (
        means.loc[[f"VAE, {of}, cut, {memory}" for memory in MEMORIES]].mean() for of in (level, reference)
    )
    return one - other


def over_data_sets(differences: pd.Series, without: str = "") -> str:
    """Mean of differences ×100 by data set, with Student's 95 % interval for other data sets."""
    kept = differences.drop(without, errors="ignore")
    return mean_interval(Spread.over_seeds(kept.to_numpy()), scale=1)


def below_everybody() -> str:
    """Of how many methods on German Credit the test utility is less than that of accepting everybody."""
    means = numbers(MEAN, "leaderboard_credit", TEST)[0].loc[GROUP]
    methods = read_table("leaderboard_credit").loc[GROUP, "CPU seconds"] != ""
    return f"{(means[methods] < means['accept everybody']).sum()} of {methods.sum()}"


def rarely() -> str:
    """Of how many kinds of estimate from the accepted alone the interval covers the truth in less than 90 %.

    A kind is a measure of a score for a way of selection, in logs of 10,000 rows. Of those that are counted
    the coverage is less with 10,000 rows than with 1,000.
    """
    few, many = (
        numbers(COVERAGE, "scores", f"{rows} rows")[0].filter(like="accepted alone")
        for rows in ("1,000", "10,000")
    )
    return f"{((many < 90) & (many < few)).sum()} of {many.count()}"


def draw_splits() -> Figure:
    """Utility of deployed policies: seeds of one split, and as many splits as seeds; a panel per data set."""
    keys = {"temporal_harsh_corrected_expected": "fifty seeds of one split"}
    keys |= {"temporal_splits_harsh": "twenty splits"}
    figure, (panels,) = grid_of(1, len(REAL), 2.1, width=WIDTH, sharey=True)
    for axes, group in zip(panels, REAL, strict=True):
        for shift, colour, (key, label) in zip(SHIFTS, (GREY, BLUE), keys.items(), strict=True):
            bars(axes, spreads(key, "mean utility ↑").loc[group].iloc[:METHODS], colour, shift, label=label)
        axes.set(title=group, xlabel="test utility ×100")
    legend_below(figure, handles_of(figure.axes), 2)
    return figure


def draw_printed() -> Figure:
    """Printed effective utilities beside the predictive intervals of ours; a panel per initial policy."""
    figure, (panels,) = grid_of(1, 2, 2.9, width=WIDTH, sharey=True)
    for axes, policy in zip(panels, ("harsh", "lenient"), strict=True):
        found = numbers(PRINTED, f"printed_mean_{policy}_published_code", UTILITY)
        places = pd.Series(range(len(found)), found.index)
        axes.barh(places, found[2] - found[1], 0.5, found[1], color=GREY, alpha=0.45, label="our interval")
        within = found[0].between(found[1], found[2])
        for word, colour, own in (("inside", BLUE, within), ("outside", ORANGE, ~within)):
            axes.plot(found[0][own], places[own], "o", ms=3.5, color=colour, label=f"printed, {word}")
        name_rows(axes, [f"{group}, {name}" for group, name in found.index])
        axes.set(title=f"{policy} initial policy", xlabel="effective utility ×100")
    legend_below(figure, handles_of(figure.axes), 3)
    return figure


def draw_parts() -> Figure:
    """What parts of methods change: utility, unfairness, and ground truth where labels reorder people."""
    panels = {
        "effective utility": ("ablation", EVERY, UTILITY),
        "DPU": ("ablation", EVERY, DPU),
        "ground-truth utility,\nlabels reorder people": (
            "ablation_bias_effects",
            "",
            "ground-truth utility ↑",
        ),
    }
    figure, (axes_of,) = grid_of(1, 3, 2.2, width=WIDTH, sharey=True)
    for axes, (title, (key, group, column)) in zip(axes_of, panels.items(), strict=True):
        found = numbers(INTERVAL, key, column).xs(group, level="name")
        bars(axes, found.reindex(PARTS).rename(PARTS), zero=0.6)
        axes.set(title=title, xlabel="change ×100")
    return figure


def draw_credit() -> Figure:
    """Utility of all methods on German Credit beyond that of accepting everybody."""
    cells = read_table("leaderboard_credit").loc[GROUP]
    ranks = cells["rank by utility"].str.extract(r"(\d+)", expand=False).astype(float)
    methods = ranks[cells["CPU seconds"] != ""].sort_values(kind="stable").index
    figure, (panels,) = grid_of(1, 2, 4.2, width=WIDTH, sharey=True)
    for axes, column in zip(panels, (UTILITY, TEST), strict=True):
        everybody = numbers(MEAN, "leaderboard_credit", column)[0][GROUP, "accept everybody"]
        beyond = spreads("leaderboard_credit", column).loc[GROUP].loc[methods] - everybody
        for colour, own in ((BLUE, beyond[0] > 0), (ORANGE, beyond[0] <= 0)):
            bars(axes, beyond.where(own), colour, zero=0.8 * (colour == ORANGE))
        axes.set(title=column.removesuffix(" ↑"), xlabel="beyond accepting everybody, ×100")
    return figure


def draw_audits() -> Figure:
    """Coverage of intervals of scores by the number of rows: of the accepted alone, and doubly robust."""
    told = read_table("scores").filter(like="rows")
    sizes = [int(name.split()[0].replace(",", "")) for name in told]
    covered = pd.concat([numbers(COVERAGE, "scores", column)[0] for column in told], axis=1)
    selections = ("selected by the score itself", "selected by another score")
    scores = ("AUC", "KS", "label − score")
    figure, panels = grid_of(2, 3, 2.9, width=WIDTH, sharex=True, sharey=True)
    for axes, (selection, score) in zip(panels.ravel(), itertools.product(selections, scores), strict=True):
        for ending, colour, label in (
            ("", BLUE, "doubly robust"),
            (", accepted alone", ORANGE, "the accepted alone"),
        ):
            axes.plot(
                sizes, covered.loc[(selection, f"{score}{ending}")], "o-", ms=3, color=colour, label=label
            )
        axes.axhline(95, color=GREY, lw=0.8, ls="--")
        axes.set(xscale="log", ylim=(0, 103), title=f"{score}, {selection}")
        axes.title.set_fontsize(6.5)
    label_grid(panels, "rows of the log", ylabels=["% that cover"] * len(selections))
    legend_below(figure, handles_of(panels.ravel()), 2)
    return figure


def draw_questions() -> Figure:
    """The four questions: tools by world, hidden reasons, more than two groups, and amounts."""
    figure, ((truth, hidden), (groups, amounts)) = grid_of(2, 2, 4.6, width=WIDTH)
    x, y = (numbers(INTERVAL, "questions_truth", of)[0] for of in ("CFU ↓", "ground-truth utility ↑"))
    for world, mark in (("truth gap 0, label bias 1", "o"), ("truth gap 0.4, label bias 1", "s")):
        for tool, colour in COLOURS.items():
            at, label = (world, tool), tool if mark == "o" else ""
            truth.plot(x[at], y[at], mark, ms=5, color=colour, label=label)
    truth.set_title("labels depend on the group\n(circles: truth does not, squares: it does)")
    truth.set(xlabel="CFU ×100", ylabel="ground-truth utility ×100")
    columns = {ORANGE: "utility after the warm-up ↑", BLUE: "utility later ↑"}
    for shift, (colour, column) in zip(SHIFTS, columns.items(), strict=True):
        found = numbers(INTERVAL, "questions_hidden", column).loc["COMPAS, Γ = 3, exploration: none"]
        bars(hidden, found, colour, shift)
    hidden.set_title("hidden reasons, Γ = 3, COMPAS\n(orange: first policy, blue: later)")
    hidden.set_xlabel("change of utility ×100")
    utility = numbers(INTERVAL, "questions_groups_differences", "utility ↑")
    for shift, colour, words in zip(SHIFTS, (GREY, BLUE), ("", ALIKE), strict=True):
        bars(groups, utility.xs(f"FairAll (I+II){words}", level="name"), colour, shift)
    groups.set_title("FairAll with four and eight groups\n(grey: as published, blue: cut, memory of all)")
    groups.set_xlabel("utility ×100 less that of equal rates by thresholds")
    money = numbers(INTERVAL, "questions_amounts_paired", "money per 100 test people ↑")
    bars(amounts, money.set_axis([f"{group.split(',')[0]}, {name}" for group, name in money.index]))
    amounts.set(title="amounts in place of one cost", xlabel="more money per 100 people")
    truth.legend(handles_of([truth]).values(), handles_of([truth]).keys(), fontsize=6)
    for axes in (hidden, groups, amounts):
        axes.axvline(0, color=GREY, lw=0.6)
    return figure


def bars(
    axes: Axes, found: pd.DataFrame, colour: str = BLUE, start: float = 0, label: str = "", zero: float = 0
) -> None:
    """Draw means with their ends below each other and name the rows, perhaps with a line at 0."""
    axes.errorbar(
        found[0],
        start + np.arange(len(found)),
        xerr=[found[0] - found[1], found[2] - found[0]],
        fmt="o",
        ms=3,
        lw=1,
        color=colour,
        label=label,
    )
    if zero:
        axes.axvline(0, color=GREY, lw=zero)
    name_rows(axes, [*found.index])


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a panel, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", lw=0.3, alpha=0.5)


FIGURES = tuple(
    PageFigure(key=f"findings_{key}", title=title, note=note, wide=True, draw=draw)
    for key, title, note, draw in (
        (
            "splits",
            "One split and twenty",
            "Test utility of the deployed policies, mean and one standard deviation: over fifty seeds that "
            "share the paper's split, and over twenty seeds with a split each. Harsh initial policy.",
            draw_splits,
        ),
        (
            "printed",
            "The printed effective utilities",
            "Dots: as printed. Bars: 95 % predictive intervals of the mean of ten seeds, from fifty of ours, "
            "with the switches of the authors' code.",
            draw_printed,
        ),
        (
            "parts",
            "What parts of methods are worth",
            "Differences between runs that differ in this alone, with 95 % intervals for other seeds and "
            "splits: means over seven data sets; on the right by ground truth in one constructed world, "
            "where the labels reorder the people of a group.",
            draw_parts,
        ),
        (
            "credit",
            "German Credit against accepting everybody",
            "Utility less that of accepting everybody, mean and one standard deviation over twenty splits.",
            draw_credit,
        ),
        (
            "audits",
            "Audits of a score",
            "Share of the 95 % intervals that cover the truth, by the rows of the log; dashed: 95 %.",
            draw_audits,
        ),
        (
            "questions",
            "Four open questions",
            "Ground-truth utility against CFU of four tools; utility on test people after deciders with "
            "hidden reasons less that after deciders without; utility of test people less that of thresholds "
            "of equal rates; money earned by amounts less that by one cost. Bars: 95 % intervals.",
            draw_questions,
        ),
    )
)
