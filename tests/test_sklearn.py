"""The estimator of scikit-learn: its checks, what fit reads, and the tools that work on it."""

import json
import pickle
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fairall.data.people import Decided
from fairall.evaluate import evaluate
from fairall.live.offline import learn, save
from fairall.sklearn import PolicyValue, SelectiveLabelsClassifier, policy_value
from fairall.tables.arrays import InputError, labels_of, log_of
from tests.conftest import LOANS

FEATURES = ["sex", "age", "income", "dependants", "purpose", "home_owner", "job"]
LOG = pd.read_csv(LOANS)
X, Y, P, SEX = LOG[FEATURES], LOG["repaid"], LOG["propensity"], LOG["sex"]
KNOWN, BLIND = Y.notna(), X.drop(columns="sex")
NUMBER = Y.map({"yes": 1.0, "no": 0.0})
# An array, propensities, and labels of the accepted.
RANDOM = np.random.default_rng(0)
ARRAY = RANDOM.normal(size=(200, 3))
CHANCE = np.where(ARRAY[:, 0] > 0, 0.8, 0.4)
LABEL = (ARRAY[:, 1] + RANDOM.normal(size=200) > 0).astype(float)
LABEL[RANDOM.random(200) >= CHANCE] = np.nan
QUICK = ["preset=quick"]
GIVEN = {"accepted", "propensity", "sensitive_features", "sample_weight"}  # to `fit`


def learnt(method: str = "parity_stacked", x: Any = X, y: Any = Y, **words: Any) -> SelectiveLabelsClassifier:
    """An estimator of cost 0.6 after `fit`, with `words` for both."""
    given = {name: words.pop(name) for name in GIVEN & words.keys()}
    return SelectiveLabelsClassifier(method, **{"cost": 0.6} | words).fit(x, y, **given)


def copied(policy: SelectiveLabelsClassifier) -> SelectiveLabelsClassifier:
    return pickle.loads(pickle.dumps(policy))


def remembered(policy: SelectiveLabelsClassifier) -> Any:
    """The memory of the learner."""
    return policy._version.process.learner.memory


def sensitive(policy: SelectiveLabelsClassifier) -> Any:
    """The sensitive attribute."""
    return policy.policy_.reader.sensitive


@pytest.fixture(scope="module")
def fitted() -> SelectiveLabelsClassifier:
    return learnt(sensitive="sex", propensity=P)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn() -> None:
    found = check_estimator(SelectiveLabelsClassifier(), on_fail=None, on_skip=None)
    others = [(one["status"], one["check_name"]) for one in found if one["status"] != "passed"]
    assert others == [("skipped", "check_array_api_input")]


def test_probabilities_and_decisions_are_those_of_the_policy(fitted: SelectiveLabelsClassifier) -> None:
    for name in ("predict_proba", "decision_proba", "decide"):
        assert_array_equal(getattr(fitted, name)(X), getattr(fitted.policy_, name)(X))
    assert_array_equal(fitted.predict(X), np.where(fitted.predict_proba(X)[:, 1] > 0.5, "yes", "no"))
    int_of_numpy: Any = np.int64(10)
    assert fitted.decide(X, places=int_of_numpy).sum() == 10
    assert_array_equal(fitted.decide(X, draw=3), fitted.decide(X, draw=3))
    few = X[:20].assign(job=[np.nan, "astronaut", *X["job"][2:20]])
    with pytest.warns(UserWarning, match="'astronaut', not known from training"):
        assert np.isfinite(fitted.predict_proba(few)).all()


def test_everybody_is_learnt_from_with_the_propensities_given_estimated_or_1() -> None:
    granted = LOG["decision"] == "granted"
    given = remembered(learnt("greedy", sensitive="sex", words=QUICK, accepted=granted, propensity=P))
    known = np.sort(np.maximum(P[KNOWN], 0.01))
    assert_allclose(np.sort(given.rows().propensity[0].double().numpy()), known, rtol=1e-6)
    _, data = learn(*log_of(X, NUMBER.to_numpy(), None, None), ["model=stacked"], group="sex")
    assert data.pool_table.logged is not None
    assert data.pool_table.logged.estimated
    assert len(data.train) == len(data.pool) == len(data.validation) == len(X)
    labelled = ~np.isnan(LABEL)
    everybody = remembered(learnt("greedy", ARRAY[labelled], LABEL[labelled], words=QUICK))
    assert (everybody.rows().propensity == 1).all()


def test_arrays_and_one_group() -> None:
    policy, stacked = (
        learnt(method, ARRAY, LABEL, propensity=CHANCE) for method in ("parity_stacked", "stacked")
    )
    assert sensitive(policy) is None
    assert not hasattr(policy, "feature_names_in_")
    assert_array_equal(policy.decide(ARRAY), stacked.decide(ARRAY))  # no group to be fair to
    assert policy.score(ARRAY, LABEL) > 0.6


def test_groups_as_an_argument_replace_no_feature() -> None:
    policy = learnt(x=BLIND, sensitive_features=SEX)
    with pytest.raises(InputError, match="give sensitive_features, or X with the column 'sex'"):
        policy.decide(BLIND)
    rates = pd.Series(policy.decide(BLIND, sensitive_features=SEX)).groupby(SEX).mean()
    assert abs(rates["female"] - rates["male"]) < 0.02
    pairs = pd.DataFrame([("x, y", "z"), ("x", "y, z"), ("q", "r"), ("q", "s")] * 100, columns=["a", "b"])
    assert learnt("accept_all", BLIND, sensitive_features=pairs).policy_.reader.n_groups == 4
    male = SEX.eq("male").astype(int)
    assert sensitive(learnt("accept_all", BLIND.to_numpy(), sensitive_features=male)).column == "sex"
    rich = X["income"] > X["income"].median()  # a Series with the name income
    policy, same = (learnt(sensitive_features=groups) for groups in (rich, rich.to_numpy()))
    assert "income" in policy.policy_.reader.names
    assert_array_equal(policy.decide(X, sensitive_features=rich), same.decide(X, sensitive_features=rich))
    in_both = learnt(sensitive_features=SEX)
    assert_array_equal(in_both.decide(X), in_both.decide(X, sensitive_features=SEX))


def test_sensitive_features_are_matched_by_name_and_by_number() -> None:
    x = BLIND.drop(columns="age")
    groups = pd.DataFrame({"male": SEX.eq("male").astype(int), "old": X["age"].gt(40).astype(int)})
    policy = learnt(x=x, sensitive_features=groups)
    decision = policy.decide(x, sensitive_features=groups)
    for same in (groups[["old", "male"]], groups.astype(float), groups.astype(bool), groups.to_numpy()):
        assert_array_equal(policy.decide(x, sensitive_features=same), decision)
    for other in (groups[["old"]], groups["old"], groups.rename(columns={"male": "sex"})):
        with pytest.raises(InputError, match=re.escape("and fit had ['male', 'old']")):
            policy.decide(x, sensitive_features=other)
    mixed = pd.Series([0, 0.0, False, 1, "1"] * 80, dtype=object)
    of_one = sensitive(learnt(x=x, sensitive_features=mixed))
    assert (of_one.advantaged, of_one.disadvantaged) == (("0",), ("1",))


def test_the_good_label_is_one_of_the_classes_and_may_be_the_first(tmp_path: Path) -> None:
    assert learnt(y=NUMBER, positive=np.int64(1)).notes_[0] == "the good label is 1.0, of [0.0, 1.0]"
    other, usual = Y.map({"yes": "good", "no": "late"}), learnt()
    policy = learnt(y=other, positive="good")
    policy.save(tmp_path / "policy")
    for same in (policy, SelectiveLabelsClassifier.load(tmp_path / "policy")):
        assert (same.classes_.tolist(), same.positive_) == (["good", "late"], "good")
        assert "'good'" in same.notes_[0]
        assert_array_equal(same.decide(X), usual.decide(X))
        assert_allclose(same.predict_proba(X), 1.0 - usual.predict_proba(X))
        assert same.score(X, other) == usual.score(X, Y)
    assert policy_value(policy, X, other) == policy_value(usual, X, Y)


@pytest.mark.parametrize(
    ("package", "convert"), [("pyarrow", "Table.from_pandas"), ("polars", "from_pandas")]
)
def test_tables_of_other_packages(package: str, convert: str, fitted: SelectiveLabelsClassifier) -> None:
    other = pytest.importorskip(package, reason=f"{package} is not installed")
    table, log = map(attrgetter(convert)(other), (X, BLIND))
    policy = learnt(x=table, sensitive="sex", propensity=P)
    assert policy.feature_names_in_.tolist() == [*X]
    assert_array_equal(policy.decide(table), fitted.decide(X))
    assert policy_value(policy, table, Y) == policy_value(fitted, X, Y)
    groups = attrgetter(convert)(other)(X[["sex"]])
    assert learnt("accept_all", log, sensitive_features=groups).policy_.reader.n_groups == 2


def test_weights_multiply_the_losses_of_labels() -> None:
    words: dict[str, Any] = {"hyperparameters": {"clf_arch": []}, "words": QUICK, "propensity": CHANCE}
    weights = np.ones(200), 1 + 4 * (LABEL == 1)
    plain = learnt("greedy", ARRAY, LABEL, **words)
    ones, good = (learnt("greedy", ARRAY, LABEL, sample_weight=weight, **words) for weight in weights)
    p, of_ones, of_good = (policy.predict_proba(ARRAY)[:, 1] for policy in (plain, ones, good))
    assert_array_equal(p, of_ones)
    assert of_good.mean() > p.mean() + 0.002
    good.partial_fit(ARRAY[:50], LABEL[:50])
    rows, n = remembered(good).rows(), int((~np.isnan(LABEL)).sum())
    expected = 1 + 4 * rows.label * (torch.arange(rows.label.shape[1]) < n)
    torch.testing.assert_close(rows.weight, expected)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
def test_reductions_of_fairlearn() -> None:
    reductions = pytest.importorskip("fairlearn.reductions", reason="fairlearn is not installed")
    income, stacked = X["income"], SelectiveLabelsClassifier("stacked")
    good = (income + SEX.eq("male") * income.std() > income.median()).astype(int)
    reduced = reductions.ExponentiatedGradient(stacked, reductions.DemographicParity(), max_iter=4)
    decided = reduced.fit(X, good, sensitive_features=SEX).predict(X), stacked.fit(X, good).predict(X)
    fair, usual = (np.ptp(pd.Series(made).groupby(SEX).mean()) for made in decided)
    assert fair < usual - 0.1


def test_random_states(tmp_path: Path) -> None:
    seeds = []
    for state in (np.random.RandomState(3), np.random.RandomState(3), None, np.int64(5)):
        policy = learnt("accept_all", ARRAY, LABEL, random_state=state)
        policy.save(tmp_path)
        seeds.append(SelectiveLabelsClassifier.load(tmp_path).random_state)
        assert policy.policy_.seeds == seeds[-1:]
    assert (seeds[0] == seeds[1] != seeds[2], seeds[3]) == (True, 5)


@pytest.mark.parametrize(
    ("missing", "labels", "dtype"),
    [
        (np.nan, [0, None, 1], "Int64"),
        (np.nan, ["no", None, "yes"], "category"),
        (None, [False, None, True], object),
        ("?", ["no", "?", "yes"], str),
        (-1, [0, -1, 1], "Int64"),
    ],
)
def test_labels_are_missing_as_one_says(missing: Any, labels: list[Any], dtype: Any) -> None:
    for given in (pd.Series(labels, index=[5, 3, 4], dtype=dtype), pd.array(labels, dtype=dtype), labels):
        label, found = labels_of(given, missing)
        assert_array_equal(label, [0, np.nan, 1])
        assert found.tolist() == labels[::2]


def test_a_time_step_is_an_update_of_the_method() -> None:
    policy = learnt("ensemble", X[:300], Y[:300], sensitive="sex", words=QUICK)
    same, new, labels, p = copied(policy), X[300:], Y[300:], P[300:]
    policy.partial_fit(new, labels, propensity=p)
    seen = (torch.tensor(one.to_numpy(dtype=float)).float() for one in (p, KNOWN[300:], labels == "yes"))
    x, s, propensity, known, label = (one[None] for one in (*same.policy_.encoded(new), *seen))
    same._version.process.learn([Decided(x, s, propensity, known > 0, label)])
    assert_array_equal(policy.decision_proba(X), same.policy_.decision_proba(X))


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("fairlog", None),
        ("ensemble", None),
        ("parity_stacked", RandomForestClassifier(10, max_features=1.0)),
        ("parity_stacked", make_pipeline(StandardScaler(), LogisticRegression())),
        ("parcelling", RandomForestClassifier(10)),
        ("parity_stacked", "LightGBM"),
    ],
    ids=str,
)
def test_saved_and_loaded_it_goes_on_with_a_classifier_of_the_users_too(
    method: str, model: Any, tmp_path: Path
) -> None:
    if model == "LightGBM":
        lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
        model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1)
    policy = learnt(method, ARRAY, LABEL, estimator=model, words=QUICK)
    assert np.corrcoef(policy.predict_proba(ARRAY)[:, 1], ARRAY[:, 1])[0, 1] > 0.4
    policy.save(tmp_path)
    assert not {path.suffix for path in tmp_path.rglob("*")} & {".pt", ".pkl"}
    loaded = SelectiveLabelsClassifier.load(tmp_path, modules=["lightgbm"])
    given, found = (
        one.get_params(deep=False) | {"estimator": type(one.estimator)} for one in (policy, clone(loaded))
    )
    assert str(found) == str(given)
    for own in (policy, loaded):
        own.partial_fit(ARRAY[:150] + 0.1, LABEL[:150])
    assert_array_equal(loaded.predict_proba(ARRAY), policy.predict_proba(ARRAY))
    assert_array_equal(loaded.decide(ARRAY), policy.decide(ARRAY))


def test_saved_with_attributes_of_others_and_classes_of_any_type(tmp_path: Path) -> None:
    with config_context(enable_metadata_routing=True):
        policy = SelectiveLabelsClassifier("accepted_only").set_fit_request(accepted=True)
        policy.fit(ARRAY, pd.Series(LABEL).map({0.0: "no", 1.0: "yes"}).astype(object))
    policy.comment = "mine"
    policy.save(tmp_path)
    loaded = SelectiveLabelsClassifier.load(tmp_path)
    assert not hasattr(loaded, "comment")
    assert policy.classes_.dtype == loaded.classes_.dtype == loaded.predict(ARRAY).dtype == object
    assert_array_equal(policy.predict(ARRAY), loaded.predict(ARRAY))


def test_damaged_or_no_estimator(fitted: SelectiveLabelsClassifier, tmp_path: Path) -> None:
    load, about = SelectiveLabelsClassifier.load, tmp_path / "estimator.json"
    with pytest.raises(InputError, match="holds no estimator"):
        load(tmp_path)
    fitted.save(tmp_path)
    text = about.read_text()
    about.write_text(text.replace("0.6", "0.7"))
    with pytest.raises(InputError, match="a damaged one"):
        load(tmp_path)
    classes: list[Any] = [["yes", "no"], ["no"], ["late", "no"], [0, "no"], None]
    for change in (*({"classes_": one} for one in classes), {"costs": 0.6}):
        save(fitted._version, tmp_path, json.dumps(json.loads(text) | change))  # somebody else's code
        with pytest.raises(InputError, match=r"holds no estimator that fairall saved: save it anew\Z"):
            load(tmp_path)
    with pytest.raises(InputError, match="cannot be saved"):
        copied(fitted).set_params(missing=object()).save(tmp_path)


def test_an_estimator_of_others_says_nowhere_where_something_is_written(
    fitted: SelectiveLabelsClassifier, tmp_path: Path
) -> None:
    words = """
        outputs_dir=/theirs +tracking.uri=http://theirs ++hydra.searchpath=[pkg://theirs]
        evaluation.measures=[theirs.f] model={_target_:theirs.Method} cost.value=${oc.env:SECRET}
    """.split()
    theirs: dict[str, Any] = {"hyperparameters": {"_target_": "theirs.Method"}}
    for parameters in (theirs, *({"words": [word]} for word in words)):
        copied(fitted).set_params(**parameters).save(tmp_path)
        with pytest.raises(InputError, match="no file may"):
            SelectiveLabelsClassifier.load(tmp_path)
        # Whoever lets its code be imported lets it say anything.
        assert SelectiveLabelsClassifier.load(tmp_path, modules=["theirs"]).get_params()["method"]
    # A classifier is that of the policy's configuration, whose classes have been asked for.
    fitted.save(tmp_path)
    about = json.loads((tmp_path / "estimator.json").read_text())
    about["estimator"] = {"_target_": "theirs.Method"}
    save(fitted._version, tmp_path, json.dumps(about))
    assert SelectiveLabelsClassifier.load(tmp_path).estimator is None


MISTAKES: list[tuple[dict[str, Any], str]] = [
    *yaml.safe_load((LOANS.parent / "estimator.yaml").read_text()),
    ({"y": Y[1:]}, "inconsistent numbers of samples: [400, 399]"),
    ({"sensitive_features": [None, "m", *"fm" * 199]}, "an empty cell is no sensitive attribute"),
    ({"sample_weight": NUMBER.fillna(0.0)}, "it must not be zero for all labels of a class"),
    ({"x": X.assign(paid=Y.eq("yes").astype(int))}, "drop=paid"),
    ({"estimator": FunctionTransformer(np.log1p)}, "estimator.func: <ufunc 'log1p'> is no number"),
    ({"estimator": Perceptron()}, "model.estimator: Perceptron has no predict_proba to decide by"),
    ({"method": "greedy", "estimator": GaussianNB()}, "model.estimator"),
]


@pytest.mark.parametrize(("words", "told"), MISTAKES)
def test_bad_input_is_one_clear_line(words: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {
        name: np.full(400, value) if name in {*GIVEN, "y"} and np.isscalar(value) else value
        for name, value in words.items()
    }
    with pytest.raises(ValueError, match=f"^[^\n]*{re.escape(told)}[^\n]*$"):
        learnt(**given)


def test_hyperparameters() -> None:
    given = {"clf_arch": [8, np.int64(4)], "learning_rate": np.float64(0.02)}
    config: Any = learnt("greedy", hyperparameters=given, words=QUICK).policy_.config
    assert (config.model["clf_arch"], config.model["learning_rate"]) == ([8, 4], 0.02)
    tuned: Any = learnt("fairlog", hyperparameters="tuned", words=QUICK).policy_.config
    assert tuned.hyperparameters == "chosen by the other data sets"


def test_without_an_estimate_of_the_label() -> None:
    groups = {"sensitive_features": np.arange(200) % 2}
    with pytest.raises(InputError, match="has no estimate of p"):
        learnt("fair_reductions", ARRAY, LABEL, words=QUICK, **groups).predict(ARRAY, **groups)
    fixed = learnt("accept_all", ARRAY, LABEL)
    assert fixed.decide(ARRAY).all()
    with pytest.raises(InputError, match="learns nothing"):
        fixed.partial_fit(ARRAY, LABEL)


def test_policy_value_is_that_of_an_evaluation(fitted: SelectiveLabelsClassifier) -> None:
    columns = {"decision": "known", "label": "repaid", "sensitive": "sex", "propensity": "propensity"}
    log = LOG[[*FEATURES, "repaid", "propensity"]].assign(known=KNOWN.astype(int))
    same = evaluate(fitted.decide(X), log, positive="yes", cost=0.6, **columns).values["dr"].estimate
    assert policy_value(fitted, X, Y, propensity=P) == pytest.approx(same, rel=1e-9)
    of_known = (fitted.decide(X[KNOWN]) * (NUMBER[KNOWN] - 0.6)).mean()
    assert policy_value(fitted, X[KNOWN], Y[KNOWN]) == pytest.approx(of_known)
    other: Any = StandardScaler()
    with pytest.raises(InputError, match="is no SelectiveLabelsClassifier"):
        policy_value(other, X, Y)
    for cost in (1.5, "a"):
        with pytest.raises(InputError, match="between 0 and 1, both excluded"):
            PolicyValue(cost).score(fitted, X, Y)  # type: ignore[arg-type]


def test_policy_value_has_the_groups_of_a_column_of_any_name() -> None:
    values = []
    for name in ("sex", "s"):
        x = BLIND.assign(**{name: SEX.map({"female": -1, "male": 1})})
        values.append(policy_value(learnt(x=x, sensitive=name, propensity=P), x, Y, propensity=P))
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_stratified_folds_with_marked_labels() -> None:
    policy, marked = SelectiveLabelsClassifier(sensitive="sex", missing=-1), NUMBER.fillna(-1).astype(int)
    assert np.isfinite(cross_val_score(policy, X, marked, scoring=policy_value, cv=StratifiedKFold(2))).all()


@pytest.mark.whole
def test_a_search_over_the_cost_of_a_pipeline_is_judged_at_one_cost() -> None:
    scaled = make_column_transformer(
        (StandardScaler(), ["age", "income"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    policy = make_pipeline(scaled, SelectiveLabelsClassifier("stacked", cost=0.6, sensitive="sex"))
    grid = {"selectivelabelsclassifier__cost": [0.01, 0.6]}
    scorers = {"own": policy_value, "at": PolicyValue(0.6)}
    search = GridSearchCV(policy, grid, scoring=scorers, refit=False, cv=KFold(2)).fit(X, Y)
    own, at = (search.cv_results_[f"mean_test_{name}"] for name in scorers)
    assert_array_equal(own, at)
    assert own[0] < own[1]  # at its own cost of 0.01 the first would be worth more
    fitted = learnt()
    assert policy_value(make_pipeline(fitted), X, Y) == policy_value(fitted, X, Y)
    assert policy_value(fitted.set_params(cost=0.5), X, Y) == PolicyValue(0.5)(fitted, X, Y)
