"""Tables of docs/evidence.md and a figure of docs/scorecard.md, of a folder of `evidence.Evidence`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import FairAllError, places
from fairall.display import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    Item,
    PageFigure,
    PageTable,
    Row,
    frame_of,
    legend_below,
    number,
    records_of,
)
from reproduction.evidence import NO_ASSUMPTION, Evidence, covers, summary
from reproduction.evidence_logs import CASES
from reproduction.pages import publish

LOWEST, HIGHEST = 0.92, 0.98  # coverage of a 95 % interval that can be trusted
LEAST = 20  # intervals of which a coverage is computed
# Shown where all estimators are; elsewhere the doubly robust ones and those of the other kinds.
BESIDE = ("ips", "snips", "sndr", "dm")
LABELS = {
    "sndr": "self-normalised DR",
    "ips": "IPS",
    "snips": "self-normalised IPS",
    "dm": "direct method",
    "accepted": "accepted alone",
    "bayesian": "Bayesian evaluation",
}
GAP_LABELS = {
    "dpu": "DPU",
    "equal_opportunity": "equal-opportunity gap",
    "predictive_parity": "predictive-parity gap",
    "false_positive": "false-positive gap",
}
SCORE_LABELS = {
    "score: auc": "AUC",
    "score: gini": "Gini",
    "score: ks": "KS",
    "score: brier": "Brier score",
    "score: calibration": "label − score",
}
ACCEPTED = "accepted"
KINDS = ("value", "difference of values", "gap or rate", "difference of gaps", "measure of a score")
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
        "Five rows for each person, with the same label. Where person= is not given, rows count as people of "
        "their own; where they are equal, a warning asks for it."
    ),
    "Amounts": "Gain and loss of each person depend on a feature.",
    "Differences of gaps": (
        "The second policy is fair, which is where gaps are not smooth: no normal distribution is right."
    ),
    "Rare labels": "2 % of the labels are positive, or 1 % negative; few people of a group have them.",
    "Scores": (
        "Of everybody. The score is not the best possible; decisions are random, with a chance that depends "
        "on it, on other features, or on nothing. Models are logistic regressions. "
        "Intervals of the accepted alone are of another quantity."
    ),
    "Unobserved confounding": (
        "The labels of the rejected have half or twice the odds of those of accepted people with equal "
        "features, the worst case of the sensitivity analysis for Γ = 2, or are all negative, the worst case "
        "of the bounds without assumption. An interval covers in 97.5 % of logs there, in more elsewhere."
    ),
}


def results(evidence: Evidence) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`summary` of all cases and sizes, and coverage by kind of quantity.

    Returns:
        First the summary, with the columns setting, name, size and wrong of the case. Then a row per log that
        can tell and kind of quantity: setting, name, size, kind, and covered, the share of its intervals.

    Raises:
        FairAllError: where nothing has been evaluated yet.
    """
    found = [
        evidence.found(place, n).assign(setting=case.setting, name=case.name, size=n, wrong=case.wrong)
        for place, case in enumerate(CASES)
        for n in case.sizes
        if evidence.file(place, n).exists()
    ]
    if not found:
        raise FairAllError(f"{evidence.folder}: nothing has been evaluated yet")
    own = ["setting", "name", "size"]
    told = pd.concat([summary(rows).assign(**rows[[*own, "wrong"]].iloc[0]) for rows in found])
    rows = pd.concat(found)
    shown = rows[rows["low"].notna() & _exact(rows) & ~rows["wrong"]]
    kinds = shown.assign(kind=shown["quantity"].map(_kind), covered=covers(shown))
    by_log = kinds.groupby([*own, "log", "kind"], sort=False)["covered"].mean().reset_index()
    return told.reset_index(drop=True), by_log


def _exact(rows: pd.DataFrame) -> pd.Series:
    """Which intervals are made to cover in 95 % of logs, and not in more."""
    return ~(rows["estimator"].str.contains("bounds") | rows["estimator"].isin(["guarantee", ACCEPTED]))


def _kind(quantity: str) -> str:
    if quantity.startswith("difference"):
        return "difference of values" if quantity == "difference: value" else "difference of gaps"
    if quantity.startswith("score"):
        return "measure of a score"
    return "value" if quantity == "value" else "gap or rate"


def write_pages(evidence: Evidence, folder: Path, into: Sequence[Path] = ()) -> None:
    """Write a page of tables and a figure, and the blocks of pages of the documentation."""
    told, by_log = results(evidence)
    scores = told[told["setting"] == "Scores"]
    sections: dict[str, list[Item]] = {
        "": [
            *([score_figure(scores)] if len(scores) else []),
            counts_table(told),
            low_table(told),
            coverage_table(by_log),
        ],
        "All settings": [
            setting_table(name, told[told["setting"] == name]) for name in told["setting"].unique()
        ],
    }
    title = "FairAll: can the intervals be trusted?"
    config, known = places([]), lambda: map(_key, NOTES)
    publish("evidence", title, sections, config, folder=folder, into=into, known=known)


def _judged(told: pd.DataFrame) -> pd.DataFrame:
    """Kinds of estimates of which a coverage is computed, and whether it is too low or too high."""
    exact = told[(told["answered"] * told["logs"] >= LEAST) & _exact(told)]
    return exact.assign(
        too_low=exact["covered"] + 2 * exact["covered_se"] < LOWEST,
        too_high=exact["covered"] - 2 * exact["covered_se"] > HIGHEST,
    )


def counts_table(told: pd.DataFrame) -> PageTable:
    """Numbers of logs, of intervals that cover too rarely or too often, and of refusals."""
    judged, logs = _judged(told), told.drop_duplicates(["setting", "name", "size"])["logs"]
    kept = told[told["quantity"].isin(["value", "difference: value"]) & (told["estimator"] == "dr")]
    shares = kept[kept["setting"] == "Refusals"].groupby(["wrong", "size"])["refused"].mean()
    low, high = f"{100 * LOWEST:.0f} %", f"{100 * HIGHEST:.0f} %"
    counts = {
        "logs": f"{logs.sum():,}",
        "logs of a kind, fewest and most": f"{logs.min():,} to {logs.max():,}",
        "estimates for a kind of log and a number of rows": f"{len(judged):,}",
        f"of these, covering in less than {low} of logs by two standard errors": str(judged["too_low"].sum()),
        f"of these, covering in more than {high}": str(judged["too_high"].sum()),
    }
    for (wrong, size), share in shares.items():
        kind = "✗: cannot tell" if wrong else "✓: can"
        counts[f"refused of logs that should test refusals ({kind}), {size:,} rows"] = _percent(share)
    return PageTable(
        key="counts",
        title="Counts",
        note="Shares of logs that are refused, and numbers of intervals.",
        frame=frame_of(["number"], [Row("", name, [value]) for name, value in counts.items()]),
        records=pd.DataFrame(counts.items(), columns=["count", "value"], dtype=object),
    )


def coverage_table(by_log: pd.DataFrame) -> PageTable:
    """Coverage by setting and kind of quantity, over all cases, sizes and estimators."""
    by = by_log.groupby(["setting", "kind"], sort=False)["covered"].agg(["mean", "sem", "count"])
    shares = [f"{100 * of.mean:.1f} % ({100 * of.sem:.1f})" for of in by.itertuples(name="Of")]
    cells = pd.Series(shares, by.index).unstack(fill_value="").reindex(columns=KINDS, fill_value="")
    logs = by_log.drop_duplicates(["setting", "name", "size", "log"])["setting"].value_counts(sort=False)
    rows = [Row(setting, f"{n:,}", [*cells.loc[setting]]) for setting, n in logs.items()]
    return PageTable(
        key="coverage",
        title="Coverage by setting",
        note="Number of logs that can tell, and the share of their 95 % intervals that cover the truth.",
        frame=frame_of([*KINDS], rows),
        records=records_of(by.reset_index().to_dict("records")),
    )


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.0f} %"


def _name(quantity: str, estimator: str) -> str:
    for name, label in (GAP_LABELS | SCORE_LABELS).items():
        quantity = quantity.replace(name, label)
    kind = "" if estimator == "dr" else f", {LABELS.get(estimator, estimator)}"
    return f"{quantity}{kind}"


def _key(setting: str) -> str:
    return setting.lower().replace(":", "").replace(" ", "_")


def low_table(told: pd.DataFrame) -> PageTable:
    """Kinds of estimates whose intervals cover too rarely."""
    judged = _judged(told)
    low = judged[judged["too_low"]].sort_values("covered")
    rows = [
        Row(of.setting, of.name, [f"{of.size:,}", _name(of.quantity, of.estimator), _covered(of)])
        for of in low.itertuples()
    ]
    return PageTable(
        key="low",
        title="Where intervals cover too rarely",
        note=f"All in which the coverage is below {100 * LOWEST:.0f} % by two standard errors.",
        frame=frame_of(["rows", "estimate", "covers"], rows),
        records=records_of(low.to_dict("records")),
    )


def setting_table(setting: str, told: pd.DataFrame) -> PageTable:
    """A row per case and estimate, a column per size."""
    gap = ~told["quantity"].isin(["value", "difference: value"])
    beside = told["estimator"].isin(BESIDE)
    if setting.startswith(("Basic", "Interactions")):
        beside = (told["estimator"] == "ips") & (told["quantity"] != "value")
    second = told["quantity"].str.endswith("of the second policy") & (setting != "Differences of gaps")
    bounds = told["estimator"] == NO_ASSUMPTION
    hidden = setting == "Refusals" or (bounds & (setting not in ("Unobserved confounding", "Scores")))
    shown = told[~(beside | second | (gap & hidden))]
    sizes = sorted(shown["size"].unique())
    rows = []
    for (name, quantity, estimator), of in shown.groupby(["name", "quantity", "estimator"], sort=False):
        by = {one.size: _told(one) for one in of.itertuples(index=False, name="One")}
        cells = [number(of["truth"].iloc[0]), *(by.get(size, "") for size in sizes)]
        rows.append(Row(name, _name(quantity, estimator), cells))
    return PageTable(
        key=_key(setting),
        title=setting,
        note=NOTES[setting],
        frame=frame_of(["truth", *(f"{size:,} rows" for size in sizes)], rows),
        records=records_of(shown.to_dict("records")),
    )


def _covered(of: Any) -> str:
    return f"{100 * of.covered:.1f} % ({100 * of.covered_se:.1f})"


def _told(of: Any) -> str:
    """Mean error, coverage, and how many logs have them."""
    parts = []
    if not np.isnan(of.error):
        se = "" if np.isnan(of.error_se) else f" ({100 * of.error_se:.2f})"
        parts.append(f"{100 * of.error:.2f}{se}".replace("-", "−"))
    if of.answered > 0:
        parts.append(_covered(of))
    if 0 < of.answered < 1 - of.refused - 1e-9:
        parts.append(f"interval in {_percent(of.answered)}")
    elif of.answered == 0 and of.refused < 1:
        parts.append("no interval")
    if of.refused > 1e-9:
        parts.append("refused" if of.refused == 1 else f"refused in {_percent(of.refused)}")
    return "; ".join(parts)


def score_figure(told: pd.DataFrame) -> PageFigure:
    """Coverage of measures of a score of everybody, doubly robust and of the accepted alone."""
    return PageFigure(
        key="score_coverage",
        title="Coverage of the 95 % intervals of a score's measures",
        note="Of everybody. Dots: doubly robust; crosses: of the accepted alone, which is what is usually "
        f"reported; grey: {100 * LOWEST:.0f} to {100 * HIGHEST:.0f} %.",
        wide=True,
        draw=lambda: _draw_scores(told),
    )


def _draw_scores(told: pd.DataFrame) -> Figure:
    """A panel per kind of selection; measures below each other, sizes by colour."""
    names, sizes = told["name"].unique(), sorted(told["size"].unique())
    figure = Figure(figsize=(6.8, 2.3), layout="constrained")
    handles: dict[str, Any] = {}
    for axes, name in zip(figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True):
        axes.axvspan(100 * LOWEST, 100 * HIGHEST, color=GREY, alpha=0.2, lw=0)
        shown = told[(told["name"] == name) & told["estimator"].isin([ACCEPTED, "dr"])]
        for (size, estimator), of in shown.groupby(["size", "estimator"]):
            k, marker = sizes.index(size), "o" if estimator == "dr" else "x"
            at = [[*SCORE_LABELS].index(one) + 0.2 * (k - 1) for one in of["quantity"]]
            colour = (ORANGE, GREEN, BLUE)[k]
            (handles[f"{size:,} rows"],) = axes.plot(100 * of["covered"], at, marker, ms=3.5, color=colour)
        axes.set(title=name, xlim=(-3, 103), xlabel="% that cover the truth")
        axes.set_yticks(range(len(SCORE_LABELS)), SCORE_LABELS.values())
        axes.set_ylim(len(SCORE_LABELS) - 0.5, -0.5)
    legend_below(figure, handles, len(sizes))
    return figure
