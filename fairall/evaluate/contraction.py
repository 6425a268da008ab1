"""Contraction: the failure rate of a policy from the people of the most lenient of several decision makers.

Lakkaraju, Kleinberg, Leskovec, Ludwig and Mullainathan (2017), "The selective labels problem: evaluating
algorithmic predictions in the presence of unobservables". It needs no model of propensity or outcome, and
allows for features that only the decision makers see.

Assumptions: people are assigned to decision makers at random (given what the assignment is known to depend
on, if each such part is evaluated by itself), and whoever the most lenient decision maker rejects is rejected
by the policy too. The more that decision maker accepts, the less the second one matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.evaluate.gaps import TINY, student_quantile
from fairall.evaluate.influence import Support, Z

LEAST_ACCEPTED = 30  # labelled people a decision maker needs to be the most lenient one
STEPS = 20  # acceptance rates of the curve, up to that of the most lenient decision maker
DRAWS, DRAWS_OF_LARGE = 500, 200  # of the bootstrap; the second for more than `LARGE` rows
LARGE = 200_000
ENDS = (0.025, 0.975)


class Contraction(NamedTuple):
    """Failure rates of a policy and of decision makers.

    The failure rate is the share of people, rejected ones included, who are accepted and have y = 0. Each has
    the ends of a 95 % interval.

    Attributes:
        most_lenient: name of the decision maker whose people are used.
        policy: its columns acceptance, failure, failure_low and failure_high, in `STEPS` rows.
        decision_makers: columns decision_maker, people, acceptance, failure, failure_low, failure_high, and
            policy_failure, policy_failure_low, policy_failure_high: of the policy at the same acceptance
            rate; NaN above that of the most lenient one. Sorted by acceptance, then name.
        others: number of decision makers but the most lenient whom the policy can be compared with.
        fewer: number of those at whose acceptance rate the policy fails less often.
        surely_fewer: number of those for whom the 95 % interval of the policy's failure rate minus their own
            is below 0.
    """

    most_lenient: str
    policy: pd.DataFrame
    decision_makers: pd.DataFrame
    others: int
    fewer: int
    surely_fewer: int


def contraction(
    a: np.ndarray,
    accepted: np.ndarray,
    label: np.ndarray,
    decision_maker: np.ndarray,
    person: np.ndarray | None = None,
    seed: int = 0,
    *,
    smallest: int = 10,
) -> Contraction:
    """Failure rate of the policy that rejects those of lowest a among the accepted of the most lenient.

    Of the n people of the most lenient decision maker, those accepted are sorted by a, and the first r n are
    kept for the acceptance rate r. People of equal a are kept in equal parts, so that neither their order nor
    chance matters. Those who are kept and have no label are taken to fail as often as those who have one.

    Intervals are percentiles of the Bayesian bootstrap (Rubin 1981), with a weight Exp(1) for each person.
    Half a failure and half a person without are added, of weight Gamma(½) each, as in Jeffreys' interval of a
    proportion: without them intervals would be too short with few failures, and of width 0 with none.
    Acceptance rates of decision makers are resampled too; who is the most lenient is taken as given. Where
    people have several rows, distances to the ends are those of Student's t with the degrees of freedom that
    the people of a decision maker leave (`influence.Support`); there are no ends where these are too few.

    Args:
        a: acceptance probabilities of the policy, shape (N,); only their order matters.
        accepted: past decisions, bool, shape (N,).
        label: 0 or 1, NaN where not revealed, shape (N,).
        decision_maker: who took the decision, shape (N,); rows where it is None are left out.
        person: who the row is about, shape (N,); None where every row is another person.
        seed: of the bootstrap.
        smallest: people of a decision maker; those with fewer are left out.

    Raises:
        FairAllError: with fewer than two decision makers; where none accepted `LEAST_ACCEPTED` labelled
            people.
    """
    maker, names = pd.factorize(decision_maker, sort=True)
    people = np.arange(len(maker)) if person is None else pd.factorize(person)[0]
    sizes = pd.Series(people).groupby(maker).nunique()
    large = sizes.index[(sizes.index >= 0) & (sizes >= smallest)].to_numpy()
    if len(large) < 2:
        raise FairAllError(
            f"contraction compares decision makers, and the log names {len(large)} with {smallest} people or "
            "more: give a column that names at least two"
        )
    order = np.lexsort((-np.asarray(a, dtype=float), maker))
    order = order[np.isin(maker[order], large)]
    known = accepted & ~np.isnan(label)
    counted = np.stack([accepted, known, known & (label == 0)])[:, order].astype(float)
    rows = _Rows(np.searchsorted(large, maker[order]), np.asarray(a)[order], counted)
    everyone = np.ones(len(order))
    nothing = np.zeros((2, len(large)))
    acceptance, failure = rows.decision_makers(everyone, nothing)
    labelled = rows.by_maker(counted[1])
    if labelled.max() < LEAST_ACCEPTED:
        raise FairAllError(
            f"contraction needs a decision maker with {LEAST_ACCEPTED} accepted people whose label is known; "
            f"the most there are is {labelled.max():.0f}: give a column with fewer decision makers"
        )
    lenient = int(np.where(labelled >= LEAST_ACCEPTED, acceptance, -1.0).argmax())
    grid = acceptance[lenient] * np.arange(1, STEPS + 1) / STEPS
    policy, curve = np.split(
        rows.policy(everyone, nothing, lenient, np.append(acceptance, grid)), [len(large)]
    )
    policy[acceptance > acceptance[lenient]] = np.nan

    generator = np.random.default_rng(seed)
    of_makers, of_policy = [], []
    codes, distinct = pd.factorize(people[order])
    for _ in range(DRAWS if len(order) <= LARGE else DRAWS_OF_LARGE):
        weight = generator.standard_exponential(len(distinct))
        if person is not None:
            weight = weight[codes]
        added = generator.standard_gamma(0.5, nothing.shape) * len(order) / len(distinct)
        rates, failures = rows.decision_makers(weight, added)
        of_makers.append(failures)
        of_policy.append(rows.policy(weight, added, lenient, np.append(rates, grid)))
    at_their_rates, of_curve = np.split(np.array(of_policy), [len(large)], axis=1)
    wider = np.array([_wider(codes[maker[order] == one]) for one in large])
    wider_policy = np.maximum(wider, wider[lenient])

    table = pd.DataFrame(
        {"decision_maker": names[large], "people": sizes[large].to_numpy(), "acceptance": acceptance}
        | _with_interval("failure", failure, np.array(of_makers), wider)
        | _with_interval("policy_failure", policy, at_their_rates, wider_policy)
    )
    others = ~np.isnan(policy - failure) & (np.arange(len(large)) != lenient)
    change = policy - failure
    highest = change + wider_policy * (np.quantile(at_their_rates - of_makers, ENDS[1], axis=0) - change)
    return Contraction(
        str(names[large][lenient]),
        pd.DataFrame(
            {"acceptance": grid}
            | _with_interval("failure", curve, np.minimum(of_curve, grid), wider[lenient], grid)
        ),
        table.sort_values(["acceptance", "decision_maker"], ignore_index=True),
        others=int(others.sum()),
        fewer=int((others & (policy < failure)).sum()),
        surely_fewer=int((others & (highest < 0)).sum()),
    )


class _Rows:
    """Rates of weighted rows, which are sorted by decision maker and from high to low a.

    Args:
        maker: number of the decision maker, shape (N,), ascending.
        a: acceptance probabilities of the policy, shape (N,), descending for each decision maker.
        counted: who is accepted, accepted with a known label, and of these has y = 0; 0 or 1, shape (3, N).
    """

    def __init__(self, maker: np.ndarray, a: np.ndarray, counted: np.ndarray) -> None:
        self.a = a
        self.counted = counted
        self.starts = np.flatnonzero(np.diff(maker, prepend=-1))

    def by_maker(self, values: np.ndarray) -> np.ndarray:
        """Sums of values (N,) over the rows of each of the K decision makers, shape (K,)."""
        return np.add.reduceat(values, self.starts)

    def decision_makers(self, weight: np.ndarray, added: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Acceptance and failure rates, each of shape (K,).

        NaN where accepted people have no label.

        Args:
            weight: of the rows, shape (N,).
            added: weights of people in addition, with a failure and without, shape (2, K).
        """
        people = self.by_maker(weight)
        accepted, labelled, failed = (self.by_maker(weight * column) for column in self.counted)
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.where(accepted > 0, np.where(labelled > 0, labelled / accepted, np.nan), 1.0)
        return accepted / people, _with_added(failed / known, people, added / known)

    def policy(self, weight: np.ndarray, added: np.ndarray, maker: int, rates: np.ndarray) -> np.ndarray:
        """Failure rates of the policy among the people of a decision maker, shape (M,).

        Args:
            weight: of the rows, shape (N,).
            added: weights of people in addition, with a failure and without, shape (2, K).
            maker: number of the decision maker.
            rates: acceptance rates, shape (M,). In a bootstrap sample one may be above that of the decision
                maker; failures are then in proportion to it.
        """
        own = slice(self.starts[maker], [*self.starts, len(self.a)][maker + 1])
        taken = np.flatnonzero(self.counted[0, own]) + self.starts[maker]
        # People of equal a form a block; within it the failures grow linearly with the number that is kept.
        ends = np.append(np.flatnonzero(np.diff(self.a[taken])), len(taken) - 1)
        size, labelled, failed = (np.cumsum(weight[taken] * column[taken])[ends] for column in self.counted)
        rate = np.full(len(ends), failed[-1] / labelled[-1])
        np.divide(failed, labelled, out=rate, where=labelled > 0)
        people = weight[own].sum()
        kept = np.append(0.0, size) / people
        failures = np.interp(rates, kept, np.append(0.0, size * rate)) * np.maximum(rates / kept[-1], 1.0)
        return _with_added(failures, people, added[:, maker] * size[-1] / labelled[-1])


def _with_added(failures: np.ndarray, people: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Failure rates of weighted people with those of `_Rows.decision_makers` in addition."""
    return (failures + added[0]) / (people + added.sum(axis=0))


def _wider(person: np.ndarray) -> float:
    """Factor by which distances to percentiles are those of t, for rows of persons (N,); 1 for a row each."""
    rows = np.unique(person, return_counts=True)[1].astype(float)
    of = Support(rows, rows.sum(), np.array(0.0), np.array(1.0))
    return float(student_quantile(Z, of.freedom) / Z / np.sqrt(np.maximum(of.shrinkage, TINY)))


def _with_interval(
    name: str, rate: np.ndarray, draws: np.ndarray, wider: np.ndarray | float, most: np.ndarray | float = 1.0
) -> dict[str, np.ndarray]:
    """Columns of rates (M,) and of the ends of their intervals.

    Args:
        name: of the rates.
        rate: shape (M,).
        draws: of the rates, shape (B, M).
        wider: factor of the distances to the ends, NaN for no ends.
        most: greatest possible rate.
    """
    low, high = np.quantile(draws, ENDS, axis=0)
    below, above = wider * np.maximum(rate - low, 0.0), wider * np.maximum(high - rate, 0.0)
    return {
        name: rate,
        f"{name}_low": np.maximum(rate - below, 0.0),
        f"{name}_high": np.minimum(rate + above, most),
    }
