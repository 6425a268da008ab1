"""Groups of comparable runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from fairall.config.choices import flattened
from fairall.display.format import CAUTION
from fairall.report.labels import dataset_label
from fairall.results.result import Result
from fairall.storage.identity import defines_problem, determining

RULE = (
    "A group has the same data set, split, cost, initial policy, number of applicants and time steps, "
    "evaluation and preset; its runs may differ in method, protocol, exploration, training, features used "
    "and seeds. Nothing is compared across groups; tests pair the seeds that both runs have."
)
UNTESTED = f"{CAUTION}; nothing is compared or tested."
# Keys of the problem in which compared runs may differ. The cost and the initial policy in use have keys of
# their own.
FREE = ("seed.", "seeds.", "dataset.cost.", "dataset.initial_policies.", "dataset.observed.")
FEATURES = ("dataset.drop.", "dataset.kinds.", "dataset.max_categories.", "dataset.max_count.")


def as_table(runs: Mapping[str, Result], values: Callable[[Result], Mapping[str, object]]) -> pd.DataFrame:
    """Values of runs as text: a row per run, a column per key, empty where a run has none."""
    texts = [
        {key: str(value) for key, value in values(run).items() if value is not None} for run in runs.values()
    ]
    return pd.DataFrame(texts, list(runs)).fillna("")


def conditions(run: Result) -> dict[str, object]:
    """The values that two runs must share to be comparable.

    All that defines the problem except `FREE`: data set and split (a CSV by its path), cost, initial policy,
    preset, `schedule.warm_up_applicants`, `schedule.applicants`, `schedule.time_steps`, `evaluation.split`,
    `evaluation.window`, and `protocol.effective`, which defines the effective measures. `FEATURES` too where
    propensities, and so the weights of labels, are estimated from the features.

    Returns:
        By dotted key; the first, `setting`, is a title.
    """
    config, dataset = run.config, dataset_label(run.name("dataset"))
    flat = flattened(determining(config.to_plain()))
    estimated = flat.get("dataset.decision") and not flat.get("dataset.propensity")
    free = FREE if estimated else (*FREE, *FEATURES)
    shared = {key: flat[key] for key in flat if defines_problem(key) and not f"{key}.".startswith(free)}
    setting = f"{dataset}, {config.worth}, {run.name('initial_policy')} initial policy"
    return {"setting": setting, **shared, "dataset.path": config.dataset.get("path")}


def grouped(runs: Mapping[str, Result]) -> dict[str, dict[str, Result]]:
    """Comparable runs by name, by title of their group, in the order of each group's first run.

    A title has data set, cost, initial policy, and the keys in which groups with the same of these differ.
    """
    table, groups = as_table(runs, conditions), {}
    for _, members in table.groupby(list(table), sort=False):
        values = members.iloc[0]
        alike = table[table["setting"] == values["setting"]]
        further = [f"{key} {values[key] or 'none'}" for key in table if alike[key].nunique() > 1]
        groups[", ".join([values["setting"], *further])] = {name: runs[name] for name in members.index}
    return groups
