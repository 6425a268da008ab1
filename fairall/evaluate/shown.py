"""What is said of an evaluation or of a comparison of two policies, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from fairall.errors import count
from fairall.evaluate.bounds import LARGEST_GAMMA
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimators import LABELS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.fairness import MEASURES
from fairall.results.table import hundredfold
from fairall.storage.identity import flattened

LOGGED = ("acceptance", "value", "guarantee", "fairness", "bounds", "overlap")  # to MLflow, of each policy
MODELS = {
    "propensity": "Model of the decision",
    "labelled": "Model of which labels are known",
    "outcome": "Model of the label",
}
Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """An evaluation or a comparison as it is shown.

    Attributes:
        log: name of the log's file.
        content: of evaluation.json.
        evaluations: one, or the two that are compared, by the name shown.
        plains: content of evaluation.json of each.
        difference: of a comparison, second minus first; None for one policy.
    """

    log: str
    content: Plain
    evaluations: Mapping[str, Evaluation]
    plains: Mapping[str, Plain]
    difference: Plain | None = None

    @classmethod
    def of(cls, found: Evaluation | Comparison, log: Path) -> Shown:
        """Everything that is shown is computed here."""
        content = found.to_plain()
        if isinstance(found, Evaluation):
            return cls(log.name, content, {found.policy: found}, {found.policy: content})
        names = (f"A: {found.first.policy}", f"B: {found.second.policy}")
        evaluations = dict(zip(names, (found.first, found.second), strict=True))
        plains = dict(zip(names, (content["first"], content["second"]), strict=True))
        return cls(log.name, content, evaluations, plains, content["difference"])

    @property
    def refused(self) -> str | None:
        """What cannot be answered, and why."""
        return self.content["refused"]

    @property
    def title(self) -> str:
        """One line."""
        policies = " and ".join(one.policy for one in self.evaluations.values())
        return f"{'Comparison' if self.difference else 'Evaluation'} of {policies} on {self.log}"

    def metrics(self) -> dict[str, float]:
        """Numbers by dotted name, of two policies with `first`, `second` or `difference` in front."""
        if self.difference is None:
            chosen = {name: self.content[name] for name in LOGGED}
        else:
            chosen = {one: {name: self.content[one][name] for name in LOGGED} for one in ("first", "second")}
            chosen["difference"] = dict(self.difference)
        return {name: value for name, value in flattened(chosen).items() if isinstance(value, float)}

    def first(self, key: str) -> Any:
        """What all policies share, from the first that has it; None if none has."""
        return next((one[key] for one in self.plains.values() if one[key]), None)

    def with_difference(self) -> Iterator[tuple[str, str, Plain]]:
        """Name, group of rows (none for one policy) and content of each, and of the difference."""
        if self.difference is None:
            yield from ((name, "", one) for name, one in self.plains.items())
        else:
            of = {**self.plains, "B − A": self.difference}
            yield from ((name, name, one) for name, one in of.items())


def told(shown: Shown) -> Iterator[str]:
    """The result to be read, what it rests on, the policies, the log and its models; a sentence each."""
    difference, answered = shown.difference, False
    if difference is not None:
        yield from _result("B − A: difference in utility", difference["value"])
    for name, one in shown.plains.items():
        yield from _result("Utility" if difference is None else f"{name}: utility", one["value"])
    if shown.refused is not None:
        yield f"Refused: {shown.refused}"
    yield from (f"Warning: {text}" for text in _disagreements(shown))
    for name, one in shown.plains.items():
        yield f"{name}: accepts {hundredfold(one['acceptance'])} % of the people"
        yield from (*_overlap(one), *_sensitivity(one), *_contraction(one))
        answered |= one["sensitivity"] is not None
    if difference is not None and difference["value"]["dr"]["estimate"] is not None:
        at = _up_to(difference["turning_point"])
        yield f"B − A: with 95 % confidence, which of the two has the greater utility is certain {at}"
        yield "P(B better), P(B fairer): level at which a one-sided interval of the difference ends at 0"
    if answered:
        yield "Γ: odds ratio of positive labels between accepted and rejected people of equal features"
    first = next(iter(shown.plains.values()))
    log, groups = first["log"], first["groups"]
    people = "people" if log["persons"] is None else f"rows of {log['persons']} people"
    cost = "gain and loss of each row" if log["cost"] is None else f"cost c = {log['cost']:g}"
    yield (
        f"Log: {log['people']} {people}, {log['accepted']} accepted, {log['labelled']} with a label; "
        f"{count(len(groups), 'group')}; {cost}; propensities {log['propensities']}"
    )
    for name, model in first["models"].items():
        if model is not None:
            auc = "" if model["auc"] is None else f", AUC {model['auc']:.2f}"
            yield f"{MODELS[name]}: {model['name']} (out of fold: log loss {model['log_loss']:.3f}{auc})"


def doubts(shown: Shown) -> Iterator[str]:
    """Further warnings, and notes, each once."""
    for mark, key in (("Warning", "warnings"), ("Note", "notes")):
        lines = dict.fromkeys(text for one in shown.plains.values() for text in one[key])
        yield from (f"{mark}: {text}" for text in lines if text not in _disagreements(shown))


def _disagreements(shown: Shown) -> list[str]:
    found = {name: one.disagreement for name, one in shown.evaluations.items()}
    return [f"{name}: {text}" if shown.difference else text for name, text in found.items() if text]


def _result(name: str, value: Plain) -> Iterator[str]:
    """The first estimate that there is."""
    known = ((estimator, own) for estimator, own in value.items() if own["estimate"] is not None)
    for estimator, own in islice(known, 1):
        known_to = "without an interval" if own["low"] is None else f"95 % interval {ends(own)}"
        better = share(own.get("probability_better"))
        told = f"; P(B better): {better}" if better else ""
        yield f"{name}: {number(own)} per 100 people, {known_to}, {LABELS[estimator]}{told}"


def _overlap(one: Plain) -> Iterator[str]:
    overlap = one["overlap"]
    if overlap["share_of_top_percent"] is not None and overlap["largest_weight"] > 1.0:
        yield (
            f"Overlap: the {one['log']['labelled']} labels count as "
            f"{overlap['effective_sample_size']:.0f} equally weighted ones; largest weight "
            f"{overlap['largest_weight']:.1f}; the largest 1 % of the weights hold "
            f"{100 * overlap['share_of_top_percent']:.0f} % of their sum"
        )


def _sensitivity(one: Plain) -> Iterator[str]:
    found = one["sensitivity"]
    if found is None:
        return
    points = dict(found["turning_points"])
    text = f"the sign of the utility is certain {_up_to(points.pop('utility'))}"
    above = [f"{MEASURES[name].label} {_up_to(point)}" for name, point in points.items() if point != 1.0]
    if above:
        text += f"; gaps are above 0: {', '.join(above)}"
    for feature, gamma in islice(found["benchmarks"].items(), 1):
        text += f"; hiding the feature that matters most, {feature}, would make Γ = {gamma:.2f}"
    yield f"Sensitivity: with 95 % confidence, {text}"


def _up_to(point: float | None) -> str:
    if point == 1.0:
        return "for no Γ, not even 1"
    return f"for every Γ up to {LARGEST_GAMMA:g}" if point is None else f"up to Γ = {point:.2f}"


def _contraction(one: Plain) -> Iterator[str]:
    found = one["contraction"]
    if found is not None:
        yield (
            f"Contraction, among the people of {found['most_lenient']}, the most lenient decision maker: at "
            f"the acceptance rates of the {found['others']} others the policy fails less often than "
            f"{found['fewer']} of them, with 95 % confidence each than {found['surely_fewer']}"
        )


def number(of: Plain) -> str:
    """An estimate ×100; empty without one."""
    return "" if of.get("estimate") is None else hundredfold(of["estimate"])


def share(probability: float | None) -> str:
    """A probability, never shown as certain; empty without one."""
    if probability is None:
        return ""
    if not 0.001 <= probability <= 0.999:
        return "> 99.9 %" if probability > 0.5 else "< 0.1 %"
    return f"{100 * probability:.1f} %"


def ends(own: Plain) -> str:
    """An interval ×100."""
    return f"[{hundredfold(own['low'])}, {hundredfold(own['high'])}]"
