"""The page docs/findings.md: its text and figures from the tables of results in docs/.

The text is `findings.md.jinja`, whose numbers are cells of these tables.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
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
from reproduction.pages import BESIDE, BLOCK, publish, refuse
from reproduction.plan import ABLATION, grid
from reproduction.questions_figures import COLOURS
from reproduction.values import ALIKE

DOCS = Path(__file__).parents[1] / "docs"
CELLS = re.compile(r"(?<!\\)\|")  # what parts the cells of a row in Markdown
ESCAPED = re.compile(r"\\(.)|\*\*")
NUMBER = r"(−?\d+(?:\.\d+)?)"
# What cells of tables of results hold.
MEAN = re.compile(NUMBER)
SPREAD = re.compile(rf"{NUMBER} (?:\(|± ){NUMBER}")  # mean and standard deviation
INTERVAL = re.compile(rf"{NUMBER} \[{NUMBER}, {NUMBER}\]")  # mean and 95 % interval
PRINTED = re.compile(rf"\({NUMBER}, (?:in|out)side {NUMBER} to {NUMBER}\)")  # with our predictive interval
COVERAGE = re.compile(rf"{NUMBER} %")

WIDTH = 6.8  # inches
METHODS = ("FairAll (I+II)", "FairAll (II)", "FairLab (I+II)", "FairLog", "UnfairLog")  # of the paper
GROUP = "harsh initial policy"
REAL = ("COMPAS", "German Credit", "MEPS")
EVERY = "all data sets"
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
SELECTIONS = ("selected by the score itself", "selected by another score")
SCORES = ("AUC", "KS", "label − score")


@cache
def table(key: str) -> pd.DataFrame:
    """A table of results of docs/, from its file or its block on a page.

    Args:
        key: of the table.

    Returns:
        Cells as they are shown, by group and name.

    Raises:
        FairAllError: where there is no such table.
    """
    path = DOCS / f"{BESIDE}{key}.csv"
    index = ["group", "name"]
    if path.exists():
        return pd.read_csv(path, dtype=str, keep_default_na=False).set_index(index)
    for page in sorted(DOCS.rglob("*.md")):
        for name, content in BLOCK.findall(page.read_text()):
            lines = [line for line in content.splitlines() if line.startswith("|")]
            if name == key and lines:
                head, _, *rows = (
                    [ESCAPED.sub(r"\1", cell).strip() for cell in CELLS.split(line)[1:-1]] for line in lines
                )
                return pd.DataFrame(rows, columns=[*index, *head[2:]]).set_index(index)
    raise FairAllError(f"{DOCS}: no table of results {key}")


def cell(key: str, group: str, name: str, column: str) -> str:
    """Text of a cell of a table of results.

    Raises:
        FairAllError: where there is no such table or cell.
    """
    try:
        return str(table(key).loc[(group, name), column])
    except KeyError as error:
        raise FairAllError(f"{DOCS}: the table {key} has no cell {error}") from error


def numbers(pattern: re.Pattern[str], text: str) -> list[float]:
    """The numbers that a cell holds.

    Raises:
        FairAllError: where it holds none of that pattern.

    Examples:
        >>> numbers(INTERVAL, "−1.4 [−1.5, 1.3]*"), numbers(SPREAD, "8.3 ± 0.5* F+ (8.6 ± 0.7, −0.5 sd)")
        ([-1.4, -1.5, 1.3], [8.3, 0.5])
    """
    return [float(one.replace("−", "-")) for one in matched(pattern, text).groups()]


def matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    """What a cell holds; FairAllError where it is not of that pattern."""
    if match := pattern.search(text):
        return match
    raise FairAllError(f"{text!r} is not a cell as in {pattern.pattern}")


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
    shown |= {"share": part(COVERAGE), "cell": cell, "inside": inside, "reproduced": reproduced}
    shown |= {"over_data_sets": over_data_sets, "effects": effects, "like_with_like": like_with_like}
    shown |= {"ends_over_data_sets": lambda *of: over_data_sets(effects(*of)).partition(" ")[2]}
    shown |= {"test_utility": TEST, "test_dpu": "mean DPU ↓"}
    return rendered("findings.md.jinja", shown | {"rarely": rarely, "below_everybody": below}, "reproduction")


def inside() -> str:
    """How many printed means are inside our predictive intervals with the switches of the authors' code."""
    tables = [table(f"printed_mean_{policy}_published_code") for policy in ("harsh", "lenient")]
    inside, outside = (
        sum(word in value for cells in tables for value in cells.to_numpy().ravel())
        for word in ("inside", "outside")
    )
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
    cells = [
        value
        for key in keys
        for (_, name), row in table(f"{key}_{policy}").iterrows()
        for value in row
        if name in names
    ]
    return f"{sum(value.startswith(REPRODUCED) for value in cells)} of {len(cells)}"


def effects(effect: str, column: str) -> dict[str, float]:
    """Mean differences ×100 of an effect of the ablation by data set."""
    cells = table("ablation").loc[effect][column].drop(EVERY)
    return {name: numbers(INTERVAL, shown)[0] for name, shown in cells.items()}


def like_with_like(level: str, reference: str, column: str) -> dict[str, float]:
    """Mean difference ×100 between two levels of fairness by data set, others the same.

    It is of the VAE with cut decisions, averaged over both memories: the cells of the ablation that have
    every level. Effects such as `latent − none` are of further cells, which differ between levels.
    """

    def mean(name: str, one: str) -> float:
        cells = [cell(f"ablation_{name}", "", f"VAE, {one}, cut, {memory}", column) for memory in MEMORIES]
        return float(np.mean([numbers(INTERVAL, shown)[0] for shown in cells]))

    data_sets = grid(ABLATION[0]).dataset.split(",")
    return {name: mean(name, level) - mean(name, reference) for name in data_sets}


def over_data_sets(differences: Mapping[str, float], without: str = "") -> str:
    """Mean of differences ×100 by data set, with Student's 95 % interval for other data sets."""
    kept = [value for name, value in differences.items() if name != without]
    return mean_interval(Spread.over_seeds(np.array(kept)), scale=1)


def below() -> str:
    """Of how many methods on German Credit the test utility is less than that of accepting everybody."""
    means = table("leaderboard_credit").loc[GROUP, TEST].map(lambda shown: numbers(MEAN, shown)[0])
    methods = table("leaderboard_credit").loc[GROUP, "CPU seconds"] != ""
    return f"{(means[methods] < means['accept everybody']).sum()} of {methods.sum()}"


def rarely() -> str:
    """Of how many kinds of estimate from the accepted alone the interval covers the truth in less than 90 %.

    A kind is a measure of a score for a way of selection, in logs of 10,000 rows. Of those that are counted
    the coverage is less with 10,000 rows than with 1,000.
    """
    cells = table("scores").filter(like="accepted alone", axis=0)[["1,000 rows", "10,000 rows"]]
    few, many = (
        cells.loc[cells["10,000 rows"] != "", column].map(lambda shown: numbers(COVERAGE, shown)[0])
        for column in cells
    )
    return f"{((many < 90) & (many < few)).sum()} of {len(many)}"


def draw_splits() -> Figure:
    """Utility of deployed policies: seeds of one split, and as many splits as seeds; a panel per data set."""
    keys = {"fifty seeds of one split": ("temporal_harsh_corrected_expected", GREY)}
    keys |= {"twenty splits": ("temporal_splits_harsh", BLUE)}
    figure, (panels,) = grid_of(1, len(REAL), 2.1, width=WIDTH, sharey=True)
    for axes, group in zip(panels, REAL, strict=True):
        for shift, (label, (key, colour)) in zip((-0.15, 0.15), keys.items(), strict=True):
            cells = table(key).loc[group, "mean utility ↑"].iloc[: len(METHODS)]
            spreads = [numbers(SPREAD, text) for text in cells]
            lines(axes, [(mean, mean - std, mean + std) for mean, std in spreads], shift, colour, label)
        rows(axes, cells.index)
        axes.set(title=group, xlabel="test utility ×100")
    legend_below(figure, handles_of(figure.axes), 2)
    return figure


def draw_printed() -> Figure:
    """Printed effective utilities beside the predictive intervals of ours; a panel per initial policy."""
    figure, (panels,) = grid_of(1, 2, 2.9, width=WIDTH, sharey=True)
    for axes, policy in zip(panels, ("harsh", "lenient"), strict=True):
        cells = table(f"printed_mean_{policy}_published_code")[UTILITY]
        for k, text in enumerate(cells):
            printed, low, high = numbers(PRINTED, text)
            axes.barh(k, high - low, 0.5, low, color=GREY, alpha=0.45, label="our interval")
            word, colour = ("inside", BLUE) if low <= printed <= high else ("outside", ORANGE)
            axes.plot(printed, k, "o", ms=3.5, color=colour, label=f"printed, {word}")
        rows(axes, [f"{group}, {name}" for group, name in cells.index])
        axes.set(title=f"{policy} initial policy", xlabel="effective utility ×100")
    legend_below(figure, handles_of(figure.axes), 3)
    return figure


def draw_parts() -> Figure:
    """What parts of methods change: utility, unfairness, and ground truth where labels reorder people."""
    panels = (
        ("ablation", EVERY, UTILITY, "effective utility"),
        ("ablation", EVERY, DPU, "DPU"),
        (
            "ablation_bias_effects",
            "",
            "ground-truth utility ↑",
            "ground-truth utility,\nlabels reorder people",
        ),
    )
    figure, (axes_of,) = grid_of(1, 3, 2.2, width=WIDTH, sharey=True)
    for axes, (key, group, column, label) in zip(axes_of, panels, strict=True):
        cells = table(key)[column]
        for k, part in enumerate(PARTS):
            if (part, group) in cells.index:
                lines(axes, [numbers(INTERVAL, cells[part, group])], k, BLUE, "")
        axes.axvline(0, color=GREY, lw=0.6)
        rows(axes, PARTS.values())
        axes.set(title=label, xlabel="change ×100")
    return figure


def draw_credit() -> Figure:
    """Utility of all methods on German Credit beyond that of accepting everybody."""
    cells = table("leaderboard_credit").loc[GROUP]
    methods = cells[cells["CPU seconds"] != ""].sort_values("rank by utility", key=_first, kind="stable")
    figure, (panels,) = grid_of(1, 2, 4.2, width=WIDTH, sharey=True)
    for axes, column in zip(panels, (UTILITY, TEST), strict=True):
        everybody = numbers(MEAN, cells.loc["accept everybody", column])[0]
        spreads = [numbers(SPREAD, text) for text in methods[column]]
        beyond = [(mean - everybody, mean - everybody - std, mean - everybody + std) for mean, std in spreads]
        for k, one in enumerate(beyond):
            lines(axes, [one], k, BLUE if one[0] > 0 else ORANGE, "")
        axes.axvline(0, color=GREY, lw=0.8)
        rows(axes, methods.index)
        axes.set(title=column.removesuffix(" ↑"), xlabel="beyond accepting everybody, ×100")
    return figure


def draw_audits() -> Figure:
    """Coverage of intervals of scores by the number of rows: of the accepted alone, and doubly robust."""
    told = table("scores")
    sizes = {int(name.split()[0].replace(",", "")): name for name in told.columns if name.endswith("rows")}
    figure, panels = grid_of(len(SELECTIONS), len(SCORES), 2.9, width=WIDTH, sharex=True, sharey=True)
    for (line, selection), (column, score) in itertools.product(enumerate(SELECTIONS), enumerate(SCORES)):
        axes: Axes = panels[line, column]
        for name, colour, label in (
            (score, BLUE, "doubly robust"),
            (f"{score}, accepted alone", ORANGE, "the accepted alone"),
        ):
            covered = [
                numbers(COVERAGE, cell("scores", selection, name, column)) for column in sizes.values()
            ]
            axes.plot([*sizes], covered, "o-", ms=3, color=colour, label=label)
        axes.axhline(95, color=GREY, lw=0.8, ls="--")
        axes.set(xscale="log", ylim=(0, 103), title=f"{score}, {selection}")
        axes.title.set_fontsize(6.5)
    label_grid(panels, "rows of the log", ylabels=["% that cover"] * len(SELECTIONS))
    legend_below(figure, handles_of(panels.ravel()), 2)
    return figure


def draw_questions() -> Figure:
    """The four questions: tools by world, hidden reasons, more than two groups, and amounts."""
    figure, ((truth, hidden), (groups, amounts)) = grid_of(2, 2, 4.6, width=WIDTH)
    for world, mark in (("truth gap 0, label bias 1", "o"), ("truth gap 0.4, label bias 1", "s")):
        cells = table("questions_truth").loc[world]
        for tool, colour in COLOURS.items():
            x, y = (numbers(INTERVAL, cells.loc[tool, one])[0] for one in ("CFU ↓", "ground-truth utility ↑"))
            truth.plot(x, y, mark, ms=5, color=colour, label=tool if mark == "o" else "")
    truth.set_title("labels depend on the group\n(circles: truth does not, squares: it does)")
    truth.set(xlabel="CFU ×100", ylabel="ground-truth utility ×100")
    for shift, colour, column in (
        (-0.15, ORANGE, "utility after the warm-up ↑"),
        (0.15, BLUE, "utility later ↑"),
    ):
        cells = table("questions_hidden").loc["COMPAS, Γ = 3, exploration: none", column]
        intervals(hidden, cells, cells.index, shift, colour)
    hidden.set_title("hidden reasons, Γ = 3, COMPAS\n(orange: first policy, blue: later)")
    hidden.set_xlabel("change of utility ×100")
    cells = table("questions_groups_differences")["utility ↑"]
    sets = [group for group, name in cells.index if name == f"FairAll (I+II){ALIKE}"]
    for shift, colour, words in ((-0.15, GREY, ""), (0.15, BLUE, ALIKE)):
        own = [cells[group, f"FairAll (I+II){words}"] for group in sets]
        intervals(groups, own, sets, shift, colour)
    groups.set_title("FairAll with four and eight groups\n(grey: as published, blue: cut, memory of all)")
    groups.set_xlabel("utility ×100 less that of equal rates by thresholds")
    cells = table("questions_amounts_paired")["money per 100 test people ↑"]
    intervals(amounts, cells, [f"{group.split(',')[0]}, {name}" for group, name in cells.index])
    amounts.set(title="amounts in place of one cost", xlabel="more money per 100 people")
    truth.legend(handles_of([truth]).values(), handles_of([truth]).keys(), fontsize=6)
    for axes in (hidden, groups, amounts):
        axes.axvline(0, color=GREY, lw=0.6)
    return figure


def intervals(
    axes: Axes, cells: Iterable[str], names: Iterable[str], start: float = 0, colour: str = BLUE
) -> None:
    """Draw a row per cell that holds a mean and its interval."""
    lines(axes, [numbers(INTERVAL, shown) for shown in cells], start, colour, "")
    rows(axes, names)


def lines(axes: Axes, spreads: Iterable[Sequence[float]], start: float, colour: str, label: str) -> None:
    """Draw means with the ends of their intervals, below each other from `start` on."""
    for k, (mean, low, high) in enumerate(spreads):
        ends = [[mean - low], [high - mean]]
        axes.errorbar([mean], [start + k], xerr=ends, fmt="o", ms=3, lw=1, color=colour, label=label)


def rows(axes: Axes, names: Iterable[str]) -> None:
    """Name the rows of a panel, the first on top."""
    names = list(names)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", lw=0.3, alpha=0.5)


def _first(ranks: pd.Series) -> pd.Series:
    """The better end of ranks such as `1 to 2*`."""
    return ranks.str.extract(r"(\d+)", expand=False).astype(int)


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
