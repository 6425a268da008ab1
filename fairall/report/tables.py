"""Tables of methods beside the paper's values, of settings, and of runs that are not the paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.comparable import UNTESTED
from fairall.report.plan import Planned, missing_runs
from fairall.report.statistics import LEVEL, standings
from fairall.results.finished import Run
from fairall.results.interpretable import interpretable, marked
from fairall.results.paper import acceptance_rates, paper_metrics, synthetic_readings
from fairall.results.references import REFERENCES
from fairall.results.table import Cell, Lacking, Row, Table, plus_minus
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
OVER_TIME = f"On test people, over the time steps of evaluation.window, from {{}}. {UNITS}"
AT_LAST = (
    "×100, mean (standard deviation over seeds). In italics what the paper's figures show at "
    "t = 200, without deviations. OPT-FAIR and OPT-UNFAIR are trained on every label."
)
# By beginning of the key: measures, title and note.
KINDS: dict[str, tuple[Sequence[Quantity], str, str]] = {
    "effective": (
        labels.EFFECTIVE,
        "Effective utility and DPU, {setting}",
        f"Accumulated over all time steps, from decisions while learning. {UNITS}",
    ),
    "temporal": (labels.TEMPORAL, "Temporal variance and mean ({kind}), {setting}", OVER_TIME),
    "synthetic": (labels.SYNTHETIC, "Synthetic data at the last time step ({kind}), {policy}", AT_LAST),
}
SOURCES = {"expected": "acceptance probabilities", "sampled": "drawn decisions, as the paper's are"}
# Policies of `references.REFERENCES` with a row; accepting nobody has 0 in every column.
WITH_ROW = ("accept_all", "oracle", "oracle_fair")
REFERENCE_NOTES = {
    "accept_all": "Accept everybody: a policy with π = 1 on the same people at the same cost, for reference, "
    "not tested; accepting nobody has 0 in every column by definition.",
    "oracle": "Knows every label: a logistic regression on the labels of all training rows, accepted or "
    "not; it accepts where p ≥ c, or, with parity, at one rate in both groups. Of real data its effective "
    "measures are on the people whom it was fitted to.",
}
COMPARE = "python -m fairall.report compare RUN RUN"
OTHERS = (*labels.EFFECTIVE, *labels.measures("mean_utility", "mean_dpu"))
GROUPS = ("everybody", "S = +1", "S = −1")
SAME_RATE = 5e-5  # the paper prints percentages with two digits

Printed = Callable[[Run, Quantity, "float | None"], "tuple[str, dict[str, Any]]"]
"""What the paper has for a run and a measure, beside our mean: as shown, and as fields of a record."""
Filled = tuple[list[Row], list[dict[str, Any]]]
"""Rows, and a record per value."""


def methods_table(
    family: str, planned: Sequence[Planned], initial_policy: str, protocol: str = "corrected", kind: str = ""
) -> Table:
    """Measures of methods, data set by data set, a row per finished run.

    Args:
        family: "effective": utility and DPU of the decisions taken while learning; "temporal": temporal
            variance (standard deviation over time) and mean of test utility and DPU; "synthetic": utilities
            and unfairness on synthetic data at the last time step.
        planned: runs, finished or missing, of one initial policy and protocol.
        initial_policy: its name.
        protocol: its name.
        kind: "expected" or "sampled"; empty for the effective measures.
    """
    measures, title, note = KINDS[family]
    measures = [measure.sampled() for measure in measures] if kind == "sampled" else measures
    policy, on_synthetic = f"{initial_policy} initial policy", family == "synthetic"
    setting = f"{policy}, protocol {protocol}"
    tests = MARKS if all(interpretable(one.config) for one in planned) else UNTESTED

    def reading(run: Run, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
        readings = synthetic_readings(initial_policy, run.name("model"))
        low, high = readings.get(measure.name.removesuffix("_sampled"), (None, None))
        shown = " to ".join(dict.fromkeys(f"{100 * value:g}" for value in (low, high) if value is not None))
        return shown, {"paper_low": low, "paper_high": high}

    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for dataset in datasets_of(planned):
        own = {one.model: one for one in planned if one.dataset == dataset}
        runs = {model: one.run for model, one in own.items() if one.run is not None}
        names = {model: labels.method(model) for model in runs}
        printed = reading if on_synthetic else _printed
        added, found = group_rows(
            labels.dataset(dataset), runs, measures, names=names, printed=printed, at_last=on_synthetic
        )
        rows += added
        for record in found:
            one = own.get(record["model"])
            records.append({"dataset": dataset} | record | {"command": one and one.command})
    return Table(
        key="_".join(filter(None, (family, initial_policy, protocol, kind))),
        title=title.format(kind=kind, setting=setting, policy=policy),
        note=with_references(f"{note.format(SOURCES.get(kind))} {tests}", rows),
        section="Synthetic data" if on_synthetic else "Tables",
        # The printed temporal ones are from sampled decisions: only those are counted beside them.
        setting="" if on_synthetic or kind == "expected" else setting,
        columns=["seeds", *(measure.heading for measure in measures)],
        rows=rows,
        records=records,
        lacking=missing_runs(planned),
    )


def datasets_of(planned: Sequence[Planned]) -> list[str]:
    """Data sets of some runs in order, each once."""
    return list(dict.fromkeys(one.dataset for one in planned))


def _printed(run: Run, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    paper = paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))
    if paper is None:
        return "", {}
    apart = (mean - paper[0]) / paper[1] if mean is not None and paper[1] > 0 else None
    shown = plus_minus(*paper) + ("" if apart is None else f", {signed(apart)} sd")
    return shown, {"paper_mean": paper[0], "paper_std": paper[1], "difference_in_paper_std": apart}


def group_rows(
    group: str,
    runs: Mapping[str, Run],
    measures: Sequence[Quantity],
    *,
    names: Mapping[str, str],
    baseline: str = labels.BASELINE,
    printed: Printed = lambda run, measure, mean: ("", {}),
    at_last: bool = False,
) -> Filled:
    """Rows and records of comparable runs; last, rows of the references that a run measured.

    Args:
        group: title of the group.
        runs: by name; not compared where their numbers may not be interpreted.
        measures: one column each, after the number of seeds.
        names: of the runs, as shown.
        baseline: name of the run that the others are compared with.
        printed: what stands beside each value.
        at_last: whether values are those of metrics.csv at the last time step, not of summary.json.
    """
    read = Run.last if at_last else Run.per_seed
    compared = all(interpretable(run.config) for run in runs.values())
    uncompared = tuple(labels.OPTIMAL) if compared else tuple(runs)
    columns: dict[str, dict[str, dict[str, Any]]] = {}
    for measure in measures:
        values = {name: read(run, measure.name) for name, run in runs.items()}
        known = {name: series for name, series in values.items() if len(series)}
        columns[measure.name] = standings(known, measure, baseline, uncompared)
    rows, records = [], []
    for name, run in runs.items():
        cells = [Cell(str(len(run.seeds)))]
        for measure in measures:
            standing = columns[measure.name].get(name)
            mean = standing["mean"] if standing else None
            beside, further = printed(run, measure, mean) if compared else ("", {})
            cells.append(_judged(standing, beside))
            if standing:
                who = {"model": run.name("model"), "run": run.path.name, "measure": measure.name}
                records.append(who | standing | further)
        rows.append(Row(group, names[name], cells))
    for policy in WITH_ROW:
        found = {}
        for measure in measures:
            name = f"mean_{measure.name}" if at_last else measure.name
            found[measure.name] = reference_measure(runs.values(), policy, name)
        if any(found.values()):
            shown = [Cell(plus_minus(one["mean"], one["std"]) if one else "") for one in found.values()]
            rows.append(Row(group, REFERENCES[policy], [Cell(), *shown]))
            who = {"model": policy, "run": policy}
            for name, one in found.items():
                records += [who | {"measure": name, "mean": one["mean"], "std": one["std"]}] if one else []
    return rows, records


def with_references(note: str, rows: Iterable[Row]) -> str:
    """A note on rows, with a sentence on each reference that has a row."""
    names = {row.name for row in rows}
    said = [text for policy, text in REFERENCE_NOTES.items() if REFERENCES[policy] in names]
    return " ".join([note, *said])


def reference_measure(runs: Iterable[Run], policy: str, measure: str) -> dict[str, Any] | None:
    """A measure of a policy of `references.REFERENCES`, from the first of some comparable runs that has it.

    Returns:
        `mean` and `std` over seeds, plain units; `std` None where it does not vary. None where no run has it.
    """
    return next((found for run in runs if (found := run.reference(policy, measure)) is not None), None)


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
                beside = "" if paper is None else f"{100 * paper:.2f}{differs}"
                cells.append(Cell(f"{100 * ours:.2f}", beside))
                record = {"dataset": dataset, "initial_policy": policy, "group": group}
                records.append(record | {"rate": ours, "paper_rate": paper})
            rows.append(Row(labels.dataset(dataset), policy, cells))
    return Table(
        key="acceptance",
        title="Acceptance rates of the initial policies",
        note="In per cent of the pool, from the data; in italics the printed ones. Decisions are drawn.",
        section="Settings",
        columns=GROUPS,
        rows=rows,
        records=records,
        lacking=Lacking(commands, len(datasets), "data set"),
    )


def _acceptance(dataset: str) -> dict[str, list[float]] | str:
    """Rates of `GROUPS` by initial policy; the command that fetches the data where they are missing."""
    from fairall.config.compose import typed_config
    from fairall.data.load import load_dataset
    from fairall.data.raw.files import RawTableConfig, find

    raw = typed_config(f"dataset={dataset}").dataset
    # A report should not start a download.
    if isinstance(raw, RawTableConfig) and find(raw) is None:
        terms = " dataset.accept_terms=true" if raw.download.terms else ""
        return f"python -m fairall.data fetch {dataset}{terms}"
    people = load_dataset(dataset).prepare().pool_table
    rates = {}
    for name in ("lenient", "harsh"):
        config = typed_config(f"dataset={dataset}", f"initial_policy={name}").initial_policy
        accepted = config.build().decide(people)
        groups = (accepted, accepted[people.s == 1], accepted[people.s == -1])
        rates[name] = [float(group.mean()) for group in groups]
    return rates


def hyperparameter_table(planned: Sequence[Planned]) -> Table:
    """Hyperparameters of finished runs, beside the paper's selection in conf/hparams/."""
    nodes = {(one.model, one.dataset): one.config["model"] for one in planned if one.run is not None}
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
                record = {"model": model, "key": key, "dataset": dataset}
                records.append(record | {"value": ours, "paper": paper})
            rows.append(Row(labels.method(model), key.rstrip("_"), list(cells.values())))
    return Table(
        key="hyperparameters",
        title="Hyperparameters",
        note="Values of the runs; the paper's selection beside them where it differs. phase1.: of Phase I.",
        section="Settings",
        columns=[labels.dataset(name) for name in columns],
        rows=rows,
        records=records,
    )


def _selected(model: str, dataset: str) -> dict[str, Any]:
    """The paper's hyperparameters by dotted key of the `model` node."""
    from fairall.config.sources import hyperparameters

    selected = hyperparameters(model, dataset).get("model")
    return flattened(selected) if selected else {}


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
        measured = {measure.name: run.per_seed(measure.name) for measure in OTHERS}
        shown = [
            plus_minus(s.mean(), s.std() if len(s) > 1 else None) if len(s) else "" for s in measured.values()
        ]
        texts = [run.name("initial_policy"), f"{run.cost:g}", str(len(run.seeds)), *shown, where]
        name = marked(labels.method(run.name("model")), run.config)
        rows.append(Row(labels.dataset(run.name("dataset")), name, [Cell(text) for text in texts]))
        records.append({
            **{group: run.name(group) for group in ("dataset", "model", "initial_policy")},
            "cost": run.cost, "preset": run.config["preset"], "seeds": len(run.seeds),
            **{key: float(s.mean()) if len(s) else None for key, s in measured.items()},
            "folder": where,
        })  # fmt: skip
    return Table(
        key="other_runs",
        title="Runs that are not in the paper's tables and figures",
        note=f"×100, mean (standard deviation over seeds). To compare runs: {COMPARE}",
        columns=["initial policy", "cost", "seeds", *(measure.heading for measure in OTHERS), "folder"],
        rows=rows,
        records=records,
    )


def _judged(standing: Mapping[str, Any] | None, beside: str = "") -> Cell:
    """A cell with a standing, of `statistics.standings`, beside a printed value."""
    if standing is None:
        return Cell(beside=beside)
    marks, tests = [], []
    for letter, role in (("F", "baseline"), ("R", "rival")):
        p = standing.get(f"p_{role}")
        if p is not None:
            better = standing[f"better_than_{role}"]
            tests.append(f"{'better' if better else 'worse'} than {standing[role]}, p = {p:.3g}")
            marks += [f"{letter}{'+' if better else '−'}"] if p < LEVEL else []
    shown = plus_minus(standing["mean"], standing["std"])
    return Cell(shown, beside, standing["best"], " ".join(marks), "; ".join(tests))
