"""Groups of comparable runs, and the differences between groups."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairall.config.choices import flattened
from fairall.display.format import CAUTION
from fairall.report.labels import dataset_label
from fairall.results.result import Result
from fairall.storage.identity import defines_problem, determining

RULE = (
    "A group has the same data set, split, cost, initial policy, number of applicants and time steps, "
    "evaluation and preset; its runs may differ in method, protocol, exploration, training, features used "
    "and seeds."
)
OF_ESTIMATES = ("dataset.drop", "dataset.kinds", "dataset.max_categories", "dataset.max_count")
# Keys of the problem in which compared runs may differ, `OF_ESTIMATES` where no propensity is estimated. The
# cost and the initial policy in use have keys of their own.
COMPARED = ("seed", "seeds", "dataset.cost", "dataset.initial_policies", "dataset.observed", *OF_ESTIMATES)
WORDS = {"dataset.name": "data set", "cost.value": "cost", "initial_policy.name": "initial policy"}
UNTESTED = f"{CAUTION}; nothing is compared or tested."

Conditions = dict[str, Any]


class Comparable(NamedTuple):
    """Runs under the same conditions."""

    title: str  # data set, cost, initial policy, and the other keys in which groups differ
    runs: dict[str, Result]  # by the caller's names, in the caller's order
    conditions: Conditions  # values by dotted key


def conditions(run: Result) -> Conditions:
    """The values that two runs must share to be comparable, by dotted key.

    All that defines the problem except `COMPARED`: data set and split (a CSV by its path), cost, initial
    policy, preset, `schedule.warm_up_applicants`, `schedule.applicants`, `schedule.time_steps`,
    `evaluation.split`, `evaluation.window`, and `protocol.effective`, which defines the effective measures.
    Keys without a value are left out.
    """
    flat = flattened(determining(run.config.to_plain()))
    compared = tuple(f"{own}." for own in COMPARED)
    kept = {
        key: value
        for key, value in flat.items()
        if defines_problem(key) and not f"{key}.".startswith(compared)
    }
    if flat.get("dataset.decision") and not flat.get("dataset.propensity"):
        # Propensities are estimated from the features then, and the weights of labels with them.
        kept |= {key: flat.get(key) for key in flat if key.startswith(OF_ESTIMATES)}
    kept["dataset.path"] = run.config.dataset.get("path")
    return {key: value for key, value in kept.items() if value is not None}


def grouped(runs: Mapping[str, Result]) -> list[Comparable]:
    """Runs grouped by their conditions, in the order of each group's first run."""
    groups: list[tuple[Conditions, dict[str, Result]]] = []
    for name, run in runs.items():
        own = conditions(run)
        if not any(known == own for known, _ in groups):
            groups.append((own, {}))
        next(members for known, members in groups if known == own)[name] = run
    further = [key for key in _differing([own for own, _ in groups]) if key not in WORDS]
    return [Comparable(_title(own, further), members, own) for own, members in groups]


def difference(groups: Sequence[Comparable]) -> str:
    """One line on the differences between groups and between the seeds of runs; empty for none."""
    every = [group.conditions for group in groups]
    differences = []
    for key in _differing(every):
        values = dict.fromkeys(_shown(key, own.get(key)) for own in every)
        differences.append(f"{WORDS.get(key, key)} ({', '.join(values)})")
    sentences = []
    if differences:
        sentences.append(f"Not compared across groups, which differ in {'; '.join(differences)}.")
    # Those of a run are consecutive.
    seeds = dict.fromkeys(
        " to ".join(dict.fromkeys([str(run.seeds[0]), str(run.seeds[-1])]))
        for group in groups
        for run in group.runs.values()
    )
    if len(seeds) > 1:
        sentences.append(f"Seeds differ ({'; '.join(seeds)}): tests pair those that both runs have.")
    return " ".join(sentences)


def _differing(every: Sequence[Conditions]) -> list[str]:
    """Keys with different values; those of a group of the configuration only where its name is the same."""
    keys = dict.fromkeys(key for own in every for key in own)
    pairs = list(itertools.combinations(every, 2))
    return [
        key for key in keys if any(a.get(key) != b.get(key) and not _explained(key, a, b) for a, b in pairs)
    ]


def _explained(key: str, a: Conditions, b: Conditions) -> bool:
    """Whether a difference follows from another data set or initial policy."""
    group = key.split(".")[0]
    causes = {"dataset": ("dataset.name",), "initial_policy": ("dataset.name", "initial_policy.name")}
    return key not in WORDS and any(a.get(cause) != b.get(cause) for cause in causes.get(group, ()))


def _title(own: Conditions, further: Sequence[str]) -> str:
    amounts = any(key.startswith("dataset.gain.") for key in own)
    cost = f"c = {own['cost.value']:g}"
    if amounts:
        by = f"decided by {cost}" if own.get("dataset.decide_by") == "cost" else "amounts by person"
        cost = f"{by}, money per 100 people"
    setting = f"{cost}, {own['initial_policy.name']} initial policy"
    others = (f"{key} {_shown(key, own.get(key))}" for key in further)
    return ", ".join([dataset_label(own["dataset.name"]), setting, *others])


def _shown(key: str, value: Any) -> str:
    if value is None:
        return "none"
    return dataset_label(value) if key == "dataset.name" else str(value)
