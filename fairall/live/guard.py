"""Compare a version with the one on duty on the people held out for that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu, norm

from fairall.config.words import override
from fairall.errors import FairAllError
from fairall.evaluate.plain import plain
from fairall.live.people import cells_of
from fairall.live.record import Record
from fairall.live.settings import Settings
from fairall.policy import Policy
from fairall.tables.overlap import LEAST_EFFECTIVE, effective_sample_size
from fairall.tables.people import CODED

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import Comparison

LEAST = 100  # held-out people, below which versions are not compared
LEAST_OUTCOMES = 2  # good ones and bad ones, which a model of the outcome needs
MOST = 20_000  # newest held-out people, on whom versions are compared
ERROR = 0.05  # of all comparisons of a ledger together
UNLIKE, SURE = 0.25, 4.0  # difference between shares of good outcomes, and standard errors, that are doubtful
GAPS = {"dpu": "acceptance rates", "equal_opportunity": "true-positive rates"}
NAMES = ("decision", "label", "propensity", "version", "time", "id")  # of the columns of a log
PREFIX = "live "  # of a column whose name is that of a feature
FIRST, SECOND = "policy on duty", "challenger"


class Log(NamedTuple):
    """Decisions of a ledger.

    Attributes:
        frame: a row for each of N people: features and sensitive attribute as in the raw data, as texts, and
            the columns of `NAMES`.
        names: what these and the `group` are called there.
        rows: `features` and `s` as in the ledger, N rows.
        cost: c.
        overruled: whom a policy accepted and a person rejected, shape (N,), bool.
    """

    frame: pd.DataFrame
    names: dict[str, str]
    rows: pd.DataFrame
    cost: float
    overruled: np.ndarray | bool = False

    def words(self, *, with_times: bool) -> list[str]:
        """KEY=VALUE of `fairall evaluate` that describe `frame`; without times their column is left out."""
        roles = {"decision": "decision", "label": "label", "propensity": "propensity", "sensitive": "group"}
        roles |= {"policy_version": "version", "person": "id"}
        words = [override(role, self.names[name]) for role, name in roles.items()]
        if not with_times:
            words.append(override("drop", [self.names["time"]]))
        return [*words, "accepted=1", "positive=1", f"cost={self.cost}"]

    def keywords(self, **roles: str) -> dict[str, Any]:
        """Keywords of `evaluate` that describe `frame`, without versions, times and persons.

        Args:
            roles: further columns by their role.
        """
        names, roles = self.names, {role: self.names[role] for role in ("decision", "label")} | roles
        drop = [names[name] for name in NAMES if names[name] not in roles.values()]
        return {**roles, "sensitive": names["group"], "cost": self.cost, "drop": drop, "accepts_all": True}


def log_of(record: Record, policy: Policy, settings: Settings, *, held: bool = False) -> Log:
    """The ledger as a log of decisions of its policies, a row for each person they decided on.

    Left out are those who were forgotten or withdrawn, who were referred to a person, and outcomes before the
    horizon: those that come first are unlike the others. What a person decided instead changes whose outcome
    is known: never that of somebody who was `overruled`, whom a policy accepted and a person rejected; and
    that of those whom a person accepted is left out, as the policy's propensities do not account for it.

    Args:
        record: of the ledger.
        policy: of any version.
        settings: of the ledger.
        held: only the newest `MOST` people who are held out and applied `settings.horizon` ago or earlier.
    """
    rows = record.applications
    rows = rows[~rows["forgotten"] & rows["decision"].notna()]
    old = rows["time"] <= record.clock - (settings.horizon or 0)
    if held:
        rows = rows[rows["held"] & old].tail(MOST)
    by_policy = rows["decision"] == 1
    overruled = (by_policy & ~rows["accepted"]).to_numpy()
    rows = rows.assign(label=rows["label"].where(old & by_policy))
    return log_of_rows(rows, policy)._replace(overruled=overruled)


def log_of_rows(rows: pd.DataFrame, policy: Policy) -> Log:
    """Rows of `Record.applications`, whose decisions are the column `decision`, as a log."""
    assert policy.config is not None
    rows, reader, raw = rows.reset_index(), policy.reader, policy.reader.sensitive
    group = CODED if raw is None else raw.column
    names = {name: PREFIX * (name in {*reader.names, group}) + name for name in NAMES} | {"group": group}
    words = {s: str(s) if raw is None else raw.groups[s][0] for s in rows["s"].unique()}
    log = cells_of(rows["features"].tolist(), reader.names)
    columns = {
        "decision": rows["decision"].astype(int),
        "label": rows["label"].astype(float),
        "propensity": rows["propensity"].astype(float),
        "group": rows["s"].map(words),
        "version": rows["version"],
        "time": pd.to_datetime(rows["time"].astype("int64"), unit="s"),
        "id": rows["person"],
    }
    log = log.assign(**{names[name]: column for name, column in columns.items()})
    return Log(log, names, rows, policy.config.cost.value)


def compared(log: Log, first: np.ndarray, second: np.ndarray, gap: float, number: int = 1) -> dict[str, Any]:
    """Whether a challenger is better than the policy on duty, by a log of held-out people.

    Estimates are doubly robust, with intervals of `estimated.estimates`, which have a width even where no
    bad outcome is known yet. That of the k-th comparison leaves out the truth with probability
    α/(k·(k + 1)), α = `ERROR`. These sum to α, so that all intervals of a ledger hold together with 95 %,
    however often it learns (Bonferroni, over challengers that are compared on the same people or on new
    ones). A challenger is better if its interval is not below 0, and both gaps are known not to grow by
    more than `gap`: one that cannot be estimated is no reason to trust the challenger.

    Whoever was overruled may have been good or bad, whatever the features: the low end of the interval is
    with the labels of theirs that are worst for the challenger, the high end with the best ones, the
    estimate between the two, and gaps may grow by neither.

    Args:
        log: of N held-out people.
        first: acceptance probabilities by the policy on duty, shape (N,).
        second: by the challenger.
        gap: most that a gap between groups may grow.
        number: k.

    Returns:
        `people`, `labels`; `value`, the challenger's less that of the other, as estimate, low and high, or
        None where it cannot be estimated; `gaps`, by how much each gap of `GAPS` grows, None where that
        cannot be estimated; `better`, and `why` it is or is not.
    """
    labels = int(log.frame[log.names["label"]].notna().sum())
    result: dict[str, Any] = {"people": len(log.frame), "labels": labels, "value": None, "gaps": {}}
    result["better"] = False
    if (why := few(log)) is not None:
        return result | {"why": why}
    if np.abs(second - first).max() == 0:
        return result | {"why": "it decides as the policy on duty on all held-out people"}
    worst = (second < first).astype(float)
    try:
        comparisons = [
            _comparison(log, first, second, np.where(log.overruled, label, np.nan))
            for label in ([worst, 1 - worst] if np.any(log.overruled) else [worst])
        ]
    except FairAllError as error:
        return result | {"why": f"the versions cannot be compared ({error})"}
    k = float(norm.isf(ERROR / (2 * number * (number + 1))))
    values = [comparison.value("dr", k) for comparison in comparisons]
    low, high = values[0], values[-1]
    gaps = {name: [one.gap(name, "dr") for one in comparisons] for name in GAPS}
    if why := low.why or high.why:
        return result | {"why": f"the difference in value cannot be estimated: {why}"}
    value = {"estimate": (low.estimate + high.estimate) / 2, "low": low.low, "high": high.high}
    grown = {name: np.max([growth.estimate for growth in of]) for name, of in gaps.items()}
    result |= {"value": value, "gaps": plain(grown)}
    shown = "{:.1f} [{:.1f}, {:.1f}] per 100 people".format(*(100 * one for one in value.values()))
    if not low.low >= 0:
        return result | {"why": f"it may earn less than the policy on duty: {shown}"}
    for name, growth in ((name, one) for name, of in gaps.items() for one in of):
        if not growth.estimate <= gap:
            grows = f"grows by {100 * growth.estimate:.1f}, and live.gap is {100 * gap:g}"
            why = f"cannot be estimated: {growth.why}" if math.isnan(growth.estimate) else grows
            return result | {"why": f"the gap between {GAPS[name]} {why}"}
    return result | {"better": True, "why": f"it earns more than the policy on duty: {shown}"}


def few(log: Log) -> str | None:
    """Why held-out people or outcomes are too few for any comparison; None where they are not."""
    label = log.frame[log.names["label"]]
    good, bad = int((label == 1).sum()), int((label == 0).sum())
    if len(label) >= LEAST and min(good, bad) >= LEAST_OUTCOMES:
        return None
    return (
        f"{len(label)} held-out people who are as old as live.horizon, with {good} good and {bad} bad "
        f"outcomes, are too few: {LEAST} people, {LEAST_OUTCOMES} good and {LEAST_OUTCOMES} bad outcomes are "
        "needed"
    )


def lacking(log: Log, duty: np.ndarray) -> str | None:
    """What a comparison with a challenger that accepts other people still lacks; None where it is nothing.

    Args:
        log: of N held-out people.
        duty: acceptance probabilities by the policy on duty, shape (N,).
    """
    known = log.frame[log.names["label"]].notna().to_numpy()
    size = effective_sample_size((1.0 - duty[known]) / log.frame[log.names["propensity"]][known])
    if (why := few(log)) is not None or size >= LEAST_EFFECTIVE or (duty == 1).all():
        return why
    n = len(duty)
    needed = f"about {n * LEAST_EFFECTIVE / size:.0f} held-out people, or " if size else ""
    return (
        f"of {n} held-out people too few outcomes are known of those whom the policy on duty rejects (worth "
        f"{size:.0f} equally weighted ones of {LEAST_EFFECTIVE}): {needed}a larger live.explore is needed"
    )


def _comparison(log: Log, first: np.ndarray, second: np.ndarray, label: np.ndarray) -> Comparison:
    """`evaluate.compare` of acceptance probabilities (N,), with labels (N,) where they are not NaN.

    Raises:
        FairAllError: where the log cannot be used.
    """
    from fairall.evaluate.evaluation import compare  # what decides on people does not need it

    names, labels = log.names, log.frame[log.names["label"]]
    columns = {FIRST: first, SECOND: second, names["label"]: labels.where(np.isnan(label), label)}
    keywords = log.keywords(propensity=names["propensity"])
    return compare(FIRST, SECOND, log.frame.assign(**columns), **keywords, proba="decision")


def unexpected(label: np.ndarray, before: float | None, expected: np.ndarray | None) -> str | None:
    """Why new outcomes are doubtful; None where they are not.

    Held-out people are no protection against outcomes that were entered wrongly, since theirs were too.

    Args:
        label: outcomes of N ≥ 1 accepted people, 1 or 0, shape (N,).
        before: share of good outcomes from which the version before has learnt; None where it is the first.
        expected: p(ỹ = 1 | x, s) of these people by the version on duty, shape (N,); None where it does not
            estimate labels.
    """
    n, share = len(label), label.mean()
    if before is not None and abs(share - before) > max(UNLIKE, SURE * math.sqrt(before * (1 - before) / n)):
        told = f"{share:.0%} are good, of those before {before:.0%} were"
    elif (
        expected is not None
        and 0 < share < 1
        and mannwhitneyu(expected[label == 1], expected[label == 0], alternative="less").pvalue
        < norm.sf(SURE)
    ):
        told = "those whom the policy on duty expects to be good are bad more often"
    else:
        return None
    return f"outcomes are doubtful: {told}; if they are right, promote the version by hand"
