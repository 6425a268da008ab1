"""Tables of methods beside the paper's values, of settings, and of runs that are not the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairall import FairAllError, Result, hyperparameters, load_dataset, load_initial_policy
from fairall.display import Cell, PageTable, Row, mean_std, number
from fairall.metrics import Quantity
from fairall.report import (
    LEVEL,
    UNTESTED,
    dataset_label,
    group_rows,
    method_label,
    with_references,
)
from fairall.results import paper_metrics
from reproduction.items import table_of
from reproduction.paper import acceptance_rates, synthetic_readings
from reproduction.plan import (
    BASELINE,
    DATASETS,
    EFFECTIVE,
    METHODS,
    ON_SYNTHETIC,
    OPTIMAL,
    TEMPORAL,
    Planned,
    by_model,
    interpretable,
)

MARKS = (
    "Bold: best of the data set. F: against FairLog (two-sided Wilcoxon signed-rank test, Holm-corrected "
    "over the methods of a data set and measure), R: against the best of the others (sign-flip test, "
    "corrected over all pairs of them, since the same seeds say which is the best); + significantly "
    f"better, − significantly worse (paired over seeds, p < {LEVEL:g})."
)
UNITS = (
    "×100, mean ± standard deviation over seeds. In italics the printed value, and our mean less the "
    "printed one in printed standard deviations (sd)."
)
# By beginning of the key: measures, title and note.
KINDS: dict[str, tuple[Sequence[Quantity], str, str]] = {
    "effective": (
        EFFECTIVE,
        "Effective utility and DPU, {setting}",
        f"Accumulated over all time steps, from decisions while learning. {UNITS}",
    ),
    "temporal": (
        TEMPORAL,
        "Temporal variance and mean ({kind}), {setting}",
        f"On test people, over the time steps of evaluation.window, from {{source}}. {UNITS}",
    ),
    "synthetic": (
        ON_SYNTHETIC,
        "Synthetic data at the last time step ({kind}), {policy}",
        "×100, mean ± standard deviation over seeds. In italics what the paper's figures show at t = 200, "
        "without deviations. OPT-FAIR and OPT-UNFAIR are trained on every label.",
    ),
}
SOURCES = {"expected": "acceptance probabilities", "sampled": "drawn decisions, as the paper's are"}
GROUPS = ("everybody", "S = +1", "S = −1")
SAME_RATE = 5e-5  # the paper prints percentages with two digits


def methods_table(
    family: str, planned: Sequence[Planned], initial_policy: str, protocol: str = "corrected", kind: str = ""
) -> PageTable:
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
    of, title, note = KINDS[family]
    of = [measure.sampled() for measure in of] if kind == "sampled" else of
    policy, on_synthetic = f"{initial_policy} initial policy", family == "synthetic"
    setting = f"{policy}, protocol {protocol}"
    tests = MARKS if all(interpretable(one.config.preset) for one in planned) else UNTESTED

    def reading(run: Result, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
        readings = synthetic_readings(initial_policy, run.name("model"))
        low, high = readings.get(measure.name.removesuffix("_sampled"), (None, None))
        shown = " to ".join(dict.fromkeys(f"{100 * value:g}" for value in (low, high) if value is not None))
        return shown, {"paper_low": low, "paper_high": high}

    rows, records = [], []
    for dataset, own in by_dataset(planned).items():
        commands = {one.model: one.command for one in own}
        runs = by_model(own)
        added, found = group_rows(
            dataset_label(dataset),
            runs,
            of,
            names={model: method_label(model) for model in runs},
            baseline=BASELINE,
            printed=reading if on_synthetic else _printed,
            untested=OPTIMAL,
            at_last=on_synthetic,
        )
        rows += added
        records += [
            {"dataset": dataset} | record | {"command": commands.get(record["model"])} for record in found
        ]
    words = {"kind": kind, "setting": setting, "policy": policy, "source": SOURCES.get(kind, "")}
    return table_of(
        ["seeds", *(measure.heading for measure in of)],
        rows,
        records,
        planned,
        key="_".join(filter(None, (family, initial_policy, protocol, kind))),
        title=title.format(**words),
        note=with_references(f"{note.format(**words)} {tests}", rows),
        section="Synthetic data" if on_synthetic else "Tables",
        # The printed temporal ones are from sampled decisions: only those are counted beside them.
        setting="" if on_synthetic or kind == "expected" else setting,
    )


def by_dataset(planned: Sequence[Planned]) -> dict[str, list[Planned]]:
    """Some runs by data set, in order."""
    found: dict[str, list[Planned]] = {}
    for one in planned:
        found.setdefault(one.dataset, []).append(one)
    return found


def _printed(run: Result, measure: Quantity, mean: float | None) -> tuple[str, dict[str, Any]]:
    paper = paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))
    if paper is None:
        return "", {}
    apart = (mean - paper[0]) / paper[1] if mean is not None and paper[1] > 0 else None
    shown = mean_std(*paper) + ("" if apart is None else f", {signed(apart)} sd")
    return shown, {"paper_mean": paper[0], "paper_std": paper[1], "difference_in_paper_std": apart}


def acceptance_table(datasets: Sequence[str]) -> PageTable:
    """Acceptance rates of the initial policies on the pools of some data sets."""
    rows, records, commands = [], [], []
    for dataset in datasets:
        try:
            pool = load_dataset(dataset).prepare().pool_table
        except FairAllError:
            commands.append((dataset_label(dataset), f"python -m fairall data fetch {dataset}"))
            continue
        for policy in ("lenient", "harsh"):
            accepted = load_initial_policy(policy, dataset).decide(pool)
            rates = [float(of.mean()) for of in (accepted, accepted[pool.s == 1], accepted[pool.s == -1])]
            printed = acceptance_rates(policy, dataset) or (None,) * len(GROUPS)
            cells = []
            for group, ours, paper in zip(GROUPS, rates, printed, strict=True):
                differs = ", differs" if paper is not None and abs(ours - paper) > SAME_RATE else ""
                beside = "" if paper is None else f"{100 * paper:.2f}{differs}"
                cells.append(Cell(f"{100 * ours:.2f}", beside))
                record = {"dataset": dataset, "initial_policy": policy, "group": group}
                records.append(record | {"rate": ours, "paper_rate": paper})
            rows.append(Row(dataset_label(dataset), policy, cells))
    return table_of(
        GROUPS,
        rows,
        records,
        key="acceptance",
        title="Acceptance rates of the initial policies",
        note="In per cent of the pool, from the data; in italics the printed ones. Decisions are drawn.",
        section="Settings",
        lacking=commands,
    )


def hyperparameter_table(planned: Sequence[Planned]) -> PageTable:
    """Hyperparameters of finished runs, beside the paper's selection in conf/hparams/."""
    nodes = {(one.model, one.dataset): one.config.model for one in planned if one.run is not None}
    columns = [name for name in DATASETS if any(dataset == name for _, dataset in nodes)]
    rows, records = [], []
    for model in METHODS:
        own = {dataset: flattened(nodes[model, dataset]) for dataset in columns if (model, dataset) in nodes}
        papers = {dataset: flattened(hyperparameters(model, dataset).get("model", {})) for dataset in own}
        for key in dict.fromkeys(key for values in papers.values() for key in values):
            cells = dict.fromkeys(columns, Cell())
            for dataset, values in own.items():
                ours, paper = (_value(source.get(key)) for source in (values, papers[dataset]))
                cells[dataset] = Cell(ours, f"{paper}, differs" if paper and paper != ours else "")
                record = {"model": model, "key": key, "dataset": dataset}
                records.append(record | {"value": ours, "paper": paper})
            rows.append(Row(method_label(model), key.rstrip("_"), list(cells.values())))
    return table_of(
        [dataset_label(name) for name in columns],
        rows,
        records,
        key="hyperparameters",
        title="Hyperparameters",
        note="Values of the runs; the paper's selection beside them where it differs. phase1.: of Phase I.",
        section="Settings",
    )


def flattened(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values of nested containers by dotted key."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= flattened(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
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
