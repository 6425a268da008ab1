"""Hidden reasons of past deciders: what they cost learners, and whether a sensitivity analysis tells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import Config, Result, load_dataset, load_initial_policy
from fairall.evaluate import evaluate
from fairall.report import dataset_label, look_of, measures, method_label, paired_difference
from fairall.results import (
    COLUMN,
    GREY,
    Item,
    PageFigure,
    PageTable,
    Row,
    band,
    frame_of,
    handles_of,
    legend_below,
    mean_interval,
    records_of,
)
from reproduction.plan import Planned, missing_runs
from reproduction.tables import difference_of

LATER, EFFECTIVE = measures("mean_utility", "effective_utility")
COLUMNS = {
    "utility after the warm-up ↑": "first",
    "utility later ↑": LATER.name,
    "effective utility ↑": EFFECTIVE.name,
}
ASSUMED = (1.0, 1.5, 2.0, 3.0)  # Γ, of the sensitivity analysis; among `evaluate`'s
# Accepts half of all people by hidden reasons alone. `evaluate` refuses logs of the lenient policy, which
# accepts hardly any of many people.
LOGGING = "random"
STYLES = {"none": "-", "epsilon": "--"}


class Kind(NamedTuple):
    """Runs that differ in Γ alone."""

    dataset: str
    exploration: str
    method: str


def gamma_of(config: Config) -> float:
    """Γ of a run's initial policy; 1 without hidden reasons."""
    return float(config.initial_policy.get("hidden") or 1.0)


def hidden_items(planned: Sequence[Planned], config: Config) -> list[Item]:
    """What hidden reasons cost over time, in numbers, and what `evaluate` says of logs."""
    found: dict[Kind, dict[float, Result]] = {}
    for one in planned:
        if one.run is not None:
            kind = Kind(one.dataset, one.config.exploration.rule.name, one.model)
            found.setdefault(kind, {})[gamma_of(one.config)] = one.run
    lacking = missing_runs(planned)
    note = (
        "Utility on test people after deciders with hidden reasons of the greatest strength Γ, less that "
        "after deciders without, ×100: mean over seeds, paired, and a band of one standard deviation. "
        "Solid: without exploration; dashed: the rejected are accepted with a small probability."
    )
    figure = PageFigure(
        key="questions_hidden_loss",
        title="What hidden reasons of past deciders cost",
        note=note,
        section="",
        wide=True,
        draw=(lambda: draw_loss(found)) if any(len(runs) > 1 for runs in found.values()) else None,
        lacking=lacking,
    )
    return [figure, replace(loss_table(found), lacking=lacking), coverage_table(planned)]


def loss_table(found: dict[Kind, dict[float, Result]]) -> PageTable:
    """A row per data set, exploration, Γ and method: utility less that without hidden reasons.

    Args:
        found: runs by Γ.
    """
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    gammas = sorted({gamma for runs in found.values() for gamma in runs if gamma > 1})
    for kind, gamma in ((kind, gamma) for gamma in gammas for kind in found):
        runs = found[kind]
        if gamma not in runs or 1.0 not in runs:
            continue
        spreads = {
            name: paired_difference(_of(runs[gamma], name), _of(runs[1.0], name)) for name in COLUMNS.values()
        }
        group = f"{dataset_label(kind.dataset)}, Γ = {gamma:g}, exploration: {kind.exploration}"
        rows.append(Row(group, method_label(kind.method), [*map(mean_interval, spreads.values())]))
        for name, spread in spreads.items():
            records.append(kind._asdict() | {"gamma": gamma, "measure": name} | difference_of(spread))
    return PageTable(
        key="questions_hidden",
        title="Change of utility by hidden reasons of past deciders",
        note="Utility less that of the same method after deciders without hidden reasons, ×100, with the "
        "95 % interval (Student's t, paired by seed). Of test people after the warm-up and over "
        "evaluation.window; of applicants.",
        section="",
        frame=frame_of([*COLUMNS], sorted(rows, key=lambda row: row.group)),
        records=records_of(records),
    )


def _of(run: Result, name: str) -> pd.Series:
    """A measure by seed: of the whole run, or the test utility of the policy after the warm-up."""
    return run.curve("utility").iloc[0] if name == "first" else run.values(name)


def coverage_table(planned: Sequence[Planned]) -> PageTable:
    """A row per data set and true Γ: share of logs whose interval for an assumed Γ holds the truth."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    logged: dict[tuple[str, float], Planned] = {}
    for one in planned:
        logged.setdefault((one.dataset, gamma_of(one.config)), one)
    for (dataset, gamma), one in logged.items():
        held = pd.DataFrame([*_held(one)])
        records += [
            {"dataset": dataset, "gamma": gamma, "log": number} | row
            for number, row in enumerate(held.to_dict("records"))
        ]
        of_assumed = {assumed: held.get(f"{assumed:g}", pd.Series(dtype=float)) for assumed in ASSUMED}
        cells = [f"{int(own.sum())} of {own.count()}" for own in of_assumed.values()]
        rows.append(Row(dataset_label(dataset), f"Γ = {gamma:g}", cells))
    return PageTable(
        key="questions_hidden_coverage",
        title="Sensitivity analyses of logs with hidden reasons",
        note="Logs of deciders who accept half of all people, by hidden reasons of the true Γ alone. "
        "`fairall evaluate` bounds the value of accepting everybody for an assumed Γ: how many 95 % "
        "intervals of the bounds hold the truth.",
        section="",
        frame=frame_of([f"assumed Γ = {assumed:g}" for assumed in ASSUMED], rows),
        records=records_of(records),
    )


def _held(one: Planned) -> Iterator[dict[str, bool]]:
    """Whether the intervals of each replicate's log hold the truth, by the assumed Γ.

    The truth is that of all people of all logs: on a data set of a file these are the same people.
    """
    data = load_dataset(one.dataset, *(word for word in one.words if word.startswith("dataset.")))
    policy = load_initial_policy(LOGGING, one.dataset, f"initial_policy.hidden={gamma_of(one.config)}")
    cost = float(one.config.cost.value)
    tables = [data.resplit(number).table() for number in range(one.config.seeds)]
    truth = float(np.mean([table.label.mean() for table in tables])) - cost
    for number, table in enumerate(tables):
        decider = policy.of_split(number)
        accepted = decider.decide(table)
        log = table.x[table.schema.names].assign(
            group=table.s,
            propensity=decider.propensity(table),
            decision=accepted.astype(int),
            label=np.where(accepted, table.label, np.nan),
        )
        columns = {name: name for name in ("decision", "label", "propensity")}
        found = evaluate(np.ones(len(log)), log, sensitive="group", cost=cost, **columns).sensitivity
        if found is None:
            continue
        bounds = found["bounds"]["utility"].set_index("gamma")
        ends = {assumed: bounds.loc[assumed, ["interval_low", "interval_high"]] for assumed in ASSUMED}
        yield {f"{assumed:g}": bool(low <= truth <= high) for assumed, (low, high) in ends.items()}


def draw_loss(found: dict[Kind, dict[float, Result]]) -> Figure:
    """Draw a panel per data set and method: utility over time less that without hidden reasons."""
    datasets, methods = (
        list(dict.fromkeys(getattr(kind, name) for kind in found)) for name in ("dataset", "method")
    )
    size = (2 * COLUMN, 1.5 * len(datasets) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(datasets), len(methods), sharex=True, sharey="row", squeeze=False)
    for kind, runs in found.items():
        if 1.0 not in runs or len(runs) < 2:
            continue
        axes: Axes = panels[datasets.index(kind.dataset), methods.index(kind.method)]
        gamma = max(runs)
        change = runs[gamma].curve("utility") - runs[1.0].curve("utility")
        band(
            axes,
            change,
            color=look_of(kind.method)["color"],
            ls=STYLES[kind.exploration],
            label=f"Γ = {gamma:g}, exploration: {kind.exploration}",
        )
        axes.axhline(0, color=GREY, lw=0.4)
    for axes in panels[-1]:
        axes.set_xlabel("time step t")
    for axes, method in zip(panels[0], methods, strict=True):
        axes.set_title(method_label(method))
    for axes, dataset in zip(panels[:, 0], datasets, strict=True):
        axes.set_ylabel(f"{dataset_label(dataset)}\nchange of utility ×100")
    legend_below(figure, handles_of(panels.ravel()), 2)
    return figure
