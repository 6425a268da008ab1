"""Compare a version with the one on duty on the people held out for that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu, norm

from fairall.config.words import words_of
from fairall.errors import FairAllError
from fairall.evaluate.plain import plain
from fairall.live.people import cells_of
from fairall.live.record import Record
from fairall.live.settings import Settings
from fairall.live.versions import Version
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
AMOUNTS = ("gain", "loss")  # of further ones, in money
PREFIX = "live "  # of a column whose name is that of a feature
FIRST, SECOND = "policy on duty", "challenger"
ALIKE = "it decides as the policy on duty on all held-out people"
PER_100, IN_MONEY = "{:.1f} [{:.1f}, {:.1f}] per 100 people", "{:.2f} [{:.2f}, {:.2f}] in money per person"


class Log(NamedTuple):
    """Decisions of a ledger.

    Attributes:
        frame: a row for each of N people: features and sensitive attribute as in the raw data, as texts, and
            the columns of `NAMES`, with amounts of `AMOUNTS` too.
        names: what these and the `group` are called there.
        rows: `features` and `s` as in the ledger, N rows.
        cost: c; None with amounts.
        overruled: whom a policy accepted and a person rejected, shape (N,), bool.
    """

    frame: pd.DataFrame
    names: dict[str, str]
    rows: pd.DataFrame
    cost: float | None
    overruled: np.ndarray | bool = False

    @property
    def possible(self) -> list[pd.DataFrame]:
        """`frame` with bad outcomes of all who were overruled, and with good ones; none without any."""
        name = self.names["label"]
        filled = (self.frame[name].mask(self.overruled, label) for label in (0, 1))
        return [self.frame.assign(**{name: one}) for one in filled if np.any(self.overruled)]

    def keywords(self, **roles: str) -> dict[str, Any]:
        """Keywords of `evaluate` that describe `frame`; further columns without a role are left out.

        Amounts are no features: they follow from the others.

        Args:
            roles: columns by their role beside `decision`, `label` and `sensitive`.
        """
        roles |= {"decision": "decision", "label": "label", "sensitive": "group"}
        drop = [column for name, column in self.names.items() if name not in roles.values()]
        worth: dict[str, Any] = (
            {"cost": self.cost} if self.cost else {name: self.names[name] for name in AMOUNTS}
        )
        return {role: self.names[name] for role, name in roles.items()} | worth | {"drop": drop}

    def words(self, *, with_times: bool) -> list[str]:
        """KEY=VALUE of `fairall evaluate` that describe `frame`; without times their column is left out."""
        keywords = self.keywords(propensity="propensity", policy_version="version", person="id")
        if with_times:
            keywords["drop"].remove(self.names["time"])
        return [*words_of(keywords), "accepted=1", "positive=1"]


def log_of(record: Record, version: Version, settings: Settings, *, held: bool = False) -> Log:
    """The ledger as a log of decisions of its policies, a row for each person they decided on.

    Left out are those who were forgotten or withdrawn, who were referred to a person, and outcomes before the
    horizon: those that come first are unlike the others. Outcomes of people whom a policy rejected and a
    person accepted are left out, too, since the policy's propensities do not account for them. Those of the
    `overruled`, whom a policy accepted and a person rejected, are never known.

    Args:
        record: of the ledger.
        version: any.
        settings: of the ledger.
        held: only the newest `MOST` people who are held out and applied `settings.horizon` ago or earlier.
    """
    rows = record.applications.query("not forgotten and decision in [0, 1]")
    old = rows["time"] <= record.clock - (settings.horizon or 0)
    if held:
        rows = rows[rows["held"] & old].tail(MOST)
    by_policy = rows["decision"] == 1
    overruled = (by_policy & ~rows["accepted"]).to_numpy()
    rows = rows.assign(label=rows["label"].where(old & by_policy))
    return log_of_rows(rows, version)._replace(overruled=overruled)


def log_of_rows(rows: pd.DataFrame, version: Version) -> Log:
    """Rows of `Record.applications`, whose decisions are the column `decision`, as a log; none is forgotten.

    Args:
        rows: N of them.
        version: any.
    """
    rows, reader, raw = rows.reset_index(), version.policy.reader, version.policy.reader.sensitive
    group, word = (CODED, str) if raw is None else (raw.column, lambda s: raw.groups[s][0])
    columns = rows.assign(
        group=rows["s"].map(word),
        time=pd.to_datetime(rows["time"].astype("int64"), unit="s"),
        id=rows["person"],
        **dict(zip(AMOUNTS, version.amounts(rows), strict=True)),
    ).astype({"decision": int, "label": float})
    own = NAMES + AMOUNTS * version.money
    names = {name: PREFIX * (name in {*reader.names, group}) + name for name in own} | {"group": group}
    cells = cells_of(rows["features"].tolist(), reader.names)
    log = cells.join(columns[[*names]].rename(columns=names))
    return Log(log, names, rows, None if version.money else version.config.cost.value)


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
    estimate between the two. Gaps may grow with neither, nor where those of one group were good and the
    others bad, or the other way round.

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
    labels, worst = log.frame[log.names["label"]], (second < first).astype(float)
    result: dict[str, Any] = {"people": len(labels), "labels": int(labels.count()), "value": None}
    result |= {"gaps": {}, "better": False, "why": few(log) or (ALIKE if (second == first).all() else None)}
    if result["why"] is not None:
        return result
    possible = [worst]
    if np.any(log.overruled):
        group = log.frame[log.names["group"]]
        of_one = [group.to_numpy() == one for one in sorted(group.unique())]
        possible = [worst, *of_one, *(~one for one in of_one[2:]), 1 - worst]
    try:
        comparisons = [
            _comparison(log, first, second, np.where(log.overruled, one, labels)) for one in possible
        ]
    except FairAllError as error:
        return result | {"why": f"the versions cannot be compared ({error})"}
    k = float(norm.isf(ERROR / (2 * number * (number + 1))))
    values = [one.value("dr", k) for one in comparisons]
    low, high = values[0], values[-1]
    if why := low.why or high.why:
        return result | {"why": f"the difference in value cannot be estimated: {why}"}
    ends = (low.estimate + high.estimate) / 2, low.low, high.high
    gaps = [(name, one.gap(name, "dr")) for name in GAPS for one in comparisons]
    grown = {name: np.max([growth.estimate for of, growth in gaps if of == name]) for name in GAPS}
    result |= {"value": dict(zip(("estimate", "low", "high"), ends, strict=True)), "gaps": plain(grown)}
    scale, template = (100, PER_100) if log.cost else (1, IN_MONEY)
    shown = template.format(*(scale * end for end in ends))
    if not low.low >= 0:
        return result | {"why": f"it may earn less than the policy on duty: {shown}"}
    for name, growth in gaps:
        if not growth.estimate <= gap:
            grows = f"grows by {100 * growth.estimate:.1f}, and live.gap is {100 * gap:g}"
            why = f"cannot be estimated: {growth.why}" if math.isnan(growth.estimate) else grows
            return result | {"why": f"the gap between {GAPS[name]} {why}"}
    return result | {"better": True, "why": f"it earns more than the policy on duty: {shown}"}


def few(log: Log) -> str | None:
    """Why held-out people or outcomes are too few for any comparison; None where they are not."""
    label = log.frame[log.names["label"]]
    good, bad = ((label == outcome).sum() for outcome in (1, 0))
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
    label, propensity = (log.frame[log.names[name]] for name in ("label", "propensity"))
    size = effective_sample_size(((1.0 - duty) / propensity)[label.notna()])
    if (why := few(log)) is not None or size >= LEAST_EFFECTIVE or (duty == 1).all():
        return why
    n = len(duty)
    needed = f"about {n * LEAST_EFFECTIVE / size:.0f} held-out people, or " if size else ""
    return (
        f"of {n} held-out people too few outcomes are known of those whom the policy on duty rejects (worth "
        f"{size:.0f} equally weighted ones of {LEAST_EFFECTIVE}): {needed}a larger live.explore is needed"
    )


def _comparison(log: Log, first: np.ndarray, second: np.ndarray, label: np.ndarray) -> Comparison:
    """`evaluate.compare` of acceptance probabilities (N,) by labels (N,).

    Raises:
        FairAllError: where the log cannot be used.
    """
    from fairall.evaluate.evaluation import compare  # what decides on people does not need it

    columns = {FIRST: first, SECOND: second, log.names["label"]: label}
    keywords = log.keywords(propensity="propensity") | {"accepts_all": True, "proba": "decision"}
    return compare(FIRST, SECOND, log.frame.assign(**columns), **keywords)


def unexpected(label: np.ndarray, before: float | None, expected: np.ndarray | None) -> str | None:
    """Why new outcomes are doubtful; None where they are not.

    Held-out people are no protection against outcomes that were entered wrongly, since theirs were too.

    Args:
        label: outcomes of N ≥ 1 accepted people, 1 or 0, shape (N,).
        before: share of good outcomes from which the version before has learnt; None where it is the first.
        expected: p(ỹ = 1 | x, s) of these people by the version on duty, shape (N,); None where it does not
            estimate labels.
    """
    n, share, told = len(label), label.mean(), None
    if before is not None and abs(share - before) > max(UNLIKE, SURE * math.sqrt(before * (1 - before) / n)):
        told = f"{share:.0%} are good, of those before {before:.0%} were"
    elif (
        expected is not None
        and 0 < share < 1
        and mannwhitneyu(expected[label == 1], expected[label == 0], alternative="less").pvalue
        < norm.sf(SURE)
    ):
        told = "those whom the policy on duty expects to be good are bad more often"
    return told and f"outcomes are doubtful: {told}; if they are right, promote the version by hand"
