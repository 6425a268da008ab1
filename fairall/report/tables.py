"""Tables of methods beside the paper's values, of settings, and of runs that are not the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf

from fairall.config.paths import configuration_root
from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.comparable import marked
from fairall.report.plan import Lacking, Requested
from fairall.report.statistics import LEVEL, standings
from fairall.report.table import Cell, Row, Table, plus_minus
from fairall.results.finished import Run
from fairall.results.paper import acceptance_rates, paper_metrics, synthetic_readings
from fairall.storage.identity import flattened

MARKS = (
    "Bold: best of the data set. F: against FairLog, R: against the best of the others; + significantly "
    "better, − significantly worse (two-sided Wilcoxon signed-rank test, paired over seeds, Holm-corrected "
    f"over the methods of a data set and measure, p < {LEVEL:g})."
)
UNITS = (
    "×100, mean (standard deviation over seeds). In italics the printed value, and our mean less the "
    "printed one in printed standard deviations (sd)."
)
ACCEPT_ALL = "accept everybody"
ACCEPT_ALL_NOTE = (
    "Accept everybody: a policy with π = 1 on the same people at the same cost, for reference, not tested; "
    "accepting nobody has 0 in every column by definition."
)
COMPARE = "python -m fairall.report compare RUN RUN"
OTHERS = (*labels.EFFECTIVE, *labels.measures("mean_utility", "mean_dpu"))
GROUPS = ("everybody", "S = +1", "S = −1")
SAME_RATE = 5e-5  # the paper prints percentages with two digits

Printed = Callable[[Run, Quantity, "float | None"], "tuple[str, dict[str, Any]]"]
"""What the paper has for a run and a measure, beside our mean: as shown, and as fields of a record."""


def effective_table(requested: Sequence[Requested], initial_policy: str, protocol: str) -> Table:
    """Effective utility and DPU after the last time step, from the decisions taken while learning."""
    return _table(
        requested,
        labels.EFFECTIVE,
        key=f"effective_{initial_policy}_{protocol}",
        title=f"Effective utility and DPU, {initial_policy} initial policy, protocol {protocol}",
        note=f"Accumulated over all time steps, from decisions while learning. {UNITS} {MARKS}",
        setting=f"{initial_policy} initial policy, protocol {protocol}",
    )


def temporal_table(
    requested: Sequence[Requested], initial_policy: str, protocol: str, *, from_sampled: bool
) -> Table:
    """Temporal variance (standard deviation over time) and mean of test utility and DPU."""
    kind = "sampled" if from_sampled else "expected"
    how = "drawn decisions, as the paper's are" if from_sampled else "acceptance probabilities"
    return _table(
        requested,
        [measure.sampled() for measure in labels.TEMPORAL] if from_sampled else labels.TEMPORAL,
        key=f"temporal_{initial_policy}_{protocol}_{kind}",
        title=f"Temporal variance and mean ({kind}), {initial_policy} initial policy, protocol {protocol}",
        note=f"On test people, over the time steps of evaluation.window, from {how}. {UNITS} {MARKS}",
        # The printed ones are from sampled decisions: only those are counted beside them.
        setting=f"{initial_policy} initial policy, protocol {protocol}" if from_sampled else "",
    )


def synthetic_table(requested: Sequence[Requested], initial_policy: str, *, from_sampled: bool) -> Table:
    """Utilities and unfairness on synthetic data at the last time step, and the optimal policies'."""
    kind = "sampled" if from_sampled else "expected"

    def reading(run: Run, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
        readings = synthetic_readings(initial_policy, run.name("model"))
        found = readings.get(measure.name.removesuffix("_sampled"))
        low, high = found or (None, None)
        shown = " to ".join(dict.fromkeys(f"{100 * value:g}" for value in found or ()))
        return shown, {"paper_low": low, "paper_high": high}

    return _table(
        requested,
        [measure.sampled() for measure in labels.SYNTHETIC] if from_sampled else labels.SYNTHETIC,
        key=f"synthetic_{initial_policy}_corrected_{kind}",
        title=f"Synthetic data at the last time step ({kind}), {initial_policy} initial policy",
        note="×100, mean (standard deviation over seeds). In italics what the paper's figures show at "
        f"t = 200, without deviations. {MARKS} OPT-FAIR and OPT-UNFAIR are trained on every label.",
        section="Synthetic data",
        printed=reading,
        at_last=True,
    )


def _printed(run: Run, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    paper = paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))
    if paper is None:
        return "", {}
    apart = (mean - paper[0]) / paper[1] if mean is not None and paper[1] > 0 else None
    shown = plus_minus(*paper) + ("" if apart is None else f", {signed(apart)} sd")
    return shown, {"paper_mean": paper[0], "paper_std": paper[1], "difference_in_paper_std": apart}


def _table(
    requested: Sequence[Requested],
    measures: Sequence[Quantity],
    *,
    note: str,
    printed: Printed = _printed,
    at_last: bool = False,
    **texts: str,
) -> Table:
    """A table with a row per finished run, data set by data set; arguments as of `group_rows`."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for dataset in dict.fromkeys(one.dataset for one in requested):
        own = {one.model: one for one in requested if one.dataset == dataset}
        runs = {model: one.run for model, one in own.items() if one.run is not None}
        names = {model: labels.method(model) for model in runs}
        group = labels.dataset(dataset)
        added = group_rows(group, runs, measures, names=names, printed=printed, at_last=at_last)
        rows += added[0]
        for record in added[1]:
            one = own.get(record["model"])
            records.append({"dataset": dataset} | record | {"command": one and one.planned.command})
    if any(row.name == ACCEPT_ALL for row in rows):
        note += f" {ACCEPT_ALL_NOTE}"
    columns = ["seeds", *(measure.heading for measure in measures)]
    lacking = Lacking.of(requested)
    return Table(note=note, columns=columns, rows=rows, records=records, lacking=lacking, **texts)


def group_rows(
    group: str,
    runs: Mapping[str, Run],
    measures: Sequence[Quantity],
    *,
    names: Mapping[str, str],
    baseline: str = labels.BASELINE,
    printed: Printed = lambda run, measure, mean: ("", {}),
    at_last: bool = False,
) -> tuple[list[Row], list[dict[str, Any]]]:
    """Rows and records of comparable runs, with a last row "accept everybody" where a run measured it.

    Args:
        group: title of the group.
        runs: by name.
        measures: one column each, after the number of seeds.
        names: of the runs, as shown.
        baseline: name of the run that the others are compared with.
        printed: what stands beside each value.
        at_last: whether values are those of metrics.csv at the last time step, not of summary.json.
    """
    columns: dict[str, dict[str, dict[str, Any]]] = {}
    for measure in measures:
        read = Run.last if at_last else Run.per_seed
        values = {name: read(run, measure.name) for name, run in runs.items()}
        known = {name: series for name, series in values.items() if len(series)}
        columns[measure.name] = standings(known, measure, baseline, tuple(labels.OPTIMAL))
    rows, records = [], []
    for name, run in runs.items():
        cells = [Cell(str(len(run.seeds)))]
        for measure in measures:
            standing = columns[measure.name].get(name)
            beside, further = printed(run, measure, standing["mean"] if standing else None)
            cells.append(Cell.of(standing, beside))
            if standing:
                who = {"model": run.name("model"), "run": run.path.name, "measure": measure.name}
                records.append(who | standing | further)
        rows.append(Row(group, names[name], cells))
    everybody = {
        measure.name: accept_all(list(runs.values()), f"mean_{measure.name}" if at_last else measure.name)
        for measure in measures
    }
    if any(everybody.values()):
        shown = [Cell(plus_minus(one["mean"], one["std"]) if one else "") for one in everybody.values()]
        rows.append(Row(group, ACCEPT_ALL, [Cell(), *shown]))
        who = {"model": "accept_all", "run": "accept_all"}
        for name, one in everybody.items():
            records += [who | {"measure": name, "mean": one["mean"], "std": one["std"]}] if one else []
    return rows, records


def accept_all(runs: Sequence[Run], measure: str) -> dict[str, Any] | None:
    """A measure of accepting everybody, from the first of some comparable runs that has it.

    Returns:
        `mean` and `std` over seeds, plain units; `std` None where it does not vary. None where no run has it.
    """
    return next((found for run in runs if (found := run.accept_all(measure)) is not None), None)


def signed(value: float) -> str:
    """A number with one decimal and its sign."""
    return "0.0" if f"{abs(value):.1f}" == "0.0" else f"{value:+.1f}".replace("-", "−")


def acceptance_table(datasets: Sequence[str]) -> Table:
    """Acceptance rates of the initial policies on the pools of some data sets."""
    rows, records, commands = [], [], []
    for dataset in datasets:
        measured = _acceptance(dataset)
        if isinstance(measured, str):
            commands.append((labels.dataset(dataset), measured))
            continue
        for policy, rates in measured.items():
            printed = acceptance_rates(policy, dataset) or (None,) * len(GROUPS)
            cells = []
            for group, ours, paper in zip(GROUPS, rates, printed, strict=True):
                differs = ", differs" if paper is not None and abs(ours - paper) > SAME_RATE else ""
                cells.append(
                    Cell(f"{100 * ours:.2f}", "" if paper is None else f"{100 * paper:.2f}{differs}")
                )
                record = {"dataset": dataset, "initial_policy": policy, "group": group}
                records.append(record | {"rate": ours, "paper_rate": paper})
            rows.append(Row(labels.dataset(dataset), policy, cells))
    return Table(
        "acceptance",
        "Acceptance rates of the initial policies",
        "In per cent of the pool, from the data; in italics the printed ones. Decisions are drawn.",
        list(GROUPS),
        rows,
        records,
        "Settings",
        Lacking(commands, len(datasets), "data set"),
    )


def _acceptance(dataset: str) -> dict[str, list[float]] | str:
    """Rates of `GROUPS` by initial policy; the command that fetches the data where they are missing."""
    from fairall.config.compose import typed_config
    from fairall.config.target import target_class
    from fairall.data.load import load_dataset
    from fairall.data.raw.config import RawTableConfig
    from fairall.data.raw.files import find

    raw = typed_config(f"dataset={dataset}").dataset
    # A report should not start a download.
    if isinstance(raw, RawTableConfig) and find(raw) is None:
        terms = " dataset.accept_terms=true" if raw.download.terms else ""
        return f"python -m fairall.data fetch {dataset}{terms}"
    people = load_dataset(dataset).prepare().pool_table
    rates = {}
    for name in ("lenient", "harsh"):
        config = typed_config(f"dataset={dataset}", f"initial_policy={name}").initial_policy
        accepted = target_class(config, "initial_policy")(config).decide(people)
        groups = (accepted, accepted[people.s == 1], accepted[people.s == -1])
        rates[name] = [float(group.mean()) for group in groups]
    return rates


def hyperparameter_table(requested: Sequence[Requested]) -> Table:
    """Hyperparameters of finished runs, beside the paper's selection in conf/hparams/."""
    nodes = {
        (one.model, one.dataset): one.planned.config["model"] for one in requested if one.run is not None
    }
    columns = [name for name in labels.DATASETS if any(dataset == name for _, dataset in nodes)]
    rows, records = [], []
    for model in labels.METHODS:
        own = {dataset: flattened(nodes[model, dataset]) for dataset in columns if (model, dataset) in nodes}
        papers = {dataset: _selected(model, dataset) for dataset in own}
        for key in dict.fromkeys(key for values in papers.values() for key in values):
            cells = dict.fromkeys(columns, Cell())
            for dataset, values in own.items():
                ours, paper = (_value(source.get(key)) for source in (values, papers[dataset]))
                cells[dataset] = Cell(ours, f"{paper}, differs" if paper and paper != ours else "")
                records.append(
                    {"model": model, "key": key, "dataset": dataset, "value": ours, "paper": paper}
                )
            rows.append(Row(labels.method(model), key.rstrip("_"), list(cells.values())))
    return Table(
        "hyperparameters",
        "Hyperparameters",
        "Values of the runs; the paper's selection beside them where it differs. phase1.: of Phase I.",
        [labels.dataset(name) for name in columns],
        rows,
        records,
        "Settings",
    )


def _selected(model: str, dataset: str) -> dict[str, Any]:
    """The paper's hyperparameters by dotted key of the `model` node."""
    file = configuration_root() / "conf" / "hparams" / model / f"{dataset}.yaml"
    return flattened(OmegaConf.to_container(OmegaConf.load(file).model)) if file.exists() else {}


def _value(value: Any) -> str:
    if value is None:
        return ""
    return "×".join(map(str, value)) if isinstance(value, list) else f"{value:g}"


def other_runs(runs: Sequence[Run]) -> Table:
    """A row per run: method, initial policy, cost, seeds, main measures and folder, by data set."""
    rows, records = [], []
    for run in sorted(runs, key=lambda run: (run.name("dataset"), run.cost, run.name("model"), run.path)):
        # The temporary copy of a run from MLflow is deleted afterwards: show its id.
        where = str(run.path) if run.path.is_dir() else run.path.name
        values = {measure.name: run.per_seed(measure.name) for measure in OTHERS}
        shown = [
            "" if series.empty else plus_minus(series.mean(), series.std() if len(series) > 1 else None)
            for series in values.values()
        ]
        setting = [run.name("initial_policy"), f"{run.cost:g}", str(len(run.seeds))]
        name = marked(labels.method(run.name("model")), run)
        rows.append(
            Row(labels.dataset(run.name("dataset")), name, [Cell(s) for s in (*setting, *shown, where)])
        )
        records.append({
            **{group: run.name(group) for group in ("dataset", "model", "initial_policy")},
            "cost": run.cost,
            "preset": run.config.get("preset"),
            "seeds": len(run.seeds),
            **{key: None if series.empty else float(series.mean()) for key, series in values.items()},
            "folder": where,
        })  # fmt: skip
    return Table(
        "other_runs",
        "Runs that are not in the paper's tables and figures",
        f"×100, mean (standard deviation over seeds). To compare runs: {COMPARE}",
        ["initial policy", "cost", "seeds", *(measure.heading for measure in OTHERS), "folder"],
        rows,
        records,
    )
