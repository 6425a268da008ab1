"""Tables of an evaluation or of a comparison of two policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairall.config.choices import flattened
from fairall.data.drift import DRIFTED
from fairall.display.format import interval, number
from fairall.display.table import PageTable, Row, frame_of, records_of, without_empty
from fairall.evaluate.comparison import BETTER, FAIRER, OVERALL
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS
from fairall.evaluate.estimated.gaps import Interval
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged.impact import SHARES
from fairall.evaluate.judged.scorecard import EVERYBODY
from fairall.evaluate.judged.scorecard import MEASURES as SCORE_MEASURES
from fairall.evaluate.plain import plain, spelt
from fairall.evaluate.shown.figures import CURVES, VIEWS_TOLD
from fairall.evaluate.shown.panels import NAMES
from fairall.evaluate.shown.sentences import (
    CALIBRATION,
    CHOICES,
    DATA,
    DISCRIMINATION,
    FAIRNESS,
    LIMITS,
    RATES,
    STABILITY,
    VALUE,
    Shown,
    share,
)

INTERVALS = "with 95 % intervals"
NO_ASSUMPTION = "no assumption: 95 % interval of what is possible, whatever the missing labels are."
BY_OFFICERS = (
    f" {OFFICERS}: the same by their different strictness, if cases are assigned to them at random given the "
    "features."
)
BESIDE = "Each group beside the reference group, whose AIR is 100."
SIZES = ("people", "accepted", "labelled")
QUARTERS = 4  # of the moments
WORST = 3  # features named in the table of balance
OF_LIMITS = {"low": "bound_low", "high": "bound_high", "interval_low": "low", "interval_high": "high"}


@dataclass
class Lines:
    """Rows and records of a table, and the reasons why estimates lack an interval, as notes."""

    rows: list[Row] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def row(self, group: str, label: str, texts: list[str]) -> None:
        """Add a row."""
        self.rows.append(Row(group, label, texts))

    def ends(self, own: Interval | Limits) -> str:
        """The interval ×100, or the mark of the note that says why there is none."""
        known = own.low if isinstance(own, Limits) else own.estimate
        own = own.interval if isinstance(own, Limits) else own
        if not np.isnan(own.low):
            return interval(own.low, own.high)
        lacking = "estimate" if np.isnan(known) else "interval"
        reason = f"no {lacking}: {own.why or 'nobody whom the rate is about'}"
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"[*{self.reasons.index(reason) + 1}]"

    def both(self, own: Interval) -> str:
        """Estimate and interval ×100."""
        return f"{number(own.estimate)} {self.ends(own)}".strip()

    def table(self, key: str, section: str, title: str, note: str, columns: Sequence[str]) -> PageTable:
        """The table, without columns in which no row has a value."""
        notes = (f" [*{k}] {reason}." for k, reason in enumerate(self.reasons, start=1))
        return PageTable(
            key=key,
            section=section,
            title=title,
            note="".join((note, *notes)),
            frame=without_empty(frame_of(columns, self.rows)),
            records=records_of(self.records),
        )


def tables(shown: Shown) -> list[PageTable]:
    """All tables that have records."""
    made = (
        *(value, fairness, groups, impact, impact_by_score, impact_bounds, discrimination, calibration),
        *(balance, moments, periods, score_periods, disagreement, thresholds, costs),
    )
    return [table for table in (one(shown) for one in made) if len(table.records)]


def discrimination(shown: Shown) -> PageTable:
    """How well the score orders people, by group."""
    note = (
        f"Of the probability of a positive label, {INTERVALS}. accepted: of people with a label, which is "
        "another quantity than that of everybody. Bayesian: a missing label is drawn from the model of the "
        f"label, without an interval. {NO_ASSUMPTION}"
    )
    return _score(shown, "discrimination", DISCRIMINATION, note, ("auc", "gini", "ks"))


def _score(
    shown: Shown,
    key: str,
    section: str,
    note: str,
    measures: Sequence[str],
    bins: Sequence[dict[str, Any]] = (),
) -> PageTable:
    """Measures of the score by group and view; `bins` are further records."""
    lines, found = Lines(), shown.first.scorecard
    for group, own in {} if found is None else ({EVERYBODY: found[EVERYBODY]} | found["groups"]).items():
        for name in measures:
            views = own[name]
            texts = [lines.both(views["accepted"]), lines.both(views["dr"])]
            texts += [number(views["bayesian"].estimate), lines.ends(views["bounds"])]
            lines.row(group, SCORE_MEASURES[name].label, texts)
            of_group = {"group": group, "measure": name}
            lines.records += [of_group | {"view": view} | _record(one, {}) for view, one in views.items()]
    lines.records += bins
    columns = ["accepted", "everybody, DR", "everybody, Bayesian", "no assumption"]
    return lines.table(key, section, f"{section} of the score ×100", note, columns)


def score_periods(shown: Shown) -> PageTable:
    """Measures of the score over time."""
    lines, found = Lines(), shown.first.scorecard or {"periods": {}}
    for period, own in found["periods"].items():
        psi = own["psi"]
        drift = "" if psi is None else f"{psi.psi:.3f} (p = {psi.p:.2g})"
        rates = {name: own[name]["dr"] for name in ("gini", "brier", "calibration")}
        lines.row("", period, [*map(lines.both, rates.values()), drift])
        lines.records += [{"period": period, "measure": name} | plain(one) for name, one in rates.items()]
        lines.records += [] if psi is None else [{"period": period, "measure": "psi"} | plain(psi)]
    note = (
        f"Of everybody, doubly robust, ×100, {INTERVALS}. PSI: population stability index of the score "
        "against the first period, and p of no change, corrected for all periods."
    )
    columns = [*(SCORE_MEASURES[name].label for name in ("gini", "brier", "calibration")), "PSI"]
    return lines.table("score_periods", STABILITY, "The score by period", note, columns)


def value(shown: Shown) -> PageTable:
    """Value by estimator, with intervals."""
    lines = Lines()
    for name, group, one in shown.with_difference():
        known: dict[str, Interval | Limits] = {LABELS[key]: own for key, own in one.values.items()}
        if isinstance(one, Evaluation):
            known |= {"guaranteed interval": one.guarantee, "no assumption": one.bounds["utility"]}
            known |= {OFFICERS: one.officers["utility"]} if one.officers else {}
        for label, own in known.items():
            lines.records.append({"policy": name, "estimator": label} | _record(own, BETTER))
            if isinstance(own, Limits):
                lines.row(group, label, ["", lines.ends(own), ""])
            elif not np.isnan([own.low, own.estimate]).all():
                texts = [number(own.estimate), lines.ends(own), share(own.probability)]
                lines.row(group, label, texts)
    gain = "gain or costs loss, in the unit of these columns"
    if shown.log.cost is not None:
        gain = f"y − c with the label y and c = {shown.log.cost:g}"
    note = (
        f"An acceptance gains {gain}, a rejection 0. Intervals of 95 %; guaranteed interval: valid at any "
        f"sample size if the propensities are right; {NO_ASSUMPTION}{by_officers(shown)}"
    )
    columns = ["estimate", "interval", "P(B better)"]
    return lines.table("value", VALUE, "Utility per person of the log ×100", note, columns)


def fairness(shown: Shown) -> PageTable:
    """Gaps between groups, naive and corrected, with bounds, and the ratio of acceptance rates."""
    lines = Lines()
    for name, group, one in shown.with_difference():
        bounds = (one.bounds, one.officers) if isinstance(one, Evaluation) else ({}, {})
        for measure, views in one.fairness.items():
            texts = [lines.both(views[view]) for view in VIEWS]
            known: list[tuple[str, Interval | Limits]] = list(views.items())
            for label, own in zip(("no assumption", OFFICERS), bounds, strict=True):
                known += [(label, own[measure])] if measure in own else []
                texts.append(lines.ends(own[measure]) if measure in own else "")
            texts.append(share(views["dr"].probability))
            lines.row(group, MEASURES[measure].label, texts)
            lines.records += [
                {"policy": name, "measure": measure, "view": view} | _record(own, FAIRER)
                for view, own in known
            ]
        if isinstance(one, Evaluation):
            ratio = one.acceptance_ratio
            lines.row(group, "acceptance ratio", ["", "", lines.both(ratio), "", "", ""])
            lines.records.append({"policy": name, "measure": "acceptance_ratio", "view": "dr"} | plain(ratio))
    note = (
        f"Largest difference between groups, 0 is fair, {INTERVALS}. {VIEWS_TOLD} {NO_ASSUMPTION}"
        f"{by_officers(shown)} acceptance ratio: smallest acceptance rate by the largest; below 80 is a sign "
        "of adverse impact (four-fifths rule)."
    )
    columns = [*NAMES.values(), "no assumption", OFFICERS, "P(B fairer)"]
    return lines.table("fairness", FAIRNESS, "Unfairness ×100", note, columns)


def disagreement(shown: Shown) -> PageTable:
    """Differences between two policies, bounded by the people on whom they disagree."""
    lines, views = Lines(), {} if shown.difference is None else shown.difference.bounds
    names = {"utility": "utility"} | {name: MEASURES[name].rate for name in OVERALL}
    for measure, label in names.items():
        known = {view: found[measure] for view, found in views.items() if measure in found}  # all or none
        if known:
            lines.row("", label, list(map(lines.ends, known.values())))
        lines.records += [
            {"measure": measure, "view": view} | _record(own, {}) for view, own in known.items()
        ]
    note = (
        "Labels count for both policies, so that little depends on those of people on whom they agree. Rates "
        f"are of all people, not of groups. {NO_ASSUMPTION} Γ: labels of rejected people differ from those "
        f"of accepted ones by an odds ratio up to it.{by_officers(shown)}"
    )
    return lines.table("disagreement", LIMITS, "B − A where the policies differ ×100", note, list(views))


def groups(shown: Shown) -> PageTable:
    """People and rates of each group."""
    lines = Lines()
    for name, one in shown.evaluations.items():
        rates = RATES if shown.log.revealed.any() else RATES[:1]
        for group, own in one.groups.items():
            sizes = {key: own[key] for key in SIZES}
            texts = [*map(str, sizes.values()), f"{own['overlap']['effective_sample_size']:.0f}"]
            texts += [
                lines.both(own["rates"][measure]["dr"]) if measure in rates else "" for measure in RATES
            ]
            lines.row(name if shown.difference else "", group, texts)
            of_group = {"policy": name, "group": group} | sizes
            lines.records += [
                of_group | {"rate": MEASURES[measure].rate, "view": view} | plain(rate)
                for measure, views in own["rates"].items()
                for view, rate in views.items()
            ]
    note = (
        "accepted, labelled: by the past decisions; effective: how many equally weighted labels theirs count "
        f"as. Rates of the policy ×100, doubly robust, {INTERVALS}."
    )
    columns = [*SIZES, "effective", *(MEASURES[measure].rate for measure in RATES)]
    return lines.table("groups", DATA, "Groups", note, columns)


def impact(shown: Shown) -> PageTable:
    """Adverse impact: each group beside the reference group."""
    lines, found, tests = Lines(), dict[str, Any](), list[str]()
    for name, one in shown.evaluations.items():
        found = one.adverse_impact or {"groups": {}}
        tests.append(f"{found.get('test')} ({name})" if shown.difference else f"{found.get('test')}")
        for group, own in found["groups"].items():
            p = "" if np.isnan(own["p"]) else "< 0.001" if own["p"] < 0.001 else f"{own['p']:.3f}"
            texts = [str(own["people"]), f"{own['accepted']:.1f}".removesuffix(".0"), lines.both(own["rate"])]
            beside = [lines.both(own[of]) for of in ("ratio", "difference") if group != found["reference"]]
            ratio, difference = beside or ("100", "")
            texts += [ratio, own["four_fifths"] or "", p, difference]
            texts += [f"{own[short]:.1f}" for short in ("shortfall", "shortfall_of_four_fifths")]
            lines.row(name if shown.difference else "", group, texts)
            lines.records.append(
                {"policy": name, "group": group} | flattened(plain(own | {"by_score": None}))
            )
    note = (
        f"{BESIDE} It {found.get('reference_group')}. AIR: adverse impact ratio, the acceptance rate by that "
        "of the reference group; 80: where it is by the four-fifths rule, and whether its interval includes "
        f"80; p: of equal rates, {', '.join(tests)}; SMD: standardised mean difference of the "
        f"{found.get('difference_of')}; short: further people who would have to be accepted for the rate of "
        f"the reference group, or for four fifths of it. Rates, AIR, SMD ×100, {INTERVALS}."
    )
    columns = ["people", "accepted", "rate", "AIR", "80", "p", "SMD", "short", "short of 4/5"]
    return lines.table("adverse_impact", FAIRNESS, "Adverse impact", note, columns)


def impact_by_score(shown: Shown) -> PageTable:
    """Adverse impact ratios if the best were accepted by score."""
    lines, found = Lines(), shown.first.adverse_impact or {"groups": {}}
    for group, own in found["groups"].items():
        if group != found["reference"] and own["by_score"]:
            lines.row("", group, [number(one["ratio"].estimate) for one in own["by_score"]])
            lines.records += [{"group": group} | flattened(one) for one in plain(own["by_score"])]
    note = (
        "AIR if this share of all people, the best by score, were accepted; of people with the last accepted "
        "score each with the same probability. The CSV file has 95 % intervals."
    )
    columns = [f"{100 * share:.0f} %" for share in SHARES]
    return lines.table(
        "impact_by_score", FAIRNESS, "Adverse impact ratio ×100 by share accepted", note, columns
    )


def impact_bounds(shown: Shown) -> PageTable:
    """Bounds of adverse impact where only probabilities of groups are known."""
    lines, found = Lines(), dict[str, Any]()
    for name, one in shown.evaluations.items():
        found = one.impact_bounds or {"groups": {}}
        for group, own in found["groups"].items():
            texts = [f"{own['people']:.1f}", *(lines.both(own[f"weighted_{of}"]) for of in ("rate", "ratio"))]
            texts += [lines.ends(own[of]) for of in ("rate", "difference", "ratio")]
            lines.row(name if shown.difference else "", group, texts)
            lines.records.append({"policy": name, "group": group} | flattened(plain(own)))
    note = (
        f"{BESIDE} It {found.get('reference_group')}. people: expected. weighted: if acceptance does not "
        "depend on the group given its probabilities (conditional independence), which such data cannot "
        "tell. rate, difference, AIR: 95 % intervals of what is possible without this assumption; inf: no "
        "upper bound. ×100."
    )
    columns = ["people", "weighted rate", "weighted AIR", "rate", "difference", "AIR"]
    return lines.table("impact_bounds", FAIRNESS, "Adverse impact by probabilities of groups", note, columns)


def moments(shown: Shown) -> PageTable:
    """Estimates with confidence sequences, at the start, quarter points and the end."""
    lines, times = Lines(), []
    for name, one in shown.evaluations.items():
        if one.monitor is None:
            continue
        known = [spelt(time) for time in one.monitor.moments]
        chosen = sorted({round(k * (len(known) - 1) / QUARTERS) for k in range(QUARTERS + 1)})
        times = [str(known[k]) for k in chosen]
        for what, own in one.monitor.named().items():
            row = [lines.both(own.at(k)) for k in chosen]
            lines.row(name if shown.difference else "", what, row)
            lines.records += [
                {"policy": name, "time": time, "rows": int(rows), "estimated": what} | plain(own.at(k))
                for k, (time, rows) in enumerate(zip(known, one.monitor.past.last + 1, strict=True))
            ]
    note = (
        "Of the rows until a moment, doubly robust, with 95 % intervals of each quantity that hold at all "
        "moments at once. The CSV file has all moments."
    )
    return lines.table("moments", STABILITY, "Over time ×100", note, times)


def periods(shown: Shown) -> PageTable:
    """People and decisions of the log by policy version, or by quarter of a log with times."""
    lines = Lines()
    for own in shown.first.models.periods:
        drift = ""
        if own.drift:
            feature, worst = min(own.drift.items(), key=lambda item: item[1].p)
            chance = "" if worst.p < DRIFTED else ", as by chance"
            drift = f"{feature} {worst.psi:.3f} (p = {worst.p:.2g}){chance}"
        rates = {"acceptance rate": own.acceptance, "gap": own.gap, "positive labels": own.positive}
        lines.row("", own.name, [str(own.rows), *map(lines.both, rates.values()), drift])
        rates |= {f"acceptance rate, {group}": rate for group, rate in own.groups.items()}
        of_period = {"period": own.name, "rows": own.rows}
        lines.records += [of_period | {"what": what} | plain(rate) for what, rate in rates.items()]
        lines.records += [
            of_period | {"what": f"drift of {feature}"} | plain(one) for feature, one in own.drift.items()
        ]
    note = (
        f"Of the decisions taken, ×100, {INTERVALS}; positive labels: their share among the known ones. "
        "drift: population stability index against the first period of the column that differs most surely, "
        "and p of no change, corrected for all columns and periods."
    )
    columns = ["rows", "acceptance rate", "gap", "positive labels", "drift"]
    return lines.table("periods", STABILITY, "Periods", note, columns)


def thresholds(shown: Shown) -> PageTable:
    """Value and gaps by the threshold of a score."""
    lines = Lines()
    for name, one in shown.evaluations.items():
        for row in one.thresholds or ():
            texts = [number(row["acceptance"]), *(lines.both(row[key]) for key in CURVES)]
            lines.row(name, f"{row['threshold']:.3f}", texts)
            lines.records.append({"policy": name} | flattened(plain(row)))
    note = (
        "Of accepting everybody whose score is at least the threshold; doubly robust, with intervals that "
        "cover a whole column together with 95 %."
    )
    return lines.table("thresholds", CHOICES, "Thresholds ×100", note, ["acceptance", *CURVES.values()])


def costs(shown: Shown) -> PageTable:
    """The value for a range of costs."""
    lines = Lines()
    for name, one in shown.evaluations.items():
        for cost, *ends in () if one.costs is None else one.costs.itertuples(index=False):
            own = Interval(*ends)
            lines.row(name, f"c = {cost:g}", [lines.both(own)])
            lines.records.append({"policy": name, "cost": cost} | plain(own))
    return lines.table("costs", CHOICES, "Utility ×100 by cost", f"Doubly robust, {INTERVALS}.", ["utility"])


def calibration(shown: Shown) -> PageTable:
    """How far the score, or without one the model of the label, is from labels, by group."""
    lines, found = Lines(), shown.calibration or {"of": "", "groups": {}}
    bins = [
        {"group": group, "measure": "bin"} | one
        for group, own in found["groups"].items()
        for one in plain(own["bins"])
    ]
    if shown.first.scorecard is not None:
        note = (
            f"Mean squared error, and mean label less mean score, {INTERVALS}. Columns: see discrimination. "
            "The CSV file has mean labels by bins of the score too, of everybody, doubly robust."
        )
        return _score(shown, "calibration", CALIBRATION, note, ("brier", "calibration"), bins)
    for group, one in found["groups"].items():
        lines.row("", group, [lines.both(one["error"])])
        lines.records.append({"group": group, "measure": "error", "share": 1.0} | plain(one["error"]))
    lines.records += bins
    note = (
        "Mean label less mean probability of a positive label, of all people, doubly robust, "
        f"{INTERVALS}. The CSV file has mean labels by bins of the probability too."
    )
    return lines.table("calibration", DATA, f"Calibration of the {found['of']} ×100", note, ["error"])


def balance(shown: Shown) -> PageTable:
    """How like all people those with labels are, before and after weighting."""
    lines = Lines()
    for group, one in (shown.first.balance or {}).items():
        features = sorted(plain(one["features"]).items(), key=lambda item: -abs(item[1]["after"] or 0.0))
        worst = (f"{name} {own['before']:.2f} → {own['after']:.2f}" for name, own in features[:WORST])
        texts = [f"{one['accepted_by_expected']:.2f}", "; ".join(worst).replace("-", "−")]
        lines.row("", group, texts)
        lines.records += [{"group": group, "feature": name} | own for name, own in features]
    note = (
        "accepted by expected: number of accepted people by the sum of propensities. least balanced: mean of "
        "people with labels less that of all people, in standard deviations, before → after weighting; above "
        "0.1 is unbalanced. The CSV file has all features."
    )
    return lines.table("balance", DATA, "Balance", note, ["accepted by expected", "least balanced"])


def by_officers(shown: Shown) -> str:
    """What bounds by decision makers are; empty where there are none."""
    return BY_OFFICERS if shown.first.officers else ""


def _record(own: Interval | Limits, names: dict[str, str]) -> dict[str, Any]:
    """An estimate by column of a CSV file; of limits, `low` and `high` are those of their interval."""
    return plain(own, OF_LIMITS if isinstance(own, Limits) else names)
