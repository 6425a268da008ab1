"""The page docs/evidence.md and its figure, of a folder of `evidence.Study`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.errors import BenchmarkError
from benchmarks.evidence import Study, summary
from benchmarks.evidence_logs import CASES, GAPS
from fairall.evaluate.estimators import LABELS
from fairall.evaluate.fairness import MEASURES
from fairall.results.figures import BLUE, GREEN, GREY, ORANGE
from fairall.results.page import rendered, save, write
from fairall.results.table import Cell, Row, Table
from fairall.storage.files import atomic

LOWEST, HIGHEST = 0.92, 0.98  # coverage of a 95 % interval that can be trusted
LEAST = 20  # intervals of which a coverage is computed
CAUTIOUS = ("guarantee", "bounds without assumption")  # made to cover more often than 95 %
# Shown where all estimators are; elsewhere the doubly robust ones and those of the other kinds.
BESIDE = ("ips", "snips", "sndr", "dm")
NOTES = {
    "Basic: synthetic": (
        "Two features; the propensities are logistic in them, the labels are not (but for the wrong "
        "propensity model)."
    ),
    "Basic: credit": (
        "The 19 features of German Credit, most of them categorical; labels drawn from a logistic model."
    ),
    "Interactions": (
        "Decisions and labels depend on a product of two features, or on steps that cross, which no logistic "
        "regression of the features sees."
    ),
    "Refusals": (
        "✗: the log cannot tell, and should be refused. ✓: its neighbour that can. The differences are those "
        "from the policy that logged the decisions, which accepts others in a few cases near a threshold."
    ),
    "Missing cells": (
        "A number that is missing more often where it is high; labels that are missing among the accepted: "
        "70 % in one group and none in the other, or more where a feature is low."
    ),
    "Repeated people": (
        "Five rows for each person, with the same label. Where the rows differ in a feature and person= is "
        "not given, nothing tells that they are of the same person."
    ),
    "Amounts": "Gain and loss of each person depend on a feature.",
    "Differences of gaps": (
        "The second policy is fair, which is where gaps are not smooth: no normal distribution is right."
    ),
    "Rare labels": "2 % of the labels are positive, or 1 % negative; few people of a group have them.",
    "Unobserved confounding": (
        "The labels of the rejected have half or twice the odds of those of accepted people with equal "
        "features, the worst case of the sensitivity analysis for Γ = 2, or are all negative, the worst case "
        "of the bounds without assumption. An interval covers in 97.5 % of logs there, in more elsewhere."
    ),
    "Contraction": "Five officers who get people at random, from lenient to strict.",
}


def results(study: Study) -> pd.DataFrame:
    """`summary` of all cases and sizes, with the columns setting, name, size and wrong of the case.

    Raises:
        BenchmarkError: where nothing has been evaluated yet.
    """
    found = [
        summary(rows).assign(setting=case.setting, name=case.name, size=n, wrong=case.wrong)
        for place, case in enumerate(CASES)
        for n in case.sizes
        if not (rows := study.found(place, n)).empty
    ]
    if not found:
        raise BenchmarkError(f"{study.folder}: nothing has been evaluated yet")
    return pd.concat(found, ignore_index=True)


def write_page(study: Study, page: Path) -> None:
    """Write a page of tables, and its figure to the folder `figures` beside it."""
    told = results(study)
    figures = page.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        picture, _ = save(lambda: _draw(told), Path(folder) / "evidence")
    with atomic(figures / "evidence.png") as temporary:
        temporary.write_bytes(picture)
    write(page, rendered("evidence.md.jinja", _values(told), "benchmarks"))


def _values(told: pd.DataFrame) -> dict[str, object]:
    """What the template needs."""
    intervals = _judged(told)
    right = intervals[~intervals["wrong"]]
    kept = told[(told["quantity"].isin(["value", "difference: value"])) & (told["estimator"] == "dr")]
    refusals = kept[kept["setting"] == "Refusals"].groupby("wrong")["refused"].mean()
    within = right["covered"].between(LOWEST, HIGHEST)
    low = right[right["covered"] + 2 * right["covered_se"] < LOWEST].sort_values("covered")
    logs = told.drop_duplicates(["setting", "name", "size"])["logs"]
    return {
        "logs": int(logs.sum()), "fewest": int(logs.min()), "most": int(logs.max()),
        "intervals": len(right), "within": _percent(within.mean()),
        "above": _percent((right["covered"] > HIGHEST).mean()),
        "below": _percent((right["covered"] < LOWEST).mean()),
        "refused_wrong": _percent(refusals.get(True, np.nan)),
        "refused_right": _percent(refusals.get(False, np.nan)),
        "low": _low_table(low),
        "tables": [_table(setting, told[told["setting"] == setting]) for setting in told["setting"].unique()],
    }  # fmt: skip


def _judged(told: pd.DataFrame) -> pd.DataFrame:
    """Rows with intervals enough, of kinds that cover 95 % by design."""
    enough = told["answered"] * told["logs"] >= LEAST
    return told[enough & ~told["estimator"].isin(CAUTIOUS) & ~told["estimator"].str.startswith("bounds")]


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.0f} %"


def _name(quantity: str, estimator: str) -> str:
    for name in GAPS:
        quantity = quantity.replace(name, MEASURES[name].label)
    kind = {"dr": "", "contraction": ""}.get(estimator, f", {LABELS.get(estimator, estimator)}")
    return f"{quantity}{kind}"


def _low_table(low: pd.DataFrame) -> Table:
    rows = [
        Row(
            of.setting,
            of.name,
            [Cell(f"{of.size:,}"), Cell(_name(of.quantity, of.estimator)), Cell(_covered(of))],
        )
        for of in low.itertuples()
    ]  # fmt: skip
    return Table(
        key="low", title="Where intervals cover too rarely", rows=rows, records=[],
        columns=["rows", "estimate", "covers"],
        note=f"All in which the coverage is below {100 * LOWEST:.0f} % by two standard errors.",
    )  # fmt: skip


def _table(setting: str, told: pd.DataFrame) -> Table:
    """A row per case and estimate, a column per size."""
    every = setting.startswith(("Basic", "Interactions"))
    shown = told if every else told[~told["estimator"].isin(BESIDE)]
    gaps = ~shown["quantity"].isin(["value", "difference: value"])
    shown = shown[~(gaps & (shown["estimator"] == "ips"))]
    shown = shown[~(shown["quantity"].str.startswith("difference") & (shown["estimator"] == "ips"))]
    sizes = sorted(shown["size"].unique())
    rows = []
    for (name, quantity, estimator), of in shown.groupby(["name", "quantity", "estimator"], sort=False):
        by = {one.size: Cell(_told(one)) for one in of.itertuples(index=False, name="One")}
        truth = f"{100 * of['truth'].iloc[0]:.1f}".replace("-", "−")
        cells = [Cell(truth), *(by.get(size, Cell()) for size in sizes)]
        rows.append(Row(name, _name(quantity, estimator), cells))
    columns = ["truth", *(f"{size:,} rows" for size in sizes)]
    return Table(key=setting, title=setting, note=NOTES[setting], columns=columns, rows=rows, records=[])


def _covered(of: object) -> str:
    return f"{100 * of.covered:.1f} % ({100 * of.covered_se:.1f})"  # type: ignore[attr-defined]


def _told(of: object) -> str:
    """Mean error, coverage, and how many logs have them."""
    parts = []
    if not np.isnan(of.error):  # type: ignore[attr-defined]
        se = "" if np.isnan(of.error_se) else f" ({100 * of.error_se:.2f})"  # type: ignore[attr-defined]
        parts.append(f"{100 * of.error:.2f}{se}".replace("-", "−"))  # type: ignore[attr-defined]
    if of.answered > 0:  # type: ignore[attr-defined]
        parts.append(_covered(of))
    if 0 < of.answered < 1 - of.refused - 1e-9:  # type: ignore[attr-defined]
        parts.append(f"interval in {_percent(of.answered)}")  # type: ignore[attr-defined]
    elif of.answered == 0 and of.refused < 1:  # type: ignore[attr-defined]
        parts.append("no interval")
    if of.refused > 1e-9:  # type: ignore[attr-defined]
        parts.append("refused" if of.refused == 1 else f"refused in {_percent(of.refused)}")  # type: ignore[attr-defined]
    return "; ".join(parts)


def _draw(told: pd.DataFrame) -> Figure:
    """Coverage of all intervals, by setting."""
    shown, settings = _judged(told), list(told["setting"].unique())
    kinds = {
        "value": (BLUE, shown["quantity"] == "value"),
        "difference between policies": (ORANGE, shown["quantity"].str.startswith("difference")),
    }
    kinds["gap or rate"] = (GREEN, ~kinds["value"][1] & ~kinds["difference between policies"][1])
    figure = Figure(figsize=(6.8, 0.9 + 0.33 * len(settings)), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(100 * LOWEST, 100 * HIGHEST, color=GREY, alpha=0.2, lw=0)
    axes.axvline(95, color=GREY, lw=0.8)
    for k, (name, (colour, rows)) in enumerate(kinds.items()):
        own = shown[rows & ~shown["wrong"]]
        at = [settings.index(one) + 0.22 * (k - 1) for one in own["setting"]]
        axes.errorbar(
            100 * own["covered"],
            at,
            xerr=100 * own["covered_se"],
            fmt="o",
            ms=2,
            lw=0.4,
            alpha=0.6,
            color=colour,
            label=name,
        )
    axes.set_yticks(range(len(settings)), settings)
    axes.invert_yaxis()
    axes.set_xlabel("share of 95 % intervals that cover the truth, in %")
    axes.legend(loc="lower left")
    return figure
