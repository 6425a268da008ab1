"""Tables of docs/evidence.md and docs/scorecard.md, of a folder of `evidence.make`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall import FairAllError, places
from fairall.display import Item, PageTable, number
from reproduction.evidence import CASES, STUDY, covers, evaluations, summary
from reproduction.pages import INDEX, publish

LOWEST, HIGHEST = 0.92, 0.98  # coverage of a 95 % interval that can be trusted
LEAST = 20  # intervals of which a coverage is computed
# Shown where all estimators are; elsewhere the doubly robust ones and those of the other kinds.
BESIDE = ("ips", "snips", "sndr", "dm")
VALUES = ("value", "difference: value")
KINDS = ("value", "difference of values", "gap or rate", "difference of gaps", "measure of a score")
OF_CASE = ["setting", "name", "rows"]


def results(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`summary` of all cases and sizes, and coverage by kind of quantity.

    Returns:
        First the summary, with the columns setting, name, rows and wrong of the case, and as texts the
        `estimate`, whether it `covers`, and what is `shown` of it. Then a row per log that can tell and kind
        of quantity: setting, name, rows, log, kind, and covered, the share of its intervals.

    Raises:
        FairAllError: where nothing has been evaluated yet.
    """
    found = evaluations(folder).sort_values(["case", "rows"], kind="stable")
    if found.empty:
        raise FairAllError(f"{folder}: nothing has been evaluated yet")
    for key in ("setting", "name", "wrong"):
        found[key] = found["case"].map(lambda case, key=key: getattr(CASES[case], key))
    by = found.groupby([*OF_CASE, "wrong"], sort=False)
    told = by.apply(summary).reset_index(level=[*OF_CASE, "wrong"]).reset_index(drop=True)
    texts = pd.DataFrame([*map(_texts, told.to_dict("records"))], columns=["estimate", "covers", "shown"])
    shown = found[found["low"].notna() & _exact(found) & ~found["wrong"]]
    kinds = shown.assign(kind=shown["quantity"].map(_kind), covered=covers(shown))
    by_log = kinds.groupby([*OF_CASE, "log", "kind"], sort=False)["covered"].mean().reset_index()
    return told.join(texts), by_log


def _texts(of: Mapping[Hashable, Any]) -> tuple[str, str, str]:
    """The name of an estimate, its coverage, and this with the mean error and how many logs have them."""
    name, estimator = str(of["quantity"]), of["estimator"]
    for quantity, label in STUDY["quantities"].items():
        name = name.replace(quantity, label)
    covered = f"{100 * of['covered']:.1f} % ({100 * of['covered_se']:.1f})"
    se = "" if np.isnan(of["error_se"]) else f" ({100 * of['error_se']:.2f})"
    parts = [] if np.isnan(of["error"]) else [f"{100 * of['error']:.2f}{se}".replace("-", "−")]
    if of["answered"] > 0:
        parts.append(covered)
    if 0 < of["answered"] < 1 - of["refused"] - 1e-9:
        parts.append(f"interval in {100 * of['answered']:.0f} %")
    elif of["answered"] == 0 and of["refused"] < 1:
        parts.append("no interval")
    if of["refused"] > 1e-9:
        parts.append("refused" if of["refused"] == 1 else f"refused in {100 * of['refused']:.0f} %")
    kind = "" if estimator == "dr" else f", {STUDY['labels'].get(estimator, estimator)}"
    return f"{name}{kind}", covered, "; ".join(parts)


def _exact(rows: pd.DataFrame) -> pd.Series:
    """Which intervals are made to cover in 95 % of logs, and not in more."""
    return ~(rows["estimator"].str.contains("bounds") | rows["estimator"].isin(["guarantee", "accepted"]))


def _kind(quantity: str) -> str:
    if quantity.startswith("score"):
        return KINDS[4]
    return KINDS[quantity.startswith("difference") + 2 * (quantity not in VALUES)]


def write_pages(folder: Path, into: Sequence[Path] = ()) -> None:
    """Write a page of tables and a figure, and the blocks of pages of the documentation."""
    told, by_log = results(folder)
    settings = [setting_table(str(name), own) for name, own in told.groupby("setting", sort=False)]
    sections: dict[str, list[Item]] = {
        "": [counts_table(told), low_table(told), coverage_table(by_log)],
        "All settings": [*settings],
    }
    title = "FairAll: can the intervals be trusted?"
    config, known = places([]), lambda: map(_key, STUDY["settings"])
    publish("evidence", title, sections, config, folder=folder / "page", into=into, known=known)


def _judged(told: pd.DataFrame) -> pd.DataFrame:
    """Kinds of estimates of which a coverage is computed, and whether it is too low or too high."""
    exact = told[(told["answered"] * told["logs"] >= LEAST) & _exact(told)]
    return exact.assign(
        too_low=exact["covered"] + 2 * exact["covered_se"] < LOWEST,
        too_high=exact["covered"] - 2 * exact["covered_se"] > HIGHEST,
    )


def counts_table(told: pd.DataFrame) -> PageTable:
    """Numbers of logs, of intervals that cover too rarely or too often, and of refusals."""
    judged, logs = _judged(told), told.drop_duplicates(OF_CASE)["logs"]
    kept = told[told["quantity"].isin(VALUES) & (told["estimator"] == "dr") & (told["setting"] == "Refusals")]
    low, high = f"{100 * LOWEST:.0f} %", f"{100 * HIGHEST:.0f} %"
    counts = {
        "logs": f"{logs.sum():,}",
        "logs of a kind, fewest and most": f"{logs.min():,} to {logs.max():,}",
        "estimates for a kind of log and a number of rows": f"{len(judged):,}",
        f"of these, covering in less than {low} of logs by two standard errors": str(judged["too_low"].sum()),
        f"of these, covering in more than {high}": str(judged["too_high"].sum()),
    }
    for (wrong, size), share in kept.groupby(["wrong", "rows"])["refused"].mean().items():
        kind = "✗: cannot tell" if wrong else "✓: can"
        name = f"refused of logs that should test refusals ({kind}), {size:,} rows"
        counts[name] = "–" if np.isnan(share) else f"{100 * share:.0f} %"
    frame = pd.DataFrame({"group": "", "name": [*counts], "number": counts.values()})
    note = "Shares of logs that are refused, and numbers of intervals."
    records = frame[["name", "number"]].set_axis(["count", "value"], axis=1)
    return PageTable(key="counts", title="Counts", note=note, frame=frame.set_index(INDEX), records=records)


def coverage_table(by_log: pd.DataFrame) -> PageTable:
    """Coverage by setting and kind of quantity, over all cases, sizes and estimators."""
    by = (
        by_log.groupby(["setting", "kind"], sort=False)["covered"].agg(["mean", "sem", "count"]).reset_index()
    )
    logs = by_log.drop_duplicates([*OF_CASE, "log"])["setting"].value_counts(sort=False)
    shares = [f"{100 * of.mean:.1f} % ({100 * of.sem:.1f})" for of in by.itertuples()]
    cells = by.assign(name=by["setting"].map(logs).map("{:,}".format), shown=shares)
    return PageTable(
        key="coverage",
        title="Coverage by setting",
        note="Number of logs that can tell, and the share of their 95 % intervals that cover the truth.",
        frame=_wide(cells, "setting", "name", "kind").reindex(columns=KINDS, fill_value=""),
        records=by,
    )


def _wide(cells: pd.DataFrame, group: str, name: str, measure: str) -> pd.DataFrame:
    """The frame of a table of what is `shown`, a row per group and name."""
    wide = cells.set_index([group, name, measure])["shown"].unstack(sort=False)
    return wide.fillna("").rename_axis(index=INDEX, columns=None)


def _key(setting: str) -> str:
    return setting.lower().replace(":", "").replace(" ", "_")


def low_table(told: pd.DataFrame) -> PageTable:
    """Kinds of estimates whose intervals cover too rarely."""
    judged = _judged(told)
    low = judged[judged["too_low"]].sort_values("covered")
    shown = low.assign(rows=low["rows"].map("{:,}".format)).set_index(["setting", "name"])
    return PageTable(
        key="low",
        title="Where intervals cover too rarely",
        note=f"All in which the coverage is below {100 * LOWEST:.0f} % by two standard errors.",
        frame=shown[["rows", "estimate", "covers"]].rename_axis(index=INDEX),
        records=low,
    )


def setting_table(setting: str, told: pd.DataFrame) -> PageTable:
    """A row per case and estimate, a column per size."""
    beside = told["estimator"].isin(BESIDE)
    if setting.startswith(("Basic", "Interactions")):
        beside = (told["estimator"] == "ips") & (told["quantity"] != "value")
    if setting != "Differences of gaps":
        beside |= told["quantity"].str.endswith("of the second policy")
    if setting not in ("Unobserved confounding", "Scores"):
        hidden = (told["estimator"] == "bounds without assumption") | (setting == "Refusals")
        beside |= hidden & ~told["quantity"].isin(VALUES)
    shown = told[~beside]
    cells = _wide(shown, "name", "estimate", "rows").sort_index(axis=1).rename(columns="{:,} rows".format)
    cells.insert(0, "truth", shown.groupby(["name", "estimate"], sort=False)["truth"].first().map(number))
    note = STUDY["settings"][setting]["note"]
    return PageTable(key=_key(setting), title=setting, note=note, frame=cells, records=shown)
