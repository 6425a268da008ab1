"""Tables of methods beside the paper's values, of settings, and of runs that are not the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
        commands = {one.model: one.command for one in own}
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
        records += [
            {"dataset": dataset} | record | {"command": commands.get(record["model"])} for record in found
        ]
    compared = all(interpretable(one.config.preset) for one in planned)
    tests = words_of("report")["marks"].format(level=LEVEL) if compared else UNTESTED
    columns = ["seeds", *(measure.heading for measure in of)]
    return table_of(columns, rows, records, planned, note=with_references(f"{note} {tests}", rows), **shown)


def by_dataset(planned: Iterable[Planned]) -> dict[str, list[Planned]]:
    """Some runs by data set, in order."""
    planned = [*planned]
    names = dict.fromkeys(one.dataset for one in planned)
    return {name: [one for one in planned if one.dataset == name] for name in names}


def _read(run: Result, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    """Readings of the paper's figures beside a value."""
    readings = synthetic_readings(run.name("initial_policy"), run.name("model"))
    ends = readings.get(measure.name.removesuffix("_sampled"), ())
    shown = " to ".join(dict.fromkeys(f"{100 * value:g}" for value in ends))
    return shown, dict(zip(("paper_low", "paper_high"), ends or (None, None), strict=True))


def _printed(run: Result, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    """Printed values beside a value."""
    paper = paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))
    if paper is None:
        return "", {}
    apart = (mean - paper[0]) / paper[1] if mean is not None and paper[1] > 0 else None
    shown = mean_std(*paper) + ("" if apart is None else f", {signed(apart)} sd")
    return shown, {"paper_mean": paper[0], "paper_std": paper[1], "difference_in_paper_std": apart}


def acceptance_table(planned: Sequence[Planned], **shown: Any) -> PageTable:
    """Acceptance rates of the initial policies on the pools of the data sets that have a finished run."""
    rows, records, lacking = [], [], []
    for dataset in (name for name in DATASETS if any(one.run for one in planned if one.dataset == name)):
        try:
            pool = load_dataset(dataset).prepare().pool_table
        except FairAllError:
            lacking.append((dataset_label(dataset), f"python -m fairall data fetch {dataset}"))
            continue
        for policy in ("lenient", "harsh"):
            accepted = load_initial_policy(policy, dataset).decide(pool)
            rates = [float(of.mean()) for of in (accepted, accepted[pool.s == 1], accepted[pool.s == -1])]
            cells = []
            for group, ours, paper in zip(GROUPS, rates, acceptance_rates(policy, dataset), strict=True):
                differs = ", differs" if abs(ours - paper) > SAME_RATE else ""
                cells.append(Cell(f"{100 * ours:.2f}", f"{100 * paper:.2f}{differs}"))
                record = {"dataset": dataset, "initial_policy": policy, "group": group}
                records.append(record | {"rate": ours, "paper_rate": paper})
            rows.append(Row(dataset_label(dataset), policy, cells))
    return table_of(GROUPS, rows, records, lacking=lacking, **shown)


def hyperparameter_table(planned: Sequence[Planned], **shown: Any) -> PageTable:
    """Hyperparameters of finished runs, beside the paper's selection in conf/hparams/."""
    nodes = {(one.model, one.dataset): one.config.model for one in planned if one.run is not None}
    columns = [name for name in DATASETS if any(dataset == name for _, dataset in nodes)]
    rows, records = [], []
    for model in METHODS:
        own = {dataset: _flat(nodes[model, dataset]) for dataset in columns if (model, dataset) in nodes}
        papers = {dataset: _flat(hyperparameters(model, dataset).get("model", {})) for dataset in own}
        for key in dict.fromkeys(key for values in papers.values() for key in values):
            cells = dict.fromkeys(columns, Cell())
            for dataset in own:
                ours, paper = (_value(source[dataset].get(key)) for source in (own, papers))
                cells[dataset] = Cell(ours, f"{paper}, differs" if paper and paper != ours else "")
                record = {"model": model, "key": key, "dataset": dataset}
                records.append(record | {"value": ours, "paper": paper})
            rows.append(Row(method_label(model), key.rstrip("_"), [*cells.values()]))
    return table_of([*map(dataset_label, columns)], rows, records, **shown)


def _flat(node: Mapping[str, Any]) -> dict[str, Any]:
    """Values of nested containers by dotted key."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= (
            {f"{key}.{k}": v for k, v in _flat(value).items()} if isinstance(value, Mapping) else {key: value}
        )
    return found


def _value(value: Any) -> str:
    if value is None:
        return ""
    return "×".join(map(str, value)) if isinstance(value, list) else f"{value:g}"


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign.

    Examples:
        >>> signed(1.26), signed(-1.0), signed(-0.01)
        ('+1.3', '−1.0', '0.0')
    """
    shown = number(value, 1, digits)
    return f"+{shown}" if value > 0 and float(shown) else shown
