"""Texts, tables and page of an evaluation or of a comparison of two policies, and evaluation.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

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
INTERVALS = "[95 % interval]."
NO_ASSUMPTION = "no assumption: 95 % interval of what is possible, whatever the missing labels are."
PROBABILITY = "the level at which a one-sided interval of the difference ends at 0."
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
        "What the rejected may hide": [],
        "Thresholds and costs": [thresholds_table(shown), costs_table(shown)],
        "Checks": [calibration_table(shown), balance_table(shown)],
    }
    sections: dict[str, list[Item]] = {
        name: [*(one for one in some if one.records), *_pictures(shown, name)]
        for name, some in tables.items()
    }
    filled = {name: items for name, items in sections.items() if items}
    opening = [shown.title, *told(shown), *doubts(shown)]
    folded = {"Thresholds and costs": "Tables"}
    write_page(
        folder,
        "FairAll: evaluation from past decisions",
        filled,
        opening=opening,
        folded=folded,
        made=command,
    )
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
    if shown.difference is not None:
        yield from _result("Difference in utility, B − A", shown.difference["value"])
    for name, one in shown.plains.items():
        yield from _result(f"Utility of {name}" if shown.difference else "Utility", one["value"])
    if shown.refused is not None:
        yield f"Refused: {shown.refused}"
    yield from (f"Warning: {text}" for text in _disagreements(shown))
    for name, one in shown.plains.items():
        of = f"of {name}" if shown.difference else "of the policy"
        yield f"Acceptance {of}: {hundredfold(one['acceptance'])} % of the people"
        yield from _overlap(one)
        yield from _sensitivity(one)
        yield from _contraction(one)
    if shown.difference is not None and shown.difference["value"]["dr"]["estimate"] is not None:
        at = _up_to(shown.difference["turning_point"])
        yield f"Sensitivity: with 95 % confidence, which of the two has the greater utility is certain {at}"
    first = next(iter(shown.plains.values()))
    log, groups = first["log"], first["groups"]
    sizes = "; ".join(f"{name} ({one['people']})" for name, one in groups.items())
    persons = "" if log["persons"] is None else f" of {log['persons']} persons"
    cost = "gain and loss of each row" if log["cost"] is None else f"cost c = {log['cost']:g}"
    yield (
        f"Log: {log['people']} rows{persons}, {log['accepted']} accepted, {log['labelled']} with a label; "
        f"{count(len(groups), 'group')}: {sizes}; {cost}; propensities {log['propensities']}"
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
    known = [(estimator, own) for estimator, own in value.items() if own["estimate"] is not None]
    for estimator, own in known[:1]:
        better = (
            ""
            if own.get("probability_better") is None
            else f"; P(B better) {_share(own['probability_better'])}"
        )
        ends = "without an interval" if own["low"] is None else f"{_interval(own)} with 95 % confidence"
        yield f"{name}: {hundredfold(own['estimate'])} per 100 people, {ends}, {LABELS[estimator]}{better}"


def _overlap(one: Plain) -> Iterator[str]:
    overlap = one["overlap"]
    if overlap["share_of_top_percent"] is not None:
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
    surely = {name: point for name, point in points.items() if point != 1.0}
    for point in sorted(set(surely.values()), key=lambda point: -(point or LARGEST_GAMMA)):
        names = " and ".join(MEASURES[name].label for name in surely if surely[name] == point)
        text += f", that of the {names} {_up_to(point)}"
    hidden = next(iter(found["benchmarks"].items()), None)
    if hidden is not None:
        text += f"; hiding the feature that matters most, {hidden[0]}, would make Γ = {hidden[1]:.2f}"
    yield (
        f"Sensitivity: with 95 % confidence, {text} (Γ: odds ratio of positive labels between accepted and "
        "rejected people of equal features)"
    )


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
class Marks:
    """Cells of estimates; one without an interval refers to a note on the reason."""

    reasons: list[str] = field(default_factory=list)

    def of(self, own: Plain) -> str:
        """What stands in the place of the interval."""
        if own["low"] is not None:
            return _interval(own)
        lacking = "estimate" if own.get("estimate") is None else "interval"
        reason = f"no {lacking}: {own.get('why') or 'nobody whom the rate is about'}"
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"(note {self.reasons.index(reason) + 1})"

    def cell(self, own: Plain) -> Cell:
        """The estimate ×100 with its interval."""
        return Cell(f"{_number(own)} {self.of(own)}".strip())

    @property
    def notes(self) -> str:
        """The reasons."""
        return "".join(f" Note {k}: {reason}." for k, reason in enumerate(self.reasons, start=1))


def value_table(shown: Shown) -> Table:
    """Value by estimator, with intervals."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    compared, marks = shown.difference is not None, Marks()
    for name, one in _with_difference(shown).items():
        known = {LABELS[estimator]: own for estimator, own in one["value"].items()}
        if "bounds" in one:
            known |= {"guaranteed interval": one["guarantee"], "no assumption": _limits(one, "utility")}
        for label, own in known.items():
            records.append({"policy": name, "estimator": label} | dict(own))
            if own["low"] is not None or own.get("estimate") is not None:
                cells = [Cell(_number(own)), Cell(marks.of(own))]
                cells += [Cell(_share(own.get("probability_better")))] if compared else []
                rows.append(Row(name if compared else "", label, cells))
    cost = next(iter(shown.plains.values()))["log"]["cost"]
    gain = "its gain or costs its loss" if cost is None else f"y − c with the label y and c = {cost:g}"
    better = f" P(B better): {PROBABILITY}" if compared else ""
    return Table(
        key="value", title="Utility per person of the log ×100",
        note=f"An acceptance gains {gain}; a rejection 0. The interval is one of 95 %; guaranteed interval: valid "
        f"at any sample size where the propensities are right; {NO_ASSUMPTION}{better}{marks.notes}",
        columns=["estimate", "interval", *(["P(B better)"] if compared else [])],
        rows=rows, records=records,
    )  # fmt: skip


def fairness_table(shown: Shown) -> Table:
    """Gaps between groups, naive and corrected, with bounds, and the ratio of acceptance rates."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    compared, marks = shown.difference is not None, Marks()
    for name, one in _with_difference(shown).items():
        for measure, views in one["fairness"].items():
            limits = _limits(one, measure)
            cells = [*(marks.cell(views[view]) for view in VIEWS), Cell(_interval(limits) if limits else "")]
            cells += [Cell(_share(views["dr"].get("probability_fairer")))] if compared else []
            rows.append(Row(name if compared else "", MEASURES[measure].label, cells))
            known = {view: dict(views[view]) for view in VIEWS} | (
                {"no assumption": limits} if limits else {}
            )
            records += [
                {"policy": name, "measure": measure, "view": view} | own for view, own in known.items()
            ]
        if "acceptance_ratio" in one:
            ratio = one["acceptance_ratio"]
            cells = [Cell(), Cell(), marks.cell(ratio), *[Cell()] * (2 if compared else 1)]
            rows.append(Row(name if compared else "", "acceptance ratio", cells))
            records.append({"policy": name, "measure": "acceptance_ratio", "view": "dr"} | ratio)
    fairer = f" P(B fairer): {PROBABILITY}" if compared else ""
    return Table(
        key="fairness", title="Unfairness ×100",
        note=f"Largest difference between groups, {INTERVALS} 0 is fair. {figures.VIEWS_TOLD} {NO_ASSUMPTION} "
        "Acceptance ratio: smallest acceptance rate by the largest; below 80 is a sign of adverse impact "
        f"(four-fifths rule).{fairer}{marks.notes}",
        columns=[*figures.NAMES.values(), "no assumption", *(["P(B fairer)"] if compared else [])],
        rows=rows, records=records,
    )  # fmt: skip


def groups_table(shown: Shown) -> Table:
    """People and rates of each group."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    marks = Marks()
    for name, one in shown.plains.items():
        for group, own in one["groups"].items():
            sizes = {size: own[size] for size in SIZES}
            cells = [
                *(str(size) for size in sizes.values()),
                f"{own['overlap']['effective_sample_size']:.0f}",
            ]
            rates = [marks.cell(own["rates"][measure]["dr"]) for measure in RATES]
            rows.append(Row(name if shown.difference else "", group, [*map(Cell, cells), *rates]))
            who = {"policy": name, "group": group} | sizes
            records += [
                who | {"rate": MEASURES[measure].rate, "view": view} | dict(rate)
                for measure, views in own["rates"].items() for view, rate in views.items()
            ]  # fmt: skip
    return Table(
        key="groups", title="Groups",
        note="accepted, labelled: by the past decisions. effective: number of equally weighted labels that those "
        f"of the group count as. Rates of the policy ×100, doubly robust, {INTERVALS}{marks.notes}",
        columns=[*SIZES, "effective", *(MEASURES[measure].rate for measure in RATES)],
        rows=rows, records=records,
    )  # fmt: skip


def thresholds_table(shown: Shown) -> Table:
    """Value and gaps by the threshold of a score."""
    found = [(name, row) for name, one in shown.plains.items() for row in one["thresholds"] or ()]
    return Table(
        key="thresholds", title="Thresholds ×100",
        note="Of accepting everybody whose score is at least the threshold; doubly robust, with intervals that cover a "
        "whole column together with 95 %.",
        columns=["acceptance", *(figures.CURVES[key] for key in figures.CURVES)],
        rows=[
            Row(name, f"{row['threshold']:.3f}", [
                Cell(hundredfold(row["acceptance"])), *(Marks().cell(row[key]) for key in figures.CURVES)
            ]) for name, row in found
        ],
        records=[{"policy": name} | flattened(row) for name, row in found],
    )  # fmt: skip


def costs_table(shown: Shown) -> Table:
    """The value for a range of costs."""
    found = [(name, row) for name, one in shown.plains.items() for row in one["costs"] or ()]
    return Table(
        key="costs", title="Utility ×100 by the cost c", note=f"Of the same policy, doubly robust, {INTERVALS}",
        columns=["utility"],
        rows=[Row(name, f"c = {row['cost']:g}", [Marks().cell(row)]) for name, row in found],
        records=[{"policy": name} | row for name, row in found],
    )  # fmt: skip


def calibration_table(shown: Shown) -> Table:
    """How far a probability of a positive label is from labels, by group."""
    found = _first(shown, "calibration") or {"of": "", "groups": {}}
    marks = Marks()
    rows = [Row("", group, [marks.cell(one["error"])]) for group, one in found["groups"].items()]
    return Table(
        key="calibration", title=f"Calibration of the {found['of']} ×100",
        note="Mean label less mean probability of a positive label, of all people, doubly robust, "
        f"{INTERVALS}{marks.notes} The CSV file has bins of the probability.",
        columns=["label less probability"], rows=rows,
        records=[
            {"group": group} | own
            for group, one in found["groups"].items() for own in ({"bin": "all"} | one["error"], *one["bins"])
        ],
    )  # fmt: skip


def balance_table(shown: Shown) -> Table:
    """How like all people those with labels are, before and after weighting."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for group, one in (_first(shown, "balance") or {}).items():
        features = sorted(one["features"].items(), key=lambda item: -abs(item[1]["after"] or 0.0))
        worst = "; ".join(
            f"{name} {_decimal(own['before'])} → {_decimal(own['after'])}" for name, own in features[:WORST]
        )
        rows.append(Row("", group, [Cell(_decimal(one["accepted_by_expected"])), Cell(worst)]))
        records += [{"group": group, "feature": name} | own for name, own in features]
    return Table(
        key="balance", title="Balance",
        note="accepted by expected: accepted people by the sum of propensities. Then the features that are balanced "
        "least: mean of people with labels less that of all people, in standard deviations, before and after weighting; "
        "above 0.1 is unbalanced. The CSV file has all features.",
        columns=["accepted by expected", "least balanced, before → after"], rows=rows, records=records,
    )  # fmt: skip


def _pictures(shown: Shown, section: str) -> list[PageFigure]:
    """The figures of a section that there is something to show in."""
    plains, compared = shown.plains, shown.difference is not None
    everything = list(plains.values())
    answered = all(one["sensitivity"] is not None for one in everything)
    known = [
        ("Value", "plane", "Value against unfairness", figures.draw_plane, True, compared and answered),
        ("Value", "estimators", "Utility by estimator", figures.draw_value, False, True),
        ("Value", "overlap", "Overlap", partial(figures.draw_overlap, shown.evaluations), len(everything[0]["groups"]) > 2, True),
        ("Fairness", "gaps", "What selection hides", figures.draw_fairness, compared, True),
        ("What the rejected may hide", "sensitivity", "Sensitivity", figures.draw_sensitivity, True, answered),
        ("What the rejected may hide", "contraction", "Contraction", figures.draw_contraction, False,
         all(one["contraction"] for one in everything)),
        ("Thresholds and costs", "curves", "Thresholds", figures.draw_thresholds, True, any(one["thresholds"] for one in everything)),
        ("Checks", "reliability", "Reliability by group", figures.draw_reliability, True, _first(shown, "calibration") is not None),
    ]  # fmt: skip
    return [
        PageFigure(
            key=key, title=title, note=figures.NOTES[key], section=section, wide=wide,
            draw=draw if isinstance(draw, partial) else partial(draw, plains),
        )
        for of, key, title, draw, wide, there in known if of == section and there
    ]  # fmt: skip


def _first(shown: Shown, key: str) -> Any:
    """What all policies share, from the first that has it."""
    return next((one[key] for one in shown.plains.values() if one[key]), None)


def _with_difference(shown: Shown) -> dict[str, Plain]:
    return {**shown.plains, **({} if shown.difference is None else {"B − A": shown.difference})}


def _limits(one: Plain, key: str) -> dict[str, Any]:
    """Bounds without assumption; `low` and `high` are the ends of their interval. Empty for a difference."""
    found = one.get("bounds", {}).get(key)
    if found is None:
        return {}
    return {
        "low": found["interval_low"],
        "high": found["interval_high"],
        "bound_low": found["low"],
        "bound_high": found["high"],
    }


def _number(of: Plain) -> str:
    return "" if of.get("estimate") is None else hundredfold(of["estimate"])


def _interval(of: Plain) -> str:
    return "" if of["low"] is None else f"[{hundredfold(of['low'])}, {hundredfold(of['high'])}]"


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".replace("-", "−")


def _share(share: float | None) -> str:
    if share is None:
        return ""
    return "> 99.9 %" if share > 0.999 else "< 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"
