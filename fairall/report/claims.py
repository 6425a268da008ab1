"""Claims of the paper on its methods, compared with runs by rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.statistics import LEVEL, holm, paired_p
from fairall.report.table import Cell, Row, Table
from fairall.report.tables import Requested, signed
from fairall.results.finished import Run

REPRODUCED, IN_DIRECTION, NOT, MISSING = "reproduced", "in direction only", "not reproduced", "missing"
MEANING = (
    f"{REPRODUCED}: our means are in the order that the paper claims and differ beyond chance (two-sided "
    "Wilcoxon signed-rank test, paired over seeds, Holm-corrected over the data sets of a claim, "
    f"p < {LEVEL:g}); {IN_DIRECTION}: in its order, but chance might do this; {NOT}: not in its order. "
    "A claim that something is no worse is not reproduced where it is worse beyond chance."
)
FAR = 2.0  # printed standard deviations beyond which a measure is listed
MOST_LISTED = 6


@dataclass(frozen=True)
class Claim:
    """A claim of the paper on two methods and a measure.

    Attributes:
        text: of the claim.
        model: the method that it is about.
        other: the method compared with.
        measure: of summary.json.
        no_worse: whether `model` is claimed to be no worse rather than better.
    """

    text: str
    model: str
    other: str
    measure: Quantity
    no_worse: bool = False


EFFECTIVE_UTILITY, EFFECTIVE_DPU = labels.EFFECTIVE
TV_UTILITY, MEAN_UTILITY, TV_DPU, MEAN_DPU = labels.TEMPORAL
MEAN_CFU, MEAN_GROUND_TRUTH_UTILITY = labels.measures("mean_cfu", "mean_ground_truth_utility")
REAL = (
    Claim(
        "FairAll (I+II) accumulates more utility than FairLog", "fairall_I_II", "fairlog", EFFECTIVE_UTILITY
    ),
    Claim(
        "FairAll (I+II) accumulates less unfairness than FairLog", "fairall_I_II", "fairlog", EFFECTIVE_DPU
    ),
    Claim(
        "FairAll (I+II) accumulates no less utility than UnfairLog",
        "fairall_I_II",
        "unfairlog",
        EFFECTIVE_UTILITY,
        no_worse=True,
    ),
    Claim(
        "FairAll (I+II) accumulates less unfairness than UnfairLog",
        "fairall_I_II",
        "unfairlog",
        EFFECTIVE_DPU,
    ),
    Claim("Phase I helps: more utility than FairAll (II)", "fairall_I_II", "fairall_II", EFFECTIVE_UTILITY),
    Claim(
        "unlabelled data help: FairAll (II) earns more than FairLab",
        "fairall_II",
        "fairlab_I_II",
        EFFECTIVE_UTILITY,
    ),
    Claim("deployed, FairAll (I+II) earns more than FairLog", "fairall_I_II", "fairlog", MEAN_UTILITY),
    Claim(
        "deployed, its unfairness is no greater than FairLog's",
        "fairall_I_II",
        "fairlog",
        MEAN_DPU,
        no_worse=True,
    ),
    Claim("its utility varies less over time than FairLog's", "fairall_I_II", "fairlog", TV_UTILITY),
    Claim("its unfairness varies less over time than FairLog's", "fairall_I_II", "fairlog", TV_DPU),
)
SYNTHETIC = (
    Claim(
        "FairAll (I+II) treats groups more alike than FairLog (DPU)",
        "fairall_I_II",
        "fairlog",
        MEAN_DPU,
    ),
    Claim(
        "FairAll (I+II) is counterfactually fairer than FairLog (CFU)",
        "fairall_I_II",
        "fairlog",
        MEAN_CFU,
    ),
    Claim(
        "Phase I helps: less counterfactual unfairness than FairAll (II)",
        "fairall_I_II",
        "fairall_II",
        MEAN_CFU,
    ),
    Claim(
        "by the ground truth FairAll (I+II) earns no less than UnfairLog",
        "fairall_I_II",
        "unfairlog",
        MEAN_GROUND_TRUTH_UTILITY,
        no_worse=True,
    ),
)


@dataclass(frozen=True)
class Verdict:
    """Outcome of a claim on a data set.

    Attributes:
        claim: of the paper.
        dataset: its name.
        words: `REPRODUCED`, `IN_DIRECTION`, `NOT` or `MISSING`.
        p: Holm-corrected; None without a test.
    """

    claim: Claim
    dataset: str
    words: str
    p: float | None


def judge(claims: Iterable[Claim], requested: Sequence[Requested]) -> list[Verdict]:
    """Compare every claim with every data set of some runs, all of one initial policy and protocol."""
    verdicts = []
    datasets = list(dict.fromkeys(one.dataset for one in requested))
    runs = {(one.model, one.dataset): one.run for one in requested}
    for claim in claims:
        pairs = [(runs.get((claim.model, name)), runs.get((claim.other, name))) for name in datasets]
        raw = [_p(claim, *pair) for pair in pairs]
        for dataset, pair, p in zip(datasets, pairs, holm(raw), strict=True):
            verdicts.append(Verdict(claim, dataset, _words(claim, *pair, p), p))
    return verdicts


def _p(claim: Claim, first: Run | None, second: Run | None) -> float | None:
    if first is None or second is None:
        return None
    return paired_p(first.per_seed(claim.measure.name), second.per_seed(claim.measure.name))


def _words(claim: Claim, first: Run | None, second: Run | None, p: float | None) -> str:
    if first is None or second is None or p is None:
        return MISSING
    ours, others = (run.per_seed(claim.measure.name).mean() for run in (first, second))
    better = ours > others if claim.measure.higher_is_better else ours < others
    if claim.no_worse:
        return NOT if p < LEVEL and not better else REPRODUCED
    if not better:
        return NOT
    return REPRODUCED if p < LEVEL else IN_DIRECTION


def claims_table(verdicts: Sequence[Verdict], key: str, title: str, section: str) -> Table:
    """A line per claim, a column per data set."""
    datasets = list(dict.fromkeys(verdict.dataset for verdict in verdicts))
    rows = []
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        own = {verdict.dataset: verdict for verdict in verdicts if verdict.claim == claim}
        cells = [
            Cell(own[name].words, missing=own[name].words == MISSING, best=own[name].words == REPRODUCED)
            for name in datasets
        ]
        rows.append(Row(claim.measure.label, claim.text, cells))
    records = [
        {
            "claim": v.claim.text,
            "measure": v.claim.measure.name,
            "dataset": v.dataset,
            "verdict": v.words,
            "p": v.p,
        }
        for v in verdicts
    ]
    return Table(
        key, title, MEANING, [labels.dataset(name) for name in datasets], rows, section, records=records
    )


def in_words(
    setting: str, verdicts: Sequence[Verdict], tables: Sequence[Table], planned: int, there: int
) -> list[str]:
    """What reproduced and what did not: a paragraph of counts, then lines of details.

    Args:
        setting: initial policy and protocol of the claims' runs.
        verdicts: of `judge`.
        tables: with printed measures beside ours.
        planned: number of runs the paper needs.
        there: how many of them are finished.
    """
    paragraph = [f"{there} of the {planned} runs that the paper's tables and figures need are here."]
    judged = [verdict for verdict in verdicts if verdict.words != MISSING]
    if judged:
        counts = [
            sum(verdict.words == words for verdict in judged) for words in (REPRODUCED, IN_DIRECTION, NOT)
        ]
        paragraph.append(
            f"Of {len(judged)} comparisons in the paper ({setting}), {counts[0]} reproduced, "
            f"{counts[1]} in direction only, where chance might do it, and {counts[2]} did not."
        )
    by_name = []
    for words in (NOT, IN_DIRECTION, REPRODUCED):
        listed = _listed([verdict for verdict in judged if verdict.words == words], judged)
        if listed:
            by_name.append(f"{words.capitalize()}: {listed}.")
    for of_tables, own in _by_setting(tables).items():
        differences = _differences(own)
        if differences:
            paragraph.append(_closeness(of_tables, differences))
            by_name += _far(of_tables, differences)
    return [" ".join(paragraph), *by_name]


def _listed(verdicts: Sequence[Verdict], judged: Sequence[Verdict]) -> str:
    """Claims with their data sets, which are left out where they are all."""
    parts = []
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        where = [labels.dataset(verdict.dataset) for verdict in verdicts if verdict.claim == claim]
        everywhere = len(where) == sum(verdict.claim == claim for verdict in judged)
        parts.append(claim.text + ("" if everywhere else f" ({', '.join(where)})"))
    return "; ".join(parts)


def _by_setting(tables: Sequence[Table]) -> dict[str, list[Table]]:
    grouped: dict[str, list[Table]] = {}
    for table in tables:
        grouped.setdefault(table.setting, []).append(table)
    return grouped


def _differences(tables: Sequence[Table]) -> list[tuple[float, dict[str, object]]]:
    """Differences in printed standard deviations with their records, the greatest first."""
    differences = [
        (record["difference_in_paper_std"], record)
        for table in tables
        for record in table.records
        if record["difference_in_paper_std"] is not None
    ]
    return sorted(differences, key=lambda difference: -abs(difference[0]))


def _closeness(setting: str, differences: Sequence[tuple[float, dict[str, object]]]) -> str:
    one, two = (sum(abs(d) <= bound for d, _ in differences) for bound in (1.0, FAR))
    return (
        f"Of {len(differences)} printed measures ({setting}), {one} are within one printed standard "
        f"deviation of ours and {two} within two."
    )


def _far(setting: str, differences: Sequence[tuple[float, dict[str, object]]]) -> list[str]:
    """One line about the measures farthest from the printed ones, or none."""
    far = [(d, record) for d, record in differences if abs(d) > FAR]
    named = [
        f"{labels.method(str(r['model']))} on {labels.dataset(str(r['dataset']))}, "
        f"{_label(str(r['measure']))} ({signed(d)} sd)"
        for d, r in far[:MOST_LISTED]
    ]
    if len(far) > MOST_LISTED:
        named.append(f"{len(far) - MOST_LISTED} more")
    return [f"Farther than two from print ({setting}): {'; '.join(named)}."] if named else []


def _label(measure: str) -> str:
    plain = measure.removesuffix("_sampled")
    known = {m.name: m.label for m in (*labels.EFFECTIVE, *labels.TEMPORAL)}
    return known.get(plain, plain)
