"""Figures that the authors of other methods print, beside ours: the studies of rivals.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from fairall import FairAllError, Result, load_results, places
from fairall.display import PageTable, Row, number
from fairall.metrics import Spread
from fairall.report import method_label
from reproduction.items import difference_of, table_of
from reproduction.pages import publish, refuse
from reproduction.plan import Planned, composed_points, distinct, with_runs
from reproduction.printed import predictive_intervals
from reproduction.runs import make

DEFAULTS = "~hparams"  # keys that a row leaves out have their defaults, not what is selected for ours
PICKED = ("dataset=", "model=")  # words that pick rows rather than being added to every command
EVERY = 10  # time steps between those whose regrets PLOT's authors add up


@dataclass(frozen=True)
class Cells:
    """A row of a study: a run, and the measures that are printed of such a run.

    Attributes:
        study: its key.
        words: of the row beside those of the study.
        planned: the run, finished or not.
        reference: the run that regrets are against.
        cells: of the row in rivals.yaml.
    """

    study: str
    words: Sequence[str]
    planned: Planned
    reference: Planned
    cells: Sequence[Mapping[str, Any]]


class Measured(NamedTuple):
    """A measure in the authors' units."""

    heading: str
    digits: int
    of: Callable[..., pd.Series]  # of a run and its reference, by seed


def regret(run: Result, reference: Result, until: int | None = None) -> pd.Series:
    """Utility per applicant that the reference earns more, up to a time step or in all."""
    return _up_to(reference.curve("effective_utility"), until) - _up_to(run.curve("effective_utility"), until)


def every_tenth(run: Result, reference: Result, *, steps: int = EVERY) -> pd.Series:
    """Sum over every tenth time step of the share of right decisions that the reference has more.

    At c = ½ a share of right decisions differs by twice the utility per applicant. `steps=1` is the sum over
    all time steps.
    """
    behind = reference.curve("effective_utility") - run.curve("effective_utility")
    total = behind.mul(behind.index, axis=0)
    per_step = total.diff().fillna(total.iloc[:1])
    return 2.0 * per_step[per_step.index % steps == 0].sum()


def errors(run: Result, reference: Result) -> pd.Series:
    """Number of applicants decided wrongly beyond those of the reference, at c = ½."""
    return run.config.schedule.applicants * every_tenth(run, reference, steps=1)


def accuracy(run: Result, reference: Result, at: int) -> pd.Series:
    """Share of evaluation people whom the policy of a time step decides rightly, at c = ½.

    P(d = ỹ) = 2u + ½ − u_all, u_all the utility of accepting everybody.
    """
    everybody = run.reference("accept_all", "mean_utility")
    assert everybody is not None
    return 2.0 * _up_to(run.curve("utility"), at) + 0.5 - everybody.mean


def gap(run: Result, reference: Result, at: int) -> pd.Series:
    """Demographic-parity unfairness of the policy of a time step."""
    return _up_to(run.curve("dpu"), at)


def _up_to(curve: pd.DataFrame, step: int | None) -> pd.Series:
    """The last value of a curve, of the time steps up to one of them."""
    return curve.loc[:step].iloc[-1]


def _mean(measure: str) -> Callable[..., pd.Series]:
    return lambda run, reference: run.values(measure)


MEASURES = {
    "every_tenth": Measured("regret, every tenth step added up", 2, every_tenth),
    "every_step": Measured("regret, all steps added up", 1, lambda a, b: every_tenth(a, b, steps=1)),
    "regret": Measured("utility regret per applicant", 4, regret),
    "errors": Measured("regret, errors", 0, errors),
    "accuracy": Measured("accuracy", 3, accuracy),
    "gap": Measured("gap of acceptance rates", 3, gap),
    "demographic_parity": Measured("mean gap of acceptance rates", 3, _mean("mean_dpu")),
    "opportunity": Measured("mean gap of true-positive rates", 3, _mean("mean_equal_opportunity")),
    "utility": Measured("mean utility", 3, _mean("mean_utility")),
}


@cache
def studies() -> dict[str, dict[str, Any]]:
    """The studies of rivals.yaml by key."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("rivals.yaml").read_text())
    return found


def rivals_plan(overrides: Sequence[str] = ()) -> list[Cells]:
    """The rows of all studies with their runs.

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
                rows.append((key, row))
                shared = [word for word in study["words"] if not word.startswith("model")]
                for command in (words, [DEFAULTS, *shared, study["reference"]]):
                    kept = [word for word in command if word.split("=")[0] not in own]
                    points.append((key, (*kept, *added)))
    if not rows:
        raise FairAllError(f"no run is left by {' '.join(picks)}")
    planned = composed_points(points)
    pairs = zip(planned[::2], planned[1::2], strict=True)
    return [
        Cells(key, row["words"], one, reference, row["cells"])
        for (key, row), (one, reference) in zip(rows, pairs, strict=True)
    ]


def rivals(
    overrides: Sequence[str], folder: Path | None = None, into: Sequence[Path] = (), jobs: int | None = None
) -> bool:
    """Make the runs that are missing, and write a page of them; return whether all runs are there.

    Args:
        overrides: see `rivals_plan`.
        folder: of the page; None: `rivals` in outputs_dir.
        into: pages of the documentation with blocks to fill.
        jobs: number of runs at once; None: one per core.
    """
    config = places(overrides)
    refuse(into, config)
    rows = rivals_plan(overrides)
    planned = [one for row in rows for one in (row.planned, row.reference)]
    failures = make(distinct(planned), overrides, jobs=jobs)
    runs = load_results(Path(config.outputs_dir) / "runs").results
    finished = with_runs(planned, runs)
    of_studies: dict[str, list[tuple[Cells, Planned, Planned]]] = {}
    for row, one, reference in zip(rows, finished[::2], finished[1::2], strict=True):
        of_studies.setdefault(row.study, []).append((row, one, reference))
    tables = [study_table(key, own) for key, own in of_studies.items()]
    publish(
        "rivals",
        "FairAll: figures of other authors",
        {"": tables},
        config,
        folder=folder,
        into=into,
        known=studies,
    )
    return not failures


def study_table(key: str, rows: Sequence[tuple[Cells, Planned, Planned]]) -> PageTable:
    """A row per printed cell of a study; those of missing runs are left out.

    Args:
        key: of the study.
        rows: of the study, each with its run and the reference's, finished or missing.
    """
    study, shown, records = studies()[key], [], []
    for row, one, reference in rows:
        if one.run is None or reference.run is None:
            continue
        name = _name(row)
        for cell in row.cells:
            found = compared(one.run, reference.run, cell)
            shown.append(Row(name, _heading(cell), _shown(found, MEASURES[cell["measure"]].digits)))
            records.append({"study": key, "method": one.model, "name": name, **found, "command": one.command})
    return table_of(
        ["printed", "ours", "such replicates of ours", "", "why"],
        shown,
        records,
        distinct([one for _, *pair in rows for one in pair]),
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
    options = {name: cell[name] for name in ("until", "at") if name in cell}
    values = MEASURES[cell["measure"]].of(run, reference, **options).dropna()
    spread = Spread.over_seeds(values.to_numpy(dtype=float))
    ours, interval_low, interval_high = difference_of(spread).values()
    printed, deviation = [*cell.get("printed", ()), None, None][:2]
    low, high = None, None
    if printed is not None and len(values) > 1:
        low, high = predictive_intervals(values.to_numpy(dtype=float), cell["replicates"]).mean
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
        "inside": None if low is None or high is None else low <= printed <= high,
        "why": cell.get("why", ""),
    }


def _name(row: Cells) -> str:
    """The method and the words of a row that tell it from the study's others with that method."""
    rows = [other["words"] for other in studies()[row.study]["rows"]]
    alike = [words for words in rows if any(word == f"model={row.planned.model}" for word in words)]
    alike = alike or rows  # the method is one of the study's words
    own = [word for word in row.words if not all(word in words for words in alike)]
    return " ".join([method_label(row.planned.model), *own])


def _heading(cell: Mapping[str, Any]) -> str:
    when = next((f", step {cell[name]}" for name in ("until", "at") if name in cell), "")
    return MEASURES[cell["measure"]].heading + when


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
