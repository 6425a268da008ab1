"""Whether a sensitivity analysis of logs tells hidden reasons of past deciders: tables of intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairall import load_dataset, load_initial_policy
from fairall.display import PageTable
from fairall.evaluate import evaluate
from reproduction.kinds import Spec, table
from reproduction.values import Facts, by_words, words

# Accepts half of all people by hidden reasons alone. `evaluate` refuses logs of the lenient policy, which
# accepts hardly any of many people.
LOGGING = "random"
ASSUMED = {f"assumed Γ = {gamma}": f"Γ = {gamma}" for gamma in ("1", "1.5", "2", "3")}
VIEWS = {"no assumption": "no assumption", "decision makers": "decision makers"} | ASSUMED  # of `evaluate`


def held(spec: Spec, runs: Sequence[Facts]) -> PageTable:
    """A row per data set and true Γ: how many logs' intervals of the value of accepting everybody hold it.

    With `strictness`, logs are of as many decision makers who accept such shares, there are the bounds that
    these give too, and cells have the mean width of the intervals ×100.
    """
    strictness = spec.get("strictness", ())
    deciders: list[tuple[str, ...]] = [
        (f"initial_policy.acceptance_rate={rate}",) for rate in strictness
    ] or [()]
    columns = [*(VIEWS if strictness else ASSUMED)]
    found = []
    for run, *_ in by_words(runs, spec["group"] + spec["name"]).values():
        for column, own in pd.DataFrame(intervals(run, deciders)).groupby("assumption", sort=False):
            width = f", {100 * (own['high'] - own['low']).mean():.1f}" if strictness else ""
            one = {"cell": f"{own['held'].sum()} of {len(own)}{width}", "records": own.to_dict("records")}
            found.append(one | {"column": column} | {of: words(spec[of], run) for of in ("group", "name")})
    return table(spec, runs, found, columns)


def intervals(run: Facts, deciders: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
    """95 % intervals of the utility of accepting everybody, of a log per replicate, by what is assumed.

    The truth is that of all people of all logs: on a data set of a file these are the same people.

    Args:
        run: with `planned`, `dataset` and `gamma`.
        deciders: words of each, who get cases at random.
    """
    one, dataset, hidden = run["planned"], run["dataset"], f"initial_policy.hidden={run['gamma']}"
    data = load_dataset(dataset, *(word for word in one.words if word.startswith("dataset.")))
    tables = [data.resplit(k).table() for k in range(one.config.seeds)]
    cost = float(one.config.cost.value)
    truth = float(np.mean([people.label.mean() for people in tables])) - cost
    policies = [load_initial_policy(LOGGING, dataset, hidden, *own) for own in deciders]
    for k, people in enumerate(tables):
        log, columns = log_of(people, [policy.of_split(k) for policy in policies], k)
        found = evaluate(np.ones(len(log)), log, sensitive="group", cost=cost, **columns)
        views = found.table("sensitivity").query("measure == 'utility'").set_index("view")
        for assumption, view in VIEWS.items():
            if view in views.index:
                low, high = (float(views.loc[view, end]) for end in ("low", "high"))
                known = {"dataset": dataset, "gamma": run["gamma"], "log": k, "assumption": assumption}
                yield known | {"truth": truth, "low": low, "high": high, "held": low <= truth <= high}


def log_of(people: Any, deciders: Sequence[Any], seed: int) -> tuple[pd.DataFrame, dict[str, str]]:
    """A log of deciders who get cases at random, and its columns for `evaluate`.

    Args:
        people: table of them.
        deciders: initial policies.
        seed: of the random assignment of cases to deciders.
    """
    officer = np.random.default_rng(seed).integers(len(deciders), size=len(people))
    accepted = np.choose(officer, [one.decide(people) for one in deciders])
    log = people.x[people.schema.names].assign(
        group=people.s,
        propensity=np.mean([one.propensity(people) for one in deciders], axis=0),
        decision=accepted.astype(int),
        label=np.where(accepted, people.label, np.nan),
    )
    columns = {name: name for name in ("decision", "label", "propensity")}
    if len(deciders) > 1:
        log, columns = log.assign(officer=officer), columns | {"decision_maker": "officer"}
    return log, columns
