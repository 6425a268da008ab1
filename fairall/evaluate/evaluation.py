"""Evaluate policies from a log of past decisions: value, fairness, bounds, overlap."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from fairall.display.progress import doing
from fairall.display.viewed import Viewed
from fairall.errors import FairAllError, count
from fairall.evaluate.estimated import bounds as limits
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimators import ESTIMATORS, LABELS, guaranteed_interval
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, View
from fairall.evaluate.estimated.gaps import NOTHING, Interval, gap_interval, interval, lacking
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.judged import checks, impact, scorecard, validation
from fairall.evaluate.judged.checks import Misfit
from fairall.evaluate.judged.judgement import Judgement
from fairall.evaluate.judged.models import OPTIONS, Models
from fairall.evaluate.judged.monitor import Monitor
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import ByName, plain
from fairall.evaluate.policies import SAY, label_score, target_policy
from fairall.tables.overlap import effective_sample_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DISAGREEING = 3.0  # standard errors between two estimators
AnyLog: TypeAlias = pd.DataFrame | str | Path | DecisionLog


class Evaluation(Viewed, Judgement):
    """Estimates about one policy, as tables, page and evaluation.json show them.

    `plot` draws `value`, by estimator, or `fairness`: the gaps naive, by IPS and doubly robust.
    """

    panels = ("value", "fairness")

    acceptance_ratio = cached_property(validation.acceptance_ratio)
    calibration = cached_property(validation.calibration)
    balance = cached_property(validation.balance)
    thresholds = cached_property(validation.thresholds)
    costs = cached_property(validation.costs)
    scorecard = cached_property(scorecard.scorecard)
    adverse_impact = cached_property(impact.adverse_impact)
    impact_bounds = cached_property(impact.impact_bounds)

    @cached_property
    def values(self) -> dict[str, Interval]:
        """The value by estimator."""
        found = {}
        for name in ESTIMATORS:
            refused = self.refused_estimator(name)
            own = NOTHING if refused else interval(self.value(name))
            found[name] = own.without_ends(refused or self.no_interval(name))
        return found

    @cached_property
    def guarantee(self) -> Interval:
        """The interval of `estimators.guaranteed_interval`, without an estimate, where it holds."""
        log, why = self.log, self.refused_guarantee
        if why is None and log.person is not None and len(np.unique(log.person)) < len(log):
            why = "it needs rows of different people"
        if why is not None:
            return NOTHING.without_ends(why)
        return Interval(np.nan, *guaranteed_interval(self.people))

    @property
    def intervals_of_value(self) -> list[Interval]:
        """The value by estimator, the guaranteed interval, and the bounds without assumption."""
        return [*self.values.values(), self.guarantee, self.bounds["utility"].interval]

    def _draw(self, what: str, axes: Axes) -> None:
        """Draw `value` or `fairness`."""
        from fairall.evaluate.shown import panels  # imports matplotlib

        if what == "value":
            panels.value_on(axes, [self.intervals_of_value])
            return
        panels.fairness_on(axes, self.fairness, self.bounds)
        lines = panels.lines_of_views()
        axes.legend(lines.values(), lines, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)

    @cached_property
    def fairness(self) -> dict[str, dict[View, Interval]]:
        """Each measure of unfairness in each view."""
        return {name: {view: self._interval(name, view) for view in VIEWS} for name in MEASURES}

    def _interval(self, name: str, view: View, code: int | None = None) -> Interval:
        """Of a group's rate or, without a group, of the gap."""
        may, why = self.doubt(name, view, code)
        if not may:
            return NOTHING.without_ends(why)
        rates = self.rates[view][name]
        found = gap_interval(rates[self.models.shown]) if code is None else interval(rates, code)
        return found.without_ends(why)

    @cached_property
    def bounds(self) -> dict[str, Limits]:
        """Bounds of utility and gaps without assumption (`bounds.manski`), and 95 % intervals of them."""
        return self._bounds(self.labels())

    @cached_property
    def officers(self) -> dict[str, Limits]:
        """The same by decision makers as an instrument (`officers`); empty where they bound nothing."""
        return {} if self.models.why_no_officers else self._bounds(self.labels(OFFICERS))

    def _bounds(
        self, labels: limits.Labels, names: Sequence[str] = ("utility", *MEASURES)
    ) -> dict[str, Limits]:
        shown, found = self.models.shown, {}
        for name in names:
            if name == "utility":
                found[name] = limits.value_bounds(self.people, labels, self.sample).limits()
            elif len(shown) >= 2:
                low, high = limits.rate_bounds(name, self.people, labels, self.by_group, logged=self.logged)
                found[name] = limits.gap_bounds(low[shown], high[shown])
        return found

    def _certain(self, name: str, gamma: float) -> bool:
        """Whether the sign of the utility, or a gap above 0, is certain for an odds ratio Γ."""
        return self._bounds(self.labels(gamma), [name])[name].exclude_0

    @cached_property
    def few(self) -> str | None:
        """Why the value that is known has no interval for lack of people; None where it has one."""
        known = next((name for name in ESTIMATORS if self.refused_estimator(name) is None), None)
        return None if known is None else lacking(self.value(known))

    @cached_property
    def sensitivity(self) -> ByName | None:
        """Bounds by odds ratio Γ, where conclusions turn, and the Γ of hiding a feature of the log."""
        if self.refused_value is not None or self.models.outcome is None or self.few is not None:
            return None
        doing("what a hidden feature could change")
        answered = ["utility", *(name for name in limits.SENSITIVE if self.doubt(name, "dr") == (True, None))]
        bounds = [self._bounds(self.labels(gamma), answered) for gamma in limits.GAMMAS]
        frames = {name: pd.DataFrame([one[name] for one in bounds]) for name in answered}
        for frame in frames.values():
            frame.insert(0, "gamma", limits.GAMMAS)
        return {
            "bounds": frames,
            "turning_points": {name: limits.turning_point(partial(self._certain, name)) for name in answered},
            "benchmarks": limits.benchmarks(self.log, self.models.outcome.probability),
        }

    def overlap(self, rows: np.ndarray | None = None) -> dict[str, float]:
        """Effective sample size (Kish 1965), largest value and concentration of the weights of labels.

        Args:
            rows: a selection of people, shape (N,), bool; None for all.
        """
        chosen = self.log.revealed if rows is None else self.log.revealed & rows
        weight = np.sort(self.people.kept.value[chosen])
        total = weight.sum()
        top = weight[-max(1, round(len(weight) / 100)) :]
        return {
            "effective_sample_size": effective_sample_size(weight),
            "largest_weight": weight.max(initial=0.0),
            "share_of_top_percent": top.sum() / total if total > 0 else np.nan,
        }

    @cached_property
    def groups(self) -> dict[str, ByName]:
        """By group: numbers of people, overlap, and rates in each view."""
        log, found = self.log, {}
        for code in self.models.shown:
            members = log.group == code
            found[log.groups[code]] = {
                "people": int(members.sum()),
                "accepted": int(log.accepted[members].sum()),
                "labelled": int(log.revealed[members].sum()),
                "acceptance": float(self.target[members].mean()),
                "overlap": self.overlap(members),
                "rates": {
                    name: {view: self._interval(name, view, code) for view in VIEWS} for name in MEASURES
                },
            }
        return found

    def _of_officers(self) -> ByName | None:
        """Bounds by decision makers, and the test of their assignment; None where the log names none."""
        if self.log.decision_maker is None:
            return None
        found, why = self.models.officers, self.models.why_no_officers
        return {"bounds": self.officers, "why": why} | (
            {} if found is None else {"levels": found.levels, "p_assignment": found.p_assignment}
        )

    @cached_property
    def monitor(self) -> Monitor | None:
        """Estimates at all moments; None for a log without times."""
        return None if self.log.time is None else Monitor(self)

    @cached_property
    def disagreement(self) -> str | None:
        """Which estimators differ by more than their errors, and the reason that is likely; None for none."""
        if self.refused_estimator("dr") is not None or self.logged or self.target.sum() <= 0 or self.few:
            return None
        read = self.value("dr")
        for name in ("ips", "dm"):
            change = self.value(name) - read
            if abs(change.value) > max(DISAGREEING * change.error, read.error):
                reason = "the outcome model fails among the people whom the policy accepts"
                if name == "ips":
                    worst = validation.worst_balance(self.log, self.people)
                    reason = (
                        f"weighted people with labels are unlike all people{worst}: doubt the propensities"
                    )
                return (
                    f"{LABELS[name]} and doubly robust differ by {100 * abs(change.value):.1f} per 100 "
                    f"people (standard error {100 * change.error:.1f}): {reason}"
                )
        return None

    @cached_property
    def misfit(self) -> Misfit | None:
        """What the models of weights and outcome both leave over, so that the value is in doubt."""
        models, imbalance = self.models, self.people.kept.value - self.target
        estimated = models.propensity is not None or models.labelled is not None
        if self.refused_estimator("dr") is not None or not estimated or not imbalance.any():
            return None
        assert models.outcome is not None
        error = float(self.value("dr").error)
        return checks.misfit(self.log, models.outcome.probability, imbalance, error, models.seed)

    @property
    def in_doubt(self) -> list[str]:
        """Signs that the value is wrong."""
        misfit = self.misfit and self.misfit.sentence
        return [text for text in (misfit, self.disagreement) if text]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Doubts about the estimates, and what they lack."""
        told = self.in_doubt
        told += [] if self.few is None else [f"no interval of the utility: {self.few}"]
        if hidden := [name for g, name in enumerate(self.log.groups) if g not in self.models.shown]:
            told.append(
                f"nothing is shown of groups with fewer than {self.models.smallest_cell} people, which are "
                f"no part of gaps: {', '.join(hidden)}"
            )
        groups = self.log.probable_groups or self.models.shown
        if len(groups) > 1 and not self.adverse_impact and not self.impact_bounds:
            told.append(f"no adverse impact: {impact.NO_REFERENCE}")
        person = self.log.person
        if self.log.time is not None and person is not None and person.max() + 1 < len(person):
            told.append(
                "people have several rows: that intervals hold at every moment, and alarms are rare, is "
                "known of rows of different people only"
            )
        told += self.models.changes
        if self.models.past is not None:
            told += self.models.past.lacking
        if self.log.revealed.any():
            reasons: dict[str, list[str]] = {}
            for name, measure in MEASURES.items():
                why = self.doubt(name, "dr")[1]
                if why and why != self.refused_measure(name, "dr"):
                    reasons.setdefault(why, []).append(measure.label)
            told += [f"no interval of {', '.join(names)}: {why}" for why, names in reasons.items()]
        return tuple(told)

    @cached_property
    def about_log(self) -> ByName:
        """Size, cost and propensities of the log."""
        log = self.log
        return {
            "people": len(log),
            "accepted": int(log.accepted.sum()),
            "labelled": int(log.revealed.sum()),
            "persons": None if log.person is None else int(log.person.max()) + 1,
            "cost": log.cost,
            "policy_versions": None if log.policy_version is None else len(np.unique(log.policy_version)),
            "propensities": "estimated" if log.propensity is None else "recorded",
        }

    @property
    def title(self) -> str:
        """The policy, and the size of the log."""
        log = self.log
        return f"{self.policy} on {len(log)} people, {int(log.revealed.sum())} of them with a label"

    def to_frame(self) -> pd.DataFrame:
        """All estimates of the value and of each gap between groups.

        Returns:
            A row per `measure` and `estimator` (`no assumption`: bounds): `estimate`, `low` and `high`, the
            ends of its 95 % interval, and `why`, the reason where one of them is missing (NaN).
        """
        known: dict[str, Any] = {"utility": self.values | {"guaranteed": self.guarantee}} | self.fairness
        rows: list[ByName] = []
        for measure, estimates in known.items():
            if measure in self.bounds:
                estimates = estimates | {"no assumption": self.bounds[measure].interval}
            rows += [
                {"measure": measure, "estimator": name} | own._asdict() for name, own in estimates.items()
            ]
        return pd.DataFrame(rows).drop(columns="probability")

    def summary(self) -> pd.DataFrame:
        """A row per measure: `naive` or by accepted people, the doubly robust `estimate`, `low` and `high`.

        `bound_low` and `bound_high` are the interval without any assumption about missing labels.
        """
        rows = self.to_frame().set_index(["estimator", "measure"])
        names = rows.index.unique("measure")
        read, naive, free = (rows.loc[name].reindex(names) for name in ("dr", "naive", "no assumption"))
        columns = {"naive": naive["estimate"]} | {name: read[name] for name in ("estimate", "low", "high")}
        bounds = {"bound_low": free["low"], "bound_high": free["high"], "why": read["why"]}
        return pd.DataFrame(columns | bounds).rename_axis(None)

    def to_plain(self) -> ByName:
        """The content of evaluation.json."""
        return plain(
            {
                "policy": self.policy,
                "rule": self.rule,
                "draw": self.draw,
                "log": self.about_log,
                "acceptance": float(self.target.mean()),
                "value": self.values,
                "guarantee": {name: one for name, one in plain(self.guarantee).items() if name != "estimate"},
                "fairness": self.fairness,
                "acceptance_ratio": self.acceptance_ratio,
                "adverse_impact": self.adverse_impact,
                "impact_bounds": self.impact_bounds,
                "groups": self.groups,
                "bounds": self.bounds,
                "officers": self._of_officers(),
                "sensitivity": self.sensitivity,
                "overlap": self.overlap(),
                "scorecard": self.scorecard,
                "calibration": self.calibration,
                "balance": self.balance,
                "thresholds": self.thresholds,
                "costs": self.costs,
                "monitor": self.monitor and self.monitor.to_plain(),
                "periods": self.models.periods,
                "models": {
                    name: fitted and {"name": fitted.name, "log_loss": fitted.log_loss, "auc": fitted.auc}
                    for name, fitted in self.models.fitted.items()
                },
                "notes": [*self.log.notes, *self.notes],
                "warnings": self.warnings,
                "misfit": self.misfit and self.misfit._asdict(),
                "refused": self.refused,
            }
        )


def judge(
    policies: Sequence[Any],
    log: AnyLog,
    *,
    outputs_dir: str | Path = "outputs",
    tracking_uri: str | None = None,
    trust: Collection[str] = (),
    proba: str | Sequence[str | None] | None = None,
    draw: int | None = None,
    score_of: str = "positive",
    **options: Any,
) -> list[Evaluation]:
    """Evaluate policies from one log, with the same models.

    Args:
        policies: as for `evaluate`.
        log: likewise.
        outputs_dir: where runs are looked for by their ids.
        tracking_uri: address of MLflow, see `saved.saved_policy`.
        trust: modules of methods that may be imported, see `fairall.load_policy`.
        proba: what the probabilities of all policies are of, or of each, see `target_policy`.
        draw: seed of the drawn decisions of saved policies, likewise.
        score_of: label that a `score` in a column, an array or a function is the probability of, `positive`
            or `negative` (as a probability of default is).
        options: of `Models`, its `score` also as the name of a column; and of `DecisionLog.of` where the log
            is a DataFrame or a file.

    Raises:
        FairAllError: where the log or a policy cannot be used.
    """
    of_models = {name: options.pop(name) for name in OPTIONS if name in options}
    score = of_models.pop("score", None)
    if not isinstance(log, DecisionLog):
        of_score = score if isinstance(score, str) else None
        named = [one for one in policies if isinstance(one, str) and one != of_score]
        named += np.atleast_1d(options.pop("not_features", [])).tolist()
        log = DecisionLog.of(log, not_features=named, score=of_score, **options)
    of = [*proba] if isinstance(proba, Iterable) and not isinstance(proba, str) else [proba] * len(policies)
    if len(of) != len(policies):
        raise FairAllError(
            f"{len(of)} words for {count(len(policies), 'policy', 'policies')}: give one for all, or one for "
            f"each: {SAY}"
        )
    places = {"outputs_dir": outputs_dir, "tracking_uri": tracking_uri, "modules": trust}
    targets = [
        target_policy(policy, log, **places, proba=one, draw=draw)
        for policy, one in zip(policies, of, strict=True)
    ]
    if draw is not None and all(one.draw is None for one in targets):
        raise FairAllError(
            f"--draw {draw}, or draw={draw}: decisions are drawn of saved policies, and none is judged"
        )
    if proba is not None and all(policy is None for policy in policies):
        raise FairAllError(f"the logged decisions have no probabilities: leave {SAY} out")
    if score is not None:
        score = label_score(score, log, score_of, **places)
    held_out = [target.held_out for target in targets if target.held_out is not None]
    if held_out:  # what a policy has learnt from says too much good of it
        rows = np.logical_and.reduce(held_out)
        score = None if score is None else score[rows]
        targets = [replace(target, probability=target.probability[rows]) for target in targets]
        log = log.rows(rows)
    models = Models(log, score=score, **of_models)
    return [
        Evaluation(models, one.name, one.probability, one.logged, one.notes, one.rule, one.draw)
        for one in targets
    ]


def evaluate(policy: Any, log: AnyLog, **options: Any) -> Evaluation:
    """Evaluate a policy from a log of another policy's decisions.

    Args:
        policy: a column of the log with its acceptance probabilities or decisions, an array, a
            scikit-learn-like predictor with `predict_proba`, a function of a DataFrame, a
            `fairall.policy.Policy`, the folder or id of a run; None for the policy that took the logged
            decisions. See `target_policy`.
        log: a row per person, as a DataFrame or the path of a CSV or Parquet file, whose columns `options`
            describe, or read already.
        options: `proba` and `draw` of `judge`; those of `Models`, and of `DecisionLog.of`: decision, label,
            sensitive, ...

    Raises:
        FairAllError: where the log or the policy cannot be used.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> random = np.random.default_rng(0)
        >>> score = random.normal(size=2000)
        >>> propensity = 1 / (1 + np.exp(-score))
        >>> accepted = random.random(2000) < propensity
        >>> repaid = np.where(accepted, random.random(2000) < propensity, np.nan)
        >>> log = pd.DataFrame({"score": score, "sex": random.choice(["f", "m"], 2000), "p": propensity,
        ...                     "granted": accepted.astype(int), "repaid": repaid})
        >>> found = evaluate(lambda people: (people["score"] > 0).astype(float), log, decision="granted",
        ...                  label="repaid", sensitive="sex", propensity="p")
        >>> plain = found.to_plain()
        >>> plain["value"]["dr"]["low"] < 0.1 < plain["value"]["dr"]["high"]
        True
    """
    return judge([policy], log, **options)[0]
