"""Checks of the estimates against populations whose truth is known.

Logs are drawn from a finite population of which every label is known, with decisions of a known logistic
policy, so that value and gaps of any policy are known exactly.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import expit, logit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairall.data.features import Kind
from fairall.data.load import load_dataset
from fairall.data.synthetic import Synthetic
from fairall.evaluate.estimators import ESTIMATORS, LABELS
from fairall.evaluate.evaluation import Evaluation, Evaluator
from fairall.evaluate.fairness import MEASURES, gap, group_sums, label_columns, rates
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.views import VIEWS
from fairall.results.figures import BLUE, GREEN, GREY, ORANGE
from fairall.results.page import legend_below, rendered, save, write
from fairall.results.table import Cell, Row, Table
from fairall.storage.files import atomic

SIZES = (2_000, 20_000)
LARGE_POPULATION = 200_000  # people of the synthetic data set
# Conditions: where propensities come from, and which model is wrong (a constant).
CONDITIONS = ("recorded", "estimated", "wrong propensity", "wrong outcome")
SHOWN_GAPS = ("dpu", "equal_opportunity", "predictive_parity", "false_positive")  # on the page
GAPS = tuple(name for name, one in MEASURES.items() if one.formula is not None)


@dataclass(frozen=True)
class Population:
    """A finite population with known labels and two policies.

    Attributes:
        name: of the data set.
        people: features and sensitive attribute `s`, a row per person.
        kinds: kind of each feature.
        label: y of each person, shape (N,).
        p_label: P(y = 1 | x, s) of labels that a logistic outcome model is right about, shape (N,).
        propensity: of the policy that logs, a logistic function of the features, shape (N,).
        target: acceptance probabilities of the policy to be evaluated, shape (N,).
        cost: c.
    """

    name: str
    people: pd.DataFrame
    kinds: dict[str, str]
    label: np.ndarray
    p_label: np.ndarray
    propensity: np.ndarray
    target: np.ndarray
    cost: float

    @classmethod
    @functools.cache
    def of(cls, name: str) -> Population:
        """The population of `synthetic` or `credit`.

        The logging policy is logistic in a linear prediction of the label, with a malus for the
        disadvantaged; the evaluated policy is steeper, and has none.
        """
        dataset = load_dataset(name)
        if isinstance(dataset, Synthetic):
            drawn = dataset.individuals("population", LARGE_POPULATION)
            people = pd.DataFrame({key: drawn.variable(key) for key in dataset.config.observed})
            s, label, features = drawn.s, drawn.label, dataset.schema
        else:
            table = dataset.table()
            people, s, label, features = table.x[table.schema.names], table.s, table.label, table.schema
        kinds = {feature.name: feature.kind for feature in features}
        design = pd.get_dummies(people.astype({n: str for n, k in kinds.items() if k is Kind.CATEGORICAL}))
        inputs = StandardScaler().fit_transform(np.column_stack([design.to_numpy(dtype=float), s]))
        score = LogisticRegression(C=0.1, max_iter=1000).fit(inputs, label).decision_function(inputs)
        score = (score - score.mean()) / score.std()
        return cls(
            name,
            people.reset_index(drop=True).assign(s=s.astype(int)),
            {name: str(kind) for name, kind in kinds.items()},
            label.astype(float),
            expit(logit(label.mean()) + 1.5 * score),
            expit(0.3 + 0.8 * score - 0.5 * (s < 0)),
            expit(2.0 * score),
            0.6 if name == "credit" else 0.5,
        )

    def truth(self, label: np.ndarray) -> dict[str, float]:
        """Value, acceptance and gaps of the evaluated policy by the labels of everybody, (N,)."""
        return _by_label(self.target, label, self.people["s"].to_numpy(), self.cost)

    def draw(self, n: int, random: np.random.Generator, simulated: bool) -> tuple[pd.DataFrame, np.ndarray]:
        """A log of n people drawn with replacement, and the labels of all of them.

        Args:
            n: number of people.
            random: source of randomness.
            simulated: labels drawn from `p_label`, so that a logistic outcome model is right.
        """
        rows = random.integers(len(self.people), size=n)
        label = (random.random(n) < self.p_label[rows]).astype(float) if simulated else self.label[rows]
        accepted = random.random(n) < self.propensity[rows]
        log = (
            self.people.iloc[rows]
            .reset_index(drop=True)
            .assign(
                decision=accepted.astype(int),
                label=np.where(accepted, label, np.nan),
                propensity=self.propensity[rows],
                target=self.target[rows],
            )
        )
        return log, label


def _by_label(target: np.ndarray, label: np.ndarray, s: np.ndarray, cost: float) -> dict[str, float]:
    columns = label_columns(target, label, np.ones(len(label)))
    by_group = rates(group_sums(columns, (s > 0).astype(int), 2), cost)
    return {"value": float(np.mean(target * (label - cost)))} | {
        name: float(gap(values)) for name, values in by_group.items()
    }


def simulate(
    names: tuple[str, ...] = ("synthetic", "credit"),
    sizes: tuple[int, ...] = SIZES,
    conditions: tuple[str, ...] = CONDITIONS,
    *,
    logs: int = 500,
    jobs: int = 1,
) -> pd.DataFrame:
    """Estimates from many logs beside the truth.

    Args:
        names: of populations.
        sizes: people of a log.
        conditions: some of `CONDITIONS`.
        logs: of each population, size and condition.
        jobs: processes.

    Returns:
        A row per log and estimate: population, size, condition, quantity (`value` or a measure), estimator
        (or view), estimate, low, high, truth; for the estimator `manski`, low and high are the bounds, and
        truth that of the log's people.
    """
    tasks = [
        (name, size, condition, number)
        for name in names
        for size in sizes
        for condition in conditions
        for number in range(logs)
    ]
    if jobs == 1:
        found = list(map(_one_log, tasks))
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            found = list(pool.map(_one_log, tasks, chunksize=8))
    return pd.DataFrame([row for rows in found for row in rows])


def _one_log(task: tuple[str, int, str, int]) -> list[dict[str, Any]]:
    name, size, condition, number = task
    population = Population.of(name)
    simulated = condition == "wrong propensity"
    random = np.random.default_rng([number, size, CONDITIONS.index(condition)])
    people, label = population.draw(size, random, simulated)
    log = DecisionLog.of(
        people if condition == "recorded" else people.drop(columns="propensity"),
        decision="decision",
        label="label",
        sensitive="s",
        propensity="propensity" if condition == "recorded" else None,
        cost=population.cost,
        kinds=population.kinds,
        not_features=["target"],
    )
    constant = DummyClassifier()
    found = Evaluator(
        log,
        propensity_model=constant if condition == "wrong propensity" else "logistic",
        outcome_model=constant if condition == "wrong outcome" else "logistic",
        seed=number,
    ).evaluate("target")
    truth = population.truth(population.p_label if simulated else population.label)
    of_log = _by_label(found.target, label, people["s"].to_numpy(), population.cost)
    identity = {"population": name, "size": size, "condition": condition, "log": number}
    return [identity | row for row in _rows(found, truth, of_log, people, label)]


def _rows(
    found: Evaluation,
    truth: dict[str, float],
    of_log: dict[str, float],
    people: pd.DataFrame,
    label: np.ndarray,
) -> Iterator[dict[str, Any]]:
    accepted, target = people["decision"].to_numpy() == 1, found.target
    naive = float(np.mean(target[accepted] * (label[accepted] - found.log.cost)))
    yield {"quantity": "value", "estimator": "naive", "estimate": naive, "truth": truth["value"]}
    for estimator, value in (found.values() | {"guarantee": found.guarantee()}).items():
        yield {"quantity": "value", "estimator": estimator, "truth": truth["value"]} | value
    gaps, bounds = found.gaps(), found.bounds()
    for name in GAPS:
        for view in VIEWS:
            yield {"quantity": name, "estimator": view, "truth": truth[name]} | gaps[name][view]
    for name, key in (("value", "utility"), *((name, name) for name in GAPS)):
        yield {"quantity": name, "estimator": "manski", "truth": of_log[name]} | bounds[key]


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Mean error, its standard error, and coverage by population, size, condition, quantity and estimator.

    Args:
        found: of `simulate`.

    Returns:
        Columns truth, mean_error, standard_error, deviation (of the estimates), covered, logs, answered.
    """
    table = found.assign(
        error=found["estimate"] - found["truth"],
        covered=((found["low"] <= found["truth"] + 1e-12) & (found["truth"] <= found["high"] + 1e-12)).where(
            found["low"].notna()
        ),
    )
    by = table.groupby(["population", "size", "condition", "quantity", "estimator"], sort=False)
    measured = by.agg(
        truth=("truth", "mean"),
        mean_error=("error", "mean"),
        standard_error=("error", "sem"),
        deviation=("error", "std"),
        covered=("covered", lambda values: values.astype(float).mean()),
        logs=("log", "nunique"),
        answered=("low", "count"),
    )
    return measured.reset_index()


def write_results(found: pd.DataFrame, page: Path) -> None:
    """Write a page of tables, and its figure to the folder `figures` beside it.

    Args:
        found: of `simulate`.
        page: Markdown file.
    """
    told = summary(found)
    figures = page.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        picture, _ = save(lambda: _draw(told), Path(folder) / "evidence")
    with atomic(figures / "evidence.png") as temporary:
        temporary.write_bytes(picture)
    values = {
        "logs": found["log"].nunique(),
        "value": _value_table(told),
        "gaps": _gap_table(told),
        "bounds": _bounds_table(told),
    }
    write(page, rendered("evidence.md.jinja", values, "fairall.evaluate"))


def _value_table(told: pd.DataFrame) -> Table:
    """Mean error and coverage of the value, by population, size, condition and estimator."""
    columns = ["naive", *ESTIMATORS, "guarantee"]
    shown = told[told["quantity"] == "value"]
    return _table("Utility per person", shown, columns, [LABELS.get(name, name) for name in columns])


def _gap_table(told: pd.DataFrame) -> Table:
    """The same of the gaps between groups."""
    shown = told[told["quantity"].isin(SHOWN_GAPS) & told["estimator"].isin(VIEWS)]
    return _table("Gaps between groups", shown, VIEWS, ["naive", "IPS", "DR"])


def _bounds_table(told: pd.DataFrame) -> Table:
    """Share of logs whose truth is within the bounds without assumption, the least over conditions."""
    shown = told[told["estimator"] == "manski"]
    names = {"value": "utility"} | {name: MEASURES[name].label for name in GAPS}
    by = shown.pivot_table(index=["population", "size"], columns="quantity", values="covered", aggfunc="min")
    rows = [
        Row(str(population), f"{size:,} people", [Cell(f"{100 * of[name]:.0f} %") for name in names])
        for (population, size), of in by.iterrows()
    ]
    return Table(
        key="bounds",
        title="Bounds without assumption",
        note="Share of logs in which they contain the truth of the people of the log.",
        columns=list(names.values()),
        rows=rows,
        records=[],
    )


def _table(title: str, told: pd.DataFrame, estimators: Sequence[str], headings: Sequence[str]) -> Table:
    rows = []
    identity = ["population", "size", "condition", "quantity"]
    for (population, size, condition, quantity), some in told.groupby(identity, sort=False):
        by = some.set_index("estimator")
        name = "" if quantity == "value" else f": {MEASURES[quantity].label}"
        cells = [Cell(_told(by.loc[estimator])) for estimator in estimators]
        rows.append(Row(f"{population}, {size:,} people", f"{condition}{name}", cells))
    note = "Mean error ×100 with its standard error, and the share of 95 % intervals that cover the truth."
    return Table(key=title.lower(), title=title, note=note, columns=headings, rows=rows, records=[])


def _told(of: pd.Series) -> str:
    covered = "" if np.isnan(of["covered"]) else f"{100 * of['covered']:.1f} %"
    if np.isnan(of["mean_error"]):
        return covered
    error = f"{100 * of['mean_error']:.2f} ({100 * of['standard_error']:.2f})".replace("-", "−")
    return f"{error}; {covered}" if covered else error


def _draw(told: pd.DataFrame) -> Figure:
    """Mean errors of the value with two standard errors, and coverage, by condition."""
    shown = told[told["quantity"] == "value"]
    estimators = {"naive": GREY, "ips": ORANGE, "dm": GREEN, "dr": BLUE}
    figure = Figure(figsize=(6.8, 4.2), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, squeeze=False)
    rows = [(size, condition) for size in shown["size"].unique() for condition in shown["condition"].unique()]
    populations = shown.groupby("population", sort=False)
    for (error_axes, cover_axes), (population, of) in zip(panels, populations, strict=False):
        by = of.set_index(["size", "condition", "estimator"])
        for k, (estimator, colour) in enumerate(estimators.items()):
            at = np.arange(len(rows)) + 0.16 * (k - 1.5)
            some = [by.loc[(*row, estimator)] if (*row, estimator) in by.index else None for row in rows]
            errors = np.array([np.nan if one is None else 100 * one["mean_error"] for one in some])
            spread = np.array([np.nan if one is None else 200 * one["standard_error"] for one in some])
            label = LABELS.get(estimator, estimator)
            error_axes.errorbar(at, errors, spread, fmt="o", ms=3, color=colour, label=label)
            if estimator != "naive":
                covered = [np.nan if one is None else 100 * one["covered"] for one in some]
                cover_axes.plot(at, covered, "o", ms=3, color=colour)
        error_axes.axhline(0.0, color=GREY, lw=0.5, zorder=0)
        error_axes.set_ylabel(f"{population}\nmean error ×100")
        cover_axes.axhspan(93.0, 97.0, color=GREY, alpha=0.25, lw=0)
        cover_axes.set_ylabel("coverage, %")
        cover_axes.set_ylim(0.0, 102.0)
    for axes in panels[-1]:
        axes.set_xticks(range(len(rows)), [f"{condition}\n{size:,}" for size, condition in rows], rotation=60)
    handles, labels = panels[0][0].get_legend_handles_labels()
    legend_below(figure, dict(zip(labels, handles, strict=True)), len(estimators))
    return figure
