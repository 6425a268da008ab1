"""Values of runs as one long frame: a row per run, measure and seed, with what studies call the run."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from fairall import Result
from fairall.report import dataset_label, method_label
from reproduction.plan import Planned

Facts = dict[str, Any]
"""What is known of a planned run by name, and the run itself under `planned`."""

FIRST = "first"  # measure: utility on test people of the policy after the warm-up
CONSTANT = "intercept"  # in `dataset.gain` and `dataset.loss`, of the part that is the same for everybody
RULES = {
    "none": "no fairness term",
    "demographic_parity": "equal rates",
    "equal_opportunity": "equal opportunity",
}
LATENT = "latent"
ALIKE = ", cut, memory of all"  # of methods that decide and remember as thresholds do
AS_THRESHOLDS = {"decision": "deterministic", "memory": "all"}
CLASSIFIERS = {"fairall_I_II": "VAE", "fairlog": "net", "unfairlog": "net"}  # else the name of the method


def _fairness_tool(one: Planned) -> str:
    """What a run does about fairness."""
    return LATENT if one.model == "fairall_I_II" else RULES[one.config.fairness.rule.name]


def _truth_gap(one: Planned) -> float:
    """p(Y = 1 | S = +1) − p(Y = 1 | S = −1) of synthetic people."""
    share = one.config.dataset["structural_model"]["ground_truth_share"]
    of = {int(s): float(own) for s, own in share.items()} if isinstance(share, dict) else {}
    return round(of[1] - of[-1], 9) if of else 0.0


def _thresholds(one: Planned) -> bool:
    return one.config.fairness.rule.name == "demographic_parity"


def _fairness(one: Planned) -> str:
    """What of a method is there for fairness."""
    terms = {
        LATENT: one.config.model.get("policy") == "z_dec",
        "penalty": one.model == "fairlog",
        "thresholds": _thresholds(one),
    }
    return " + ".join(name for name, there in terms.items() if there) or "none"


# Facts that are no single value of the configuration.
FACTS: dict[str, Callable[[Planned], Any]] = {
    "fairness_tool": _fairness_tool,
    "truth_gap": _truth_gap,
    "alike": lambda one: ALIKE * (AS_THRESHOLDS.items() <= one.config.model.items()),
    "groups": lambda one: len(one.run.named_groups) if one.run else None,
    "interest": lambda one: sum(
        of for name, of in (one.config.amounts or {}).get("gain", {}).items() if name != CONSTANT
    ),
    "way": lambda one: "by one cost" if one.config.decided_amounts is None else "by amounts",
    "drift": lambda one: ", drift" if one.config.world else "",
    "estimator": lambda one: CLASSIFIERS.get(one.model, one.model.removeprefix("parity_")),
    "fairness": _fairness,
    "decision": lambda one: (
        "drawn" if one.config.model.get("decision") == "sample" and not _thresholds(one) else "cut"
    ),
}


class _Words(string.Formatter):
    """Formats with the conversions `!d` (label of a data set), `!m` (of a method) and `!c` (×100)."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        conversions = {"d": dataset_label, "m": method_label, "c": lambda share: 100 * share}
        if conversion in conversions:
            return conversions[conversion](value)
        return super().convert_field(value, conversion)


def words(template: str, facts: Mapping[str, Any]) -> str:
    """A template with facts filled in.

    Examples:
        >>> words("{dataset!d}, interest {interest!c:g} %", {"dataset": "fico", "interest": 0.02})
        'FICO scores, interest 2 %'
    """
    return _Words().vformat(template, (), facts)


def facts_of(planned: Sequence[Planned], named: Mapping[str, Any]) -> list[Facts]:
    """Facts of runs, finished or missing, in their order.

    Args:
        planned: the runs.
        named: by name of a fact where it is found: a key of `FACTS`, a template of earlier facts, a path
            in the configuration, or paths of which the first that is there counts, and what stands for none.
    """
    found = []
    for one in planned:
        facts: Facts = {"planned": one, "sweep": one.sweep}
        config = one.config.to_plain()
        for name, where in named.items():
            facts[name] = _fact(one, config, facts, where)
        found.append(facts)
    return found


def _fact(one: Planned, config: Any, known: Facts, where: Any) -> Any:
    *paths, usual = where if isinstance(where, list) else (where, None)
    if "{" in paths[0]:
        return words(paths[0], known)
    if paths[0] in FACTS:
        return FACTS[paths[0]](one)
    for path in paths:
        node = config
        for part in path.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is not None:
            return node
    return usual


def chosen(runs: Iterable[Facts], of: Mapping[str, Any]) -> list[Facts]:
    """Runs with the given facts; a list names several values of a fact."""
    allowed = {name: one if isinstance(one, list) else [one] for name, one in of.items()}
    return [run for run in runs if all(run[name] in some for name, some in allowed.items())]


def finished(runs: Iterable[Facts]) -> list[Facts]:
    """The finished ones of some runs."""
    return [run for run in runs if run["planned"].run is not None]


def by_words(runs: Iterable[Facts], template: str) -> dict[str, list[Facts]]:
    """Runs by what a template says of them."""
    found: dict[str, list[Facts]] = {}
    for run in runs:
        found.setdefault(words(template, run), []).append(run)
    return found


def long(rows: Iterable[Facts]) -> pd.DataFrame:
    """The long frame: facts of each row, `seed`, and `value` of its `measure`, for seeds that have one."""
    return pd.DataFrame(
        [
            row | {"seed": seed, "value": value}
            for row in rows
            for seed, value in by_seed(row["planned"].run, row["measure"]).items()
        ]
    )


def by_seed(run: Result, measure: str) -> pd.Series:
    """A measure of the whole run, or `FIRST`, by seed."""
    return run.curve("utility").iloc[0].dropna() if measure == FIRST else run.values(measure)


def differences(
    frame: pd.DataFrame, keys: Sequence[str], less: Mapping[str, Any], *, itself: bool = False
) -> pd.DataFrame:
    """Values less those of the run that differs in some facts alone, paired by seed.

    Args:
        frame: long.
        keys: facts that runs are told apart by.
        less: facts of the runs that are subtracted. Runs without such a partner are left out.
        itself: keep the runs that are subtracted.
    """
    on = [key for key in dict.fromkeys((*keys, "measure", "seed")) if key not in less]
    subtracted = (frame[[*less]] == pd.Series(less)).all(axis=1)
    own = frame if itself else frame[~subtracted]
    found = own.merge(frame.loc[subtracted, [*on, "value"]], on=on, suffixes=("", "_subtracted"))
    return found.assign(value=found["value"] - found.pop("value_subtracted"))
