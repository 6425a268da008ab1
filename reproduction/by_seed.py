"""Values by seed of the runs of a study, from which differences and their intervals can be computed anew."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

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
    runs = {one.key: (one, _values(one.run)) for one in planned if one.run is not None}.values()
    common = set.intersection(*(set(one.words) for one, _ in runs)) if runs else set()
    seeds = sorted({seed for _, values in runs for seed in values})
    rows = []
    for one, values in runs:
        name = " ".join(word for word in one.words if word not in common and not word.startswith("dataset="))
        shown = values.reindex(columns=seeds).map("{:.4g}".format, na_action="ignore").fillna("")
        rows += [Row(dataset_label(one.dataset), name, row) for row in shown.itertuples()]
    columns = ["measure", *map(str, seeds)]
    return table_of(columns, rows, [], key=f"{study}_by_seed", title="Values by seed", note="")


def _values(run: Result) -> pd.DataFrame:
    """Values by measure and seed; measures without a value are left out."""
    values = run.per_seed[[name for name in run.per_seed if not name.endswith(DRAWN)]].T
    values.loc[FIRST_UTILITY] = run.curve("utility").head(1).mean()
    return values.dropna(how="all")
