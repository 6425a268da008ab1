"""Figures that the authors of other methods print, beside ours: the studies of rivals.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd
import yaml

from fairall import FairAllError, Result
from fairall.display import Item, PageTable, Row, number
from fairall.metrics import Spread
from fairall.report import method_label
from reproduction.items import difference_of, table_of
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
    of: Callable[..., pd.Series]  # of a run and its reference, by seed


def regret(run: Result, reference: Result, until: int | None = None) -> pd.Series:
    """Utility per applicant that the reference earns more, up to a time step or in all."""
    return (reference.curve("effective_utility") - run.curve("effective_utility")).loc[:until].iloc[-1]


def every_tenth(run: Result, reference: Result, *, steps: int = EVERY) -> pd.Series:
    """Sum over every tenth time step of the share of right decisions that the reference has more.

    At c = ½ a share of right decisions differs by twice the utility per applicant. `steps=1` is the sum over
    all time steps.
    """
    behind = reference.curve("effective_utility") - run.curve("effective_utility")
    total = behind.mul(behind.index, axis=0)
    per_step = total.diff().fillna(total.iloc[:1])
    return 2.0 * per_step[per_step.index % steps == 0].sum()


def every_step(run: Result, reference: Result) -> pd.Series:
    """The same over all time steps."""
    return every_tenth(run, reference, steps=1)


def errors(run: Result, reference: Result) -> pd.Series:
    """Number of applicants decided wrongly beyond those of the reference, at c = ½."""
    return run.config.schedule.applicants * every_step(run, reference)


def accuracy(run: Result, reference: Result, at: int) -> pd.Series:
    """Share of evaluation people whom the policy of a time step decides rightly, at c = ½.

    P(d = ỹ) = 2u + ½ − u_all, u_all the utility of accepting everybody.
    """
    everybody = run.reference("accept_all", "mean_utility")
    assert everybody is not None
    return 2.0 * run.curve("utility").loc[:at].iloc[-1] + 0.5 - everybody.mean


def gap(run: Result, reference: Result, at: int) -> pd.Series:
    """Demographic-parity unfairness of the policy of a time step."""
    return run.curve("dpu").loc[:at].iloc[-1]


MEASURES = {
    "every_tenth": Measured("regret, every tenth step added up", 2, every_tenth),
    "every_step": Measured("regret, all steps added up", 1, every_step),
    "regret": Measured("utility regret per applicant", 4, regret),
    "errors": Measured("regret, errors", 0, errors),
    "accuracy": Measured("accuracy", 3, accuracy),
    "gap": Measured("gap of acceptance rates", 3, gap),
    "demographic_parity": Measured("mean gap of acceptance rates", 3, lambda run, _: run.values("mean_dpu")),
    "opportunity": Measured(
        "mean gap of true-positive rates", 3, lambda run, _: run.values("mean_equal_opportunity")
    ),
    "utility": Measured("mean utility", 3, lambda run, _: run.values("mean_utility")),
}


@cache
def studies() -> dict[str, dict[str, Any]]:
    """The studies of rivals.yaml by key."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("rivals.yaml").read_text())
    return found


def rivals_plan(overrides: Sequence[str] = ()) -> list[Printed]:
    """The runs of the rows of all studies, each before its reference, what its regrets are against.

    Args:
        overrides: words of the user's; `dataset=` and `model=` pick rows, others are added to every command,
            in the place of a study's own.

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
    return [Printed(**vars(one), said=row) for one, row in zip(composed_points(points), rows, strict=True)]


class Rivals(Study):
    """The studies of rivals.yaml, in place of sweeps."""

    title = "figures of other authors"

    def planned(self, overrides: Sequence[str]) -> Sequence[Planned]:
        """See `rivals_plan`."""
        return rivals_plan(overrides)

    def keys(self) -> list[str]:
        """Keys of the studies."""
        return [*studies()]

    def sections(self, planned: Sequence[Planned]) -> Mapping[str, Sequence[Item]]:
        """A table of each study that has runs."""
        keys = dict.fromkeys(one.sweep for one in planned)
        own = cast(Sequence[Printed], planned)
        return {"": [study_table(key, [one for one in own if one.sweep == key]) for key in keys]}


def study_table(key: str, planned: Sequence[Printed]) -> PageTable:
    """A row per printed cell of a study, of its runs as `rivals_plan` has them; none of missing runs."""
    study, shown, records = studies()[key], [], []
    for one, reference in zip(planned[::2], planned[1::2], strict=True):
        if one.run is None or reference.run is None:
            continue
        name = _name(one)
        for cell in one.said["cells"]:
            found = compared(one.run, reference.run, cell)
            measured = MEASURES[cell["measure"]]
            when = "".join(f", step {cell[name]}" for name in AT if name in cell)
            shown.append(Row(name, measured.heading + when, _shown(found, measured.digits)))
            records.append({"study": key, "method": one.model, "name": name, **found, "command": one.command})
    return table_of(
        ["printed", "ours", "such replicates of ours", "", "why"],
        shown,
        records,
        distinct(planned),
        key=key,
        title=study["title"],
        note=f"Of {study['source']}. {study['setting']}. Printed: mean (standard deviation). Ours: mean and "
        "its 95 % interval. Such replicates of ours: 95 % predictive interval of the mean of as many.",
    )


def compared(run: Result, reference: Result, cell: Mapping[str, Any]) -> dict[str, Any]:
    """A measure of a run beside what is printed, in the authors' units.

    Args:
        run: finished.
        reference: finished, what regrets are against.
        cell: of rivals.yaml.

    Returns:
        measure, ours (mean) with interval_low and interval_high, seeds, printed, printed_std, replicates,
        predictive_low, predictive_high, inside, why; None where nothing is printed.
    """
    options = {name: cell[name] for name in AT if name in cell}
    values = MEASURES[cell["measure"]].of(run, reference, **options).dropna().to_numpy(dtype=float)
    ours, interval_low, interval_high = difference_of(Spread.over_seeds(values)).values()
    printed, deviation = [*cell.get("printed", ()), None, None][:2]
    low, high, inside = None, None, None
    if printed is not None and len(values) > 1:
        low, high = predictive_intervals(values, cell["replicates"]).mean
        inside = low <= printed <= high
    return {
        "measure": cell["measure"],
        "seeds": len(values),
        "ours": ours,
        "interval_low": interval_low,
        "interval_high": interval_high,
        "printed": printed,
        "printed_std": deviation,
        "replicates": cell.get("replicates"),
        "predictive_low": low,
        "predictive_high": high,
        "inside": inside,
        "why": cell.get("why", ""),
    }


def _name(one: Printed) -> str:
    """The method and the words of a row that tell it from the study's others with that method."""
    rows = [other["words"] for other in studies()[one.sweep]["rows"]]
    alike = [words for words in rows if f"model={one.model}" in words]
    alike = alike or rows  # the method is one of the study's words
    own = [word for word in one.said["words"] if not all(word in words for words in alike)]
    return " ".join([method_label(one.model), *own])


def _shown(found: Mapping[str, Any], digits: int) -> list[str]:
    def of(*names: str, template: str = "{}") -> str:
        values = [number(found[name], 1, digits) for name in names]
        return template.format(*values) if all(values) else ""

    return [
        of("printed") + (of("printed_std", template=" ({})") if found["printed_std"] else ""),
        of("ours") + of("interval_low", "interval_high", template=" [{}, {}]"),
        of("predictive_low", "predictive_high", template="{} to {}"),
        INSIDE[found["inside"]],
        found["why"],
    ]


INSIDE = {None: "", True: "inside", False: "outside"}

rivals = Rivals("rivals")
