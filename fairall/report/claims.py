"""Claims of the paper on its methods, compared with runs by rule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fairall.report import labels
from fairall.report.plan import Planned, missing_runs
from fairall.report.statistics import LEVEL, holm, paired_p
from fairall.report.tables import datasets_of, signed
from fairall.results.paper import paper_seeds
from fairall.results.table import Cell, Row, Table, hundredfold

REPRODUCED, IN_DIRECTION, NOT, MISSING = "reproduced", "in direction only", "not reproduced", "missing"
MEANING = (
    f"{REPRODUCED}: our means are in the order that the paper claims and differ beyond chance (two-sided "
    "Wilcoxon signed-rank test, paired over seeds, Holm-corrected over the data sets of a claim, "
    f"p < {LEVEL:g}); {IN_DIRECTION}: in its order, but chance might do this; {NOT}: not in its order. "
    "A claim that something is no worse is not reproduced where it is worse beyond chance."
)
FAR = 2.0  # printed standard deviations beyond which a measure is listed
MOST_LISTED = 6


class Claim(NamedTuple):
    """A claim of the paper that a method is better than another, or no worse, by a key of summary.json."""

    text: str
    model: str
    other: str
    measure: str
    no_worse: bool = False


FAIRALL, FAIRALL_II, FAIRLAB, FAIRLOG, UNFAIRLOG = labels.METHODS
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
    words: str  # `REPRODUCED`, `IN_DIRECTION`, `NOT` or `MISSING`
    p: float | None  # Holm-corrected; None without a test


def judge(claims: Iterable[Claim], planned: Sequence[Planned]) -> list[Verdict]:
    """Compare every claim with every data set of some runs, all of one initial policy and protocol."""
    verdicts = []
    datasets = datasets_of(planned)
    runs = {(one.model, one.dataset): one.run for one in planned}
    for claim in claims:
        pairs = [(runs.get((claim.model, name)), runs.get((claim.other, name))) for name in datasets]
        values = [[run.per_seed(claim.measure) for run in pair if run is not None] for pair in pairs]
        raw = [paired_p(*both) if len(both) == 2 else None for both in values]
        for dataset, both, p in zip(datasets, values, holm(raw), strict=True):
            verdicts.append(Verdict(claim, dataset, _words(claim, both, p), p))
    return verdicts


def _words(claim: Claim, values: Sequence[Any], p: float | None) -> str:
    if p is None:
        return MISSING
    (measure,) = labels.measures(claim.measure)
    ours, others = (series.mean() for series in values)
    better = ours > others if measure.higher_is_better else ours < others
    if claim.no_worse:
        return NOT if p < LEVEL and not better else REPRODUCED
    return NOT if not better else REPRODUCED if p < LEVEL else IN_DIRECTION


def claims_table(verdicts: Sequence[Verdict], planned: Sequence[Planned], key: str, title: str) -> Table:
    """A row per claim and a column per data set, those without any verdict left out."""
    judged = [verdict for verdict in verdicts if verdict.words != MISSING]
    datasets = [name for name in labels.DATASETS if any(verdict.dataset == name for verdict in judged)]
    rows = []
    for claim in dict.fromkeys(verdict.claim for verdict in judged):
        words = {verdict.dataset: verdict.words for verdict in judged if verdict.claim == claim}
        cells = [Cell(words.get(name, MISSING), best=words.get(name) == REPRODUCED) for name in datasets]
        rows.append(Row(labels.measures(claim.measure)[0].label, claim.text, cells))
    return Table(
        key=key,
        title=title,
        note=MEANING,
        section="What reproduced",
        columns=[labels.dataset(name) for name in datasets],
        rows=rows,
        records=[
            {"claim": claim.text, "measure": claim.measure, "dataset": dataset, "verdict": words, "p": p}
            for claim, dataset, words, p in judged
        ],
        lacking=missing_runs(planned),
    )


def in_words(
    setting: str,
    verdicts: Sequence[Verdict],
    tables: Sequence[Table],
    planned: int,
    there: int,
    other_seeds: int = 0,
) -> list[str]:
    """What reproduced and what did not: a paragraph of counts, then lines of details.

    Args:
        setting: initial policy and protocol of the claims' runs.
        verdicts: of `judge`.
        tables: with printed measures beside ours.
        planned: number of runs the paper needs.
        there: how many of them are finished.
        other_seeds: how many of those have another number of seeds than planned.
    """
    seeds = f", {other_seeds} of them with another number of seeds than planned" if other_seeds else ""
    paragraph = [f"{there} of the {planned} runs that the paper's tables and figures need are here{seeds}."]
    judged = [verdict for verdict in verdicts if verdict.words != MISSING]
    by_words = {words: [v for v in judged if v.words == words] for words in (NOT, IN_DIRECTION, REPRODUCED)}
    if judged:
        paragraph.append(
            f"Of {len(judged)} comparisons in the paper ({setting}), {len(by_words[REPRODUCED])} reproduced, "
            f"{len(by_words[IN_DIRECTION])} in direction only, where chance might do it, and "
            f"{len(by_words[NOT])} did not."
        )
    lines = [f"{words.capitalize()}: {_listed(some, judged)}." for words, some in by_words.items() if some]
    for of_tables in dict.fromkeys(table.setting for table in tables):
        records = [record for table in tables if table.setting == of_tables for record in table.records]
        far = _farthest(records)
        if far:
            one, two = (sum(abs(apart) <= bound for apart, _ in far) for bound in (1.0, FAR))
            paragraph.append(
                f"Of {len(far)} printed measures ({of_tables}), {one} are within one printed standard "
                f"deviation of ours and {two} within two."
            )
            named = [name for apart, name in far if abs(apart) > FAR]
            if len(named) > MOST_LISTED:
                named[MOST_LISTED:] = [f"{len(named) - MOST_LISTED} more"]
            lines += [f"Farther than two from print ({of_tables}): {'; '.join(named)}."] if named else []
        sentence, line = _predicted(records, of_tables)
        paragraph += sentence
        lines += line
    return [" ".join(paragraph), *lines]


def _listed(verdicts: Sequence[Verdict], judged: Sequence[Verdict]) -> str:
    """Claims with their data sets, which are left out where they are all."""
    parts = []
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        where = [labels.dataset(verdict.dataset) for verdict in verdicts if verdict.claim == claim]
        everywhere = len(where) == sum(verdict.claim == claim for verdict in judged)
        parts.append(claim.text + ("" if everywhere else f" ({', '.join(where)})"))
    return "; ".join(parts)


def _farthest(records: Iterable[Mapping[str, Any]]) -> list[tuple[float, str]]:
    """Differences in printed standard deviations with their names, the greatest first."""
    found = [
        (
            apart,
            f"{_named(record)} ({signed(apart)} sd)",
        )
        for record in records
        if (apart := record.get("difference_in_paper_std")) is not None
    ]
    return sorted(found, key=lambda one: -abs(one[0]))


def _predicted(records: Iterable[Mapping[str, Any]], setting: str) -> tuple[list[str], list[str]]:
    """A sentence that counts printed values inside predictive intervals, a line that names those outside.

    Both are empty without predictive intervals.
    """
    judged = [record for record in records if record.get("inside") is not None]
    means, deviations = ([one for one in judged if one["statistic"] == name] for name in ("mean", "std"))
    if not means:
        return [], []
    n_means, n_deviations = (sum(one["inside"] for one in some) for some in (means, deviations))
    on_survivors = sum(one["on_survivors"] for one in means)
    judged_on = f"; {on_survivors} of the {len(means)} are judged on survivors" if on_survivors else ""
    sentence = (
        f"Of {len(means)} printed means ({setting}), {n_means} lie inside the 95 % predictive interval of a "
        f"mean of {paper_seeds()} seeds of ours, and {n_deviations} of the {len(deviations)} printed "
        f"standard deviations inside theirs{judged_on}."
    )
    outside = [
        f"{what}: {'; '.join(_outside(some))}."
        for what, some in (("Means", means), ("Standard deviations", deviations))
        if not all(one["inside"] for one in some)
    ]
    where = f"Printed values outside the predictive interval ({setting}), the farthest first."
    return [sentence], [f"{where} {' '.join(outside)}"] if outside else []


def _outside(judged: Iterable[Mapping[str, Any]]) -> list[str]:
    """Printed values outside their predictive intervals, by distance in widths of the interval."""
    found = []
    for record in judged:
        low, high, printed = (record[key] for key in ("predictive_low", "predictive_high", "printed"))
        if not record["inside"]:
            beyond, width = max(low - printed, printed - high), high - low
            ends = f"{hundredfold(low)} to {hundredfold(high)}{'†' if record['on_survivors'] else ''}"
            named = f"{_named(record)} ({hundredfold(printed)}, not {ends})"
            found.append((beyond / width if width else math.inf, named))
    return [named for _, named in sorted(found, key=lambda one: -one[0])]


def _named(record: Mapping[str, Any]) -> str:
    """Method, data set and measure of a record."""
    names = {one.name: one.label for one in (*labels.EFFECTIVE, *labels.TEMPORAL)}
    measure = names[record["measure"].removesuffix("_sampled")]
    return f"{labels.method(record['model'])} on {labels.dataset(record['dataset'])}, {measure}"
