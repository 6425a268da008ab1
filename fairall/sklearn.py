"""A scikit-learn estimator that learns from decisions which reveal the labels of the accepted only."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Number
from operator import methodcaller
from pathlib import Path
from typing import Any, ClassVar
from warnings import warn

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, check_random_state, metadata_routing
from sklearn.utils.validation import check_is_fitted, validate_data

from fairall.config.checks import number, open_unit
from fairall.config.choices import hyperparameters_without
from fairall.config.schema import entry
from fairall.config.words import refuse_places, words_of
from fairall.decide.rules import Rule
from fairall.evaluate.evaluation import evaluate
from fairall.live.offline import learn, load, save, step
from fairall.models.estimators import estimator_of, node_of
from fairall.models.learner import MARGIN_DECIMALS
from fairall.policy import Policy
from fairall.tables import arrays
from fairall.tables.arrays import InputError, of_input
from fairall.tables.people import CODED

__all__ = ["PolicyValue", "SelectiveLabelsClassifier", "policy_value"]

DEFAULT = "parity_stacked"
TUNED = "tuned"
STORED = {"notes_", "positive_", "classes_", "n_features_in_", "feature_names_in_"}
STORED |= {"_columns", "_attributes", "_cost_of_search"}
MOST_DRAWN = 2**31  # seeds that a RandomState chooses from
PLAIN = methodcaller("tolist")  # of what NumPy has


@dataclass(eq=False, repr=False)
class SelectiveLabelsClassifier(ClassifierMixin, BaseEstimator):
    """A classifier and a decision rule, learnt from people whose labels are known where they were accepted.

    A good label brings 1 − `cost` to who accepts, a bad one costs `cost`; `positive` is the good one.
    `predict_proba` and `predict` are about the label, `decision_proba` and `decide` about acceptance. `fit`
    learns offline: Phase I on everybody, without labels (section 4.1), then the warm-up on the log, in which
    the method weighs labels by 1/π(d=1 | x, s) as it does in a run.

    Groups are the values of `sensitive_features`, or the combinations of several, sorted, the first in the
    place of S = +1; 0, 0.0 and False are one value. Without them and without `sensitive` everybody is of one
    group, and no fairness between groups is sought. A policy that was learnt with groups needs them to
    decide: as `sensitive_features`, whose columns are matched by their names if these and those of `fit` have
    names, else by position; or in a column of X. No column of X is replaced: one that has the name of
    `sensitive_features` in `fit`, and other values, remains a feature.

    Args:
        method: a learner of conf/model/.
        estimator: unfitted classifier of scikit-learn's shape that estimates p(ỹ = 1 | x, s), a pipeline too
            (docs/methods/estimator.md). The method is then `estimator`, unless it is one of reject inference.
        hyperparameters: values of the method's keys, as {"optimism": 0.2}; "tuned": those that most of
            FairAll's data sets select, where the method has some to tune; None: those of its file.
        cost: c of an acceptance, in (0, 1), in units of the gain from a positive label.
        sensitive: column of X with the sensitive attribute, where `sensitive_features` are not given.
        seeds: how many policies are learnt and combined; the people are the same for each.
        random_state: the first seed; a RandomState, or None for that of NumPy, draws it.
        positive: the good label, one of the two in y; None: the second one, sorted.
        missing: what an unknown label is in y: NaN or None, or another value, such as −1.
        kinds: kind of a column where the inferred one is wrong: real, count, binary or categorical.
        words: further words of a run, such as "preset=quick" or "fairness.slack=0.05".

    Attributes:
        classes_: the two labels of y, sorted.
        positive_: the good one, of which p is the probability.
        notes_: which label is the good one, and how columns were read, a sentence each.
        n_features_in_: number of columns of X.
        feature_names_in_: their names, where all are texts.

    Examples:
        >>> random = np.random.default_rng(0)
        >>> X = pd.DataFrame({"income": random.normal(size=200), "job": random.choice(["a", "b"], 200)})
        >>> accepted = random.random(200) < 0.7
        >>> y = np.where(accepted, X["income"] + random.normal(size=200) > 0, np.nan)
        >>> policy = SelectiveLabelsClassifier(cost=0.6).fit(X, y, accepted=accepted)
        >>> policy.decide(pd.DataFrame({"income": [-1.5, 1.5], "job": ["a", "a"]}))
        array([0, 1])
    """

    method: str = DEFAULT
    _: KW_ONLY
    estimator: Any = None
    hyperparameters: Mapping[str, Any] | str | None = None
    cost: float = 0.5
    sensitive: str | None = None
    seeds: int = 1
    random_state: int | np.random.RandomState | None = 0
    positive: Any = None
    missing: Any = np.nan
    kinds: Mapping[str, str] | None = None
    words: Sequence[str] = ()

    @property
    def policy_(self) -> Policy:
        """The learnt policy; before `fit` there is none."""
        return self._version.policy

    @of_input()
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        propensity: Any = None,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> SelectiveLabelsClassifier:
        """Learn from a log of decisions.

        Args:
            X: features, shape (N, D): a DataFrame of pandas or polars, or a table of pyarrow, whose columns
                are read by their types as in `dataset=csv`, with missing values and texts, or an array.
            y: labels, shape (N,), `missing` where they are unknown.
            accepted: the decisions, shape (N,); by default those with a label are the accepted.
            propensity: π(d=1 | x, s) of the decisions, shape (N,), above 0 where accepted; by default it is
                estimated by logistic regression on X and s. Where everybody was accepted it is 1.
            sensitive_features: the sensitive attribute, shape (N,) or, for combinations, (N, K).
            sample_weight: factor of the loss of each label, beside 1/π, shape (N,), not negative; 1 by
                default. Phase I and the acceptance rates of groups count everybody once.

        Raises:
            InputError: where X, y or a parameter cannot be used, labels are of one class, or the method takes
                no `sample_weight`.
            ValueError: where lengths or shapes are wrong.

        Warns:
            UserWarning: once, for what makes the labels of the log a poor guide, such as lack of overlap.
        """
        table = self._table(X, y, reset=True)
        check_consistent_length(table, y)
        label, self.classes_ = arrays.labels_of(y, self.missing, positive=self.positive)
        both = self.classes_.tolist()
        self.positive_ = both[1 if self.positive is None else both.index(self.positive)]
        weight = None if sample_weight is None else arrays.weights_of(label, sample_weight)
        people, group, self._attributes = arrays.with_groups(table, sensitive_features, self.sensitive)
        log, columns = arrays.log_of(people, label, accepted, propensity)
        self._version, data = learn(
            log,
            columns,
            self._words(),
            group=group,
            kinds=self.kinds,
            weight=weight,
            estimator=node_of(self.estimator),
        )
        self.notes_ = [f"the good label is {self.positive_!r}, of {both}", *data.notes]
        if data.warnings:
            warn("; ".join(data.warnings), stacklevel=3)
        return self

    @of_input()
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        *,
        accepted: Any = None,
        propensity: Any = None,
        sensitive_features: Any = None,
    ) -> SelectiveLabelsClassifier:
        """Learn from people whose labels have come, by one time step of the method; the first call is `fit`.

        Args:
            X: of all who were decided on, shape (N, D); others as of `fit`.
            y: shape (N,).
            classes: for scikit-learn, and not needed: the first call has labels of both.
            accepted: shape (N,).
            propensity: shape (N,); by default 1 where accepted, as by `decide` without `draw`.
            sensitive_features: shape (N,) or (N, K).

        These labels have weights of 1, also after a `fit` with `sample_weight`.

        Raises:
            InputError: as `fit`, and where the method learns nothing.
        """
        if not hasattr(self, "policy_"):
            return self.fit(
                X, y, accepted=accepted, propensity=propensity, sensitive_features=sensitive_features
            )
        people = self._people(X, sensitive_features)
        if not self._version.process.learner.learns:
            raise InputError(f"method={self.method!r} learns nothing from people")
        label = self._labels(people, y)
        taken, p = arrays.decisions_of(label, accepted, propensity)
        self._version = step(self._version, people, label, taken, p)
        return self

    @of_input()
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Probabilities of `classes_` given x and s, shape (N, 2), whoever is accepted.

        That of `positive_` is p; it is the second column unless `positive` is the first class.

        Raises:
            InputError: where X cannot be read, groups are missing, or the method does not estimate labels.
            ValueError: where X has another shape.
        """
        people = self._people(X, sensitive_features)
        p = self.policy_.predict_proba(people)
        return p if self.positive_ == self.classes_[1] else p[:, ::-1]

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """The likelier of `classes_`, shape (N,), which is no decision; raises as `predict_proba`."""
        likelier = self.predict_proba(X, sensitive_features=sensitive_features).argmax(1)
        return self.classes_[likelier]

    @of_input()
    def decision_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """1 − π and π = π(d=1 | x, s), shape (N, 2); raises as `predict_proba`."""
        people = self._people(X, sensitive_features)
        return self.policy_.decision_proba(people)

    @of_input()
    def decide(
        self,
        X: Any,
        *,
        draw: int | None = None,
        places: int | float | None = None,
        sensitive_features: Any = None,
    ) -> np.ndarray:
        """Decisions by the rule of `fairall decide`, shape (N,): 1 for an acceptance, else 0.

        Args:
            X: shape (N, D).
            draw: seed of decisions drawn with probability π; by default all from the method's threshold on
                are accepted.
            places: most people to accept, a number, or a share of X as a float of at most 1 (1 is one place,
                1.0 everybody).
            sensitive_features: shape (N,) or (N, K).

        Raises:
            InputError: as `predict_proba`, where there is not one place, or `draw` or `places` is no such
                number.
        """
        people, policy = self._people(X, sensitive_features), self.policy_
        rule = Rule(policy.threshold, draw, places)
        rule.n_places(len(people))  # refused before anything is computed
        encoded, margin = policy.encoded(people), np.zeros(len(people))
        if places is not None:
            margin = policy.combined(policy.encoded_margin(*encoded), decimals=MARGIN_DECIMALS)
        probability = policy.combined(policy.encoded_propensity(*encoded))
        accepted, _ = rule.decisions(probability, margin)
        return accepted.astype(int)

    def score(self, X: Any, y: Any, *, sensitive_features: Any = None) -> float:
        """Accuracy of `predict` among those with a label; `policy_value` judges decisions."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        label = self._labels(predicted, y)
        known = ~np.isnan(label)
        return float(accuracy_score(label[known] == 1, predicted[known] == self.positive_))

    def save(self, path: str | Path) -> None:
        """Write parameters, policy and state of training into the folder `path`, without pickles.

        Raises:
            InputError: where a parameter or class is no number, text or truth value.
        """
        check_is_fitted(self)
        folder = Path(path)
        names = {*self.get_params(deep=False), *STORED}  # not those of tools, such as requests for metadata
        about = {name: value for name, value in vars(self).items() if name in names}
        about |= {"random_state": self.policy_.seeds[0], "estimator": self.estimator is not None}
        about["objects"] = self.classes_.dtype == object
        try:
            text = json.dumps(about, indent=1, default=PLAIN)
        except (TypeError, AttributeError) as error:
            raise InputError(f"{folder}: cannot be saved ({error})") from error
        save(self._version, folder, text + "\n")

    @classmethod
    @of_input()
    def load(cls, path: str | Path, *, modules: Collection[str] = ()) -> SelectiveLabelsClassifier:
        """What `save` wrote, which goes on learning as it would have; no code of the folder is run.

        Args:
            path: the folder.
            modules: of methods of one's own, see `fairall.load_policy`.

        Raises:
            InputError: where the folder holds no estimator, or a damaged one.
        """
        version, text = load(Path(path), modules=modules)
        made = cls()
        try:
            about = json.loads(text)
            classes = np.array(about["classes_"], dtype=object if about.pop("objects") else None)
            if not {*vars(made)} <= about.keys() <= STORED | {*vars(made)}:
                raise ValueError
            made.__dict__.update(about, _version=version, estimator=None, classes_=classes)
            if "feature_names_in_" in about:
                made.feature_names_in_ = np.array(made._columns, dtype=object)
            if about["estimator"] is True:  # which the configuration describes
                node = entry(entry(version.policy.config, "model"), "estimator")
                made.estimator = estimator_of(node, "estimator")
            words, (first, second) = made._words(), about["classes_"]
            if not first < second or made.positive_ not in {first, second}:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{path}: holds no estimator that fairall saved: save it anew") from error
        if not modules:  # whoever trusts the code of somebody trusts all their words
            refuse_places(words, str(path))
        return made

    def __sklearn_clone__(self) -> SelectiveLabelsClassifier:
        """A clone that remembers the cost of the original, at which a search judges candidates of others."""
        made = super().__sklearn_clone__()
        made._cost_of_search = self.cost
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def _words(self) -> list[str]:
        """The words of a run that the parameters stand for."""
        given, seed = self.hyperparameters or {}, self.random_state
        if not isinstance(given, Mapping) and given != TUNED:
            raise InputError(f"hyperparameters={given!r}: give a dict of keys of the method, or {TUNED!r}")
        if not isinstance(self.kinds or {}, Mapping):
            raise InputError(f"kinds={self.kinds!r}: give a dict of kinds by column")
        if not isinstance(seed, Number):
            seed = check_random_state(seed).randint(MOST_DRAWN)
        method = self.method
        if self.estimator is not None and method == DEFAULT:
            method = "estimator"
        values = {"model": method, "cost.value": self.cost, "seed": seed, "seeds": self.seeds}
        own = words_of(hyperparameters_without(method, "csv") if given == TUNED else {"model": given})
        return [*words_of(values), *own, *self.words]

    def _table(self, X: Any, y: Any = "no_validation", *, reset: bool = False) -> pd.DataFrame:
        """X (N, D) with the column names of `fit`."""
        given = arrays.in_pandas(X)
        table = arrays.table_of(given)
        validate_data(self, given, y, reset=reset, skip_check_array=True)
        if reset:
            self._columns = list(table)
        return table.set_axis(self._columns, axis=1)

    def _people(self, X: Any, sensitive_features: Any) -> pd.DataFrame:
        """X (N, D) with the sensitive attribute, as the policy reads it."""
        check_is_fitted(self)
        sensitive, people = self.policy_.reader.sensitive, self._table(X)
        if sensitive is None:
            return people.assign(**{CODED: 1})
        return arrays.with_groups(people, sensitive_features, sensitive.column, self._attributes)[0]

    def _labels(self, people: Any, y: Any) -> np.ndarray:
        """As `labels_of`, for y of as many people; shape (N,)."""
        check_consistent_length(people, y)
        return arrays.labels_of(y, self.missing, self.classes_, self.positive_)[0]


class PolicyValue(BaseEstimator):
    """A scorer: value of an estimator's decisions on a held-out log, per person, estimated doubly robustly.

    It is E[d·(ỹ − c)], `value.dr` of `fairall.evaluate`: a model of the label, corrected by the labels of the
    accepted with weights 1/propensity. d is that of `decide`. Where the log has accepted everybody it is the
    mean over those with a label. Models see X as the estimator does.

    Args:
        cost: c, in (0, 1), for all candidates of a search, also where these decide at other costs; None: the
            estimator's `cost`, and for all candidates that of the estimator which is searched.
    """

    # What scikit-learn may route; not the estimator, which comes first.
    __metadata_request__score: ClassVar[dict[str, str]] = {"estimator": metadata_routing.UNUSED}

    def __init__(self, cost: float | None = None) -> None:
        self.cost = cost

    @of_input()
    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        accepted: Any = None,
        propensity: Any = None,
        sensitive_features: Any = None,
    ) -> float:
        """The value, in units of the gain from a positive label; higher is better.

        Args:
            estimator: fitted, a `SelectiveLabelsClassifier` or a pipeline that ends with one.
            X: shape (N, D).
            y: shape (N,), as are the others; all as of `SelectiveLabelsClassifier.fit`.
            accepted: the decisions.
            propensity: of these.
            sensitive_features: the groups.

        Raises:
            InputError: where the log cannot tell the value, or the cost is not between 0 and 1.
        """
        last, inputs = estimator, X
        if isinstance(estimator, Pipeline):
            last, inputs = estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
        if not isinstance(last, SelectiveLabelsClassifier):
            raise InputError(f"policy_value: {type(last).__name__} is no SelectiveLabelsClassifier")
        cost = getattr(last, "_cost_of_search", last.cost) if self.cost is None else self.cost
        cost = number("cost", cost, open_unit())
        target = last.decide(inputs, sensitive_features=sensitive_features)
        label = last._labels(X, y)
        people = last._people(inputs, sensitive_features)
        sensitive = last.policy_.reader.sensitive
        group = CODED if sensitive is None else sensitive.column
        if sensitive is None:
            # A log has groups, which a value does not need: two that are alike.
            people[CODED] = np.arange(len(people)) % 2
        log, columns = arrays.log_of(people, label, accepted, propensity)
        if "decision" not in columns:
            return float(np.nanmean(target * (label - cost)))
        found = evaluate(target, log, **columns, sensitive=group, cost=cost, kinds=last.kinds)
        value = found.values["dr"]
        if not np.isfinite(value.estimate):
            raise InputError(f"policy_value: {value.why}")
        return float(value.estimate)

    __call__ = score


policy_value = PolicyValue()
"""The scorer for `scoring=`, to which nothing is routed."""
