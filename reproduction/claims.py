"""Claims of the paper on its methods (claims.yaml), compared with runs by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from fairall.display import Cell, PageTable, Row
from fairall.report import LEVEL, dataset_label, holm, measures, paired_p
from reproduction.items import table_of
from reproduction.plan import DATASETS, Planned, by_model
from reproduction.tables import by_dataset
from reproduction.words import words_of

REPRODUCED, IN_DIRECTION, NOT, MISSING = "reproduced", "in direction only", "not reproduced", "missing"
ON_SPLIT = f"{REPRODUCED} on this split"  # where all seeds have the same
MARGIN = 0.005  # of non-inferiority: how much worse still counts as no worse, in plain units
MEANING = (
    "{}: our means are in the order that the paper claims and differ beyond the chance of seeds and splits "
    "(two-sided Wilcoxon signed-rank test, paired over seeds, Holm-corrected over the data sets of a claim, "
    f"p < {LEVEL:g}); {IN_DIRECTION}: in its order, but chance might do this; {NOT}: not in its order. No "
    f"worse: worse by less than {100 * MARGIN:g} (×100), which is tested in the same way."
)
SECTION = "What reproduced"
NONE = pd.Series(dtype=float)  # values of a missing run
COUNTS = (
    "claims reproduced",
    "within 1 sd of print",
    "within 2 sd",
    "printed means inside",
    "printed deviations inside",
)
COUNTED = ("verdict", "difference_in_paper_std", "statistic", "inside")  # columns of records


class Claim(NamedTuple):
    """A claim of the paper that a method is better than another, or no worse, by a key of summary.json.

    That it is no worse is shown where it is worse by less than `MARGIN` beyond chance, as in trials of
    non-inferiority; that it is not significantly worse would also hold of few and noisy seeds.
    """

    text: str
    model: str
    other: str
    measure: str
    no_worse: bool = False


REAL, SYNTHETIC = ([Claim(**claim) for claim in claims] for claims in words_of("claims").values())


def judge(claims: Iterable[Claim], planned: Sequence[Planned]) -> pd.DataFrame:
    """Compare every claim with every data set of some runs, all of one initial policy and protocol.

    Returns:
        Columns `claim`, `measure`, `dataset`, `verdict` and the Holm-corrected `p`, None without a test.
    """
    verdicts = []
    datasets = {name: by_model(own) for name, own in by_dataset(planned).items()}
    for claim in claims:
        pair = claim.model, claim.other
        ahead = [
            beyond(claim, *(runs[name].values(claim.measure) if name in runs else NONE for name in pair))
            for runs in datasets.values()
        ]
        corrected = holm([paired_p(series, 0 * series) for series in ahead])
        for dataset, series, p in zip(datasets, ahead, corrected, strict=True):
            sure = _reproduced(planned) if p is not None and p < LEVEL else IN_DIRECTION
            words = MISSING if p is None else sure if series.mean() > 0 else NOT
            verdicts.append((claim.text, claim.measure, dataset, words, p))
    return pd.DataFrame(verdicts, columns=["claim", "measure", "dataset", "verdict", "p"])


def beyond(claim: Claim, ours: pd.Series, others: pd.Series) -> pd.Series:
    """By how much a method is ahead by seed, beyond what the claim allows it to be behind."""
    (measure,) = measures(claim.measure)
    sign = 1 if measure.higher_is_better else -1
    return sign * (ours - others).dropna() + (MARGIN if claim.no_worse else 0)


def _reproduced(planned: Sequence[Planned]) -> str:
    return ON_SPLIT if all(one.config.splits == 1 for one in planned) else REPRODUCED


def claims_table(verdicts: pd.DataFrame, planned: Sequence[Planned], **shown: Any) -> PageTable:
    """A row per claim and a column per data set, those without any verdict left out."""
    judged = verdicts[verdicts["verdict"] != MISSING]
    names = [name for name in DATASETS if name in set(judged["dataset"])]
    rows = []
    for (claim, measure), own in verdicts.groupby(["claim", "measure"], sort=False):
        if claim in set(judged["claim"]):
            words = own.set_index("dataset").loc[names, "verdict"]
            cells = [Cell(word, best=word.startswith(REPRODUCED)) for word in words]
            rows.append(Row(measures(measure)[0].label, claim, cells))
    note, records = MEANING.format(_reproduced(planned)), judged.to_dict("records")
    of_claims = {"note": note, "section": SECTION} | shown
    return table_of([*map(dataset_label, names)], rows, records, planned, **of_claims)


def counts_table(tables: Sequence[PageTable]) -> PageTable:
    """How much reproduced: a row per initial policy and protocol, counts over tables beside the print.

    Args:
        tables: of claims, `tables.methods_table` and `printed.printed_items`.
    """
    rows: list[Row] = []
    for setting in dict.fromkeys(table.setting for table in tables if table.setting):
        every = pd.concat([table.records for table in tables if table.setting == setting])
        verdict, apart, statistic, inside = (every.reindex(columns=COUNTED)[name] for name in COUNTED)
        counts = (
            verdict.dropna().isin([REPRODUCED, ON_SPLIT]),
            *(apart.dropna().abs() <= most for most in (1.0, 2.0)),
            *(inside[statistic == of].dropna() for of in ("mean", "std")),
        )
        rows.append(Row("", setting, [f"{int(of.sum())} of {len(of)}" if len(of) else "" for of in counts]))
    return table_of(
        COUNTS,
        rows,
        None,
        key="counts",
        title="How much reproduced",
        note="Claims: see the tables of claims. sd: our mean less the printed one in printed standard "
        "deviations. Inside: of the 95 % predictive interval of as many seeds as the paper's.",
        section=SECTION,
    )
