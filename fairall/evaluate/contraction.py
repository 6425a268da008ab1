"""Contraction: the failure rate of a policy from the people of the most lenient of several decision makers.

Lakkaraju, Kleinberg, Leskovec, Ludwig and Mullainathan (2017), "The selective labels problem: evaluating
algorithmic predictions in the presence of unobservables". It needs no model of propensity or outcome, and
allows for features that only the decision makers see.

Assumptions: people are assigned to decision makers at random (given what the assignment is known to depend
on, if each such part is evaluated by itself), and whoever the most lenient decision maker rejects is rejected
by the policy too. The more that decision maker accepts, the less the second one matters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairall.errors import FairAllError

LEAST_ACCEPTED = 30  # labelled people a decision maker needs to be the most lenient one
STEPS = 20  # acceptance rates of the curve, up to that of the most lenient decision maker


@dataclass(frozen=True)
class Contraction:
    """Failure rates of a policy and of decision makers.

    The failure rate is the share of people, rejected ones included, who are accepted and have y = 0.

    Attributes:
        most_lenient: name of the decision maker whose people are used.
        curve: columns acceptance and failure, of the policy, in `STEPS` rows.
        decision_makers: columns decision_maker, people, acceptance, failure, and policy_failure: of the
            policy at the same acceptance rate; NaN above that of the most lenient one. Sorted by acceptance,
            then name.
    """

    most_lenient: str
    curve: pd.DataFrame
    decision_makers: pd.DataFrame


def contraction(
    a: np.ndarray,
    accepted: np.ndarray,
    label: np.ndarray,
    decision_maker: np.ndarray,
) -> Contraction:
    """Failure rate of the policy that rejects those of lowest a among the accepted of the most lenient.

    Of the n people of the most lenient decision maker, those accepted are sorted by a, and the first r n are
    kept for the acceptance rate r. People of equal a are kept in equal parts, so that neither their order nor
    chance matters. Accepted people without a label stand for the same failure rate as those with one.

    Args:
        a: acceptance probabilities of the policy, shape (N,); only their order matters.
        accepted: past decisions, bool, shape (N,).
        label: 0 or 1, NaN where not revealed, shape (N,).
        decision_maker: who took the decision, shape (N,); rows where it is None are left out.

    Raises:
        FairAllError: with fewer than two decision makers; where none accepted `LEAST_ACCEPTED` labelled
            people.
    """
    people = pd.DataFrame(
        {
            "decision_maker": decision_maker,
            "a": a,
            "accepted": accepted,
            "failure": np.where(accepted, 1.0 - label, np.nan),
        }
    )
    people["labelled"] = people["failure"].notna()
    makers = people.groupby("decision_maker").agg(
        people=("a", "size"),
        acceptance=("accepted", "mean"),
        failure=("failure", "mean"),
        labelled=("labelled", "sum"),
    )
    if len(makers) < 2:
        raise FairAllError(
            f"contraction compares decision makers, and the log names {len(makers)}: "
            "give a column that names at least two"
        )
    enough = makers[makers["labelled"] >= LEAST_ACCEPTED]
    if enough.empty:
        raise FairAllError(
            f"contraction needs a decision maker with {LEAST_ACCEPTED} accepted people whose label is known; "
            f"the most there are is {makers['labelled'].max()}: give a column with fewer decision makers"
        )
    most_lenient = enough["acceptance"].idxmax()
    own = people[people["decision_maker"] == most_lenient]
    # People of equal a form a block; within it the failures grow linearly with the number that is kept.
    blocks = own[own["accepted"]].groupby("a").agg(size=("a", "size"), rate=("failure", "mean"))[::-1]
    failures = blocks["size"] * blocks["rate"].fillna(makers.loc[most_lenient, "failure"])
    kept = np.append(0.0, blocks["size"].cumsum()) / len(own)
    failed = np.append(0.0, failures.cumsum()) / len(own)
    grid = np.linspace(0.0, kept[-1], STEPS + 1)[1:]
    table = makers.assign(
        failure=(makers["acceptance"] * makers["failure"]).where(makers["acceptance"] > 0, 0.0),
        policy_failure=np.interp(makers["acceptance"], kept, failed, right=np.nan),
    )
    table = table.drop(columns="labelled").reset_index().sort_values(["acceptance", "decision_maker"])
    return Contraction(
        str(most_lenient),
        pd.DataFrame({"acceptance": grid, "failure": np.interp(grid, kept, failed)}),
        table.reset_index(drop=True),
    )
