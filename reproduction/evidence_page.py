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
from fairall.results.figures import BLUE, GREEN, GREY, ORANGE, PURPLE
from fairall.results.page import legend_below, rendered, save, write
from fairall.results.table import Cell, Row, Table
from fairall.storage.files import atomic

LOWEST, HIGHEST = 0.92, 0.98  # coverage of a 95 % interval that can be trusted
LEAST = 20  # intervals of which a coverage is computed
# Shown where all estimators are; elsewhere the doubly robust ones and those of the other kinds.
BESIDE = ("ips", "snips", "sndr", "dm")
GUARANTEE, NO_ASSUMPTION = "guarantee", "bounds without assumption"
KINDS = {  # of quantities, with a colour
    "value": BLUE, "difference of values": ORANGE, "gap or rate": GREEN, "difference of gaps": PURPLE,
}  # fmt: skip
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


def results(study: Study) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`summary` of all cases and sizes, and coverage by kind of quantity.

    Returns:
        First the summary, with the columns setting, name, size and wrong of the case. Then a row per log that
        can tell and kind of quantity: setting, name, size, kind, and covered, the share of its intervals.

    Raises:
        BenchmarkError: where nothing has been evaluated yet.
    """
    found, by_log = [], []
    for place, case in enumerate(CASES):
        for n in case.sizes:
            rows = study.found(place, n)
            if rows.empty:
                continue
            own = {"setting": case.setting, "name": case.name, "size": n}
            found.append(summary(rows).assign(**own, wrong=case.wrong))
            if not case.wrong:
                shown = rows[rows["low"].notna() & _exact(rows)]
                covered = (shown["low"] <= shown["truth"] + 1e-12) & (shown["truth"] <= shown["high"] + 1e-12)
                kinds = shown["quantity"].map(_kind).rename("kind")
                by_log.append(covered.groupby([shown["log"], kinds]).mean().rename("covered").reset_index())
                by_log[-1] = by_log[-1].assign(**own)
    if not found:
        raise BenchmarkError(f"{study.folder}: nothing has been evaluated yet")
    return pd.concat(found, ignore_index=True), pd.concat(by_log, ignore_index=True)


def _exact(rows: pd.DataFrame) -> pd.Series:
    """Which intervals are made to cover in 95 % of logs, and not in more."""
    return ~(rows["estimator"].str.contains("bounds") | (rows["estimator"] == GUARANTEE))


def _kind(quantity: str) -> str:
    if quantity.startswith("difference"):
        return "difference of values" if quantity == "difference: value" else "difference of gaps"
    return "value" if quantity == "value" else "gap or rate"


def write_page(study: Study, page: Path) -> None:
    """Write a page of tables, and its figure to the folder `figures` beside it."""
    told, by_log = results(study)
    figures = page.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        picture, _ = save(lambda: _draw(by_log), Path(folder) / "evidence")
    with atomic(figures / "evidence.png") as temporary:
        temporary.write_bytes(picture)
    write(page, rendered("evidence.md.jinja", _values(told, by_log), "benchmarks"))


def _values(told: pd.DataFrame, by_log: pd.DataFrame) -> dict[str, object]:
    """What the template needs."""
    exact = told[(told["answered"] * told["logs"] >= LEAST) & _exact(told)]
    low = exact[exact["covered"] + 2 * exact["covered_se"] < LOWEST].sort_values("covered")
    high = exact[exact["covered"] - 2 * exact["covered_se"] > HIGHEST]
    kept = told[told["quantity"].isin(["value", "difference: value"]) & (told["estimator"] == "dr")]
    refusals = kept[kept["setting"] == "Refusals"].groupby(["wrong", "size"])["refused"].mean().unstack()
    logs = told.drop_duplicates(["setting", "name", "size"])["logs"]
    return {
        "logs": f"{logs.sum():,}", "fewest": f"{logs.min():,}", "most": f"{logs.max():,}",
        "intervals": len(exact), "n_low": len(low), "n_high": len(high), "low": _low_table(low),
        "refused": {
            bool(wrong): ", ".join(f"{_percent(share)} ({n:,} rows)" for n, share in of.items())
            for wrong, of in refusals.iterrows()
        },
        "coverage": _coverage_table(by_log),
        "tables": [_table(setting, told[told["setting"] == setting]) for setting in told["setting"].unique()],
    }  # fmt: skip


def _coverage_table(by_log: pd.DataFrame) -> Table:
    """Coverage by setting and kind of quantity, over all cases, sizes and estimators."""
    by = by_log.groupby(["setting", "kind"], sort=False)["covered"].agg(["mean", "sem", "count"])
    rows = []
    for setting in by_log["setting"].unique():
        cells = []
        for kind in KINDS:
            of = by.loc[(setting, kind)] if (setting, kind) in by.index else None
            told = "" if of is None else f"{100 * of['mean']:.1f} % ({100 * of['sem']:.1f})"
            cells.append(Cell(told))
        logs = by_log[by_log["setting"] == setting].drop_duplicates(["name", "size", "log"])
        rows.append(Row(setting, f"{len(logs):,}", cells))
    return Table(
        key="coverage", title="Coverage by setting", columns=list(KINDS), rows=rows, records=[],
        note="Number of logs that can tell, and the share of their 95 % intervals that cover the truth.",
    )  # fmt: skip


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
    gap = ~told["quantity"].isin(["value", "difference: value"])
    hidden = told["estimator"].isin(BESIDE) if not setting.startswith(("Basic", "Interactions")) else (
        (told["estimator"] == "ips") & (told["quantity"] != "value")
    )  # fmt: skip
    if setting == "Refusals":
        hidden |= gap
    if setting != "Differences of gaps":
        hidden |= told["quantity"].str.endswith("of the second policy")
    if setting != "Unobserved confounding":
        hidden |= gap & (told["estimator"] == NO_ASSUMPTION)
    shown = told[~hidden]
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


def _draw(by_log: pd.DataFrame) -> Figure:
    """Coverage by setting and kind of quantity: of each case and size, and of all with two errors."""
    settings = list(by_log["setting"].unique())
    figure = Figure(figsize=(6.8, 0.9 + 0.36 * len(settings)), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(100 * LOWEST, 100 * HIGHEST, color=GREY, alpha=0.2, lw=0)
    axes.axvline(95, color=GREY, lw=0.8)
    for k, (kind, colour) in enumerate(KINDS.items()):
        own = by_log[by_log["kind"] == kind]
        for keys, size, alpha in ((["setting", "name", "size"], 2, 0.4), (["setting"], 4, 1.0)):
            of = own.groupby(keys)["covered"].agg(["mean", "sem"]).reset_index()
            at = [settings.index(one) + 0.2 * (k - 1.5) for one in of["setting"]]
            if len(keys) == 1:
                axes.errorbar(
                    100 * of["mean"],
                    at,
                    xerr=200 * of["sem"],
                    fmt="D",
                    ms=size,
                    lw=1,
                    color=colour,
                    label=kind,
                )
            else:
                axes.plot(100 * of["mean"], at, "o", ms=size, alpha=alpha, color=colour, mew=0)
    axes.set_yticks(range(len(settings)), settings)
    axes.set_xlim(right=100.5)
    axes.invert_yaxis()
    axes.set_xlabel("share of 95 % intervals that cover the truth, in %")
    legend_below(figure, dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)), len(KINDS))
    return figure
