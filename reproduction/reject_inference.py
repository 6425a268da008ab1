"""Methods of reject inference where labels are known and masked: the study of reject_inference.yaml."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

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
    handles_of,
    legend_below,
    mean_interval,
    write,
)
from fairall.sklearn import SelectiveLabelsClassifier
from reproduction.findings import bars
from reproduction.items import difference_of, grid_of
from reproduction.kinds import PLACES, summaries, table
from reproduction.pages import publish, refuse
from reproduction.values import differences, words

COMMAND = "reject_inference"
PICKED = ("dataset=", "selection=")
AXES: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
ORACLE, NAIVE = "Every label", "Accepted only"
CELL = ["selection", "code", "dataset", "seed"]
ROW = ["selection", "code", "method"]
LEVELS = ["dpu", "parity_dpu"]  # shown as they are
DIGITS = {"recovery": 0}
CLEAR = 5e-3  # gap of AUC between oracle and accepted only from which on rejectkit gives a recovery
Frame: TypeAlias = pd.DataFrame


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
    axes = {"dataset": AXES["dataset"].split(","), "selection": [*AXES["selection"]]}
    picked = dict(word.split("=") for word in overrides if word.startswith(PICKED))
    config = places([word for word in overrides if not word.startswith(PICKED)])
    refuse(into, config)
    rejectkit()
    for key, values in picked.items():
        if unknown := {*values.split(",")} - {*axes[key]}:
            raise FairAllError(f"{key}={min(unknown)}: not possible; there are {', '.join(axes[key])}")
        axes[key] = values.split(",")
    found, missing, folder = [], [], folder or Path(config.outputs_dir) / COMMAND
    for dataset, selection in product(*axes.values()):
        path = folder / "fits" / f"{dataset}_{selection}.csv"
        try:
            if not path.exists():
                rows = pd.DataFrame(fits(dataset, selection))
                write(path, rows.to_csv(index=False, float_format="%.6f"))
                print(f"{dataset}, {selection}: {len(rows)} fits", flush=True)
            found.append(pd.read_csv(path))
        except FairAllError as error:
            print(f"{dataset}, {selection}: left out ({error})", flush=True)
            missing.append((f"{dataset} {selection}", f"python -m fairall data fetch {dataset}"))
    items = items_of(pd.concat(found), missing) if found else []
    publish(COMMAND, "FairAll: reject inference", {"": items}, config, folder=folder, into=into)
    return not missing


def fits(dataset: str, selection: str) -> Iterator[dict[str, Any]]:
    """A row per random state, code and method, with its measures on test people."""
    cost = load_dataset(dataset).config.cost
    for state in range(AXES["states"]):
        train, test, accepted = masked(dataset, selection, state)
        for code, fit in (("FairAll", ours), ("rejectkit", theirs)):
            for method, of in AXES[code].items():
                log = train.assign(label=train["label"].where(accepted | (method == ORACLE)))
                cell = {"dataset": dataset, "selection": selection, "seed": state, "code": code}
                yield cell | {"method": method} | measured(test, cost, *fit(log, test, cost, state, **of))


def masked(dataset: str, selection: str, state: int) -> tuple[Frame, Frame, np.ndarray]:
    """People of a data set with the split and the mask that rejectkit's benchmark makes of them.

    Returns:
        People for training and for the test: standardised features, one column per category, s in {−1, +1}
        and label in {0, 1}; rejectkit's is 1 − label. And who of the T for training keeps it, shape (T,).

    Raises:
        FairAllError: where the data cannot be read.
    """
    data = load_dataset(dataset).table()
    rows = np.random.default_rng(state).permutation(len(data))[: AXES["most"]]
    categories = [one.name for one in data.schema if one.kind.name == "CATEGORICAL"]
    x = pd.get_dummies(data.x[data.schema.names].iloc[rows], columns=categories).to_numpy(float)
    x = x[:, x.std(0) > 0]
    people = pd.DataFrame((x - x.mean(0)) / x.std(0)).add_prefix("x")
    people = people.assign(s=data.s[rows], label=data.label[rows].astype(int))
    given = {"test_size": AXES["test_size"], "random_state": state}
    train, test = train_test_split(people, stratify=1 - people["label"], **given)
    strength = AXES["weaker"].get(dataset) if selection == "mnar" else None
    benchmark = rejectkit().MaskedRejectBenchmark(
        selection, AXES["accept_rate"], selection_strength=strength or AXES["strength"], **given
    )
    x, label = train.drop(columns="label").to_numpy(), train["label"].to_numpy()
    return train, test, benchmark._accept_mask(x, 1 - label)


def ours(
    log: Frame, test: Frame, cost: float, state: int, model: str, parameters: Any = None
) -> list[np.ndarray]:
    """p(label = 1) of M test people by a method of FairAll, and π with equal acceptance rates, each (M,)."""
    x, s = log.drop(columns=["s", "label"]), log["s"]
    fitted = SelectiveLabelsClassifier(
        model,
        hyperparameters=parameters,
        cost=cost,
        random_state=state,
        kinds=dict.fromkeys(x, "real"),
        words=["fairness=demographic_parity"],
    )
    # Warnings of overlap, which a cut-off has none of.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        fitted.fit(x, log["label"], sensitive_features=s)
        predicted = (fitted.predict_proba, fitted.decision_proba)
        return [predict(test[[*x]], sensitive_features=test["s"])[:, 1] for predict in predicted]


def theirs(log: Frame, test: Frame, *_: Any, kind: str = "", **given: Any) -> list[np.ndarray]:
    """p(label = 1) of M test people by a method of rejectkit, as its benchmark fits it, shape (M,)."""
    x, known = log.drop(columns="label"), log["label"].notna()
    model = getattr(rejectkit(), kind)(**given) if kind else LogisticRegression(max_iter=1000)
    rejected = [x[~known].to_numpy()] if kind else []
    model.fit(x[known].to_numpy(), 1 - log["label"][known], *rejected)
    return [1.0 - model.predict_proba(test[[*x]].to_numpy())[:, 1]]


def measured(test: Frame, cost: float, p: np.ndarray, fair: np.ndarray | float = np.nan) -> dict[str, float]:
    """Measures on test people of estimates p (M,), and of π with equal acceptance rates, if there is one."""
    label, s = test["label"], test["s"]
    false, true, _ = roc_curve(label, p)
    found = {"auc": roc_auc_score(label, p), "ks": (true - false).max()}
    for name, decided in (("", 1.0 * (p >= cost)), ("parity_", fair)):
        found[f"{name}utility"] = (decided * (label - cost)).mean()
        found[f"{name}dpu"] = abs((decided * s).groupby(s).mean().sum(skipna=False))
    return found


def values(found: Frame) -> Frame:
    """Measures as a long frame: what is beyond `NAIVE` of the same code, people and mask, and `LEVELS`."""
    frame = found.melt([*CELL, "method"], var_name="measure")
    gains = differences(frame, CELL, {"method": NAIVE}, itself=True)
    auc = gains[gains["measure"] == "auc"].set_index([*CELL, "method"])["value"].unstack()
    recovered = auc.div(auc[ORACLE].where(auc[ORACLE] > CLEAR), axis=0).melt(ignore_index=False).dropna()
    levels = pd.concat([frame[frame["measure"].isin(LEVELS)], recovered.reset_index()])
    means = levels.fillna({"measure": "recovery"}).groupby([*ROW, "measure"])["value"].mean()
    shown = pd.concat([gains[~gains["measure"].isin(LEVELS)], means.reset_index().assign(seed=0)])
    group, name = shown["selection"].map(AXES["selection"]), shown["method"] + " (" + shown["code"] + ")"
    return shown.assign(group=group, name=name)


def items_of(found: Frame, lacking: Sequence[tuple[str, str]]) -> list[Item]:
    """The figure, the table of means over data sets, and the one of each data set."""
    figure, *specs = AXES["items"]
    frame = values(found)
    means, by_data = (gains_table(frame, spec) for spec in specs)
    drawn = PageFigure(**figure, wide=True, draw=lambda: draw_gains(means.records))
    return [replace(item, lacking=lacking) for item in (drawn, means, by_data)]


def gains_table(frame: Frame, spec: Mapping[str, Any]) -> PageTable:
    """A row per selection, code and method: means, with intervals over random states where there are some.

    Args:
        frame: of `values`.
        spec: a table of reject_inference.yaml.
    """
    own = pd.DataFrame([*spec["measures"].items()], columns=["heading", "measure"]).merge(frame)
    own["column"] = [words(spec.get("column", "{heading}"), row) for row in own.to_dict("records")]
    facts = [*PLACES, *ROW, "measure"]
    cells = summaries(own.groupby([*facts, "seed"], sort=False)["value"].mean().reset_index())
    for one in cells:
        one["cell"] = mean_interval(one["spread"], digits=DIGITS.get(one["measure"], 1))
        one["records"] = [{fact: one[fact] for fact in facts} | difference_of(one["spread"], "mean")]
    return table(spec, (), cells, [*dict.fromkeys(own["column"])])


def draw_gains(found: Frame) -> Figure:
    """Draw an interval per method and code, a column per selection, rows for AUC and utility."""
    own = found[found["measure"].isin(["auc", "utility"]) & (found["method"] != NAIVE)]
    names = [*dict.fromkeys(own["method"])]
    figure, panels = grid_of(2, own["group"].nunique(), 0.3 * len(names) + 1.0, sharey=True, sharex="row")
    parts = own.groupby(["column", "group"], sort=False)
    for panel, ((measure, group), part) in zip(panels.T.flat, parts, strict=True):
        looks = ((BLUE, -0.15), (ORANGE, 0.15))
        for (code, some), look in zip(part.groupby("code"), looks, strict=False):
            ends = some.set_index("method").reindex(names)[["mean", "low", "high"]]
            bars(panel, 100 * ends.astype(float).set_axis(range(3), axis=1), *look, label=code)
        panel.axvline(0.0, color=GREY, lw=0.6)
        panel.set_title(f"{measure}\nselection {group}")
    legend_below(figure, handles_of(panels.flat), 2)
    return figure
