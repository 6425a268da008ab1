"""Texts, tables and page of an evaluation or of a comparison of two policies, and evaluation.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fairall.errors import count
from fairall.evaluate import figures
from fairall.evaluate.bounds import LARGEST_GAMMA
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimators import LABELS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.fairness import MEASURES
from fairall.evaluate.views import VIEWS
from fairall.results.page import PageFigure, write_page
from fairall.results.page import write as write_text
from fairall.results.table import Cell, Item, Row, Table, hundredfold, plain
from fairall.storage.identity import flattened

JSON = "evaluation.json"
HEADINGS = {"naive": "naive", "ips": "IPS", "dr": "DR"}
LOGGED = ("acceptance", "value", "guarantee", "fairness", "bounds", "overlap")  # to MLflow, of each policy
INTERVALS = "Estimates have 95 % bootstrap intervals."
VIEWS_TOLD = (
    "naive: among accepted people with a label; IPS, DR: of all people, from labels weighted by inverse "
    "propensity, and doubly robust."
)


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
    content: Mapping[str, Any]
    evaluations: Mapping[str, Evaluation]
    plains: Mapping[str, Mapping[str, Any]]
    difference: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, found: Evaluation | Comparison, log: Path) -> Shown:
        """Everything that is shown is computed here."""
        content = found.to_plain()
        if isinstance(found, Evaluation):
            return cls(log.name, content, {found.policy: found}, {found.policy: content})
        names = (f"A: {found.first.policy}", f"B: {found.second.policy}")
        return cls(
            log.name,
            content,
            dict(zip(names, (found.first, found.second), strict=True)),
            dict(zip(names, (content["first"], content["second"]), strict=True)),
            content["difference"],
        )

    @property
    def refused(self) -> str | None:
        """Why no value is given."""
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
            chosen = {one: {k: self.content[one][k] for k in LOGGED} for one in ("first", "second")}
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
    sections: dict[str, Sequence[Item]] = {"Value": [value_table(shown), *_pictures(shown, "value")]}
    sections["Fairness"] = [fairness_table(shown), groups_table(shown), *_pictures(shown, "fairness")]
    sections["What the rejected may hide"] = _pictures(shown, "hidden")
    opening = [
        shown.title,
        *([f"Refused: {shown.refused}"] if shown.refused else []),
        *told(shown),
        *doubts(shown),
    ]
    filled = {name: items for name, items in sections.items() if items}
    write_page(folder, "FairAll: evaluation from past decisions", filled, opening=opening, made=command)
    content = json.dumps(shown.content, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(folder / JSON, content + "\n")


def terminal(shown: Shown) -> str:
    """Texts and tables for a terminal."""
    tables = (value_table(shown), fairness_table(shown), groups_table(shown))
    of_tables = [f"\n{one.title}\n{one.note}\n\n{plain(one)}" for one in tables]
    return "\n".join([shown.title, *told(shown), *of_tables, "", *doubts(shown)])


def told(shown: Shown) -> list[str]:
    """Sentences on the log, its models and the policies."""
    first = next(iter(shown.plains.values()))
    log, groups = first["log"], first["groups"]
    sizes = "; ".join(f"{name} ({one['people']})" for name, one in groups.items())
    lines = [
        f"Log: {log['people']} people, {log['accepted']} accepted, {log['labelled']} with a "
        f"label; {count(len(groups), 'group')}: {sizes}; cost c = {log['cost']:g}; "
        f"propensities {log['propensities']}"
    ]
    for of, model in first["models"].items():
        if model is not None:
            auc = "" if model["auc"] is None else f", AUC {model['auc']:.2f}"
            lines.append(
                f"Model of the {of}: {model['name']} (out of fold: log loss {model['log_loss']:.3f}{auc})"
            )
    for name, one in shown.plains.items():
        of = f"Policy {name}" if shown.difference else f"Policy: {name}"
        lines.append(f"{of}; accepts {hundredfold(one['acceptance'])} % of the people")
        lines += [f"  {line}" for line in (*_overlap(one), *_sensitivity(one), *_contraction(one))]
    if shown.difference is not None and shown.difference["value"]["dr"]["estimate"] is not None:
        at = _turns(shown.difference["turning_point"])
        lines.append(f"Difference: which of the two has the greater utility may turn {at}")
    return lines


def doubts(shown: Shown) -> list[str]:
    """Warnings and notes, each once."""
    lines = []
    for name, one in shown.plains.items():
        of = f" ({name})" if shown.difference else ""
        lines += [f"Warning{of}: {text}" for text in one["warnings"]]
    return [*lines, *(f"Note: {text}" for text in next(iter(shown.plains.values()))["notes"])]


def _overlap(one: Mapping[str, Any]) -> Iterator[str]:
    overlap = one["overlap"]
    if overlap["share_of_top_percent"] is not None:
        yield (
            f"Overlap: the {one['log']['labelled']} labels count as "
            f"{overlap['effective_sample_size']:.0f} equally weighted ones; largest weight "
            f"{overlap['largest_weight']:.1f}; the largest 1 % of the weights hold "
            f"{_percent(overlap['share_of_top_percent'])} of their sum"
        )


def _sensitivity(one: Mapping[str, Any]) -> Iterator[str]:
    if one["sensitivity"] is None:
        return
    where = {name: _turns(point) for name, point in one["sensitivity"]["turning_points"].items()}
    gaps = ", ".join(f"{MEASURES[name].label} {at}" for name, at in where.items() if name != "utility")
    yield (
        "Sensitivity, to an odds ratio Γ of positive labels between accepted and rejected people of equal "
        f"features: the sign of the utility may turn {where['utility']}; the gap between groups may be 0: "
        f"{gaps}"
    )


def _turns(point: float | None) -> str:
    return f"at no Γ up to {LARGEST_GAMMA:g}" if point is None else f"at Γ = {point:.2f}"


def _contraction(one: Mapping[str, Any]) -> Iterator[str]:
    found = one["contraction"]
    if found is not None:
        rates = [
            (maker["failure"], maker["policy_failure"])
            for maker in found["decision_makers"]
            if maker["policy_failure"] is not None
            # At the acceptance rate of the most lenient it is whom that one accepted.
            and maker["decision_maker"] != found["most_lenient"]
        ]
        fewer = sum(policy < own for own, policy in rates)
        yield (
            f"Contraction, among the people of {found['most_lenient']}, the most lenient decision maker: the "
            f"policy fails less often than {fewer} of the {len(rates)} others at their acceptance rates"
        )


def value_table(shown: Shown) -> Table:
    """Value by estimator, with intervals."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    compared = shown.difference is not None
    for name, one in _with_difference(shown).items():
        group = name if compared else ""
        known = {LABELS[estimator]: own for estimator, own in one["value"].items()}
        if "bounds" in one:
            known |= {"guaranteed interval": one["guarantee"], "no assumption": one["bounds"]["utility"]}
        for label, own in known.items():
            records.append({"policy": name, "estimator": label} | dict(own))
            if own["low"] is None:
                continue
            better = own.get("probability_better")
            last = [Cell(_percent(better))] if compared else []
            estimate = Cell(_number(own.get("estimate")))
            rows.append(Row(group, label, [estimate, Cell(_interval(own)), *last]))
    cost = next(iter(shown.plains.values()))["log"]["cost"]
    return Table(
        key="value",
        title="Utility per person of the log ×100",
        note=f"An acceptance gains y − c with the label y and c = {cost:g}, a rejection 0. {INTERVALS} "
        "guaranteed interval: empirical-Bernstein bound, valid at any sample size where the propensities are "
        "right; no assumption: least and greatest value, whatever the missing labels are.",
        columns=["estimate", "interval", *(["P(B better)"] if compared else [])],
        rows=rows,
        records=records,
    )


def fairness_table(shown: Shown) -> Table:
    """Gaps between groups, naive and corrected, with bounds."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    compared = shown.difference is not None
    for name, one in _with_difference(shown).items():
        for measure, views in one["fairness"].items():
            cells = [Cell(_with_interval(views[view])) for view in VIEWS]
            limits = one.get("bounds", {}).get(measure)
            fairer = views["dr"].get("probability_fairer")
            cells.append(Cell(_interval(limits)))
            cells += [Cell(_percent(fairer))] if compared else []
            rows.append(Row(name if compared else "", MEASURES[measure].label, cells))
            who = {"policy": name, "measure": measure}
            records += [who | {"view": view} | dict(views[view]) for view in VIEWS]
            records += [who | {"view": "no assumption"} | dict(limits)] if limits else []
    return Table(
        key="fairness",
        title="Unfairness ×100",
        note=f"Largest difference between groups; 0 is fair. {VIEWS_TOLD} {INTERVALS} no assumption: least "
        "and greatest value, whatever the missing labels are.",
        columns=[*HEADINGS.values(), "no assumption", *(["P(B fairer)"] if compared else [])],
        rows=rows,
        records=records,
    )


def groups_table(shown: Shown) -> Table:
    """People and rates of each group."""
    rows: list[Row] = []
    records: list[dict[str, Any]] = []
    for name, one in shown.plains.items():
        for group, own in one["groups"].items():
            overlap = own["overlap"] or {}
            sizes = {key: own[key] for key in ("people", "accepted", "labelled")}
            cells = [*(str(size) for size in sizes.values())]
            accepts = own["rates"]["dpu"]
            cells.append(_with_interval(accepts.get("dr", accepts.get("everyone"))))
            cells.append(_number(overlap.get("effective_sample_size"), scale=1))
            for measure in ("dpu", *_rates()):
                views = own["rates"].get(measure, {})
                if measure != "dpu":
                    cells.append(_with_interval(views.get("dr", {})))
                records += [
                    {"policy": name, "group": group}
                    | sizes
                    | {"rate": MEASURES[measure].rate, "view": view}
                    | dict(rate)
                    for view, rate in views.items()
                ]
            rows.append(Row(name if shown.difference else "", group, [Cell(text) for text in cells]))
    return Table(
        key="groups",
        title="Groups",
        note=f"accepted, labelled: by the past decisions. Rates of the policy ×100, doubly robust. "
        f"{INTERVALS}",
        columns=[
            "people", "accepted", "labelled", "acceptance", "effective sample",
            *(MEASURES[measure].rate for measure in _rates()),
        ],
        rows=rows,
        records=records,
    )  # fmt: skip


def _pictures(shown: Shown, section: str) -> list[PageFigure]:
    """The figures of a section that there is something to show in."""
    plains, evaluations = shown.plains, shown.evaluations
    first = next(iter(plains.values()))
    answered = all(one["sensitivity"] is not None for one in plains.values())
    labelled = any(one["log"]["labelled"] for one in plains.values())
    # Key, title, note, how it is drawn, and whether it is wide.
    drawn: dict[str, list[tuple[str, str, str, Any, bool]]] = {
        "value": [
            (
                "estimators",
                "Utility by estimator",
                f"Utility per person. {INTERVALS} Grey: guaranteed interval, and bounds without assumption.",
                figures.draw_value,
                False,
            ),
            (
                "overlap",
                "Overlap",
                "People by the propensity of the past decisions, accepted and rejected; the line is the mean "
                "acceptance probability of the policy among people of a bin. Where it is high and nobody was "
                "accepted, labels are missing.",
                partial(figures.draw_overlap, evaluations),
                len(first["groups"]) > 2,
            ),
        ],
        "fairness": [
            (
                "gaps",
                "What selection hides",
                f"Unfairness: {VIEWS_TOLD} {INTERVALS} Thin lines: bounds without assumption.",
                figures.draw_fairness,
                bool(shown.difference),
            ),
        ],
        "hidden": [],
    }
    if shown.difference and answered:
        note = f"Doubly robust. {INTERVALS} Upper left is better."
        drawn["value"][:0] = [("plane", "Value against unfairness", note, figures.draw_plane, True)]
    if labelled:
        note = (
            "Share of positive labels among people of a bin of the policy's acceptance probability, which "
            "would be on the diagonal if it were that of a positive label. Larger dots: more people."
        )
        drawn["fairness"].append(
            ("reliability", "Reliability by group", note, figures.draw_reliability, answered)
        )
    if answered:
        note = (
            "Bounds if the odds of a positive label of rejected people differ from those of accepted people "
            "of equal features by a factor up to Γ; the dotted line is the Γ at which the sign may turn."
        )
        drawn["hidden"].append(("sensitivity", "Sensitivity", note, figures.draw_sensitivity, True))
    if all(one["contraction"] for one in plains.values()):
        note = (
            "Failures (accepted, negative label) per person: the policy among the people of the most lenient "
            "decision maker, and each decision maker among their own (Lakkaraju et al. 2017)."
        )
        drawn["hidden"].append(("contraction", "Contraction", note, figures.draw_contraction, False))
    found = []
    for key, title, note, draw, wide in drawn[section]:
        how = draw if isinstance(draw, partial) else partial(draw, plains)
        found.append(PageFigure(key=key, title=title, note=note, section=section, draw=how, wide=wide))
    return found


def _with_difference(shown: Shown) -> dict[str, Mapping[str, Any]]:
    extra = {} if shown.difference is None else {"B − A": shown.difference}
    return {**shown.plains, **extra}


def _rates() -> list[str]:
    """Measures whose rate is a column of its own; the false-negative rate is 1 less the true-positive one."""
    return [name for name, one in MEASURES.items() if one.formula and name not in ("dpu", "false_negative")]


def _number(value: float | None, scale: int = 100) -> str:
    return "" if value is None else hundredfold(value * scale / 100)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _interval(of: Mapping[str, Any] | None) -> str:
    if not of or of.get("low") is None:
        return ""
    return f"[{hundredfold(of['low'])}, {hundredfold(of['high'])}]"


def _with_interval(of: Mapping[str, Any]) -> str:
    return f"{_number(of.get('estimate'))} {_interval(of)}".strip()
