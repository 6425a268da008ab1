"""Evaluate policies from a log of past decisions, or compare two."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from fairall.display.table import records_of
from fairall.display.viewed import Viewed
from fairall.errors import FairAllError, count
from fairall.evaluate.analyses import fairness, value
from fairall.evaluate.analysis import flat
from fairall.evaluate.comparison import Difference
from fairall.evaluate.judgement import Judgement
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models
from fairall.evaluate.page import ANALYSES, Page
from fairall.evaluate.policies import SAY, label_score, target_policy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AnyLog: TypeAlias = pd.DataFrame | str | Path | DecisionLog


class Answered:
    """Tables of an evaluation or a comparison, by the analyses of its `page`."""

    page: Any

    def table(self, key: str) -> pd.DataFrame:
        """The answer of an analysis.

        Args:
            key: of `fairall.evaluate.page.ANALYSES`, such as `value`, `fairness`, `impact` or `treatment`.

        Returns:
            A row per estimate, with `estimate`, `low` and `high`, the ends of its 95 % interval, and `why`
            where one of them is missing; empty where nothing can be said.

        Raises:
            FairAllError: where there is no such analysis.
        """
        if key not in ANALYSES:
            raise FairAllError(f"table {key!r}: the tables are {', '.join(ANALYSES)}")
        records = records_of(map(flat, ANALYSES[key].records(self.page))).infer_objects()
        return records.astype({name: float for name in ("estimate", "low", "high") if name in records})

    def to_plain(self) -> dict[str, Any]:
        """The content of evaluation.json."""
        return self.page.content


class Evaluation(Answered, Viewed, Judgement):
    """Estimates about one policy.

    `plot` draws `value`, by estimator, or `fairness`: the gaps naive, by IPS and doubly robust.
    """

    panels = ("value", "fairness")

    @cached_property
    def page(self) -> Page:
        """All analyses."""
        return Page({self.policy: self})

    @property
    def title(self) -> str:
        """The policy, and the size of the log."""
        return f"{self.policy} on {len(self.log)} people"

    def to_frame(self) -> pd.DataFrame:
        """All estimates of the value and of each gap between groups: the tables `value` and `fairness`.

        Returns:
            A row per `measure` and `estimator` (`no assumption`: bounds): `estimate`, `low` and `high`, the
            ends of its 95 % interval, and `why`, the reason where one of them is missing (NaN).
        """
        gaps = self.table("fairness").rename(columns={"view": "estimator"})
        rows = pd.concat([self.table("value"), gaps], ignore_index=True)
        return rows.reindex(columns=["measure", "estimator", "estimate", "low", "high", "why"])

    def summary(self) -> pd.DataFrame:
        """The rows of `to_frame` that are doubly robust, by measure."""
        rows = self.to_frame().query("estimator == 'dr'").set_index("measure")
        return rows.drop(columns="estimator").rename_axis(None)

    def _draw(self, what: str, axes: Axes) -> None:
        """Draw `value` or `fairness`."""
        if what == "value":
            value.draw_on(axes, {self.policy: self})
            return
        lines = fairness.draw_on(axes, self)
        axes.legend(lines.values(), lines, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


class Comparison(Answered, Difference):
    """Differences between two policies, second minus first, paired over people."""

    @cached_property
    def page(self) -> Page:
        """All analyses."""
        policies = {f"A: {self.first.policy}": self.first, f"B: {self.second.policy}": self.second}
        return Page(policies, self)


def judge(
    policies: Sequence[Any],
    log: AnyLog,
    *,
    outputs_dir: str | Path = "outputs",
    tracking_uri: str | None = None,
    trust: Collection[str] = (),
    proba: str | Sequence[str | None] | None = None,
    draw: int | None = None,
    score: Any = None,
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
        score: probability to validate, an array, shape (N,), or the name of a column of the log.
        score_of: label that the `score` is the probability of, `positive` or `negative` (as a probability of
            default is).
        options: of `Models`, and of `DecisionLog.of` where the log is a DataFrame or a file.

    Raises:
        FairAllError: where the log or a policy cannot be used.
    """
    of_models = {name: options.pop(name) for name in Models.__dataclass_fields__ if name in options}
    if not isinstance(log, DecisionLog):
        of_score = score if isinstance(score, str) else None
        named = [one for one in policies if isinstance(one, str) and one != of_score]
        named += np.atleast_1d(options.pop("not_features", [])).tolist()
        log = DecisionLog.of(log, not_features=named, score=of_score, **options)
    words: list[Any] = [*proba] if isinstance(proba, list | tuple) else [proba] * len(policies)
    if len(words) != len(policies):
        raise FairAllError(
            f"{len(words)} words for {count(len(policies), 'policy', 'policies')}: give one for all, or one "
            f"for each: {SAY}"
        )
    targets = [
        target_policy(
            policy,
            log,
            proba=word,
            draw=draw,
            outputs_dir=outputs_dir,
            tracking_uri=tracking_uri,
            modules=trust,
        )
        for policy, word in zip(policies, words, strict=True)
    ]
    if draw is not None and not any(one.saved for one in targets):
        raise FairAllError(
            f"--draw {draw}, or draw={draw}: decisions are drawn of saved policies, and none is judged"
        )
    if proba is not None and all(policy is None for policy in policies):
        raise FairAllError(f"the logged decisions have no probabilities: leave {SAY} out")
    held_out = [one.held_out for one in targets if one.held_out is not None]
    # What a policy has learnt from says too much good of it.
    rows: Any = np.logical_and.reduce(held_out) if held_out else slice(None)
    if score is not None:
        score = label_score(score, log, score_of)[rows]
    models = Models(log.rows(rows), score=score, **of_models)
    return [
        Evaluation(models, one.name, one.probability[rows], one.logged, one.notes, one.rule)
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
        >>> value = found.table("value").set_index("estimator").loc["dr"]
        >>> bool(value["low"] < 0.1 < value["high"])
        True
    """
    return judge([policy], log, **options)[0]


def compare(first: Any, second: Any, log: AnyLog, **options: Any) -> Comparison:
    """Compare two policies on the people of a log, with the same models.

    Args:
        first: a policy, as for `evaluate`; None for the one that took the logged decisions.
        second: likewise.
        log: as for `evaluate`.
        options: of `evaluate`.

    Raises:
        FairAllError: where the log or a policy cannot be used.
    """
    return Comparison(*judge([first, second], log, **options))
