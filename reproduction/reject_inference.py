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
MEASURED = {"auc": "AUC", "utility": "utility"}  # shown by data set and drawn
CLEAR = 5e-3  # gap of AUC between oracle and accepted only from which on rejectkit gives a recovery
UNITS = (
    "×100. Means over the data sets, and 95 % intervals over the random states of the difference from "
    "accepted only of the same code, people, split and mask (Student's t)."
)


class Masked(NamedTuple):
    """People of a data set, split and masked as by rejectkit.

    Attributes:
        cost: c of the data set.
        x: standardised features, one column per category, shape (N, F).
        s: sensitive attribute in {−1, +1}, shape (N,).
        label: in {0, 1}, shape (N,); rejectkit's is 1 − label.
        train: rows for training, shape (T,).
        test: the other rows.
        accepted: which rows for training keep their label, shape (T,), bool.
    """

    cost: float
    x: np.ndarray
    s: np.ndarray
    label: np.ndarray
    train: np.ndarray
    test: np.ndarray
    accepted: np.ndarray

    @property
    def seen(self) -> np.ndarray:
        """What models see of everybody: features and s, shape (N, F + 1)."""
        return np.column_stack([self.x, self.s])


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
    picked = dict(word.split("=", 1) for word in overrides if word.startswith(("dataset=", "selection=")))
    config = places([word for word in overrides if word.split("=")[0] not in picked])
    refuse(into, config)
    rejectkit()
    chosen = {
        key: picked[key].split(",") if key in picked else axes()[key] for key in ("dataset", "selection")
    }
    for key, values in chosen.items():
        if unknown := [value for value in values if value not in axes()[key]]:
            raise FairAllError(f"{key}={unknown[0]}: not possible; there are {', '.join(axes()[key])}")
    outputs = Path(config.outputs_dir)
    folder = folder or outputs / COMMAND
    found, missing = [], []
    for dataset, selection in product(chosen["dataset"], chosen["selection"]):
        path = folder / "fits" / f"{dataset}_{selection}.csv"
        try:
            if not path.exists():
                rows = pd.DataFrame(list(fits(dataset, selection)))
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
        people = masked(dataset, selection, state)
        for code, name, measures in judged(people, state):
            yield {"state": state, "code": code, "method": name} | measures


def masked(dataset: str, selection: str, state: int) -> Masked:
    """People of a data set with the split and the mask that rejectkit's benchmark makes of them.

    Raises:
        FairAllError: where the data cannot be read.
    """
    source = load_dataset(dataset)
    table = source.table()
    rows = np.random.default_rng(state).permutation(len(table))[: axes()["most"]]
    categories = [one.name for one in table.schema if one.kind.name == "CATEGORICAL"]
    columns = pd.get_dummies(table.x[table.schema.names].iloc[rows], columns=categories).to_numpy(float)
    varied = columns[:, columns.std(0) > 0]
    x = (varied - varied.mean(0)) / varied.std(0)
    s, label = table.s[rows], table.label[rows].astype(int)
    given = {"test_size": axes()["test_size"], "random_state": state}
    train, test = train_test_split(np.arange(len(rows)), **given, stratify=1 - label)
    weaker = axes()["weaker"] if selection == "mnar" else {}
    benchmark = rejectkit().MaskedRejectBenchmark(
        selection,
        accept_rate=axes()["accept_rate"],
        selection_strength=weaker.get(dataset, axes()["strength"]),
        **given,
    )
    accepted = benchmark._accept_mask(np.column_stack([x, s])[train], 1 - label[train])
    return Masked(source.config.cost, x, s, label, train, test, accepted)


def judged(people: Masked, state: int) -> Iterator[tuple[str, str, dict[str, float]]]:
    """The code, the method and its measures on test people, of every method."""

    def known(name: str) -> np.ndarray:
        return np.ones_like(people.accepted) if name == ORACLE else people.accepted

    for name, of in {ORACLE: {"model": "accepted_only"}, **axes()["ours"]}.items():
        yield OURS, name, measured(people, *ours(people, known(name), of, state))
    for name, of in {ORACLE: {}, NAIVE: {}, **axes()["theirs"]}.items():
        yield THEIRS, name, measured(people, theirs(people, known(name), of))


def ours(
    people: Masked, known: np.ndarray, of: Mapping[str, Any], state: int
) -> tuple[np.ndarray, np.ndarray]:
    """p(label = 1) of test people by a method of FairAll, and π with equal acceptance rates, shapes (M,)."""
    frame = pd.DataFrame(people.x).add_prefix("x")
    fitted = SelectiveLabelsClassifier(
        of["model"],
        hyperparameters=of.get("parameters"),
        cost=people.cost,
        random_state=state,
        kinds=dict.fromkeys(frame, "real"),
        words=[PARITY],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of overlap, which a cut-off has none of
        fitted.fit(
            frame.iloc[people.train],
            np.where(known, people.label[people.train], np.nan),
            accepted=known,
            sensitive_features=people.s[people.train],
        )
        p, fair = (
            predict(frame.iloc[people.test], sensitive_features=people.s[people.test])[:, 1]
            for predict in (fitted.predict_proba, fitted.decision_proba)
        )
    return p, fair


def theirs(people: Masked, known: np.ndarray, of: Mapping[str, Any]) -> np.ndarray:
    """p(label = 1) of test people by a method of rejectkit, as its benchmark fits it, shape (M,)."""
    x, bad = people.seen[people.train], 1 - people.label[people.train]
    package, method = rejectkit(), of.get("method")
    model: Any = LogisticRegression(max_iter=1000)
    if method is None:
        model.fit(x[known], bad[known])
    else:
        if method == "heckman":
            model = package.HeckmanClassifier(outcome_estimator=model)
        else:
            parameters = of.get("parameters", {})
            model = package.RejectInferenceClassifier(model, method=method, method_params=parameters)
        model.fit(x[known], bad[known], x[~known])
    return 1.0 - np.asarray(model.predict_proba(people.seen[people.test]))[:, 1]


def measured(people: Masked, p: np.ndarray, fair: np.ndarray | None = None) -> dict[str, float]:
    """Measures on the M test people of estimates p, and of π with equal acceptance rates, if there is one."""
    label, s = people.label[people.test], people.s[people.test]
    false, true, _ = roc_curve(label, p)
    found = {"auc": float(roc_auc_score(label, p)), "ks": float((true - false).max())}
    policies = {"": (p >= people.cost).astype(float)} | ({} if fair is None else {"parity_": fair})
    for name, decided in policies.items():
        found[f"{name}utility"] = float((decided * (label - people.cost)).mean())
        found[f"{name}dpu"] = float(abs(decided[s > 0].mean() - decided[s < 0].mean()))
    return found


def differences(found: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A measure less that of `NAIVE`, of the same code, data set, selection and state; NaN where unknown.

    Returns:
        A row per selection, code, method and data set, a column per random state.
    """
    values = found.set_index([*KEYS, "dataset", "state"])[measure].unstack().dropna(how="all").sort_index()
    naive = values.xs(NAIVE, level="method").reindex(values.index.droplevel("method"))
    return values - naive.to_numpy()


def recovered(found: pd.DataFrame) -> pd.Series:
    """Mean of rejectkit's `auc_recovery` over the cells that have one, by selection, code and method."""
    gain = differences(found, "auc")
    gap = gain.xs(ORACLE, level="method").reindex(gain.index.droplevel("method")).to_numpy()
    return (gain / gap).where(gap > CLEAR).stack().groupby(level=[0, 1, 2]).mean()


def items_of(found: pd.DataFrame, lacking: Sequence[tuple[str, str]]) -> list[Item]:
    """The figure, the table of means over data sets, and the one of each data set."""
    figure = PageFigure(
        key="reject_inference_gains",
        title="What reject inference changes",
        note="AUC and utility on test people less those of a regression of the accepted only, ×100: "
        "means over the data sets with 95 % intervals over random states. Every label: what there is to "
        "gain.",
        wide=True,
        draw=lambda: draw_gains(found),
    )
    items = figure, mean_table(found), data_table(found)
    return [replace(item, lacking=lacking) for item in items]


KEYS = ["selection", "code", "method"]
MEASURES = {
    "AUC ↑": "auc",
    "KS ↑": "ks",
    "utility ↑": "utility",
    "with equal rates: utility ↑": "parity_utility",
}


def mean_table(found: pd.DataFrame) -> PageTable:
    """A row per selection, code and method: differences from accepted only, averaged over data sets."""
    gains = {measure: differences(found, measure) for measure in MEASURES.values()}
    recovery = recovered(found)
    levels = found.groupby(KEYS, sort=False)[["dpu", "parity_dpu"]].mean()
    rows, records = [], []
    for key, unfairness in levels.iterrows():
        spreads = {measure: over_data_sets(gain, key) for measure, gain in gains.items()}
        auc, *others = map(mean_interval, spreads.values())
        cells = [auc, number(recovery.get(key), digits=0), *others, *map(number, unfairness)]
        rows.append(_row(key, cells))
        records += [
            dict(zip(KEYS, key, strict=True)) | {"measure": measure} | difference_of(spread, "mean")
            for measure, spread in spreads.items()
            if spread is not None
        ]
    auc, *others = MEASURES
    return table_of(
        [auc, "recovery of AUC, %", *others, "DPU ↓", "with equal rates: DPU ↓"],
        rows,
        records,
        key="reject_inference",
        title="Methods of reject inference",
        note=f"{UNITS} Recovery: 0 as accepted only, 100 as with every label, where the gap is above 0.5.",
    )


def data_table(found: pd.DataFrame) -> PageTable:
    """A row per selection, code and method, a column per data set: differences of AUC and of utility."""
    gains = {name: differences(found, name) for name in MEASURED}
    data_sets, rows, records = list(dict.fromkeys(found["dataset"])), [], []
    for key in found[KEYS].drop_duplicates().itertuples(index=False, name=None):
        cells = []
        for measure, dataset in product(gains, data_sets):
            spread = Spread.over_seeds(gains[measure].loc[(*key, dataset)].to_numpy())
            cells.append(mean_interval(spread))
            if spread is not None:
                named = dict(zip(KEYS, key, strict=True)) | {"dataset": dataset}
                records.append(named | {"measure": measure, "mean": spread.mean})
        rows.append(_row(key, cells))
    return table_of(
        [f"{of}, {dataset_label(one)}" for of, one in product(MEASURED.values(), data_sets)],
        rows,
        records,
        key="reject_inference_data",
        title="Methods of reject inference by data set",
        note=UNITS,
    )


def _row(key: tuple[str, str, str], cells: Sequence[str]) -> Row:
    selection, code, method = key
    return Row(SELECTIONS[selection], f"{method} ({code})", cells)


def over_data_sets(gain: pd.DataFrame, key: tuple[str, str, str]) -> Spread | None:
    """Spread over random states of the mean over data sets; None where a method has no such measure."""
    own = gain[gain.index.droplevel("dataset") == key]
    return Spread.over_seeds(own.mean(0).to_numpy()) if len(own) else None


def draw_gains(found: pd.DataFrame) -> Figure:
    """Draw an interval per method and code, a column per selection, rows for AUC and utility."""
    selections = [one for one in SELECTIONS if one in set(found["selection"])]
    names = [name for name in dict.fromkeys(found["method"]) if name != NAIVE][::-1]
    figure, panels = grid_of(2, len(selections), 0.3 * len(names) + 1.0, sharey=True, sharex="row")
    for panel, (measure, selection) in zip(panels.flat, product(MEASURED, selections), strict=True):
        gain = differences(found, measure)
        for (code, colour), shift in zip(((OURS, BLUE), (THEIRS, ORANGE)), (0.15, -0.15), strict=True):
            spreads = [over_data_sets(gain, (selection, code, name)) for name in names]
            known = [(height, one) for height, one in enumerate(spreads) if one is not None]
            mean = 100 * np.array([one.mean for _, one in known])
            low, high = 100 * np.array([one.interval for _, one in known]).reshape(-1, 2).T
            height = [at + shift for at, _ in known]
            panel.errorbar(
                mean, height, xerr=[mean - low, high - mean], fmt="o", ms=2.5, lw=1, color=colour, label=code
            )
        panel.axvline(0.0, color=GREY, lw=0.6)
        panel.set_yticks(range(len(names)), names)
        panel.set_title(f"{MEASURED[measure]}\nselection {SELECTIONS[selection]}")
        panel.grid(axis="x", lw=0.3, color=GREY, alpha=0.5)
    legend_below(figure, handles_of(panels.flat), 2)
    return figure
