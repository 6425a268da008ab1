"""Tables of an evaluation or of a comparison of two policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairall.evaluate.estimators import LABELS
from fairall.evaluate.fairness import MEASURES, VIEWS
from fairall.evaluate.figures import CURVES, NAMES, VIEWS_TOLD
from fairall.evaluate.shown import Plain, Shown, ends, number, share
from fairall.results.table import Cell, Row, Table, hundredfold, without_empty
from fairall.storage.identity import flattened

INTERVALS = "with 95 % intervals"
NO_ASSUMPTION = "no assumption: 95 % interval of what is possible, whatever the missing labels are."
SIZES = ("people", "accepted", "labelled")
RATES = ("dpu", "equal_opportunity", "predictive_parity", "false_positive", "utility_gap")
WORST = 3  # features named in the table of balance


@dataclass
class Lines:
    """Rows and records of a table, and the reasons why estimates lack an interval, as notes."""

    names: list[tuple[str, str]] = field(default_factory=list)  # of a row's group, and its own
    texts: list[list[str]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add(self, group: str, name: str, texts: list[str]) -> None:
        """Add a row."""
        self.names.append((group, name))
        self.texts.append(texts)

    def ends(self, own: Plain) -> str:
        """The interval ×100, or the mark of the note that says why there is none."""
        if own["low"] is not None:
            return ends(own)
        lacking = "estimate" if own.get("estimate") is None else "interval"
        reason = f"no {lacking}: {own.get('why') or 'nobody whom the rate is about'}"
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"[*{self.reasons.index(reason) + 1}]"

    def both(self, own: Plain) -> str:
        """Estimate and interval ×100."""
        return f"{number(own)} {self.ends(own)}".strip()

    def table(self, key: str, title: str, note: str, columns: Sequence[str]) -> Table:
        """The table, without columns in which no row has a value."""
        notes = (f" [*{k}] {reason}." for k, reason in enumerate(self.reasons, start=1))
        columns, texts = without_empty(columns, self.texts)
        rows = [Row(*who, [Cell(text) for text in own]) for who, own in zip(self.names, texts, strict=True)]
        note = "".join((note, *notes))
        return Table(key=key, title=title, note=note, columns=columns, rows=rows, records=self.records)


def value_table(shown: Shown) -> Table:
    """Value by estimator, with intervals."""
    lines = Lines()
    for name, group, one in shown.with_difference():
        known = {LABELS[estimator]: own for estimator, own in one["value"].items()}
        if "bounds" in one:
            known |= {"guaranteed interval": one["guarantee"], "no assumption": _limits(one, "utility")}
        for label, own in known.items():
            lines.records.append({"policy": name, "estimator": label} | dict(own))
            if own["low"] is not None or own.get("estimate") is not None:
                better = share(own.get("probability_better"))
                lines.add(group, label, [number(own), lines.ends(own), better])
    cost = next(iter(shown.plains.values()))["log"]["cost"]
    gain = "gain or costs loss" if cost is None else f"y − c with the label y and c = {cost:g}"
    note = (
        f"An acceptance gains {gain}, a rejection 0. Intervals of 95 %; guaranteed interval: valid at any "
        f"sample size if the propensities are right; {NO_ASSUMPTION}"
    )
    columns = ["estimate", "interval", "P(B better)"]
    return lines.table("value", "Utility per person of the log ×100", note, columns)


def fairness_table(shown: Shown) -> Table:
    """Gaps between groups, naive and corrected, with bounds, and the ratio of acceptance rates."""
    lines = Lines()
    for name, group, one in shown.with_difference():
        for measure, views in one["fairness"].items():
            known = dict(views)
            if measure in one.get("bounds", {}):
                known["no assumption"] = _limits(one, measure)
            texts = [lines.both(known[view]) if view in known else "" for view in (*VIEWS, "no assumption")]
            fairer = share(views["dr"].get("probability_fairer"))
            lines.add(group, MEASURES[measure].label, [*texts, fairer])
            lines.records += [
                {"policy": name, "measure": measure, "view": view} | own for view, own in known.items()
            ]
        if "acceptance_ratio" in one:
            ratio = one["acceptance_ratio"]
            lines.add(group, "acceptance ratio", ["", "", lines.both(ratio), "", ""])
            lines.records.append({"policy": name, "measure": "acceptance_ratio", "view": "dr"} | ratio)
    note = (
        f"Largest difference between groups, 0 is fair, {INTERVALS}. {VIEWS_TOLD} {NO_ASSUMPTION} acceptance "
        "ratio: smallest acceptance rate by the largest; below 80 is a sign of adverse impact (four-fifths "
        "rule)."
    )
    columns = [*NAMES.values(), "no assumption", "P(B fairer)"]
    return lines.table("fairness", "Unfairness ×100", note, columns)


def groups_table(shown: Shown) -> Table:
    """People and rates of each group."""
    lines = Lines()
    for name, policy, one in shown.with_difference():
        rates = RATES if "log" in one and one["log"]["labelled"] else RATES[:1]
        for group, own in one.get("groups", {}).items():
            size = f"{own['overlap']['effective_sample_size']:.0f}"
            texts = [lines.both(own["rates"][measure]["dr"]) for measure in rates]
            texts += [""] * (len(RATES) - len(texts))
            lines.add(policy, group, [*(str(own[key]) for key in SIZES), size, *texts])
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
    columns = [*SIZES, "effective", *(MEASURES[measure].rate for measure in RATES)]
    return lines.table("groups", "Groups", note, columns)


def thresholds_table(shown: Shown) -> Table:
    """Value and gaps by the threshold of a score."""
    lines = Lines()
    for name, one in shown.plains.items():
        for row in one["thresholds"] or ():
            texts = [hundredfold(row["acceptance"]), *(lines.both(row[key]) for key in CURVES)]
            lines.add(name, f"{row['threshold']:.3f}", texts)
            lines.records.append({"policy": name} | flattened(row))
    note = (
        "Of accepting everybody whose score is at least the threshold; doubly robust, with intervals that "
        "cover a whole column together with 95 %."
    )
    return lines.table("thresholds", "Thresholds ×100", note, ["acceptance", *CURVES.values()])


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
    lines, found = Lines(), shown.first("calibration") or {"of": "", "groups": {}}
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
    for group, one in (shown.first("balance") or {}).items():
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


def _limits(one: Plain, key: str) -> dict[str, Any]:
    """Bounds without assumption; `low` and `high` are the ends of their interval."""
    found = one["bounds"][key]
    ends = {"low": found["interval_low"], "high": found["interval_high"]}
    return ends | {"bound_low": found["low"], "bound_high": found["high"]}
