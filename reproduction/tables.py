"""Tables of methods beside the paper's values, and of settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        besides: further runs, which are not tested.
        measures_of: names of the measures.
        note: on them.
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
            printed=_printed,
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
    every = [*planned]
    names = dict.fromkeys(one.dataset for one in every)
    return {name: [one for one in every if one.dataset == name] for name in names}


def printed_values(run: Result, measure: Quantity) -> tuple[float, float] | None:
    """Mean and standard deviation that the paper prints for a measure of a run, if it does."""
    return paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))


def _printed(run: Result, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    """Printed values beside a value; on synthetic data readings of the paper's figures."""
    if run.name("dataset") == "synthetic":
        readings = synthetic_readings(run.name("initial_policy"), run.name("model"))
        ends = readings.get(measure.name.removesuffix("_sampled"), [])
        shown = " to ".join(dict.fromkeys(f"{100 * value:g}" for value in ends))
        return shown, dict(zip(("paper_low", "paper_high"), ends, strict=False))
    paper = printed_values(run, measure)
    if paper is None:
        return "", {}
    shown, apart = mean_std(*paper), None
    if mean is not None and paper[1] > 0:
        apart = (mean - paper[0]) / paper[1]
        shown += f", {'+' * (round(apart, 1) > 0)}{number(apart, 1)} sd"
    return shown, {"paper_mean": paper[0], "paper_std": paper[1], "difference_in_paper_std": apart}


def acceptance_table(planned: Sequence[Planned], **shown: Any) -> PageTable:
    """Acceptance rates of the initial policies on the pools of the data sets that have a finished run.

    Data sets that are not on this machine are `lacking`, with the command that fetches them.
    """
    rows, lacking = [], []
    for dataset in (name for name in DATASETS if any(one.run for one in planned if one.dataset == name)):
        try:
            pool = load_dataset(dataset).prepare().pool_table
        except FairAllError:
            lacking.append((dataset_label(dataset), f"python -m fairall data fetch {dataset}"))
            continue
        for policy in ("lenient", "harsh"):
            accepted, cells = load_initial_policy(policy, dataset).decide(pool), []
            of_groups = accepted, accepted[pool.s == 1], accepted[pool.s == -1]
            for of, paper in zip(of_groups, acceptance_rates(policy, dataset), strict=True):
                ours = float(of.mean())
                differs = ", differs" if abs(ours - paper) > SAME_RATE else ""
                cells.append(Cell(f"{100 * ours:.2f}", f"{100 * paper:.2f}{differs}"))
            rows.append(Row(dataset_label(dataset), policy, cells))
    return table_of(GROUPS, rows, None, lacking=lacking, **shown)


def hyperparameter_table(planned: Sequence[Planned], **of_page: Any) -> PageTable:
    """Hyperparameters of finished runs, beside the paper's selection in conf/hparams/."""
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    finished = [one for one in planned if one.run is not None and one.model in METHODS]
    for one in sorted(finished, key=lambda one: METHODS.index(one.model)):
        ours = _flat(one.config.model)
        for key, paper in _flat(hyperparameters(one.model, one.dataset).get("model", {})).items():
            shown, printed = _value(ours.get(key)), _value(paper)
            beside = f"{printed}, differs" if printed and printed != shown else ""
            row = cells.setdefault((method_label(one.model), key.rstrip("_")), {})
            row[one.dataset] = Cell(shown, beside)
    columns = [name for name in DATASETS if name in {one.dataset for one in finished}]
    rows = [Row(*place, [row.get(name, "") for name in columns]) for place, row in cells.items()]
    return table_of(map(dataset_label, columns), rows, None, **of_page)


def _flat(node: Mapping[str, Any]) -> dict[str, Any]:
    """Values of nested containers by dotted key."""
    return dict(pd.json_normalize(dict(node)).astype(object).iloc[0])


def _value(value: Any) -> str:
    if value is None:
        return ""
    return "×".join(map(str, value)) if isinstance(value, list) else f"{value:g}"
