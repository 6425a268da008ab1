"""Values by seed of the runs of a study, from which differences and their intervals can be computed anew."""

from __future__ import annotations

from collections.abc import Sequence

from fairall import Result
from fairall.display import PageTable, Row
from fairall.report import dataset_label
from reproduction.items import table_of
from reproduction.plan import Planned

FIRST_UTILITY = "utility_after_warm_up"  # on test people, of the policy after the first time step
DRAWN = "_sampled"  # ends the names of measures by drawn decisions on test people, which are left out


def by_seed_table(study: str, planned: Sequence[Planned]) -> PageTable:
    """A row per finished run and measure, with the value for each seed in plain units, to four digits.

    Args:
        study: name of the command, with which the key of the table begins.
        planned: runs of the study. A row is named by the words of its command that not all of them have.
    """
    runs = {one.key: (one, one.run) for one in planned if one.run is not None}
    common = set.intersection(*(set(one.words) for one, _ in runs.values())) if runs else set()
    seeds = sorted({seed for _, run in runs.values() for seed in run.seeds})
    rows = []
    for one, run in runs.values():
        name = " ".join(word for word in one.words if word not in common and not word.startswith("dataset="))
        for measure, values in _measures(run).items():
            cells = [f"{values[seed]:.4g}" if seed in values else "" for seed in seeds]
            rows.append(Row(dataset_label(one.dataset), name, [measure, *cells]))
    columns = ["measure", *map(str, seeds)]
    return table_of(columns, rows, [], key=f"{study}_by_seed", title="Values by seed", note="")


def _measures(run: Result) -> dict[str, dict[int, float]]:
    """Values by measure and seed; seeds and measures without a value are left out."""
    curve = run.curve("utility")
    names = [name for name in run.per_seed if not name.endswith(DRAWN)]
    found = {name: run.values(name) for name in names} | {
        FIRST_UTILITY: curve.iloc[0].dropna() if len(curve) else curve
    }
    return {name: values.to_dict() for name, values in found.items() if len(values)}
