"""Values by seed of the runs of a study, from which differences and their intervals can be computed anew."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from fairall.report import dataset_label
from reproduction.plan import Planned, distinct

FIRST_UTILITY = "utility_after_warm_up"  # on test people, of the policy after the first time step
DRAWN = "_sampled$"  # ends the names of measures by drawn decisions on test people, which are left out


def by_seed_table(planned: Iterable[Planned]) -> pd.DataFrame:
    """A row per finished run and measure, with the value for each seed in plain units, to four digits.

    Args:
        planned: runs of a study. A row is named by the words of its command that not all of them have.
    """
    runs = [one for one in distinct(planned) if one.run is not None]
    common = set.intersection(*({*one.words} for one in runs)) if runs else set()
    parts = {("", ""): pd.DataFrame()}
    for one in runs:
        assert one.run is not None
        name = " ".join(word for word in one.words if word not in common and not word.startswith("dataset="))
        values = one.run.per_seed.T
        values = values[~values.index.str.contains(DRAWN)]
        values.loc[FIRST_UTILITY] = one.run.curve("utility").head(1).mean()
        parts[dataset_label(one.dataset), name] = values.dropna(how="all")
    table = pd.concat(parts, names=["group", "name", "measure"], sort=True).rename_axis(columns=None)
    return table.map("{:.4g}".format, na_action="ignore").fillna("")
