"""How often values are covered in logs of two policies, and of decision makers who see more than the log."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import evaluate
from reproduction.simulated_impact import covered
from reproduction.simulated_swaps import COST, ESTIMATED, applicants
from reproduction.simulations import Case

TITLE = "Logs of several who decide"
NOTE = (
    "Versions: two policies after each other in 2,000 rows, each of which hardly accepts whom the other one "
    "likes; propensities are estimated, by the default models. Officers: 3,000 cases decided by ten of "
    "different strictness, who see a feature that the label depends on too and that is not in the log; "
    "logistic models. The value of a policy, doubly robust (DR), and its bounds without assumption (Manski "
    "1990) and by officers. Narrower: those by officers are less than half as wide."
)
TESTED = ("fairall/evaluate/estimated/officers.py", "fairall/evaluate/estimated/nuisance.py")

VERSION, OFFICER = "policy_version", "decision_maker"  # who decides: column of a log, and option
COVERED, AUTO = ("≥", 0.92), {"propensity_model": "auto", "outcome_model": "auto"}


def people(who: str, rows: int, random: np.random.Generator) -> pd.DataFrame:
    """A log with the probabilities of labels, `chance`, and those of a policy, `strict`."""
    table, hidden = applicants(random, rows), random.normal(size=rows)
    score = table["score"]
    if who == VERSION:
        decider = np.arange(rows) * 2 // rows
        decision = (1 - 2 * decider) * (3.0 * score + 0.5)
    else:
        decider = random.integers(10, size=rows)
        decision = decider / 2.0 - 1.0 + 0.7 * score + hidden
        table["chance"] = expit(0.3 + score + hidden)
    accepted, repays = random.random(rows) < expit(decision), random.random(rows) < table["chance"]
    return table.drop(columns=["p", "mild"]).assign(
        **{who: decider, "granted": accepted, "repaid": repays.where(accepted)}
    )


@cache
def truth(who: str) -> float:
    """The value of the policy among a million people."""
    everybody = people(who, 1_000_000, np.random.default_rng(0))
    return float((everybody["strict"] * (everybody["chance"] - COST)).mean())


def replicate(who: str, rows: int, options: Any, random: np.random.Generator) -> dict[str, bool]:
    """Which intervals contain the value in a log of some rows."""
    table = people(who, rows, random).drop(columns="chance")
    found = evaluate("strict", table, sensitive="sex", **ESTIMATED | {who: who} | options)
    limits = found.table("sensitivity").query("measure == 'utility'").set_index("view").T
    bounds = {view: limits[view] for view in ("no assumption", "decision makers") if view in limits}
    told = {"DR": found.values["dr"]} | bounds
    return covered({name: (own, truth(who)) for name, own in told.items()})


CASES = (
    Case("versions of a policy", partial(replicate, VERSION, 2000, AUTO), 200, {"DR": COVERED}),
    Case(
        "officers who see more",
        partial(replicate, OFFICER, 3000, {}),
        200,
        {"DR": ("≤", 0.8), "no assumption": COVERED, "decision makers": COVERED},
    ),
)
