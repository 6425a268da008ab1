"""Whether a sensitivity analysis of logs tells hidden reasons of past deciders: a kind of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairall import load_dataset, load_initial_policy
from fairall.evaluate import evaluate
from reproduction.values import Facts, by_words, words

# Accepts half of all people by hidden reasons alone. `evaluate` refuses logs of the lenient policy, which
# accepts hardly any of many people.
LOGGING = "random"
ASSUMED = {f"Γ = {gamma}": f"assumed Γ = {gamma}" for gamma in ("1", "1.5", "2", "3")}  # by view
BY_DECIDERS = {name: name for name in ("no assumption", "decision makers")}  # without an assumed Γ


def held(spec: Mapping[str, Any], runs: Sequence[Facts]) -> list[Facts]:
    """A row per data set and true Γ: how many logs' intervals of the value of accepting everybody hold it.

    With `strictness`, logs are of as many decision makers who accept such shares, there are the bounds that
    these give too, and cells have the mean width of the intervals ×100.
    """
    rates = spec.get("strictness", ())
    deciders = [[f"initial_policy.acceptance_rate={rate}"] for rate in rates] or [[]]
    cells = []
    for run, *_ in by_words(runs, spec["group"] + spec["name"]).values():
        found = intervals(run, deciders)
        for view, column in ((BY_DECIDERS if rates else {}) | ASSUMED).items():
            ends = found.loc[[view]]
            inside, width = ends["low"].le(ends["truth"]) & ends["high"].ge(ends["truth"]), ""
            if rates:
                width = f", {100 * (ends['high'] - ends['low']).mean():.1f}"
            one = {"column": column, "text": f"{inside.sum()} of {len(ends)}{width}"}
            cells.append(one | {of: words(spec[of], run) for of in ("group", "name")})
    return cells


def intervals(run: Facts, deciders: Sequence[Sequence[str]]) -> pd.DataFrame:
    """95 % intervals of the utility of accepting everybody, by what is assumed, of a log per replicate.

    The truth is that of all people of all logs: on a data set of a file these are the same people.

    Args:
        run: with `planned`, `dataset` and `gamma`.
        deciders: words of each, who get cases at random.

    Returns:
        Columns `low`, `high` and `truth`, indexed by the view of `fairall evaluate`.
    """
    one, dataset, hidden = run["planned"], run["dataset"], f"initial_policy.hidden={run['gamma']}"
    data = load_dataset(dataset, *(word for word in one.words if word.startswith("dataset.")))
    tables = [data.resplit(k).table() for k in range(one.config.seeds)]
    cost = float(one.config.cost.value)
    policies = [load_initial_policy(LOGGING, dataset, hidden, *own) for own in deciders]
    found = []
    for k, people in enumerate(tables):
        log = log_of(people, [policy.of_split(k) for policy in policies], k)
        columns = {name: name for name in ("decision", "label", "propensity")}
        if len(deciders) > 1:
            columns["decision_maker"] = "officer"
        else:
            del log["officer"]
        views = evaluate(np.ones(len(log)), log, sensitive="group", cost=cost, **columns).table("sensitivity")
        found.append(views.query("measure == 'utility'").set_index("view")[["low", "high"]])
    return pd.concat(found).assign(truth=np.mean([people.label.mean() for people in tables]) - cost)


def log_of(people: Any, deciders: Sequence[Any], seed: int) -> pd.DataFrame:
    """A log of deciders who get cases at random.

    Args:
        people: table of them.
        deciders: initial policies.
        seed: of the random assignment of cases to deciders.
    """
    officer = np.random.default_rng(seed).integers(len(deciders), size=len(people))
    accepted = np.choose(officer, [one.decide(people) for one in deciders])
    return people.x[people.schema.names].assign(
        group=people.s,
        officer=officer,
        propensity=np.mean([one.propensity(people) for one in deciders], axis=0),
        decision=accepted.astype(int),
        label=np.where(accepted, people.label, np.nan),
    )
