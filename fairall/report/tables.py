"""Tables of methods beside the paper's values: effective, temporal, and on synthetic data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.plan import Planned
from fairall.report.references import with_references
from fairall.report.statistics import LEVEL, Comparison, holm, in_deviations, paired_p
from fairall.report.table import Cell, Row, Table, plus_minus
from fairall.results.finished import Run
from fairall.results.paper import paper_metrics, synthetic_readings

MARKS = (
    "Bold: best of the data set. F: against FairLog, R: against the best of the others; + significantly "
    "better, − significantly worse (two-sided Wilcoxon signed-rank test, paired over seeds, Holm-corrected "
    f"over the methods of a data set and measure, p < {LEVEL:g})."
)
UNITS = (
    "×100, mean (standard deviation over seeds). In italics the printed value, and our mean less the "
    "printed one in printed standard deviations (sd)."
)


@dataclass(frozen=True)
class Requested:
    """A run that a table needs, and the finished run or None."""

    planned: Planned
    run: Run | None

    @property
    def model(self) -> str:
        """Name of the method."""
        return self.planned.name("model")

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.planned.name("dataset")


Values = Callable[[Run, Quantity], pd.Series]
Printed = Callable[[Requested, Quantity], "tuple[float, float] | None"]


def effective_table(requested: Sequence[Requested], initial_policy: str, protocol: str) -> Table:
    """Effective utility and DPU after the last time step, from the decisions taken while learning."""
    return _method_table(
        requested,
        labels.EFFECTIVE,
        key=f"effective_{initial_policy}_{protocol}",
        title=f"Effective utility and DPU, {initial_policy} initial policy, protocol {protocol}",
        note="Accumulated over all time steps, from decisions while learning.",
        setting=_setting(initial_policy, protocol),
    )


def temporal_table(
    requested: Sequence[Requested], initial_policy: str, protocol: str, *, from_sampled: bool
) -> Table:
    """Temporal variance (standard deviation over time) and mean of test utility and DPU."""
    kind = "sampled" if from_sampled else "expected"
    how = "drawn decisions, as the paper's are" if from_sampled else "acceptance probabilities"
    return _method_table(
        requested,
        tuple(measure.sampled() for measure in labels.TEMPORAL) if from_sampled else labels.TEMPORAL,
        key=f"temporal_{initial_policy}_{protocol}_{kind}",
        title=f"Temporal variance and mean ({kind}), {initial_policy} initial policy, protocol {protocol}",
        note=f"On test people, over the time steps of evaluation.window, from {how}.",
        # The printed ones are from sampled decisions: only those are counted beside them.
        setting=_setting(initial_policy, protocol) if from_sampled else "",
    )


def synthetic_table(requested: Sequence[Requested], initial_policy: str, *, from_sampled: bool) -> Table:
    """Utilities and unfairness on synthetic data at the last time step, and the optimal policies'."""
    kind = "sampled" if from_sampled else "expected"
    measures = tuple(measure.sampled() for measure in labels.SYNTHETIC) if from_sampled else labels.SYNTHETIC
    table = _table(
        requested,
        measures,
        values=lambda run, measure: run.last(measure.name),
        printed=lambda one, measure: None,
        key=f"synthetic_{initial_policy}_corrected_{kind}",
        title=f"Synthetic data at the last time step ({kind}), {initial_policy} initial policy",
        note="×100, mean (standard deviation over seeds). In italics what the paper's figures show at "
        f"t = 200, without deviations. {MARKS} OPT-FAIR and OPT-UNFAIR are trained on every label.",
        section="Synthetic data",
    )
    for row, one in zip(table.rows, requested, strict=True):
        readings = synthetic_readings(initial_policy, one.model)
        for i, measure in enumerate(measures):
            reading = readings.get(measure.name.removesuffix("_sampled"))
            if reading is not None:
                row.cells[1 + i] = _with_reading(row.cells[1 + i], reading)
    table = _with_references(table, requested, {measure.name: f"mean_{measure.name}" for measure in measures})
    for record in table.records:
        low, high = synthetic_readings(initial_policy, record["model"]).get(
            record["measure"].removesuffix("_sampled"), (None, None)
        )
        record |= {"paper_low": low, "paper_high": high}
    return table


def _setting(initial_policy: str, protocol: str) -> str:
    return f"{initial_policy} initial policy, protocol {protocol}"


def _method_table(
    requested: Sequence[Requested], measures: Sequence[Quantity], *, note: str, **texts: str
) -> Table:
    def printed(one: Requested, measure: Quantity) -> tuple[float, float] | None:
        return paper_metrics(one.planned.config).get(measure.name.removesuffix("_sampled"))

    table = _table(
        requested,
        measures,
        values=lambda run, measure: run.per_seed(measure.name),
        printed=printed,
        note=f"{note} {UNITS} {MARKS}",
        section="Tables",
        **texts,
    )
    return _with_references(table, requested, {measure.name: measure.name for measure in measures})


def _with_references(table: Table, requested: Sequence[Requested], measures: Mapping[str, str]) -> Table:
    runs: dict[str, list[Run]] = {}
    about: dict[str, dict[str, Any]] = {}
    for one in requested:
        if one.run is not None:
            group = labels.dataset(one.dataset)
            runs.setdefault(group, []).append(one.run)
            about[group] = {"dataset": one.dataset, "model": "accept_all"}
    return with_references(table, runs, measures, about)


def _table(
    requested: Sequence[Requested],
    measures: Sequence[Quantity],
    *,
    values: Values,
    printed: Printed,
    key: str,
    title: str,
    note: str,
    section: str,
    setting: str = "",
) -> Table:
    columns: dict[tuple[str, str], dict[str, Any]] = {}
    for dataset in dict.fromkeys(one.dataset for one in requested):
        runs = {one.model: one.run for one in requested if one.dataset == dataset and one.run is not None}
        for measure in measures:
            by_seed = {model: values(run, measure) for model, run in runs.items()}
            columns[dataset, measure.name] = compared(
                {model: series for model, series in by_seed.items() if len(series)}, measure
            )
    rows, records = [], []
    for one in requested:
        cells = [Cell("" if one.run is None else str(len(one.run.seeds)))]
        for measure in measures:
            standing = columns[one.dataset, measure.name].get(one.model)
            paper = printed(one, measure)
            cells.append(cell(standing, paper, missing=one.run is None))
            records.append(_record(one, measure, standing, paper))
        rows.append(Row(labels.dataset(one.dataset), labels.method(one.model), cells))
    commands = [one.planned.command for one in requested if one.run is None]
    return Table(
        key, title, note, ["seeds", *(m.heading for m in measures)], rows, section, setting, records, commands
    )


@dataclass(frozen=True)
class Standing:
    """Standing of a method in a column.

    Attributes:
        values: by seed, plain units.
        best: whether there are other methods and none has a better mean.
        baseline: against FairLog.
        rival: against the best of the others.
    """

    values: pd.Series
    best: bool
    baseline: Comparison | None
    rival: Comparison | None

    @property
    def std(self) -> float | None:
        """Standard deviation over seeds, n − 1; None for a single one."""
        return float(self.values.std()) if len(self.values) > 1 else None


def compared(
    by_model: Mapping[str, pd.Series], measure: Quantity, baseline: str = labels.BASELINE
) -> dict[str, Standing]:
    """Compare every method of a column with a baseline and the best of the others.

    Reference methods, and measures without a better direction, are not compared.
    """
    sign = 1 if measure.higher_is_better else -1
    score = {model: sign * series.mean() for model, series in by_model.items()}
    ranked = measure.higher_is_better is not None
    competing = [model for model in by_model if ranked and model not in labels.OPTIMAL]
    rivals = {
        model: max((other for other in competing if other != model), key=score.__getitem__, default=None)
        for model in competing
    }
    baselines = {
        model: baseline if baseline in by_model and model != baseline else None for model in competing
    }
    against_baseline = _tested(by_model, baselines, score)
    against_rival = _tested(by_model, rivals, score)
    best = max((score[model] for model in competing), default=None) if len(competing) > 1 else None
    return {
        model: Standing(
            series,
            model in competing and bool(score[model] == best),
            against_baseline.get(model),
            against_rival.get(model),
        )
        for model, series in by_model.items()
    }


def _tested(
    by_model: Mapping[str, pd.Series], rivals: Mapping[str, str | None], score: Mapping[str, float]
) -> dict[str, Comparison]:
    """One family of tests: every method with its rival; a pair that occurs twice is one test."""
    pairs = {model: rival for model, rival in rivals.items() if rival is not None}
    tests = list(dict.fromkeys(frozenset(pair) for pair in pairs.items()))
    raw = [paired_p(*(by_model[model] for model in sorted(test))) for test in tests]
    corrected = dict(zip(tests, holm(raw), strict=True))
    return {
        model: Comparison(rival, bool(score[model] > score[rival]), corrected[frozenset((model, rival))])
        for model, rival in pairs.items()
    }


def cell(standing: Standing | None, paper: tuple[float, float] | None, *, missing: bool) -> Cell:
    """A cell with a standing beside a printed mean and deviation."""
    shown = None if paper is None else plus_minus(*paper)
    if standing is None:
        return Cell("", shown, missing=missing)
    mean = float(standing.values.mean())
    apart = None if paper is None else in_deviations(mean, paper)
    return Cell(
        plus_minus(mean, standing.std),
        shown,
        None if apart is None else f"{signed(apart)} sd",
        standing.best,
        standing.baseline,
        standing.rival,
    )


def _record(
    one: Requested, measure: Quantity, standing: Standing | None, paper: tuple[float, float] | None
) -> dict[str, Any]:
    """A line of the CSV; plain units."""
    mean = None if standing is None else float(standing.values.mean())
    record: dict[str, Any] = {
        "dataset": one.dataset,
        "model": one.model,
        "measure": measure.name,
        "seeds": 0 if standing is None else len(standing.values),
        "mean": mean,
        "std": None if standing is None else standing.std,
        "paper_mean": None if paper is None else paper[0],
        "paper_std": None if paper is None else paper[1],
        "difference_in_paper_std": None if mean is None or paper is None else in_deviations(mean, paper),
        "best": None if standing is None else standing.best,
    }
    for name in ("baseline", "rival"):
        comparison: Comparison | None = None if standing is None else getattr(standing, name)
        record |= {
            name: None if comparison is None else comparison.rival,
            f"better_than_{name}": None if comparison is None else comparison.better,
            f"p_{name}": None if comparison is None else comparison.p,
        }
    return record | {"run": None if one.run is None else one.run.path.name, "command": one.planned.command}


def _with_reading(cell: Cell, reading: tuple[float, float]) -> Cell:
    low, high = (f"{100 * value:g}" for value in reading)
    shown = low if low == high else f"{low} to {high}"
    return Cell(cell.ours, shown, None, cell.best, cell.baseline, cell.rival, cell.missing)


def signed(value: float) -> str:
    """A number with one decimal and its sign."""
    return "0.0" if f"{abs(value):.1f}" == "0.0" else f"{value:+.1f}".replace("-", "−")
