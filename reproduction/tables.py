"""Tables of methods beside the paper's values, and of settings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from fairall import FairAllError, Result, hyperparameters, load_dataset, load_initial_policy
from fairall.display import Cell, PageTable, Row, mean_std, number
from fairall.metrics import Quantity
from fairall.report import (
    LEVEL,
    UNTESTED,
    dataset_label,
    group_rows,
    measures,
    method_label,
    with_references,
)
from fairall.results import paper_metrics
from reproduction.items import table_of
from reproduction.paper import acceptance_rates, synthetic_readings
from reproduction.plan import BASELINE, DATASETS, METHODS, OPTIMAL, Planned, by_model, interpretable
from reproduction.words import words_of

GROUPS = ("everybody", "S = +1", "S = −1")
SAME_RATE = 5e-5  # the paper prints percentages with two digits


def shown_table(
    columns: Sequence[str], rows: Iterable[Row], planned: Sequence[Planned] = (), **shown: Any
) -> PageTable:
    """A table whose CSV file has a row per cell, as it is shown.

    Args:
        columns: headings of the cells.
        rows: what is shown.
        planned: its runs, finished or missing.
        shown: key, title and note, and further fields of `PageTable`.
    """
    table = table_of(columns, rows, [], planned, **shown)
    cells = table.frame.map(str).rename_axis(columns="measure").stack(future_stack=True)
    return replace(table, records=cells.rename("shown").reset_index())


def methods_table(
    planned: Sequence[Planned],
    measures_of: Sequence[str],
    note: str,
    *,
    besides: Sequence[Planned] = (),
    sampled: bool = False,
    at_last: bool = False,
    **shown: Any,
) -> PageTable:
    """Measures of methods, data set by data set, a row per finished run.

    Args:
        planned: runs, finished or missing, of one initial policy and protocol.
        measures_of: names of the measures.
        note: on them.
        besides: further runs, which are not tested.
        sampled: whether measures are of drawn decisions.
        at_last: whether they are of the last time step, beside readings of the paper's figures.
        shown: fields of the table.
    """
    of = [measure.sampled() if sampled else measure for measure in measures(*measures_of)]
    planned, rows, records = [*planned, *besides], [], []
    for dataset, own in by_dataset(planned).items():
        runs = by_model(own)
        added, found = group_rows(
            dataset_label(dataset),
            runs,
            of,
            names={model: method_label(model) for model in runs},
            baseline=BASELINE,
            printed=_read if at_last else _printed,
            untested=OPTIMAL,
            at_last=at_last,
        )
        rows += added
        records += [{"dataset": dataset} | record for record in found]
    compared = all(interpretable(one.config.preset) for one in planned)
    tests = words_of("report")["marks"].format(level=LEVEL) if compared else UNTESTED
    columns = ["seeds", *(measure.heading for measure in of)]
    return table_of(columns, rows, records, planned, note=with_references(f"{note} {tests}", rows), **shown)


def by_dataset(planned: Iterable[Planned]) -> dict[str, list[Planned]]:
    """Some runs by data set, in order."""
    found: dict[str, list[Planned]] = {}
    for one in planned:
        found.setdefault(one.dataset, []).append(one)
    return found


def printed_values(run: Result, measure: Quantity) -> tuple[float, float] | None:
    """Mean and standard deviation that the paper prints for a measure of a run, if it does."""
    return paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))


def _read(run: Result, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    """Readings of the paper's figures beside a value."""
    readings = synthetic_readings(run.name("initial_policy"), run.name("model"))
    ends = readings.get(measure.name.removesuffix("_sampled"), ())
    shown = " to ".join(dict.fromkeys(f"{100 * value:g}" for value in ends))
    return shown, dict(zip(("paper_low", "paper_high"), ends, strict=False))


def _printed(run: Result, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    """Printed values beside a value."""
    paper = printed_values(run, measure)
    if paper is None:
        return "", {}
    apart = (mean - paper[0]) / paper[1] if mean is not None and paper[1] > 0 else None
    shown = mean_std(*paper) + ("" if apart is None else f", {_signed(apart)} sd")
    return shown, {"paper_mean": paper[0], "paper_std": paper[1], "difference_in_paper_std": apart}


def acceptance_table(planned: Sequence[Planned], **shown: Any) -> PageTable:
    """Acceptance rates of the initial policies on the pools of the data sets that have a finished run."""
    rows, lacking = [], []
    for dataset in (name for name in DATASETS if any(one.run for one in planned if one.dataset == name)):
        label = dataset_label(dataset)
        try:
            pool = load_dataset(dataset).prepare().pool_table
        except FairAllError:
            lacking.append((label, f"python -m fairall data fetch {dataset}"))
            continue
        for policy in ("lenient", "harsh"):
            accepted, cells = load_initial_policy(policy, dataset).decide(pool), []
            of_groups = accepted, accepted[pool.s == 1], accepted[pool.s == -1]
            for of, paper in zip(of_groups, acceptance_rates(policy, dataset), strict=True):
                ours = float(of.mean())
                differs = ", differs" if abs(ours - paper) > SAME_RATE else ""
                cells.append(Cell(f"{100 * ours:.2f}", f"{100 * paper:.2f}{differs}"))
            rows.append(Row(label, policy, cells))
    return shown_table(GROUPS, rows, lacking=lacking, **shown)


def hyperparameter_table(planned: Sequence[Planned], **shown: Any) -> PageTable:
    """Hyperparameters of finished runs, beside the paper's selection in conf/hparams/."""
    runs = {(one.model, one.dataset): _flat(one.config.model) for one in planned if one.run is not None}
    columns, rows = [name for name in DATASETS if name in {dataset for _, dataset in runs}], []
    for model in METHODS:
        papers = {
            name: _flat(hyperparameters(model, name).get("model", {}))
            for name in columns
            if (model, name) in runs
        }
        for key in dict.fromkeys(itertools.chain(*papers.values())):
            cells = {}
            for name, values in papers.items():
                ours, paper = _value(runs[model, name].get(key)), _value(values.get(key))
                cells[name] = Cell(ours, f"{paper}, differs" if paper and paper != ours else "")
            rows.append(Row(method_label(model), key.rstrip("_"), [cells.get(name, "") for name in columns]))
    return shown_table([*map(dataset_label, columns)], rows, **shown)


def _flat(node: Mapping[str, Any]) -> dict[str, Any]:
    """Values of nested containers by dotted key."""
    return dict(pd.json_normalize(dict(node)).astype(object).iloc[0])


def _value(value: Any) -> str:
    if value is None:
        return ""
    return "×".join(map(str, value)) if isinstance(value, list) else f"{value:g}"


def _signed(value: float) -> str:
    """A number with its sign and a digit behind the point; 0 has none."""
    shown = number(value, 1)
    return f"+{shown}" if value > 0 and float(shown) else shown
