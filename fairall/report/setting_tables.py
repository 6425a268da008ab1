"""Tables of settings: acceptance rates of the initial policies, and hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairall.report import labels
from fairall.report.plan import Planned
from fairall.report.table import Cell, Row, Table
from fairall.results.paper import acceptance_rates, selected_hyperparameters

INITIAL_POLICIES = ("lenient", "harsh")
GROUPS = ("everybody", "S = +1", "S = −1")
SAME_RATE = 5e-5  # the paper prints percentages with two digits


def acceptance_table(planned: Sequence[Planned]) -> Table:
    """Acceptance rates of the initial policies on the pools of the planned runs' data sets."""
    rows, records, commands = [], [], []
    for name in [name for name in labels.DATASETS if any(one.name("dataset") == name for one in planned)]:
        measured = _acceptance(name)
        if isinstance(measured, str):
            commands.append(measured)
        for policy in INITIAL_POLICIES:
            printed = acceptance_rates(policy, name)
            cells = []
            for i, group in enumerate(GROUPS):
                ours = None if isinstance(measured, str) else measured[policy][i]
                paper = None if printed is None else printed[i]
                differs = ours is not None and paper is not None and abs(ours - paper) > SAME_RATE
                cells.append(
                    Cell(
                        "" if ours is None else f"{100 * ours:.2f}",
                        None if paper is None else f"{100 * paper:.2f}",
                        "differs" if differs else None,
                        missing=ours is None,
                    )
                )
                record = {"dataset": name, "initial_policy": policy, "group": group}
                records.append(record | {"rate": ours, "paper_rate": paper})
            rows.append(Row(labels.dataset(name), policy, cells))
    return Table(
        "acceptance",
        "Acceptance rates of the initial policies",
        "In per cent of the pool, from the data; in italics the printed ones. Decisions are drawn.",
        list(GROUPS),
        rows,
        "Settings",
        records=records,
        commands=commands,
    )


def _acceptance(dataset: str) -> dict[str, tuple[float, ...]] | str:
    """Rates of `GROUPS` by initial policy; the command that fetches the data where they are missing."""
    from fairall.config.compose import typed_config
    from fairall.config.target import target_class
    from fairall.data.load import load_dataset
    from fairall.data.raw.config import RawTableConfig
    from fairall.data.raw.files import find

    configs = {
        policy: typed_config(f"dataset={dataset}", f"initial_policy={policy}") for policy in INITIAL_POLICIES
    }
    raw = configs[INITIAL_POLICIES[0]].dataset
    # A report should not start a download.
    if isinstance(raw, RawTableConfig) and find(raw) is None:
        terms = " dataset.accept_terms=true" if raw.download.terms else ""
        return f"python -m fairall.data fetch {dataset}{terms}"
    people = load_dataset(dataset).prepare().pool_table
    rates = {}
    for name, config in configs.items():
        policy = target_class(config.initial_policy, "initial_policy")(config.initial_policy)
        accepted = policy.decide(people)
        groups = (accepted, accepted[people.s == 1], accepted[people.s == -1])
        rates[name] = tuple(float(group.mean()) for group in groups)
    return rates


def hyperparameter_table(planned: Sequence[Planned]) -> Table:
    """Hyperparameters of the planned runs, beside the paper's selection."""
    printed = selected_hyperparameters()
    models = {
        (one.name("model"), one.name("dataset")): one.config["model"]
        for one in planned
        if one.name("model") in printed
    }
    columns = [name for name in labels.DATASETS if any(dataset == name for _, dataset in models)]
    rows, records = [], []
    for model in labels.METHODS:
        keys = dict.fromkeys(key for values in printed[model].values() for key in values)
        for key in keys:
            cells = []
            for dataset in columns:
                node = models.get((model, dataset))
                ours = None if node is None else _at(node, key)
                paper = printed[model].get(dataset, {}).get(key)
                differs = ours is not None and paper is not None and ours != paper
                cells.append(
                    Cell(_value(ours), _value(paper) if differs else None, "differs" if differs else None)
                )
                records.append(
                    {
                        "model": model,
                        "key": key,
                        "dataset": dataset,
                        "value": _value(ours),
                        "paper": _value(paper),
                    }
                )
            rows.append(Row(labels.method(model), key.rstrip("_"), cells))
    return Table(
        "hyperparameters",
        "Hyperparameters",
        "Values of the runs; the paper's selection beside them where it differs. phase1.: of Phase I.",
        [labels.dataset(name) for name in columns],
        rows,
        "Settings",
        records=records,
    )


def _at(node: dict[str, Any], key: str) -> Any:
    for part in key.split("."):
        node = node[part]
    return node


def _value(value: Any) -> str:
    if value is None:
        return ""
    return "×".join(map(str, value)) if isinstance(value, list) else f"{value:g}"
