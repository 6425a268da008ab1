"""Methods of reject inference where labels are known and masked: the study of reject_inference.yaml."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split

from fairall import FairAllError, load_dataset, places
from fairall.display import BLUE, GREY, ORANGE, Item, PageFigure, PageTable, number, write
from fairall.report import dataset_label
from fairall.sklearn import SelectiveLabelsClassifier
from reproduction.kinds import PLACES, cells_of, table
from reproduction.pages import publish, refuse
from reproduction.study_figures import Mark, draw_panels
from reproduction.values import Facts, differences
from reproduction.words import words_of

COMMAND = "reject_inference"
OURS, THEIRS = "FairAll", "rejectkit"
LOOKS = {OURS: (BLUE, 0.15), THEIRS: (ORANGE, -0.15)}  # colour, and how much above its row it is drawn
ORACLE, NAIVE = "Every label", "Accepted only"
SELECTIONS = {"mar": "by features", "mnar": "by features and the label", "cutoff": "by a score"}
PARITY = "fairness=demographic_parity"
MEASURED = {"auc": "AUC", "utility": "utility"}  # shown by data set and drawn
CLEAR = 5e-3  # gap of AUC between oracle and accepted only from which on rejectkit gives a recovery
STUDY = words_of("reject_inference")
AXES = {"dataset": STUDY["dataset"].split(","), "selection": STUDY["selection"]}


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


def rejectkit() -> Any:
    """The package, whose code is run beside ours.

    Raises:
        FairAllError: where it is not installed.
    """
    try:
        return import_module("rejectkit")
    except ImportError as error:
        raise FairAllError(f"{COMMAND}: rejectkit is missing; pip install rejectkit==0.3.0") from error


def reject_inference(overrides: Sequence[str], folder: Path | None = None, into: Sequence[Path] = ()) -> bool:
    """Fit all methods under all masks, and write a page of them; what has been fitted is kept.

    Args:
        overrides: `dataset=` and `selection=` pick from the axes; others are of `places`.
        folder: of the page; None: `reject_inference` in outputs_dir.
        into: pages of the documentation with blocks to fill.

    Returns:
        Whether all data sets could be read.

    Raises:
        FairAllError: where rejectkit is missing, or a word picks nothing.
    """
    picks = dict(word.split("=") for word in overrides if word.split("=")[0] in AXES)
    config = places([word for word in overrides if word.split("=")[0] not in AXES])
    refuse(into, config)
    rejectkit()
    chosen = AXES | {key: values.split(",") for key, values in picks.items()}
    for axis, known in AXES.items():
        if unknown := [value for value in chosen[axis] if value not in known]:
            raise FairAllError(f"{axis}={unknown[0]}: not possible; there are {', '.join(known)}")
    folder = folder or Path(config.outputs_dir) / COMMAND
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
    for state in range(STUDY["states"]):
        yield from judged(masked(dataset, selection, state), state)


def masked(dataset: str, selection: str, state: int) -> Masked:
    """People of a data set with the split and the mask that rejectkit's benchmark makes of them.

    Raises:
        FairAllError: where the data cannot be read.
    """
    source = load_dataset(dataset)
    table = source.table()
    rows = np.random.default_rng(state).permutation(len(table))[: STUDY["most"]]
    categories = [one.name for one in table.schema if one.kind.name == "CATEGORICAL"]
    x = pd.get_dummies(table.x[table.schema.names].iloc[rows], columns=categories).to_numpy(float)
    x = x[:, x.std(0) > 0]
    x = (x - x.mean(0)) / x.std(0)
    s, label = table.s[rows], table.label[rows].astype(int)
    given = {"test_size": STUDY["test_size"], "random_state": state}
    parts = train_test_split(x, s, label, stratify=1 - label, **given)
    sides = parts[:2], parts[2:4], parts[4:]
    weaker = STUDY["weaker"] if selection == "mnar" else {}
    benchmark = rejectkit().MaskedRejectBenchmark(
        selection,
        accept_rate=STUDY["accept_rate"],
        selection_strength=weaker.get(dataset, STUDY["strength"]),
        **given,
    )
    x, s, label = (train for train, _ in sides)
    return Masked(source.config.cost, *sides, benchmark._accept_mask(np.column_stack([x, s]), 1 - label))


def judged(people: Masked, state: int) -> Iterator[dict[str, Any]]:
    """A row per code and method."""
    for code, fit in ((OURS, ours), (THEIRS, theirs)):
        for method, of in STUDY[code].items():
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


def items_of(found: pd.DataFrame, lacking: Sequence[tuple[str, str]]) -> list[Item]:
    """The figure, the table of means over data sets, and the one of each data set.

    Args:
        found: measures by data set, selection, code, method and random state.
        lacking: data sets that are missing, and how to get them.
    """
    found = found.assign(group=found["selection"].map(SELECTIONS), name=_name, column="")
    figure, means, by_data = STUDY["items"]
    columns = {
        f"{name}, {dataset_label(dataset)}": {"measure": measure, "dataset": dataset}
        for measure, name in MEASURED.items()
        for dataset in found["dataset"].unique()
    }
    items = [
        PageFigure(**figure, wide=True, draw=lambda: draw_gains(found)),
        gains_table(found, means),
        gains_table(found, by_data | {"columns": columns}),
    ]
    return [replace(item, lacking=lacking) for item in items]


def _name(found: pd.DataFrame) -> pd.Series:
    return found["method"] + " (" + found["code"] + ")"


def gains_of(found: pd.DataFrame) -> pd.DataFrame:
    """Measures less those of `NAIVE`, of the same code, data set, selection and state: a long frame."""
    known = ["dataset", "selection", "code", "method", "seed", *PLACES]
    long = found.rename(columns={"state": "seed"}).melt(known, var_name="measure")
    return differences(long, ["dataset", "selection", "code"], {"method": NAIVE}, itself=True)


def recovered(gains: pd.DataFrame) -> pd.Series:
    """Mean of rejectkit's `auc_recovery` over the cells that have one, by group, code and method."""
    cells = ["group", "code", "dataset", "seed"]
    gain = gains[gains["measure"] == "auc"].pivot(index=cells, columns="method", values="value")
    gap = gain[ORACLE].where(gain[ORACLE] > CLEAR)
    return gain.div(gap, axis=0).groupby(level=cells[:2]).mean().stack()


def over_states(gains: pd.DataFrame, **of: str) -> list[Facts]:
    """Cells of a `measure`, means over data sets or of one `dataset`, with their spreads over states."""
    own = gains[(gains[[*of]] == pd.Series(of)).all(axis=1)]
    by_state = own.groupby([*PLACES, "code", "method", "seed"], sort=False)["value"].mean()
    return cells_of(by_state.reset_index())


def gains_table(found: pd.DataFrame, spec: Mapping[str, Any]) -> PageTable:
    """A row per selection, code and method.

    Args:
        found: measures.
        spec: key, title, note, and `columns` by heading: the `measure` of which differences are shown, of
            one `dataset` or of the mean over all; or the `level` of a measure or of the `recovery`, with
            its `digits`.
    """
    gains = gains_of(found)
    levels = found.groupby(["group", "code", "method"]).mean(numeric_only=True)
    levels["recovery"] = recovered(gains)
    cells, own = list[Facts](), list[Any]()
    for heading, of in spec["columns"].items():
        if "level" in of:
            shown = levels[of["level"]].map(partial(number, digits=of.get("digits", 1)))
            own = shown.rename("text").reset_index().assign(name=_name).to_dict("records")
        else:
            own = over_states(gains, **of)
        cells += [cell | {"column": heading} for cell in own]
    return table(spec, (), cells)


def draw_gains(found: pd.DataFrame) -> Figure:
    """Draw an interval per method and code, a column per selection, rows for AUC and utility."""
    gains, marks = gains_of(found), list[Mark]()
    names = [name for name in found["method"].unique() if name != NAIVE][::-1]
    for measure, heading in MEASURED.items():
        for cell in over_states(gains, measure=measure):
            if cell["method"] in names:
                colour, above = LOOKS[cell["code"]]
                at = (names.index(cell["method"]) + above) / 100  # drawn ×100
                look = {"label": cell["code"], "color": colour, "marker": "o", "ms": 2.5}
                panel = f"{heading}\nselection {cell['group']}", "", ""
                marks.append(Mark(panel, (cell["spread"], at), look))
    figure = draw_panels(marks)
    figure.set_figheight(0.3 * len(names) + 1.0)
    for axes in figure.axes:
        axes.axvline(0.0, color=GREY, lw=0.6)
        axes.set_yticks(range(len(names)), names)
        axes.grid(axis="x", lw=0.3, color=GREY, alpha=0.5)
        axes.label_outer()
        axes.tick_params(labelbottom=True)
    return figure
