"""What is said of an evaluation or of a comparison of two policies, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from fairall.display.format import interval, number
from fairall.errors import count
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimated.bounds import LARGEST_GAMMA
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.estimated.gaps import Interval
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged.scorecard import EVERYBODY
from fairall.evaluate.page import Shown
from fairall.evaluate.plain import spelt

# Sections of the page, in the order of a model validation.
DATA, DISCRIMINATION, CALIBRATION, STABILITY, FAIRNESS, VALUE, CHOICES, LIMITS = SECTIONS = (
    "Data and selection",
    "Discrimination",
    "Calibration",
    "Stability",
    "Fairness",
    "Value",
    "Thresholds and costs",
    "Limits",
)
# Of each policy, and of the difference between two.
OPEN = ", which contains 0"
RATES = ("dpu", "equal_opportunity", "predictive_parity", "false_positive", "utility_gap")
DEPENDS = 0.01  # p below which the assignment of cases is said to depend on features
MODELS = {
    "propensity": "Model of the decision",
    "labelled": "Model of which labels are known",
    "outcome": "Model of the label",
}


def verdict(shown: Shown) -> list[str]:
    """What the policy is worth, whether groups are treated alike, how far to trust it: a line each."""
    lines = []
    for title, about in (("Utility", _worth), ("Groups", _alike), ("Trust", _trust)):
        texts = [
            f"{policy}: {text}" if policy else text
            for _, policy, one in shown.with_difference()
            if (text := about(one, bool(policy) and isinstance(one, Evaluation)))
        ]
        lines.append(f"{title}: {'; '.join(texts)}")
    return lines


def told(shown: Shown) -> Iterator[str]:
    """What the verdict rests on: the policies, the log and its models; a sentence each."""
    difference = shown.difference
    for name, one in shown.evaluations.items():
        yield f"{name}: accepts {number(float(one.target.mean()))} % of the people. Rule: {one.rule}"
        overlap = one.overlap()
        if overlap["largest_weight"] > 1.0:
            yield (
                f"Overlap: the {one.about_log['labelled']} labels count as "
                f"{overlap['effective_sample_size']:.0f} equally weighted ones; largest weight "
                f"{overlap['largest_weight']:.1f}; the largest 1 % of the weights hold "
                f"{100 * overlap['share_of_top_percent']:.0f} % of their sum"
            )
        yield from _monitor(name, one)
    yield from _score(shown.first)
    yield from _officers(shown.first)
    if difference is not None and not np.isnan(difference.values["dr"].low):
        yield "P(B better), P(B fairer): level at which a one-sided interval of the difference ends at 0"
    if any(one.sensitivity for one in shown.evaluations.values()):
        yield "Γ: odds ratio of positive labels between accepted and rejected people of equal features"
    log = shown.first.about_log
    people = "people" if log["persons"] is None else f"rows of {log['persons']} people"
    cost = "gain and loss of each row" if log["cost"] is None else f"cost c = {log['cost']:g}"
    versions = f"; {log['policy_versions']} policy versions" if log["policy_versions"] else ""
    yield (
        f"Log: {log['people']} {people}, {log['accepted']} accepted, {log['labelled']} with a label; "
        f"{count(len(shown.first.groups), 'group')}; {cost}; propensities {log['propensities']}{versions}"
    )
    for name, model in shown.first.models.fitted.items():
        if model is not None:
            scores = f"log loss {model.log_loss:.3f}, AUC {model.auc:.2f}"
            yield f"{MODELS[name]}: {model.name} (out of fold: {scores})"


def doubts(shown: Shown) -> Iterator[str]:
    """Further warnings, and notes, each once."""
    evaluations = shown.evaluations.values()
    warnings = dict.fromkeys(text for one in evaluations for text in one.warnings[len(one.in_doubt) :])
    yield from (f"Warning: {text}" for text in warnings)
    notes = dict.fromkeys(text for one in evaluations for text in (*one.log.notes, *one.notes))
    yield from (f"Note: {text}" for text in notes)


def _worth(one: Evaluation | Comparison, brief: bool) -> str:
    """The first estimate of the utility that there is, and unless `brief` what it is."""
    estimator = next((name for name, own in one.values.items() if not np.isnan(own.estimate)), None)
    if estimator is None:
        return "not known"
    own = one.values[estimator]
    if brief:
        return both(own)
    ends = interval(own.low, own.high)
    ends = f"95 % interval {ends}{'' if own.low > 0 or own.high < 0 else OPEN}" if ends else "no interval"
    better = f"; P(B better): {share(own.probability)}" if own.probability is not None else ""
    return f"{number(own.estimate)} per 100 people, {ends}, {LABELS[estimator]}{better}"


def both(own: Interval) -> str:
    """Estimate and interval ×100, as far as there are."""
    return f"{number(own.estimate)} {interval(own.low, own.high)}".strip()


def _alike(one: Evaluation | Comparison, brief: bool) -> str:
    """By gaps of which rates groups are not treated alike, by which this is not shown, and not known."""
    refused = one.fairness["dpu"]["dr"]
    if np.isnan(refused.estimate):
        return f"not compared, {refused.why}"
    states: dict[str, list[str]] = {
        "not treated alike, by": [],
        "no difference shown by": [],
        "not known,": [],
    }
    differ, same, unknown = states.values()
    for measure in RATES:
        own = one.fairness[measure]["dr"]
        same_or_not = same if round(own.low, 3) <= 0 <= round(own.high, 3) else differ  # as shown
        chosen = unknown if np.isnan(own.low) else same_or_not
        rate = MEASURES[measure].rate
        chosen.append(rate if brief or chosen is unknown else f"{rate} {both(own)}")
    return "; ".join(f"{state} gaps in {', '.join(rates)}" for state, rates in states.items() if rates)


def _trust(one: Evaluation | Comparison, brief: bool) -> str:
    """What is refused or in doubt, what the estimates rest on, and what a hidden feature could change.

    If it is to be `brief`, that is said of the utility only.
    """
    if isinstance(one, Comparison):
        certain = f"which of the two earns more is certain {_up_to(one.turning_point)}"
        of_one = one.first.refused_value or one.second.refused_value
        return ("" if of_one else one.refused_value or "") if np.isnan(one.values["dr"].low) else certain
    texts = [f"refused, {one.refused}"] if one.refused else []
    texts += [*one.in_doubt, *([f"no interval of the utility, {one.few}"] if one.few else [])]
    basis = "right if the log holds everything that decided"
    if one.logged and one.models.labelled is None:
        basis = "utility observed" if one.refused else f"utility observed, rates by label {basis}"
    texts += [] if one.refused_value else [basis]
    found = one.sensitivity or {"benchmarks": {}}
    for feature, gamma in islice(found["benchmarks"].items(), 1):
        signs: dict[str, list[str]] = {"not change the sign of": [], "change the sign of": []}
        for name, point in found["turning_points"].items():
            if point != 1.0 and (name == "utility" or not brief):  # at 1 it is open already
                what = f"the gap in {MEASURES[name].rate}" if name in MEASURES else "the utility"
                [*signs.values()][point is not None and point <= gamma].append(f"{what} ({_up_to(point)})")
        could = " and ".join(f"could {verb} {', '.join(names)}" for verb, names in signs.items() if names)
        if could:
            texts.append(f"a hidden feature that matters as {feature} does (Γ = {gamma:.2f}) {could}")
    return "; ".join(texts)


def _score(one: Evaluation) -> Iterator[str]:
    """Gini of everybody beside that of the accepted, and whether they differ for certain."""
    if one.scorecard is None:
        return
    found = one.scorecard[EVERYBODY]["gini"]
    accepted, everybody = found["accepted"], found["dr"]
    if np.isnan(everybody.estimate):
        yield f"Score: Gini of everybody refused: {everybody.why}"
        return
    told = f"Score: Gini {both(everybody)} of everybody, doubly robust"
    if not np.isnan(accepted.estimate):
        told += f"; {number(accepted.estimate)} of the accepted"
        if accepted.estimate < everybody.low or accepted.estimate > everybody.high:
            told += " alone, which is another quantity: they are unlike everybody"
    yield told


def _up_to(point: float | None) -> str:
    if point == 1.0:
        return "for no Γ, not even 1"
    return f"for every Γ up to {LARGEST_GAMMA:g}" if point is None else f"up to Γ = {point:.2f}"


def _officers(one: Evaluation) -> Iterator[str]:
    if one.log.decision_maker is None:
        return
    found, why = one.models.officers, one.models.why_no_officers
    if found is None or why is not None:
        yield f"Bounds by decision makers: none, {why}"
        return
    p = found.p_assignment
    random = "no sign that cases were assigned by features"
    if p < DEPENDS:
        random = "the bounds allow for cases that were assigned by the features, and for no other assignment"
    yield f"Decision makers as an instrument, {found.levels} levels of strictness: {random} (p = {p:.2g})"


def _monitor(name: str, one: Evaluation) -> Iterator[str]:
    """The last intervals, and the first alarms."""
    watched = one.monitor
    if watched is None:
        return
    found = {what: both(own.at(-1)) for what, own in watched.named().items()}
    known = "; ".join(f"{what}: {text}" for what, text in found.items() if text)
    yield (
        f"{name}: over all rows until {spelt(watched.moments[-1])}, ×100, 95 % intervals that hold at every "
        f"moment at once: {known or 'nothing yet'}"
    )
    epsilon = number(one.models.largest_gap)
    for measure, alarm in watched.alarms.items():
        what = f"the gap of {MEASURES[measure].rate}s is above ε = {epsilon}"
        if alarm.time is not None:
            yield f"{name}: {what}: first alarm on {spelt(alarm.time)}, after {alarm.rows} rows"
        else:
            yield f"{name}: no alarm that {what}{f' ({alarm.why})' if alarm.why else ''}"


def share(probability: float | None) -> str:
    """A probability, never shown as certain; empty without one."""
    if probability is None or np.isnan(probability):
        return ""
    if not 0.001 <= probability <= 0.999:
        return "> 99.9 %" if probability > 0.5 else "< 0.1 %"
    return f"{100 * probability:.1f} %"
