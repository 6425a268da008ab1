"""Hidden reasons of past deciders: what they cost learners, and whether a sensitivity analysis tells them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import Config, Result, load_dataset, load_initial_policy
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
from fairall.evaluate import evaluate
from fairall.metrics import Spread
from fairall.report import dataset_label, look_of, measures, method_label, paired_difference
from fairall.results import band
from reproduction.items import difference_of, figure_of, grid_of, label_grid, table_of
from reproduction.plan import Planned

LATER, EFFECTIVE = measures("mean_utility", "effective_utility")
COLUMNS = {
    "utility after the warm-up ↑": "first",
    "utility later ↑": LATER.name,
    "effective utility ↑": EFFECTIVE.name,
}
FIRST_AND_ALL = {"after the warm-up": "first", "applicants": EFFECTIVE.name}
ASSUMED = (1.0, 1.5, 2.0, 3.0)  # Γ, of the sensitivity analysis; among `evaluate`'s
# Accepts half of all people by hidden reasons alone. `evaluate` refuses logs of the lenient policy, which
# accepts hardly any of many people.
LOGGING = "random"
STRICTNESS = (0.2, 0.4, 0.6, 0.8)  # shares that decision makers accept, who get cases at random
IMPUTING = "multiple_imputation"
NOTHING, OFFICERS = "no assumption", "decision makers"
STYLES = {"none": "-", "epsilon": "--"}
Ends = tuple[float, float]


class Kind(NamedTuple):
    """Runs that differ in Γ alone."""

    dataset: str
    exploration: str
    method: str


def gamma_of(config: Config) -> float:
    """Γ of a run's initial policy; 1 without hidden reasons."""
    return float(config.initial_policy.get("hidden") or 1.0)


def assumed_gamma(config: Config) -> float:
    """Γ that multiple imputation assumes of the initial policy; 1 of other methods."""
    return float(config.model.get("odds_ratio") or 1.0)


def hidden_items(planned: Sequence[Planned]) -> list[Item]:
    """What hidden reasons cost over time, in numbers, and what `evaluate` says of logs."""
    found: dict[Kind, dict[float, Result]] = {}
    for one in planned:
        if one.run is not None and assumed_gamma(one.config) == 1.0:
            kind = Kind(one.dataset, one.config.exploration.rule.name, one.model)
            found.setdefault(kind, {})[gamma_of(one.config)] = one.run
    figure = figure_of(
        "questions_hidden_loss",
        "What hidden reasons of past deciders cost",
        "Utility on test people after deciders with hidden reasons of the greatest strength Γ, less that "
        "after deciders without, ×100: mean over seeds, paired, and a band of one standard deviation. "
        "Solid: without exploration; dashed: the rejected are accepted with a small probability.",
        lambda: draw_loss(found),
        planned,
        drawn=any(len(runs) > 1 for runs in found.values()),
        wide=True,
    )
    logs = logs_of(planned)
    tables = loss_table(found, planned), assumed_table(planned), coverage_table(logs), officers_table(logs)
    return [figure, *tables]


def loss_table(found: dict[Kind, dict[float, Result]], planned: Sequence[Planned] = ()) -> PageTable:
    """A row per data set, exploration, Γ and method: utility less that without hidden reasons.

    Args:
        found: runs by Γ.
        planned: all runs, finished or missing.
    """
    rows, records = [], []
    gammas = sorted({gamma for runs in found.values() for gamma in runs if gamma > 1})
    for gamma, (kind, runs) in itertools.product(gammas, found.items()):
        if gamma not in runs or 1.0 not in runs:
            continue
        spreads = {name: _change(runs, gamma, 1.0, name) for name in COLUMNS.values()}
        group = f"{dataset_label(kind.dataset)}, Γ = {gamma:g}, exploration: {kind.exploration}"
        rows.append(Row(group, method_label(kind.method), [*map(mean_interval, spreads.values())]))
        records += [
            kind._asdict() | {"gamma": gamma, "measure": name} | difference_of(spread)
            for name, spread in spreads.items()
        ]
    return table_of(
        [*COLUMNS],
        sorted(rows, key=lambda row: row.group),
        records,
        planned,
        key="questions_hidden",
        title="Change of utility by hidden reasons of past deciders",
        note="Utility less that of the same method after deciders without hidden reasons, ×100, with the "
        "95 % interval (Student's t, paired by seed). Of test people after the warm-up and over "
        "evaluation.window; of applicants.",
    )


G = TypeVar("G")


def _change(runs: Mapping[G, Result], level: G, reference: G, name: str) -> Spread | None:
    """A measure of a run less that of another, paired by seed."""
    return paired_difference(*(_of(runs[key], name) for key in (level, reference)))


def _of(run: Result, name: str) -> pd.Series:
    """A measure by seed: of the whole run, or the test utility of the policy after the warm-up."""
    return run.curve("utility").iloc[0] if name == "first" else run.values(name)


def assumed_table(planned: Sequence[Planned]) -> PageTable:
    """A row per measure, data set and true Γ: utility of multiple imputation by the Γ that it assumes.

    All are compared with assuming none (Γ = 1) after deciders without hidden reasons.
    """
    found: dict[str, dict[tuple[float, float], Result]] = {}
    for one in planned:
        if one.run is not None and one.model == IMPUTING and one.config.exploration.rule.name == "none":
            found.setdefault(one.dataset, {})[gamma_of(one.config), assumed_gamma(one.config)] = one.run
    rows, records = [], []
    assumed = sorted({gammas[1] for runs in found.values() for gammas in runs})
    for (dataset, runs), (words, name) in itertools.product(found.items(), FIRST_AND_ALL.items()):
        for gamma in sorted({true for true, _ in runs}):
            cells = [Cell("")] * len(assumed)
            for k, other in enumerate(assumed):
                if (gamma, other) in runs and (1.0, 1.0) in runs:
                    spread = _change(runs, (gamma, other), (1.0, 1.0), name)
                    cells[k] = mean_interval(spread)
                    which = {"dataset": dataset, "measure": name, "gamma": gamma, "assumed": other}
                    records.append(which | difference_of(spread))
            rows.append(Row(f"{dataset_label(dataset)}, {words}", f"Γ = {gamma:g}", cells))
    return table_of(
        [f"assumed Γ = {one:g}" for one in assumed],
        rows,
        records,
        planned,
        key="questions_hidden_assumed",
        title="Multiple imputation that assumes hidden reasons",
        note="Utility by Γ of the deciders and the Γ that is assumed, model.odds_ratio: of test people after "
        "the warm-up, and of applicants (effective utility); less that with none assumed after deciders "
        "without hidden reasons, ×100, with the 95 % interval (Student's t, paired by seed).",
    )


class Logs(NamedTuple):
    """What `evaluate` says of accepting everybody, by logs of deciders with hidden reasons.

    `alike` and `officers` have the ends of 95 % intervals of the utility of each log, by what is assumed.
    """

    dataset: str
    gamma: float  # of the deciders
    truth: float  # utility of accepting everybody
    alike: list[dict[str, Ends]]  # all accept half of all people
    officers: list[dict[str, Ends]]  # of `STRICTNESS`


def logs_of(planned: Sequence[Planned]) -> list[Logs]:
    """Intervals from the logs of each data set and Γ, two per replicate: of deciders alike, and of officers.

    The truth is that of all people of all logs: on a data set of a file these are the same people.
    """
    first: dict[tuple[str, float], Planned] = {}
    for one in planned:
        first.setdefault((one.dataset, gamma_of(one.config)), one)
    found = []
    for (dataset, gamma), one in first.items():
        data = load_dataset(dataset, *(word for word in one.words if word.startswith("dataset.")))
        tables = [data.resplit(k).table() for k in range(one.config.seeds)]
        cost = float(one.config.cost.value)
        truth = float(np.mean([table.label.mean() for table in tables])) - cost
        hidden = f"initial_policy.hidden={gamma}"
        alike = load_initial_policy(LOGGING, dataset, hidden)
        officers = [
            load_initial_policy(LOGGING, dataset, hidden, f"initial_policy.acceptance_rate={rate}")
            for rate in STRICTNESS
        ]
        of_alike, of_officers = (
            [
                intervals(table, [one.of_split(k) for one in deciders], k, cost)
                for k, table in enumerate(tables)
            ]
            for deciders in ([alike], officers)
        )
        found.append(Logs(dataset, gamma, truth, of_alike, of_officers))
    return found


def intervals(table: Any, deciders: Sequence[Any], seed: int, cost: float) -> dict[str, Ends]:
    """Intervals of the utility of accepting everybody, from a log of deciders who get cases at random.

    Args:
        table: the people.
        deciders: initial policies.
        seed: of the random assignment of cases to deciders.
        cost: of a positive decision.
    """
    officer = np.random.default_rng(seed).integers(len(deciders), size=len(table))
    accepted = np.choose(officer, [one.decide(table) for one in deciders])
    log = table.x[table.schema.names].assign(
        group=table.s,
        propensity=np.mean([one.propensity(table) for one in deciders], axis=0),
        decision=accepted.astype(int),
        label=np.where(accepted, table.label, np.nan),
    )
    columns = {name: name for name in ("decision", "label", "propensity")}
    if len(deciders) > 1:
        log, columns = log.assign(officer=officer), columns | {"decision_maker": "officer"}
    found = evaluate(np.ones(len(log)), log, sensitive="group", cost=cost, **columns)
    table = found.table("sensitivity").query("measure == 'utility'").set_index("view")
    views = {NOTHING: "no assumption", OFFICERS: "decision makers"}
    views |= {_assumed(gamma): f"Γ = {gamma:g}" for gamma in ASSUMED}
    return {
        name: (float(table.loc[view, "low"]), float(table.loc[view, "high"]))
        for name, view in views.items()
        if view in table.index
    }


def _assumed(gamma: float) -> str:
    return f"assumed Γ = {gamma:g}"


def coverage_table(logs: Sequence[Logs]) -> PageTable:
    """A row per data set and true Γ: share of logs whose interval for an assumed Γ holds the truth."""
    return _held_table(
        [(one, one.alike) for one in logs],
        [*map(_assumed, ASSUMED)],
        widths=False,
        key="questions_hidden_coverage",
        title="Sensitivity analyses of logs with hidden reasons",
        note="Logs of deciders who accept half of all people, by hidden reasons of the true Γ alone. "
        "fairall evaluate bounds the value of accepting everybody for an assumed Γ: how many 95 % "
        "intervals of the bounds hold the truth.",
    )


def officers_table(logs: Sequence[Logs]) -> PageTable:
    """The same for logs of decision makers of different strictness, with the bounds that these give."""
    shares = ", ".join(f"{100 * rate:g}" for rate in STRICTNESS)
    return _held_table(
        [(one, one.officers) for one in logs],
        [NOTHING, OFFICERS, *map(_assumed, ASSUMED)],
        widths=True,
        key="questions_hidden_officers",
        title="Decision makers of different strictness with hidden reasons",
        note=f"Logs of four decision makers who get cases at random and accept {shares} % of them, all with "
        "hidden reasons of the true Γ. Cells: how many 95 % intervals of the bounds hold the value of "
        "accepting everybody, and their mean width ×100. Bounds by decision makers (--decision-maker) assume "
        "no Γ.",
    )


def _held_table(
    logs: Sequence[tuple[Logs, list[dict[str, Ends]]]], assumptions: Sequence[str], widths: bool, **shown: Any
) -> PageTable:
    rows, records = [], []
    for of, found in logs:
        cells = []
        for name in assumptions:
            ends = [one[name] for one in found if name in one]
            held = [low <= of.truth <= high for low, high in ends]
            width = f", {100 * np.mean([high - low for low, high in ends]):.1f}" if ends and widths else ""
            cells.append(Cell(f"{sum(held)} of {len(held)}{width}"))
        rows.append(Row(dataset_label(of.dataset), f"Γ = {of.gamma:g}", cells))
        records += [
            {"dataset": of.dataset, "gamma": of.gamma, "log": number, "assumption": name}
            | {"truth": of.truth, "low": low, "high": high, "held": low <= of.truth <= high}
            for number, one in enumerate(found)
            for name, (low, high) in one.items()
            if name in assumptions
        ]
    return table_of(assumptions, rows, records, **shown)


def draw_loss(found: dict[Kind, dict[float, Result]]) -> Figure:
    """Draw a panel per data set and method: utility over time less that without hidden reasons."""
    datasets, methods = (
        list(dict.fromkeys(getattr(kind, name) for kind in found)) for name in ("dataset", "method")
    )
    height = 1.5 * len(datasets) + 0.5
    figure, panels = grid_of(len(datasets), len(methods), height, sharex=True, sharey="row")
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
    label_grid(
        panels,
        "time step t",
        titles=map(method_label, methods),
        ylabels=[f"{dataset_label(name)}\nchange of utility ×100" for name in datasets],
    )
    legend_below(figure, handles_of(panels.ravel()), 2)
    return figure
