"""Figures that the authors of other methods print, beside ours: the studies of rivals.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from fairall import FairAllError, Result
from fairall.display import Item, PageTable, Row, mean_interval, number
from fairall.metrics import Spread
from fairall.report import method_label
from reproduction.items import table_of
from reproduction.plan import Planned, composed_points, distinct
from reproduction.printed import predictive_interval
from reproduction.study import Study
from reproduction.words import words_of

STUDIES = words_of("rivals")
DEFAULTS = "~hparams"  # keys that a row leaves out have their defaults, not what is selected for ours
PICKED = ("dataset=", "model=")  # words that pick rows rather than being added to every command
AT = ("until", "at")  # options of cells: a time step
EVERY = 10  # time steps between those whose regrets PLOT's authors add up


@dataclass(frozen=True)
class Printed(Planned):
    """A run that figures are printed of, or its reference, and what rivals.yaml says of it."""

    said: Mapping[str, Any] = field(default_factory=dict)


def regret(run: Result, reference: Result, until: int | None = None) -> pd.Series:
    """Utility per applicant that the reference earns more, up to a time step or in all."""
    return (reference.curve("effective_utility") - run.curve("effective_utility")).loc[:until].iloc[-1]


def added_up(run: Result, reference: Result, *, steps: int = 1) -> pd.Series:
    """Sum over time steps of the share of right decisions that the reference has more, or of every tenth.

    At c = ½ a share of right decisions differs by twice the utility per applicant.

    Args:
        run: finished.
        reference: finished.
        steps: between those that are added up.
    """
    behind = reference.curve("effective_utility") - run.curve("effective_utility")
    total = behind.mul(behind.index, axis=0)
    per_step = total.diff().fillna(total.iloc[:1])
    return 2.0 * per_step[per_step.index % steps == 0].sum()


def accuracy(run: Result, reference: Result, at: int) -> pd.Series:
    """Share of evaluation people whom the policy of a time step decides rightly, at c = ½.

    P(d = ỹ) = 2u + ½ − u_all, u_all the utility of accepting everybody.
    """
    everybody = run.reference("accept_all", "mean_utility")
    assert everybody is not None
    return 2.0 * run.curve("utility").loc[:at].iloc[-1] + 0.5 - everybody.mean


def _of_run(measure: str) -> Callable[..., pd.Series]:
    return lambda run, _: run.values(measure)


# In the authors' units: heading, digits, and values by seed of a run, its reference and options of a cell.
MEASURES: dict[str, tuple[str, int, Callable[..., pd.Series]]] = {
    "every_tenth": ("regret, every tenth step added up", 2, partial(added_up, steps=EVERY)),
    "every_step": ("regret, all steps added up", 1, added_up),
    "regret": ("utility regret per applicant", 4, regret),
    "errors": (
        "regret, errors",
        0,
        lambda run, other: run.config.schedule.applicants * added_up(run, other),
    ),
    "accuracy": ("accuracy", 3, accuracy),
    "gap": ("gap of acceptance rates", 3, lambda run, _, at: run.curve("dpu").loc[:at].iloc[-1]),
    "demographic_parity": ("mean gap of acceptance rates", 3, _of_run("mean_dpu")),
    "opportunity": ("mean gap of true-positive rates", 3, _of_run("mean_equal_opportunity")),
    "utility": ("mean utility", 3, _of_run("mean_utility")),
}


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
        for key, study in STUDIES.items():
            shared = [word for word in study["words"] if not word.startswith("model")]
            for row in study["rows"]:
                words = [*study["words"], *row["words"]]
                for command in (words, [*shared, study["reference"]]) if {*picks} <= {*words} else ():
                    kept = [word for word in command if word.split("=")[0] not in own]
                    points.append((key, (DEFAULTS, *kept, *added)))
                    rows.append(row)
        if not rows:
            raise FairAllError(f"no run is left by {' '.join(picks)}")
        return [
            Printed(**vars(one), said=row) for one, row in zip(composed_points(points), rows, strict=True)
        ]

    def keys(self) -> list[str]:
        """Keys of the studies."""
        return [*STUDIES]

    def sections(self, planned: Sequence[Any]) -> Mapping[str, Sequence[Item]]:
        """A table of each study that has runs."""
        keys = dict.fromkeys(one.sweep for one in planned)
        return {"": [study_table(key, [one for one in planned if one.sweep == key]) for key in keys]}


def study_table(key: str, planned: Sequence[Printed]) -> PageTable:
    """A row per printed cell of a study, of its runs as planned; none of missing runs."""
    study, rows = STUDIES[key], []
    for one, reference in zip(planned[::2], planned[1::2], strict=True):
        if one.run is not None and reference.run is not None:
            for cell in one.said["cells"]:
                when = "".join(f", step {cell[name]}" for name in AT if name in cell)
                heading = MEASURES[cell["measure"]][0] + when
                rows.append(Row(_name(one), heading, compared(one.run, reference.run, cell)))
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
    _, digits, measure = MEASURES[cell["measure"]]
    shown = partial(number, scale=1, digits=digits)
    options = {name: cell[name] for name in AT if name in cell}
    values = measure(run, reference, **options).dropna().to_numpy(dtype=float)
    printed, *deviation = map(shown, cell.get("printed", [None]))
    reach, where = "", ""
    if printed and len(values) > 1:
        low, high = predictive_interval(values[:, None], cell["replicates"], "mean")
        reach = f"{shown(low)} to {shown(high)}"
        where = "inside" if low <= cell["printed"][0] <= high else "outside"
    ours = mean_interval(Spread.over_seeds(values), scale=1, digits=digits)
    return [" ".join([printed, *map("({})".format, deviation)]), ours, reach, where, cell.get("why", "")]


def _name(one: Printed) -> str:
    """The method and the words of a row that tell it from the study's others with that method."""
    rows = [{*row["words"]} for row in STUDIES[one.sweep]["rows"]]
    # Where the method is one of the study's words, it is that of all rows.
    alike = set.intersection(*([words for words in rows if f"model={one.model}" in words] or rows))
    return " ".join([method_label(one.model), *(word for word in one.said["words"] if word not in alike)])


rivals = Rivals("rivals")
