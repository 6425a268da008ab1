"""Utility against the gap between groups: runs of methods at several slacks, on one picture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fairall import experiment
from fairall.config.compose import compose_all
from fairall.display.progress import Display
from fairall.display.style import COLUMN, GREY, handles_of, legend_below
from fairall.display.table import PageTable
from fairall.errors import FairAllError
from fairall.metrics import Quantity
from fairall.report.comparison import compare, group_figures
from fairall.report.groups import Runs
from fairall.report.labels import look_of, measures, method_label
from fairall.results.figures import interval
from fairall.results.result import Result

DEFAULTS = {
    "model": "",
    "dataset": "",
    "fairness": "demographic_parity",
    "fairness.slack": "0,0.02,0.05,0.1,0.2,0.4,1",
}
ORACLE = "oracle_fair"
# Utility and gap: of the decisions taken, and of the policy on the evaluation people.
AXES = {
    "demographic_parity": (
        measures("effective_utility", "effective_dpu_pooled"),
        measures("mean_utility", "mean_dpu"),
    ),
    "equal_opportunity": (measures("mean_utility", "mean_equal_opportunity"),),
}

NOTE = (
    "Utility against the gap. A line joins the slacks of a method, whose numbers are the gap allowed ×100; "
    "the large mark is without. Bars: 95 % intervals over seeds. Grey: such thresholds by a classifier that "
    "knows every label."
)


def points(words: Sequence[str], display: Display) -> dict[str, Result]:
    """Make the runs of a frontier, or read them where they are done.

    Args:
        words: of the command line, KEY=VALUE; `model`, `dataset` and `fairness.slack` may have several values
            with commas between them. `fairness` is demographic_parity unless given.
        display: for the progress of each run.

    Returns:
        Results by method, data set and slack.

    Raises:
        FairAllError: where a value is impossible, or as `experiment.run`.
    """
    values = DEFAULTS | dict(word.split("=", 1) for word in words)
    models, datasets, slacks = (values.pop(key).split(",") for key in ("model", "dataset", "fairness.slack"))
    rule = values.pop("fairness")
    if "" in (*models, *datasets) or rule not in AXES:
        raise FairAllError(
            f"frontier takes model=A,B dataset=A,B and fairness={' or fairness='.join(AXES)}, for instance "
            "model=ensemble dataset=credit"
        )
    commands = {}
    for dataset, model, slack in itertools.product(datasets, dict.fromkeys([*models, ORACLE]), ["", *slacks]):
        node, key = ("model.fairness", "model.fairness.rule") if model == ORACLE else ("fairness", "fairness")
        bound = {key: rule, f"{node}.slack": slack} if slack else {"fairness": "none"}
        if slack or model != ORACLE:
            name = f"{method_label(model)}, {dataset}, {f'slack {slack}' if slack else 'without'}"
            chosen = {"model": model, "dataset": dataset} | values | bound
            commands[name] = [f"{key}={value}" for key, value in chosen.items()]
    composed = dict(zip(commands, compose_all(commands.values()), strict=True))
    people: dict[str, Any] = {}
    for config in composed.values():
        experiment.is_finished(config, people)  # refuses what is impossible before the first run
    results = {}
    for name, config in composed.items():
        display.say(name)
        results[name] = experiment.run(config, display=Display(progress_only=True))
    return results


def frontier(runs: Runs, folder: Path) -> list[PageTable]:
    """Write index.html, tables/ and figures/ on the runs; return the tables.

    Args:
        runs: of `points`.
        folder: to write to.

    Raises:
        FairAllError: where `folder` cannot be written.
    """
    pairs = AXES[[*runs.values()][-1].config.model["fairness"]["rule"]]
    figures = group_figures("utility_against_gap", NOTE, runs, lambda group: draw(group, pairs))
    return compare(runs, folder, title="the frontier", quantities=[*itertools.chain(*pairs)], figures=figures)


def draw(runs: Runs, pairs: Sequence[Sequence[Quantity]]) -> Figure:
    """Draw utility against the gap, a line per method.

    Args:
        runs: by name.
        pairs: utility and gap of each panel.
    """
    figure = Figure(figsize=(COLUMN * len(pairs), 0.8 * COLUMN), layout="constrained")
    for k, (utility, gap) in enumerate(pairs, start=1):
        axes = figure.add_subplot(1, len(pairs), k)
        axes.set(xlabel=f"{gap.heading} ×100", ylabel=f"{utility.heading} ×100")
        for model in dict.fromkeys(run.name("model") for run in runs.values()):
            style, look = "-", look_of(model)
            if model == ORACLE:
                style, look = "--", {"color": GREY, "marker": "."}
            curve = []
            for run in runs.values():
                y, x = run.spread(utility.name), run.spread(gap.name)
                if run.name("model") != model or x is None or y is None:
                    continue
                slack = _slack(run)
                interval(axes, x, y, ms=4 if slack < math.inf else 9, **look)
                if slack < math.inf:
                    curve.append((100 * x.mean, 100 * y.mean))
                    axes.annotate(f"{100 * slack:g}", curve[-1], fontsize=6, color=look["color"])
            axes.plot(
                *zip(*curve, strict=True), ls=style, lw=1, color=look["color"], label=method_label(model)
            )
    legend_below(figure, handles_of(figure.axes), 3)
    return figure


def _slack(run: Result) -> float:
    """The gap allowed; infinite for a method without thresholds of groups."""
    plain = run.config.to_plain()
    bound = (plain["model"] if run.name("model") == ORACLE else plain)["fairness"]
    return math.inf if bound["rule"] == "none" else bound["slack"]
