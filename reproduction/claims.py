"""Claims of the paper on its methods, compared with runs by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from fairall.display import Cell, PageTable, Row
from fairall.report import LEVEL, dataset_label, holm, measures, paired_p
from reproduction.items import table_of
from reproduction.plan import DATASETS, METHODS, Planned, by_model
from reproduction.tables import by_dataset

REPRODUCED, IN_DIRECTION, NOT, MISSING = "reproduced", "in direction only", "not reproduced", "missing"
ON_SPLIT = f"{REPRODUCED} on this split"  # where all seeds have the same
MARGIN = 0.005  # of non-inferiority: how much worse still counts as no worse, in plain units
MEANING = (
    "{}: our means are in the order that the paper claims and differ beyond the chance of seeds and splits "
    "(two-sided Wilcoxon signed-rank test, paired over seeds, Holm-corrected over the data sets of a claim, "
    f"p < {LEVEL:g}); {IN_DIRECTION}: in its order, but chance might do this; {NOT}: not in its order. No "
    f"worse: worse by less than {100 * MARGIN:g} (×100), which is tested in the same way."
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


FAIRALL, FAIRALL_II, FAIRLAB, FAIRLOG, UNFAIRLOG = METHODS
UTILITY, DPU = "effective_utility", "effective_dpu"
REAL = (
    Claim("FairAll (I+II) accumulates more utility than FairLog", FAIRALL, FAIRLOG, UTILITY),
    Claim("FairAll (I+II) accumulates less unfairness than FairLog", FAIRALL, FAIRLOG, DPU),
    Claim("FairAll (I+II) accumulates no less utility than UnfairLog", FAIRALL, UNFAIRLOG, UTILITY, True),
    Claim("FairAll (I+II) accumulates less unfairness than UnfairLog", FAIRALL, UNFAIRLOG, DPU),
    Claim("Phase I helps: more utility than FairAll (II)", FAIRALL, FAIRALL_II, UTILITY),
    Claim("unlabelled data help: FairAll (II) earns more than FairLab", FAIRALL_II, FAIRLAB, UTILITY),
    Claim("deployed, FairAll (I+II) earns more than FairLog", FAIRALL, FAIRLOG, "mean_utility"),
    Claim("deployed, its unfairness is no greater than FairLog's", FAIRALL, FAIRLOG, "mean_dpu", True),
    Claim("its utility varies less over time than FairLog's", FAIRALL, FAIRLOG, "tv_utility"),
    Claim("its unfairness varies less over time than FairLog's", FAIRALL, FAIRLOG, "tv_dpu"),
)
BY_GROUND_TRUTH = "by the ground truth FairAll (I+II) earns no less than UnfairLog"
SYNTHETIC = (
    Claim("FairAll (I+II) treats groups more alike than FairLog (DPU)", FAIRALL, FAIRLOG, "mean_dpu"),
    Claim("FairAll (I+II) is counterfactually fairer than FairLog (CFU)", FAIRALL, FAIRLOG, "mean_cfu"),
    Claim("Phase I helps: less counterfactual unfairness than FairAll (II)", FAIRALL, FAIRALL_II, "mean_cfu"),
    Claim(BY_GROUND_TRUTH, FAIRALL, UNFAIRLOG, "mean_ground_truth_utility", True),
)


class Verdict(NamedTuple):
    """Outcome of a claim on a data set."""

    claim: Claim
    dataset: str
    words: str  # `REPRODUCED` or `ON_SPLIT`, `IN_DIRECTION`, `NOT` or `MISSING`
    p: float | None  # Holm-corrected; None without a test


def judge(claims: Iterable[Claim], planned: Sequence[Planned]) -> list[Verdict]:
    """Compare every claim with every data set of some runs, all of one initial policy and protocol."""
    verdicts = []
    datasets = {name: by_model(own) for name, own in by_dataset(planned).items()}
    reproduced = _reproduced(planned)
    for claim in claims:
        pair = claim.model, claim.other
        ahead = [
            _ahead(claim, *(runs[model].values(claim.measure) for model in pair))
            if runs.keys() >= {*pair}
            else pd.Series(dtype=float)
            for runs in datasets.values()
        ]
        raw = [paired_p(series, 0 * series) for series in ahead]
        for dataset, series, p in zip(datasets, ahead, holm(raw), strict=True):
            words = MISSING if p is None else _words(float(series.mean()), p, reproduced)
            verdicts.append(Verdict(claim, dataset, words, p))
    return verdicts


def _ahead(claim: Claim, ours: pd.Series, others: pd.Series) -> pd.Series:
    """By how much a method is ahead by seed, beyond what the claim allows it to be behind."""
    (measure,) = measures(claim.measure)
    sign = 1 if measure.higher_is_better else -1
    return sign * (ours - others).dropna() + (MARGIN if claim.no_worse else 0)


def _reproduced(planned: Sequence[Planned]) -> str:
    return ON_SPLIT if all(one.config.splits == 1 for one in planned) else REPRODUCED


def _words(ahead: float, p: float, reproduced: str) -> str:
    return NOT if ahead <= 0 else reproduced if p < LEVEL else IN_DIRECTION


def claims_table(
    verdicts: Sequence[Verdict], planned: Sequence[Planned], key: str, title: str, setting: str = ""
) -> PageTable:
    """A row per claim and a column per data set, those without any verdict left out."""
    judged = [verdict for verdict in verdicts if verdict.words != MISSING]
    datasets = [name for name in DATASETS if any(verdict.dataset == name for verdict in judged)]
    rows = []
    for claim in dict.fromkeys(verdict.claim for verdict in judged):
        words = {verdict.dataset: verdict.words for verdict in judged if verdict.claim == claim}
        cells = [
            Cell(words.get(name, MISSING), best=words.get(name) in (REPRODUCED, ON_SPLIT))
            for name in datasets
        ]
        rows.append(Row(measures(claim.measure)[0].label, claim.text, cells))
    records = [
        {"claim": claim.text, "measure": claim.measure, "dataset": dataset, "verdict": words, "p": p}
        for claim, dataset, words, p in judged
    ]
    return table_of(
        [dataset_label(name) for name in datasets],
        rows,
        records,
        planned,
        key=key,
        title=title,
        note=MEANING.format(_reproduced(planned)),
        section="What reproduced",
        setting=setting,
    )


def counts_table(tables: Sequence[PageTable]) -> PageTable:
    """How much reproduced: a row per initial policy and protocol, counts over tables beside the print.

    Args:
        tables: of claims, `tables.methods_table` and `printed.printed_tables`.
    """
    rows, records = [], []
    for setting in dict.fromkeys(table.setting for table in tables if table.setting):
        every = pd.concat([table.records for table in tables if table.setting == setting])
        own = every.reindex(columns=COUNTED)
        apart = own["difference_in_paper_std"].dropna().abs()
        judged = own.dropna(subset="inside")
        found = {
            "claims reproduced": own["verdict"].dropna().isin([REPRODUCED, ON_SPLIT]),
            "within 1 sd of print": apart <= 1.0,
            "within 2 sd": apart <= 2.0,
            "printed means inside": judged.loc[judged["statistic"] == "mean", "inside"],
            "printed deviations inside": judged.loc[judged["statistic"] == "std", "inside"],
        }
        counts = {name: (int(held.sum()), len(held)) for name, held in found.items()}
        rows.append(Row("", setting, [f"{n} of {total}" if total else "" for n, total in counts.values()]))
        records += [
            {"setting": setting, "count": name, "n": n, "of": total} for name, (n, total) in counts.items()
        ]
    return table_of(
        list(dict.fromkeys(record["count"] for record in records)),
        rows,
        records,
        key="counts",
        title="How much reproduced",
        note="Claims: see the tables of claims. sd: our mean less the printed one in printed standard "
        "deviations. Inside: of the 95 % predictive interval of as many seeds as the paper's.",
        section="What reproduced",
    )
