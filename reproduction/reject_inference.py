"""Methods of reject inference where labels are known and masked: the study of reject_inference.yaml."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split

from fairall import FairAllError, load_dataset, places
from fairall.display import (
    BLUE,
    GREY,
    ORANGE,
    Item,
    PageFigure,
    PageTable,
    Row,
    handles_of,
    legend_below,
    mean_interval,
    number,
    write,
)
from fairall.metrics import Spread
from fairall.report import dataset_label
from fairall.sklearn import SelectiveLabelsClassifier
from reproduction.items import difference_of, grid_of, table_of
from reproduction.pages import publish, refuse

COMMAND = "reject_inference"
OURS, THEIRS = "FairAll", "rejectkit"
ORACLE, NAIVE = "Every label", "Accepted only"
SELECTIONS = {"mar": "by features", "mnar": "by features and the label", "cutoff": "by a score"}
PARITY = "fairness=demographic_parity"
KEYS = ["selection", "code", "method"]
MEASURES = ("auc", "ks", "utility", "parity_utility")
MEASURED = {"auc": "AUC", "utility": "utility"}  # shown by data set and drawn
CLEAR = 5e-3  # gap of AUC between oracle and accepted only from which on rejectkit gives a recovery
Key = tuple[str, str, str]


class Masked(NamedTuple):
    """People of a data set, masked as by rejectkit: arrays of T people for training and of M for the test.

    Attributes:
        cost: c of the data set.
        x: standardised features, one column per category, shapes (T, F) and (M, F).
        s: sensitive attribute in {−1, +1}, shapes (T,) and (M,).
        label: in {0, 1}, shapes (T,) and (M,); rejectkit's is 1 − label.
        accepted: who of those for training keeps the label, shape (T,), bool.
    """

    cost: float
    x: list[np.ndarray]
    s: list[np.ndarray]
    label: list[np.ndarray]
    accepted: np.ndarray


@cache
def axes() -> dict[str, Any]:
    """The contents of reject_inference.yaml, its data sets as a list."""
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("reject_inference.yaml").read_text())
    return found | {"dataset": found["dataset"].split(",")}


def rejectkit() -> Any:
    """The package, whose code is run beside ours.

    Raises:
        FairAllError: where it is not installed.
    """
    try:
        return import_module("rejectkit")
    except ImportError as error:
        raise FairAllError(f"{COMMAND}: rejectkit is missing; pip install rejectkit==0.3.0") from error


def reject_inference(
    overrides: Sequence[str], folder: Path | None = None, into: Sequence[Path] = (), jobs: int | None = None
) -> bool:
    """Fit all methods under all masks, and write a page of them; what has been fitted is kept.

    Args:
        overrides: `dataset=` and `selection=` pick from the axes; others are of `places`.
        folder: of the page; None: `reject_inference` in outputs_dir.
        into: pages of the documentation with blocks to fill.
        jobs: without effect; it is one process of some minutes.

    Returns:
        Whether all data sets could be read.

    Raises:
        FairAllError: where rejectkit is missing, or a word picks nothing.
    """
    words = [word.partition("=") for word in overrides]
    picked = {key: values.split(",") for key, _, values in words if key in ("dataset", "selection")}
    config = places(["".join(word) for word in words if word[0] not in picked])
    refuse(into, config)
    rejectkit()
    for key, values in picked.items():
        if unknown := [value for value in values if value not in axes()[key]]:
            raise FairAllError(f"{key}={unknown[0]}: not possible; there are {', '.join(axes()[key])}")
    chosen, folder = axes() | picked, folder or Path(config.outputs_dir) / COMMAND
    found, missing = [], []
    for dataset, selection in product(chosen["dataset"], chosen["selection"]):
        path = folder / "fits" / f"{dataset}_{selection}.csv"
        try:
            if not path.exists():
                rows = pd.DataFrame(fits(dataset, selection))
                write(path, rows.to_csv(index=False, float_format="%.6f"))
                print(f"{dataset}, {selection}: {len(rows)} fits", flush=True)
            found.append(pd.read_csv(path).assign(dataset=dataset, selection=selection))
        except FairAllError as error:
            print(f"{dataset}, {selection}: left out ({error})", flush=True)
            missing.append((f"{dataset} {selection}", f"python -m fairall data fetch {dataset}"))
    items = items_of(pd.concat(found), missing) if found else []
    publish(COMMAND, "FairAll: reject inference", {"": items}, config, folder=folder, into=into)
    return not missing


def fits(dataset: str, selection: str) -> Iterator[dict[str, Any]]:
    """A row per random state, code and method, with its measures on test people."""
    for state in range(axes()["states"]):
        yield from judged(masked(dataset, selection, state), state)


def masked(dataset: str, selection: str, state: int) -> Masked:
    """People of a data set with the split and the mask that rejectkit's benchmark makes of them.

    Raises:
        FairAllError: where the data cannot be read.
    """
    source, study = load_dataset(dataset), axes()
    table = source.table()
    rows = np.random.default_rng(state).permutation(len(table))[: study["most"]]
    categories = [one.name for one in table.schema if one.kind.name == "CATEGORICAL"]
    x = pd.get_dummies(table.x[table.schema.names].iloc[rows], columns=categories).to_numpy(float)
    x = x[:, x.std(0) > 0]
    x = (x - x.mean(0)) / x.std(0)
    s, label = table.s[rows], table.label[rows].astype(int)
    given = {"test_size": study["test_size"], "random_state": state}
    parts = train_test_split(x, s, label, stratify=1 - label, **given)
    sides = parts[:2], parts[2:4], parts[4:]
    weaker = study["weaker"] if selection == "mnar" else {}
    benchmark = rejectkit().MaskedRejectBenchmark(
        selection,
        accept_rate=study["accept_rate"],
        selection_strength=weaker.get(dataset, study["strength"]),
        **given,
    )
    x, s, label = (train for train, _ in sides)
    return Masked(source.config.cost, *sides, benchmark._accept_mask(np.column_stack([x, s]), 1 - label))


def judged(people: Masked, state: int) -> Iterator[dict[str, Any]]:
    """A row per code and method."""
    for code, fit in ((OURS, ours), (THEIRS, theirs)):
        for method, of in axes()[code].items():
            measures = measured(people, *fit(people, people.accepted | (method == ORACLE), of, state))
            yield {"state": state, "code": code, "method": method} | measures


def ours(people: Masked, known: np.ndarray, of: Mapping[str, Any], state: int) -> list[np.ndarray]:
    """p(label = 1) of test people by a method of FairAll, and π with equal acceptance rates, shapes (M,)."""
    train, test = (pd.DataFrame(x).add_prefix("x") for x in people.x)
    fitted = SelectiveLabelsClassifier(
        of["model"],
        hyperparameters=of.get("parameters"),
        cost=people.cost,
        random_state=state,
        kinds=dict.fromkeys(train, "real"),
        words=[PARITY],
    )
    label = np.where(known, people.label[0], np.nan)
    # Warnings of overlap, which a cut-off has none of.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        fitted.fit(train, label, accepted=known, sensitive_features=people.s[0])
        predicted = (fitted.predict_proba, fitted.decision_proba)
        return [predict(test, sensitive_features=people.s[1])[:, 1] for predict in predicted]


def theirs(people: Masked, known: np.ndarray, of: Mapping[str, Any], _: int) -> list[np.ndarray]:
    """p(label = 1) of test people by a method of rejectkit, as its benchmark fits it, shape (M,)."""
    train, test = (np.column_stack(seen) for seen in zip(people.x, people.s, strict=True))
    package, method, rejected = rejectkit(), of.get("method"), [train[~known]]
    model: Any = LogisticRegression(max_iter=1000)
    if method is None:
        rejected = []
    elif method == "heckman":
        model = package.HeckmanClassifier(outcome_estimator=model)
    else:
        parameters = of.get("parameters", {})
        model = package.RejectInferenceClassifier(model, method=method, method_params=parameters)
    model.fit(train[known], 1 - people.label[0][known], *rejected)
    return [1.0 - np.asarray(model.predict_proba(test))[:, 1]]


def measured(people: Masked, p: np.ndarray, fair: np.ndarray | None = None) -> dict[str, float]:
    """Measures on the M test people of estimates p, and of π with equal acceptance rates, if there is one."""
    label, s = people.label[1], people.s[1]
    false, true, _ = roc_curve(label, p)
    found = {"auc": roc_auc_score(label, p), "ks": (true - false).max()}
    for name, decided in (("", 1.0 * (p >= people.cost)), ("parity_", fair)):
        if decided is not None:
            found[f"{name}utility"] = (decided * (label - people.cost)).mean()
            found[f"{name}dpu"] = abs(decided[s > 0].mean() - decided[s < 0].mean())
    return found


def differences(found: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A measure less that of `NAIVE`, of the same code, data set, selection and state; NaN where unknown.

    Returns:
        A row per selection, code, data set and random state, a column per method.
    """
    values = found.pivot(index=[*KEYS[:2], "dataset", "state"], columns="method", values=measure)
    return values.sub(values[NAIVE], axis=0)


def recovered(found: pd.DataFrame) -> pd.Series:
    """Mean of rejectkit's `auc_recovery` over the cells that have one, by selection, code and method."""
    gain = differences(found, "auc")
    gap = gain[ORACLE].where(gain[ORACLE] > CLEAR)
    return gain.div(gap, axis=0).groupby(level=KEYS[:2]).mean().stack()


def spread_of(gain: pd.DataFrame, key: Key, dataset: str | None = None) -> Spread | None:
    """Spread over random states of a data set, or of the mean over all; None where the method has none."""
    own = gain[key[2]].unstack("dataset")
    own = own[own.index.droplevel("state") == key[:2]].dropna(axis=1, how="all")
    own = own if dataset is None else own[[dataset]]
    return Spread.over_seeds(own.mean(axis=1).to_numpy()) if own.size else None


def items_of(found: pd.DataFrame, lacking: Sequence[tuple[str, str]]) -> list[Item]:
    """The figure, the table of means over data sets, and the one of each data set."""
    figure, means, by_data = axes()["items"]
    columns = {
        f"{name}, {dataset_label(dataset)}": {"dataset": dataset, "measure": measure}
        for measure, name in MEASURED.items()
        for dataset in dict.fromkeys(found["dataset"])
    }
    items = [
        PageFigure(**figure, wide=True, draw=lambda: draw_gains(found)),
        gains_table(found, **means),
        gains_table(found, columns, **by_data),
    ]
    return [replace(item, lacking=lacking) for item in items]


def gains_table(found: pd.DataFrame, columns: Mapping[str, Mapping[str, Any]], **shown: Any) -> PageTable:
    """A row per selection, code and method.

    Args:
        found: measures.
        columns: heading → `measure`, of which differences are shown, of one `dataset` or of the mean over
            all; or the `level` of a measure, or the `recovery`, with its `digits`.
        shown: key, title and note.
    """
    gains = {measure: differences(found, measure) for measure in MEASURES}
    levels = found.groupby(KEYS).mean(numeric_only=True).assign(recovery=recovered(found))
    rows, records = [], []
    for key in found[KEYS].drop_duplicates().itertuples(index=False, name=None):
        cells, named = [], dict(zip(KEYS, key, strict=True))
        for of in columns.values():
            if "level" in of:
                cells.append(number(levels[of["level"]][key], digits=of.get("digits", 1)))
                continue
            spread = spread_of(gains[of["measure"]], key, of.get("dataset"))
            cells.append(mean_interval(spread))
            if spread is not None:
                records.append(named | dict(of) | difference_of(spread, "mean"))
        rows.append(Row(SELECTIONS[key[0]], f"{key[2]} ({key[1]})", cells))
    return table_of([*columns], rows, records, **shown)


def draw_gains(found: pd.DataFrame) -> Figure:
    """Draw an interval per method and code, a column per selection, rows for AUC and utility."""
    selections = [one for one in SELECTIONS if one in set(found["selection"])]
    names = [name for name in dict.fromkeys(found["method"]) if name != NAIVE][::-1]
    figure, panels = grid_of(2, len(selections), 0.3 * len(names) + 1.0, sharey=True, sharex="row")
    for panel, (measure, selection) in zip(panels.flat, product(MEASURED, selections), strict=True):
        gain = differences(found, measure)
        for code, colour, shift in ((OURS, BLUE, 0.15), (THEIRS, ORANGE, -0.15)):
            spreads = {n + shift: spread_of(gain, (selection, code, name)) for n, name in enumerate(names)}
            known = {height: (one.mean, *(one.interval or ())) for height, one in spreads.items() if one}
            mean, *ends = 100 * np.reshape([*known.values()], (-1, 3)).T
            reach = np.abs(ends - mean)
            panel.errorbar(mean, [*known], xerr=reach, fmt="o", ms=2.5, lw=1, color=colour, label=code)
        panel.axvline(0.0, color=GREY, lw=0.6)
        panel.set_yticks(range(len(names)), names)
        panel.set_title(f"{MEASURED[measure]}\nselection {SELECTIONS[selection]}")
        panel.grid(axis="x", lw=0.3, color=GREY, alpha=0.5)
    legend_below(figure, handles_of(panels.flat), 2)
    return figure
