"""More than two groups: utility and unfairness, whom the gap is about, and what the latent still tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from fairall import Result
from fairall.display import (
    GREY,
    Cell,
    Item,
    PageTable,
    Row,
    handles_of,
    legend_below,
    mean_interval,
    number,
)
from fairall.metrics import Quantity, Spread
from fairall.report import LEVEL, dataset_label, look_of, measures, method_label, standings
from fairall.results import REFERENCES, interval
from reproduction.items import difference_of, figure_of, grid_of, table_of
from reproduction.plan import Planned, runs_of
from reproduction.questions_tables import means_table

EFFECTIVE, LATER, DPU, ACCEPTED = measures("effective_utility", "mean_utility", "mean_dpu", "mean_acceptance")
JUDGED = {"effective utility ↑": EFFECTIVE, "utility ↑": LATER, "DPU ↓": DPU}
MEASURES = JUDGED | {
    "acceptance rate": ACCEPTED,
    "MMD of z ↓": Quantity("latent_s_mmd", "MMD of z", "squared distance", False),
    "AUC of s from z ↓": Quantity("latent_s_auc", "AUC of s from z", "share", False),
}
BASELINE = "parity_ensemble"
EQUAL = "oracle_fair"  # the reference whose DPU on test people is their noise
ALIKE = ", cut, memory of all"
COLUMNS = 3  # panels side by side


class Groups(NamedTuple):
    """The groups of a data set."""

    dataset: str
    groups: int

    @property
    def label(self) -> str:
        """Both in words."""
        return f"{dataset_label(self.dataset)}, {self.groups} groups"


Found = Mapping[Groups, Mapping[str, Result]]  # runs by groups and label of the method


def groups_of(run: Result) -> Groups:
    """The groups of a run."""
    return Groups(run.name("dataset"), len(run.named_groups))


def tool_of(run: Result) -> str:
    """The method, and whether it decides and remembers as `BASELINE` does in place of its usual way."""
    alike = run.config.model.get("decision") == "deterministic" and run.config.model.get("memory") == "all"
    return method_label(run.name("model")) + alike * ALIKE


def groups_items(planned: Sequence[Planned]) -> list[Item]:
    """Utility against DPU as a figure, differences, rates of every group, and all numbers."""
    found: dict[Groups, dict[str, Result]] = {}
    for run in runs_of(planned):
        found.setdefault(groups_of(run), {})[tool_of(run)] = run
    figure = figure_of(
        "questions_groups_map",
        "Utility and DPU with four and eight groups",
        "Test people of the last policies, mean over seeds with 95 % intervals (Student's t), ×100. DPU is "
        "the largest difference between the acceptance rates of two groups. Grey: a classifier that knows "
        "every label, with equal rates among training people; its DPU is what is left of them among others.",
        lambda: draw_map(found),
        planned,
        wide=True,
    )
    means = means_table(
        found,
        MEASURES,
        planned,
        key="questions_groups",
        title="Methods with four and eight groups",
        note="×100, mean over seeds with its 95 % interval (Student's t); all but the first column of test "
        "people, decisions over evaluation.window, latents after the last time step. MMD: the largest "
        "squared maximum mean discrepancy between the latents of two groups, about 0 where they are alike. "
        "AUC: of the pair that is told apart best, 50 by chance. Both of groups with 50 training and 50 test "
        "people.",
    )
    return [figure, differences_table(found, planned), rates_table(found, planned), means]


def differences_table(found: Found, planned: Sequence[Planned]) -> PageTable:
    """A row per groups and method: measures less those of `BASELINE`."""
    rows, records = [], []
    baseline = method_label(BASELINE)
    for groups, runs in found.items():
        cells: dict[str, list[Cell]] = {label: [] for label in runs if label != baseline}
        for measure in JUDGED.values():
            values = {label: run.values(measure.name) for label, run in runs.items()}
            judged = standings({label: own for label, own in values.items() if len(own)}, measure, baseline)
            for label, own in cells.items():
                one = judged.get(label, {})
                mean, low, high, p = (
                    one.get(f"{key}_baseline") for key in ("difference", "low", "high", "p")
                )
                ends = None if low is None or high is None else (low, high)
                spread = None if mean is None else Spread(mean, None, ends)
                own.append(Cell(mean_interval(spread), best=p is not None and p < LEVEL))
                record = groups._asdict() | {"method": label, "measure": measure.name, "p": p}
                records.append(record | difference_of(spread))
        rows += [Row(groups.label, label, own) for label, own in cells.items()]
    return table_of(
        [*JUDGED],
        rows,
        records,
        planned,
        key="questions_groups_differences",
        title=f"Methods, less {baseline}",
        note="×100, difference with its 95 % interval (Student's t, paired by seed); bold where it is not 0 "
        "at the 5 % level, corrected for all methods of the groups (Holm). Utility and DPU of test people "
        "over evaluation.window, effective utility of applicants.",
    )


def rates_table(found: Found, planned: Sequence[Planned]) -> PageTable:
    """A row per group of people, the smallest last: how many they are, and how many of them are accepted."""
    rows, records = [], []
    methods = list(dict.fromkeys(label for runs in found.values() for label in runs))
    for groups, runs in found.items():
        people = next(iter(runs.values())).named_groups
        for name, group in sorted(people.items(), key=lambda item: -sum(item[1].people.values())):
            size = sum(group.people.values())
            accepted = {label: run.named_groups[name].accepted_in_window for label, run in runs.items()}
            cells = [mean_interval(accepted.get(label)) for label in methods]
            rows.append(Row(groups.label, name, [f"{size}", number(group.base_rate), *cells]))
            known = groups._asdict() | {"group": name, "people": size, "base_rate": group.base_rate}
            records += [
                known | {"method": label} | difference_of(spread, "accepted")
                for label, spread in accepted.items()
            ]
    return table_of(
        ["people", "label 1", *methods],
        rows,
        records,
        planned,
        key="questions_groups_rates",
        title="Acceptance rates of the groups",
        note="People of the data set, share of label 1, and share of the applicants over evaluation.window "
        "who were accepted, ×100, mean over seeds with its 95 % interval (Student's t). Empty where a seed "
        "had no applicant of the group.",
    )


def draw_map(found: Found) -> Figure:
    """Draw a panel per groups: utility against DPU, a mark per method."""
    n_rows = -(-len(found) // COLUMNS)
    figure, panels = grid_of(n_rows, COLUMNS, 1.7 * n_rows + 0.3)
    panels = panels.ravel()
    for axes, (groups, runs) in zip(panels, found.items(), strict=False):
        for label, run in runs.items():
            x, y = run.spread(DPU.name), run.spread(LATER.name)
            if x is not None and y is not None:
                look = {"ms": 4, "mfc": "white" if label.endswith(ALIKE) else None}
                look |= {key: look_of(run.name("model"))[key] for key in ("color", "marker")}
                interval(axes, x, y, label=label, **look)
        best = next(iter(runs.values()))
        x, y = best.reference(EQUAL, DPU.name), best.reference(EQUAL, LATER.name)
        if x is not None and y is not None:
            interval(axes, x, y, label=REFERENCES[EQUAL], color=GREY, marker="*", ms=5)
        axes.set_title(groups.label)
        axes.set_xlim(left=0)
    for axes in panels[len(found) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(found) - COLUMNS) : len(found)]:
        axes.set_xlabel("DPU ×100")
    for axes in panels[: len(found) : COLUMNS]:
        axes.set_ylabel("utility ×100")
    legend_below(figure, handles_of(panels), 5)
    return figure
