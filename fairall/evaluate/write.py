"""Texts, tables and page of an evaluation or of a comparison of two policies, and evaluation.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fairall.errors import count
from fairall.evaluate import figures
from fairall.evaluate.bounds import LARGEST_GAMMA
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimators import LABELS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.fairness import MEASURES, VIEWS
from fairall.results.page import PageFigure, write_page
from fairall.results.page import write as write_text
from fairall.results.table import Cell, Item, Row, Table, hundredfold
from fairall.results.terminal import print_table
from fairall.runtime.console import AnyConsole
from fairall.storage.identity import flattened

JSON = "evaluation.json"
LOGGED = ("acceptance", "value", "guarantee", "fairness", "bounds", "overlap")  # to MLflow, of each policy
INTERVALS = "with 95 % intervals"
HIDDEN, CHOICES = "What the rejected may hide", "Thresholds and costs"  # sections
NO_ASSUMPTION = "no assumption: 95 % interval of what is possible, whatever the missing labels are."
PROBABILITY = "level at which a one-sided interval of the difference ends at 0."
SIZES = ("people", "accepted", "labelled")
WORST = 3  # features named in the table of balance
MODELS = {
    "propensity": "Model of the decision", "labelled": "Model of which labels are known",
    "outcome": "Model of the label",
}  # fmt: skip
RATES = ("dpu", "equal_opportunity", "predictive_parity", "false_positive", "utility_gap")
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


def write(shown: Shown, folder: Path, command: str) -> None:
    """Write evaluation.json, index.html, tables/ and figures/.

    Args:
        shown: what to write.
        folder: to write to.
        command: command line of the user.

    Raises:
        FairAllError: where the folder cannot be written.
        OSError: where evaluation.json cannot be.
    """
    tables = {
        "Value": [value_table(shown)],
        "Fairness": [fairness_table(shown), groups_table(shown)],
        HIDDEN: [],
        CHOICES: [thresholds_table(shown), costs_table(shown)],
        "Checks": [calibration_table(shown), balance_table(shown)],
    }
    sections: dict[str, list[Item]] = {
        name: [*(one for one in some if one.records), *_pictures(shown, name)]
        for name, some in tables.items()
    }
    filled = {name: items for name, items in sections.items() if items}
    opening = [shown.title, *told(shown), *doubts(shown)]
    texts = {"opening": opening, "folded": {CHOICES: "Tables"}, "made": command}
    write_page(folder, "FairAll: evaluation from past decisions", filled, **texts)
    content = json.dumps(shown.content, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / JSON, content + "\n")


def show(shown: Shown) -> None:
    """Print the sentences and the tables of value, fairness and groups."""
    console = AnyConsole()
    console.print(shown.title, style="bold")
    for line in (*told(shown), *doubts(shown)):
        console.print(line)
    console.print()
    for table in (value_table(shown), fairness_table(shown), groups_table(shown)):
        print_table(table)


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
    if answered:
        yield "Γ: odds ratio of positive labels between accepted and rejected people of equal features"
    first = next(iter(shown.plains.values()))
    log, groups = first["log"], first["groups"]
    persons = "" if log["persons"] is None else f" of {log['persons']} persons"
    cost = "gain and loss of each row" if log["cost"] is None else f"cost c = {log['cost']:g}"
    yield (
        f"Log: {log['people']} rows{persons}, {log['accepted']} accepted, {log['labelled']} with a label; "
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
        ends = "without an interval" if own["low"] is None else f"95 % interval {Lines().ends(own)}"
        better = _share(own.get("probability_better"))
        told = f"; P(B better): {better}" if better else ""
        yield f"{name}: {_number(own)} per 100 people, {ends}, {LABELS[estimator]}{told}"


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


@dataclass
class Lines:
    """Rows and records of a table, and the reasons why estimates lack an interval, as notes."""

    rows: list[Row] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add(self, group: str, name: str, texts: Iterable[str]) -> None:
        """Add a row."""
        self.rows.append(Row(group, name, [Cell(text) for text in texts]))

    def ends(self, own: Plain) -> str:
        """The interval ×100, or the mark of the note that says why there is none."""
        if own["low"] is not None:
            return f"[{hundredfold(own['low'])}, {hundredfold(own['high'])}]"
        lacking = "estimate" if own.get("estimate") is None else "interval"
        reason = f"no {lacking}: {own.get('why') or 'nobody whom the rate is about'}"
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"[*{self.reasons.index(reason) + 1}]"

    def both(self, own: Plain) -> str:
        """Estimate and interval ×100."""
        return f"{_number(own)} {self.ends(own)}".strip()

    def table(self, key: str, title: str, note: str, columns: Sequence[str]) -> Table:
        """The table."""
        notes = (f" [*{k}] {reason}." for k, reason in enumerate(self.reasons, start=1))
        note = "".join((note, *notes))
        return Table(key=key, title=title, note=note, columns=columns, rows=self.rows, records=self.records)


def value_table(shown: Shown) -> Table:
    """Value by estimator, with intervals."""
    lines, compared = Lines(), shown.difference is not None
    for name, one in _with_difference(shown).items():
        known = {LABELS[estimator]: own for estimator, own in one["value"].items()}
        if "bounds" in one:
            known |= {"guaranteed interval": one["guarantee"], "no assumption": _limits(one, "utility")}
        for label, own in known.items():
            lines.records.append({"policy": name, "estimator": label} | dict(own))
            if own["low"] is not None or own.get("estimate") is not None:
                better = [_share(own.get("probability_better"))] if compared else []
                lines.add(name if compared else "", label, [_number(own), lines.ends(own), *better])
    cost = next(iter(shown.plains.values()))["log"]["cost"]
    gain = "gain or costs loss" if cost is None else f"y − c with the label y and c = {cost:g}"
    note = (
        f"An acceptance gains {gain}, a rejection 0. Intervals of 95 %; guaranteed interval: valid at any "
        f"sample size if the propensities are right; {NO_ASSUMPTION}"
    )
    columns = ["estimate", "interval"]
    if compared:
        note, columns = f"{note} P(B better): {PROBABILITY}", [*columns, "P(B better)"]
    return lines.table("value", "Utility per person of the log ×100", note, columns)


def fairness_table(shown: Shown) -> Table:
    """Gaps between groups, naive and corrected, with bounds, and the ratio of acceptance rates."""
    lines, compared = Lines(), shown.difference is not None
    for name, one in _with_difference(shown).items():
        group = name if compared else ""
        for measure, views in one["fairness"].items():
            limits = _limits(one, measure)
            fairer = [_share(views["dr"].get("probability_fairer"))] if compared else []
            texts = [*(lines.both(views[view]) for view in VIEWS), lines.ends(limits) if limits else ""]
            lines.add(group, MEASURES[measure].label, [*texts, *fairer])
            known = {**views, "no assumption": limits} if limits else views
            who = {"policy": name, "measure": measure}
            lines.records += [who | {"view": view} | dict(own) for view, own in known.items()]
        if "acceptance_ratio" in one:
            ratio = one["acceptance_ratio"]
            lines.add(group, "acceptance ratio", ["", "", lines.both(ratio), *[""] * (1 + compared)])
            lines.records.append({"policy": name, "measure": "acceptance_ratio", "view": "dr"} | ratio)
    note = (
        f"Largest difference between groups, 0 is fair, {INTERVALS}. {figures.VIEWS_TOLD} {NO_ASSUMPTION} "
        "acceptance ratio: smallest acceptance rate by the largest; below 80 is a sign of adverse impact "
        "(four-fifths rule)."
    )
    columns = [*figures.NAMES.values(), "no assumption"]
    if compared:
        note, columns = f"{note} P(B fairer): {PROBABILITY}", [*columns, "P(B fairer)"]
    return lines.table("fairness", "Unfairness ×100", note, columns)


def groups_table(shown: Shown) -> Table:
    """People and rates of each group."""
    lines = Lines()
    labelled = any(one["log"]["labelled"] for one in shown.plains.values())
    known = RATES if labelled else RATES[:1]
    for name, one in shown.plains.items():
        for group, own in one["groups"].items():
            size = f"{own['overlap']['effective_sample_size']:.0f}"
            rates = [lines.both(own["rates"][measure]["dr"]) for measure in known]
            texts = [*(str(own[key]) for key in SIZES), size, *rates]
            lines.add(name if shown.difference else "", group, texts)
            who = {"policy": name, "group": group} | {key: own[key] for key in SIZES}
            lines.records += [
                who | {"rate": MEASURES[measure].rate, "view": view} | dict(rate)
                for measure, views in own["rates"].items()
                for view, rate in views.items()
            ]
    note = (
        "accepted, labelled: by the past decisions; effective: how many equally weighted labels theirs count "
        f"as. Rates of the policy ×100, doubly robust, {INTERVALS}."
    )
    columns = [*SIZES, "effective", *(MEASURES[measure].rate for measure in known)]
    return lines.table("groups", "Groups", note, columns)


def thresholds_table(shown: Shown) -> Table:
    """Value and gaps by the threshold of a score."""
    lines = Lines()
    for name, one in shown.plains.items():
        for row in one["thresholds"] or ():
            texts = [hundredfold(row["acceptance"]), *(lines.both(row[key]) for key in figures.CURVES)]
            lines.add(name, f"{row['threshold']:.3f}", texts)
            lines.records.append({"policy": name} | flattened(row))
    note = (
        "Of accepting everybody whose score is at least the threshold; doubly robust, with intervals that "
        "cover a whole column together with 95 %."
    )
    return lines.table("thresholds", "Thresholds ×100", note, ["acceptance", *figures.CURVES.values()])


def costs_table(shown: Shown) -> Table:
    """The value for a range of costs."""
    lines = Lines()
    for name, one in shown.plains.items():
        for row in one["costs"] or ():
            lines.add(name, f"c = {row['cost']:g}", [lines.both(row)])
            lines.records.append({"policy": name} | row)
    return lines.table("costs", "Utility ×100 by cost", f"Doubly robust, {INTERVALS}.", ["utility"])


def calibration_table(shown: Shown) -> Table:
    """How far a probability of a positive label is from labels, by group."""
    lines, found = Lines(), _first(shown, "calibration") or {"of": "", "groups": {}}
    for group, one in found["groups"].items():
        lines.add("", group, [lines.both(one["error"])])
        lines.records += [{"group": group} | own for own in ({"share": 1.0} | one["error"], *one["bins"])]
    note = (
        "Mean label less mean probability of a positive label, of all people, doubly robust, "
        f"{INTERVALS}. The CSV file has mean labels by bins of the probability too."
    )
    return lines.table("calibration", f"Calibration of the {found['of']} ×100", note, ["error"])


def balance_table(shown: Shown) -> Table:
    """How like all people those with labels are, before and after weighting."""
    lines = Lines()
    for group, one in (_first(shown, "balance") or {}).items():
        features = sorted(one["features"].items(), key=lambda item: -abs(item[1]["after"] or 0.0))
        worst = (f"{name} {own['before']:.2f} → {own['after']:.2f}" for name, own in features[:WORST])
        texts = [f"{one['accepted_by_expected']:.2f}", "; ".join(worst).replace("-", "−")]
        lines.add("", group, texts)
        lines.records += [{"group": group, "feature": name} | own for name, own in features]
    note = (
        "accepted by expected: number of accepted people by the sum of propensities. least balanced: mean of "
        "people with labels less that of all people, in standard deviations, before → after weighting; above "
        "0.1 is unbalanced. The CSV file has all features."
    )
    return lines.table("balance", "Balance", note, ["accepted by expected", "least balanced"])


def _pictures(shown: Shown, section: str) -> list[PageFigure]:
    """The figures of a section that there is something to show in."""
    plains = list(shown.plains.values())
    answered = all(one["sensitivity"] for one in plains)
    # Section, key, title, how it is drawn, whether it is wide, and whether there is something to draw.
    known: list[tuple[str, str, str, Callable[[Any], Figure], bool, bool]] = [
        ("Value", "plane", "Value against unfairness", figures.draw_plane, True,
         shown.difference is not None and answered),
        ("Value", "estimators", "Utility by estimator", figures.draw_value, False, True),
        ("Value", "overlap", "Overlap", figures.draw_overlap, len(plains[0]["groups"]) > 2, True),
        ("Fairness", "gaps", "What selection hides", figures.draw_fairness, len(plains) > 1, True),
        (HIDDEN, "sensitivity", "Sensitivity", figures.draw_sensitivity, True, answered),
        (HIDDEN, "contraction", "Contraction", figures.draw_contraction, False,
         all(one["contraction"] for one in plains)),
        (CHOICES, "curves", "Thresholds", figures.draw_thresholds, True,
         any(one["thresholds"] for one in plains)),
        ("Checks", "reliability", "Reliability by group", figures.draw_reliability, len(plains[0]["groups"]) > 2,
         _first(shown, "calibration") is not None),
    ]  # fmt: skip
    return [
        PageFigure(
            key=key, title=title, note=figures.NOTES[key], section=section, wide=wide,
            draw=partial(draw, shown.evaluations if key == "overlap" else shown.plains),
        )
        for of, key, title, draw, wide, there in known
        if of == section and there
    ]  # fmt: skip


def _first(shown: Shown, key: str) -> Any:
    """What all policies share, from the first that has it."""
    return next((one[key] for one in shown.plains.values() if one[key]), None)


def _with_difference(shown: Shown) -> dict[str, Plain]:
    return {**shown.plains, **({} if shown.difference is None else {"B − A": shown.difference})}


def _limits(one: Plain, key: str) -> dict[str, Any]:
    """Bounds without assumption; `low` and `high` are the ends of their interval. Empty if there are none."""
    found = one.get("bounds", {}).get(key)
    if found is None:
        return {}
    ends = {"low": found["interval_low"], "high": found["interval_high"]}
    return ends | {"bound_low": found["low"], "bound_high": found["high"]}


def _number(of: Plain) -> str:
    return "" if of.get("estimate") is None else hundredfold(of["estimate"])


def _share(share: float | None) -> str:
    if share is None:
        return ""
    return "> 99.9 %" if share > 0.999 else "< 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
