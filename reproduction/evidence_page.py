"""Tables of docs/evidence.md and docs/scorecard.md, of a folder of `evidence.make`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall import FairAllError, places
from fairall.display import PageTable, number
from reproduction.evidence import CASES, FILE, STUDY, covers, summary
from reproduction.pages import publish
from reproduction.simulations import found, page_table

LOWEST, HIGHEST = 0.92, 0.98  # coverage of a 95 % interval that can be trusted, as texts below say
LEAST = 20  # intervals of which a coverage is computed
CASE = ["setting", "name", "rows", "wrong"]  # columns of `CASES`


def write_pages(folder: Path, into: Sequence[Path] = ()) -> None:
    """Write a page of tables of the evaluations in a folder, and the blocks of pages of the documentation.

    Raises:
        FairAllError: where nothing has been evaluated yet.
    """
    evaluated = found(folder / FILE).join(CASES[CASE], on="case")
    if evaluated.empty:
        raise FairAllError(f"{folder}: nothing has been evaluated yet")
    told = summaries(evaluated)
    low = told[told["too_low"]].sort_values("covered", kind="stable").set_index(["setting", "name"])
    covering = page_table(
        low[["rows", "estimate", "covers"]].assign(rows=low["rows"].map("{:,}".format)),
        key="low",
        title="Where intervals cover too rarely",
        note="All in which the coverage is below 92 % by two standard errors.",
    )
    settings = [setting_table(str(name), of) for name, of in told.groupby("setting", sort=False)]
    sections = {
        "": [counts_table(told), covering, coverage_table(evaluated)],
        "All settings": settings,
    }
    title = "FairAll: can the intervals be trusted?"
    known = [*map(_key, STUDY["settings"])]
    publish("evidence", title, sections, places([]), folder=folder / "page", into=into, known=lambda: known)


def summaries(evaluated: pd.DataFrame) -> pd.DataFrame:
    """`summary` of all cases, with the texts `estimate` (its name), `covers`, and what is `shown`.

    Where a coverage is computed, `judged`, it may be `too_low` or `too_high` by two standard errors.
    """
    told = summary(evaluated, "case", ["case", *CASE, "quantity", "estimator"]).reset_index()
    judged = (told["answered"] * told["logs"] >= LEAST) & _exact(told)
    kind = ", " + told["estimator"].replace(STUDY["labels"])
    texts = told.assign(
        estimate=told["quantity"].replace(STUDY["quantities"], regex=True) + kind.where(kind != ", dr", ""),
        covers=_percent(told["covered"], told["covered_se"]),
        judged=judged,
        too_low=judged & (told["covered"] + 2 * told["covered_se"] < LOWEST),
        too_high=judged & (told["covered"] - 2 * told["covered_se"] > HIGHEST),
    )
    return texts.assign(shown=[*map(_shown, texts.itertuples())])


def _percent(share: Any, error: Any) -> Any:
    """Shares in percent with their standard errors."""
    return (100 * share).map("{:.1f} %".format) + (100 * error).map(" ({:.1f})".format)


def _shown(of: Any) -> str:
    """The mean error and the coverage of an estimate, and how many logs have them."""
    se = "" if np.isnan(of.error_se) else f" ({100 * of.error_se:.2f})"
    texts = {
        f"{100 * of.error:.2f}{se}".replace("-", "−"): not np.isnan(of.error),
        of.covers: of.answered > 0,
        f"interval in {100 * of.answered:.0f} %": 0 < of.answered < 1 - of.refused - 1e-9,
        "no interval": of.answered == 0 and of.refused < 1,
        "refused": of.refused == 1,
        f"refused in {100 * of.refused:.0f} %": 1e-9 < of.refused < 1,
    }
    return "; ".join(text for text, known in texts.items() if known)


def _exact(rows: pd.DataFrame) -> pd.Series:
    """Which intervals are made to cover in 95 % of logs, and not in more."""
    return ~rows["estimator"].str.contains("bounds|guarantee|accepted")


def counts_table(told: pd.DataFrame) -> PageTable:
    """Numbers of logs, of intervals that cover too rarely or too often, and of refusals."""
    logs = told.drop_duplicates("case")["logs"]
    counts = {
        "logs": f"{logs.sum():,}",
        "logs of a kind, fewest and most": f"{logs.min():,} to {logs.max():,}",
        "estimates for a kind of log and a number of rows": f"{told['judged'].sum():,}",
        "of these, covering in less than 92 % of logs by two standard errors": str(told["too_low"].sum()),
        "of these, covering in more than 98 %": str(told["too_high"].sum()),
    }
    of_values = told["quantity"].str.endswith("value") & (told["estimator"] == "dr")
    kept = told[of_values & (told["setting"] == "Refusals")]
    for (wrong, size), share in kept.groupby(["wrong", "rows"])["refused"].mean().items():
        kind = "✗: cannot tell" if wrong else "✓: can"
        counts[f"refused of logs that should test refusals ({kind}), {size:,} rows"] = f"{100 * share:.0f} %"
    frame = pd.DataFrame({"number": counts}).set_index([[""] * len(counts), [*counts]])
    note = "Shares of logs that are refused, and numbers of intervals."
    return page_table(frame, key="counts", title="Counts", note=note)


def coverage_table(evaluated: pd.DataFrame) -> PageTable:
    """Coverage by setting and kind of quantity, over all cases, sizes and estimators."""
    kinds = evaluated["quantity"].replace(STUDY["kinds"], regex=True)
    told = evaluated.assign(kind=kinds, covered=covers(evaluated))
    told = told[_exact(told) & ~told["wrong"]].dropna(subset="covered")
    by = told.groupby(["setting", "case", "replicate", "kind"], sort=False)["covered"]
    by_log = by.mean().unstack(sort=False).groupby("setting", sort=False)
    share, error = by_log.mean(), by_log.sem()
    shown = pd.DataFrame({kind: _percent(share[kind], error[kind]) for kind in share})
    shown = shown.where(share.notna(), "").reindex(columns=[*STUDY["kinds"].values()], fill_value="")
    return page_table(
        shown.set_index(by_log.size().map("{:,}".format), append=True),
        key="coverage",
        title="Coverage by setting",
        note="Number of logs that can tell, and the share of their 95 % intervals that cover the truth.",
    )


def _key(setting: str) -> str:
    return setting.lower().replace(":", "").replace(" ", "_")


def setting_table(setting: str, told: pd.DataFrame) -> PageTable:
    """A row per case and estimate, a column per size."""
    own = STUDY["settings"][setting]
    names = told["quantity"] + "/" + told["estimator"]
    rows = told[~names.str.contains(own.get("hidden", STUDY["hidden"]))].assign(
        truth=told["truth"].map(number)
    )
    cells = rows.set_index(["name", "estimate", "truth", "rows"])["shown"].unstack(sort=False).fillna("")
    cells = cells.sort_index(axis=1).rename(columns="{:,} rows".format).reset_index("truth")
    return page_table(cells, key=_key(setting), title=setting, note=own["note"])
