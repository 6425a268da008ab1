"""Figures that the authors of other methods print, beside ours: the studies of rivals.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from fairall import FairAllError, Result
from fairall.display import Item, PageTable, Row, mean_interval, number
from fairall.metrics import Spread
from fairall.report import method_label
from reproduction.items import table_of
from reproduction.plan import Planned, composed_points, distinct
from reproduction.printed import predictive_intervals
from reproduction.study import Study

DEFAULTS = "~hparams"  # keys that a row leaves out have their defaults, not what is selected for ours
PICKED = ("dataset=", "model=")  # words that pick rows rather than being added to every command
AT = ("until", "at")  # options of cells: a time step
EVERY = 10  # time steps between those whose regrets PLOT's authors add up


@dataclass(frozen=True)
class Printed(Planned):
    """A run that figures are printed of, or its reference, and what rivals.yaml says of it."""

    said: Mapping[str, Any] = field(default_factory=dict)


class Measured(NamedTuple):
    """A measure in the authors' units."""

    heading: str
    digits: int
    of: Callable[..., pd.Series]  # of a run, its reference, and options of a cell, by seed


def regret(run: Result, reference: Result, until: int | None = None) -> pd.Series:
    """Utility per applicant that the reference earns more, up to a time step or in all."""
    return (reference.curve("effective_utility") - run.curve("effective_utility")).loc[:until].iloc[-1]


def added_up(run: Result, reference: Result, *, steps: int = 1, applicants: int = 1) -> pd.Series:
    """Sum over time steps of the share of right decisions that the reference has more, or of every tenth.

    At c = ½ a share of right decisions differs by twice the utility per applicant.

    Args:
        run: finished.
        reference: finished.
        steps: between those that are added up.
        applicants: in a time step, for a number of decisions in place of a share.
    """
    behind = reference.curve("effective_utility") - run.curve("effective_utility")
    total = behind.mul(behind.index, axis=0)
    per_step = total.diff().fillna(total.iloc[:1])
    return 2.0 * applicants * per_step[per_step.index % steps == 0].sum()


def accuracy(run: Result, reference: Result, at: int) -> pd.Series:
    """Share of evaluation people whom the policy of a time step decides rightly, at c = ½.

    P(d = ỹ) = 2u + ½ − u_all, u_all the utility of accepting everybody.
    """
    everybody = run.reference("accept_all", "mean_utility")
    assert everybody is not None
    return 2.0 * run.curve("utility").loc[:at].iloc[-1] + 0.5 - everybody.mean


MEASURES = {
    "every_tenth": Measured(
        "regret, every tenth step added up", 2, lambda run, other: added_up(run, other, steps=EVERY)
    ),
    "every_step": Measured("regret, all steps added up", 1, added_up),
    "regret": Measured("utility regret per applicant", 4, regret),
    "errors": Measured(
        "regret, errors",
        0,
        lambda run, other: added_up(run, other, applicants=run.config.schedule.applicants),
    ),
    "accuracy": Measured("accuracy", 3, accuracy),
    "gap": Measured("gap of acceptance rates", 3, lambda run, _, at: run.curve("dpu").loc[:at].iloc[-1]),
}
# Measures of whole runs.
MEASURES |= {
    cell: Measured(heading, 3, lambda run, _, measure=measure: run.values(measure))
    for cell, heading, measure in (
        ("demographic_parity", "mean gap of acceptance rates", "mean_dpu"),
        ("opportunity", "mean gap of true-positive rates", "mean_equal_opportunity"),
        ("utility", "mean utility", "mean_utility"),
    )
}


@cache
def studies() -> dict[str, dict[str, Any]]:
    """The studies of rivals.yaml by key."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("rivals.yaml").read_text())
    return found


class Rivals(Study):
    """The studies of rivals.yaml, in place of sweeps."""

    title = "figures of other authors"

    def planned(self, overrides: Sequence[str]) -> list[Printed]:
        """The runs of the rows of all studies, each before its reference, what its regrets are against.

        Args:
            overrides: words of the user's; `dataset=` and `model=` pick rows, others are added to every
                command, in the place of a study's own.

        Raises:
            FairAllError: where nothing is left, or a word is wrong.
        """
        picks = [word for word in overrides if word.startswith(PICKED)]
        added = [word for word in overrides if word not in picks]
        own = {word.split("=")[0] for word in added}
        rows, points = [], []
        for key, study in studies().items():
            for row in study["rows"]:
                words = [DEFAULTS, *study["words"], *row["words"]]
                if all(pick in words for pick in picks):
                    shared = [word for word in study["words"] if not word.startswith("model")]
                    for command in (words, [DEFAULTS, *shared, study["reference"]]):
                        kept = [word for word in command if word.split("=")[0] not in own]
                        points.append((key, (*kept, *added)))
                        rows.append(row)
        if not rows:
            raise FairAllError(f"no run is left by {' '.join(picks)}")
        return [
            Printed(**vars(one), said=row) for one, row in zip(composed_points(points), rows, strict=True)
        ]

    def keys(self) -> list[str]:
        """Keys of the studies."""
        return [*studies()]

    def sections(self, planned: Sequence[Any]) -> Mapping[str, Sequence[Item]]:
        """A table of each study that has runs."""
        keys = dict.fromkeys(one.sweep for one in planned)
        return {"": [study_table(key, [one for one in planned if one.sweep == key]) for key in keys]}


def study_table(key: str, planned: Sequence[Printed]) -> PageTable:
    """A row per printed cell of a study, of its runs as planned; none of missing runs."""
    study, rows = studies()[key], []
    for one, reference in zip(planned[::2], planned[1::2], strict=True):
        if one.run is not None and reference.run is not None:
            for cell in one.said["cells"]:
                when = "".join(f", step {cell[name]}" for name in AT if name in cell)
                shown = compared(one.run, reference.run, cell)
                rows.append(Row(_name(one), MEASURES[cell["measure"]].heading + when, shown))
    return table_of(
        ["printed", "ours", "such replicates of ours", "", "why"],
        rows,
        None,
        distinct(planned),
        key=key,
        title=study["title"],
        note=f"Of {study['source']}. {study['setting']}. Printed: mean (standard deviation). Ours: mean and "
        "its 95 % interval. Such replicates of ours: 95 % predictive interval of the mean of as many.",
    )


def compared(run: Result, reference: Result, cell: Mapping[str, Any]) -> list[str]:
    """A measure of a run beside what is printed, in the authors' units.

    Args:
        run: finished.
        reference: finished, what regrets are against.
        cell: of rivals.yaml.

    Returns:
        What is printed, ours, the predictive interval of as many replicates, whether what is printed is
        inside, and why not; empty where nothing is printed.
    """
    measured = MEASURES[cell["measure"]]
    look = {"scale": 1, "digits": measured.digits}
    options = {name: cell[name] for name in AT if name in cell}
    values = measured.of(run, reference, **options).dropna().to_numpy(dtype=float)
    printed, *deviation = (number(value, **look) for value in cell.get("printed", [None]))
    shown = [" ".join([printed, *map("({})".format, deviation)])]
    shown += [mean_interval(Spread.over_seeds(values), **look), "", "", cell.get("why", "")]
    if printed and len(values) > 1:
        low, high = predictive_intervals(values, cell["replicates"]).mean
        shown[2] = " to ".join(number(end, **look) for end in (low, high))
        shown[3] = "inside" if low <= cell["printed"][0] <= high else "outside"
    return shown


def _name(one: Printed) -> str:
    """The method and the words of a row that tell it from the study's others with that method."""
    rows = [other["words"] for other in studies()[one.sweep]["rows"]]
    alike = [words for words in rows if f"model={one.model}" in words]
    alike = alike or rows  # the method is one of the study's words
    own = [word for word in one.said["words"] if not all(word in words for words in alike)]
    return " ".join([method_label(one.model), *own])


rivals = Rivals("rivals")
