"""The estimator of scikit-learn: its checks, what fit reads, and the tools that work on it."""

import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fairall.config.schema import Config
from fairall.data.people import Decided
from fairall.errors import FairAllError
from fairall.evaluate import evaluate
from fairall.live.offline import learn
from fairall.models.memory import Memory
from fairall.sklearn import PolicyValue, SelectiveLabelsClassifier, policy_value
from fairall.storage.files import write_sums
from fairall.tables.arrays import InputError, labels_of, log_of
from tests.conftest import CHECKOUT, LOANS

FEATURES = ["sex", "age", "income", "dependants", "purpose", "home_owner", "job"]
QUICK = ["preset=quick"]
# Inputs are standardised, and leaves have at least 20 people, whatever the weights of labels are.
WEIGHTS_ARE_NO_COPIES = {
    "check_sample_weight_equivalence_on_dense_data": "weights multiply losses; people are counted once"
}


def remembered(policy: SelectiveLabelsClassifier) -> Memory:
    """The people whom the learner remembers."""
    memory = policy._version.process.learner.memory
    assert isinstance(memory, Memory)
    return memory


def column_of(policy: SelectiveLabelsClassifier) -> str:
    """Name of the sensitive attribute."""
    sensitive = policy.policy_.reader.sensitive
    assert sensitive is not None
    return sensitive.column


def config_of(policy: SelectiveLabelsClassifier) -> Config:
    """The configuration that it was learnt by."""
    assert policy.policy_.config is not None
    return policy.policy_.config


@pytest.fixture(scope="module")
def loans() -> pd.DataFrame:
    return pd.read_csv(LOANS)


@pytest.fixture(scope="module")
def X(loans: pd.DataFrame) -> pd.DataFrame:  # noqa: N802
    return loans[FEATURES]


@pytest.fixture(scope="module")
def y(loans: pd.DataFrame) -> pd.Series:
    return loans["repaid"]


@pytest.fixture(scope="module")
def numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (200, 3), labels of the accepted, and propensities."""
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    p = np.where(x[:, 0] > 0, 0.8, 0.4)
    label = np.where(x[:, 1] + random.normal(size=200) > 0, 1.0, 0.0)
    return x, np.where(random.random(200) < p, label, np.nan), p


@pytest.fixture(scope="module")
def fitted(X: pd.DataFrame, y: pd.Series, loans: pd.DataFrame) -> SelectiveLabelsClassifier:
    policy = SelectiveLabelsClassifier(cost=0.6, sensitive="sex")
    return policy.fit(X, y, propensity=loans["propensity"])


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn() -> None:
    found = check_estimator(
        SelectiveLabelsClassifier(), on_fail=None, on_skip=None, expected_failed_checks=WEIGHTS_ARE_NO_COPIES
    )
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    assert [one["check_name"] for one in found if one["status"] == "xfail"] == [*WEIGHTS_ARE_NO_COPIES]
    assert [one["check_name"] for one in found if one["status"] == "skipped"] == ["check_array_api_input"]


def test_probabilities_and_decisions_are_those_of_the_policy(
    fitted: SelectiveLabelsClassifier, X: pd.DataFrame
) -> None:
    policy = fitted.policy_
    np.testing.assert_array_equal(fitted.predict_proba(X), policy.predict_proba(X))
    np.testing.assert_array_equal(fitted.decision_proba(X), policy.decision_proba(X))
    np.testing.assert_array_equal(fitted.decide(X), policy.decide(X))
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert (fitted.predict(X) == np.where(fitted.predict_proba(X)[:, 1] > 0.5, "yes", "no")).all()
    int_of_numpy: Any = np.int64(10)
    assert fitted.decide(X, places=int_of_numpy).sum() == 10
    with pytest.raises(InputError, match="it must be a whole number of at least 1, or a share"):
        fitted.decide(X, places=2.5)
    drawn = fitted.decide(X, draw=3)
    assert (drawn == fitted.decide(X, draw=3)).all()
    assert (drawn[fitted.decision_proba(X)[:, 1] == 1] == 1).all()


def test_everybody_is_learnt_from(X: pd.DataFrame, y: pd.Series, loans: pd.DataFrame) -> None:
    policy = SelectiveLabelsClassifier("greedy", sensitive="sex", words=QUICK)
    granted = loans["decision"] == "granted"
    policy.fit(X, y, accepted=granted, propensity=loans["propensity"])
    memory = remembered(policy)
    assert memory.counts.tolist() == [y.notna().sum()]
    weights = memory.rows().propensity[0].double().numpy()
    known = loans["propensity"][y.notna()].to_numpy()
    np.testing.assert_allclose(np.sort(weights), np.sort(np.maximum(known, 0.01)), rtol=1e-6)


def test_propensities_are_estimated_where_they_are_not_given(X: pd.DataFrame, y: pd.Series) -> None:
    log, columns = log_of(X, y.eq("yes").where(y.notna()).astype(float).to_numpy(), None, None)
    _, data = learn(log, columns, ["model=stacked"], group="sex")
    logged = data.pool_table.logged
    assert logged is not None
    assert logged.estimated
    assert len(data.train) == len(data.pool) == len(data.validation) == len(X)


def test_where_everybody_was_accepted_nothing_is_weighted(numbers: Any) -> None:
    x, label, _ = numbers
    known = ~np.isnan(label)
    policy = SelectiveLabelsClassifier("greedy", words=QUICK).fit(x[known], label[known])
    assert (remembered(policy).rows().propensity == 1).all()
    assert policy.score(x[known], label[known]) > 0.6


def test_arrays_and_one_group(numbers: Any) -> None:
    x, label, p = numbers
    policy = SelectiveLabelsClassifier().fit(x, label, propensity=p)
    assert policy.policy_.reader.sensitive is None
    assert not hasattr(policy, "feature_names_in_")
    stacked = SelectiveLabelsClassifier("stacked").fit(x, label, propensity=p)
    np.testing.assert_array_equal(policy.decide(x), stacked.decide(x))  # no group to be fair to
    assert policy.score(x, label) > 0.6


def test_groups_as_an_argument(X: pd.DataFrame, y: pd.Series, fitted: SelectiveLabelsClassifier) -> None:
    x, sex = X.drop(columns="sex"), X["sex"]
    policy = SelectiveLabelsClassifier(cost=0.6).fit(x, y, sensitive_features=sex)
    with pytest.raises(InputError, match="give sensitive_features, or X with the column 'sex'"):
        policy.decide(x)
    rates = pd.Series(policy.decide(x, sensitive_features=sex)).groupby(sex).mean()
    assert abs(rates["female"] - rates["male"]) < 0.02
    several = SelectiveLabelsClassifier(cost=0.6).fit(x, y, sensitive_features=X[["sex", "home_owner"]])
    assert several.policy_.reader.n_groups == 4
    by_number = SelectiveLabelsClassifier().fit(
        x.to_numpy(), y, sensitive_features=(sex == "male").astype(int)
    )
    assert column_of(by_number) == "sex"


def test_no_feature_is_replaced_by_groups_of_its_name(X: pd.DataFrame, y: pd.Series) -> None:
    rich = X["income"] > X["income"].median()  # a Series with the name income
    policy = SelectiveLabelsClassifier(cost=0.6).fit(X, y, sensitive_features=rich)
    same = SelectiveLabelsClassifier(cost=0.6).fit(X, y, sensitive_features=rich.to_numpy())
    assert "income" in policy.policy_.reader.names
    decision = policy.decide(X, sensitive_features=rich)
    np.testing.assert_array_equal(decision, same.decide(X, sensitive_features=rich))
    in_both = SelectiveLabelsClassifier(cost=0.6).fit(X, y, sensitive_features=X["sex"])
    assert column_of(in_both) == "sex"
    np.testing.assert_array_equal(in_both.decide(X), in_both.decide(X, sensitive_features=X["sex"]))


def test_sensitive_features_are_matched_by_name_and_by_number(X: pd.DataFrame, y: pd.Series) -> None:
    x = X.drop(columns=["sex", "age"])
    groups = pd.DataFrame({"male": X["sex"].eq("male").astype(int), "old": X["age"].gt(40).astype(int)})
    policy = SelectiveLabelsClassifier(cost=0.6).fit(x, y, sensitive_features=groups)
    decision = policy.decide(x, sensitive_features=groups)
    for same in (groups[["old", "male"]], groups.astype(float), groups.astype(bool), groups.to_numpy()):
        np.testing.assert_array_equal(policy.decide(x, sensitive_features=same), decision)
    for other in (groups[["old"]], groups["old"], groups.rename(columns={"male": "sex"})):
        with pytest.raises(InputError, match=re.escape("and fit had ['male', 'old']")):
            policy.decide(x, sensitive_features=other)
    mixed = pd.Series([0, 0.0, False, 1, "1"] * 80, dtype=object)
    of_one = SelectiveLabelsClassifier().fit(x, y, sensitive_features=mixed).policy_.reader.sensitive
    assert of_one is not None
    assert (of_one.advantaged, of_one.disadvantaged) == (("0",), ("1",))


def test_commas_join_no_groups(X: pd.DataFrame, y: pd.Series) -> None:
    people = np.arange(400) % 4
    groups = pd.DataFrame(
        {"a": np.array(["x, y", "x", "q", "q"])[people], "b": np.array([*"z", "y, z", *"rs"])[people]}
    )
    policy = SelectiveLabelsClassifier().fit(X, y, sensitive_features=groups)
    assert policy.policy_.reader.n_groups == 4


def test_the_good_label_is_one_of_the_classes(X: pd.DataFrame, y: pd.Series) -> None:
    policy = SelectiveLabelsClassifier(positive=np.int64(1)).fit(X, y.map({"yes": 1.0, "no": 0.0}))
    assert policy.notes_[0] == "the good label is 1.0, of [0.0, 1.0]"


def test_the_good_label_may_be_the_first(X: pd.DataFrame, y: pd.Series, tmp_path: Path) -> None:
    other = y.map({"yes": "good", "no": "late"})
    usual = SelectiveLabelsClassifier(cost=0.6).fit(X, y)
    policy = SelectiveLabelsClassifier(cost=0.6, positive="good").fit(X, other)
    policy.save(tmp_path / "policy")
    for same in (policy, SelectiveLabelsClassifier.load(tmp_path / "policy")):
        assert (same.classes_.tolist(), same.positive_) == (["good", "late"], "good")
        assert "'good'" in same.notes_[0]
        np.testing.assert_array_equal(same.decide(X), usual.decide(X))
        np.testing.assert_array_equal(same.predict(X) == "good", usual.predict(X) == "yes")
        np.testing.assert_allclose(same.predict_proba(X), 1.0 - usual.predict_proba(X))
        assert same.score(X, other) == usual.score(X, y)
    assert policy_value(policy, X, other) == policy_value(usual, X, y)
    with pytest.raises(InputError, match="'yes' is none of the classes"):
        policy.set_params(positive="yes").fit(X, other)


@pytest.mark.parametrize("package", ["pyarrow", "polars"])
def test_tables_of_other_packages(package: str, X: pd.DataFrame, y: pd.Series) -> None:
    other = pytest.importorskip(package, reason=f"{package} is not installed")
    table, labels = other.Table.from_pandas(X) if package == "pyarrow" else other.from_pandas(X), y
    usual = SelectiveLabelsClassifier(cost=0.6, sensitive="sex").fit(X, y)
    policy = SelectiveLabelsClassifier(cost=0.6, sensitive="sex").fit(table, labels)
    assert policy.feature_names_in_.tolist() == FEATURES
    np.testing.assert_array_equal(policy.decide(table), usual.decide(X))
    assert policy_value(policy, table, labels) == policy_value(usual, X, y)
    few, sex = ["age", "income"], ["sex"]
    by_argument = SelectiveLabelsClassifier(cost=0.6).fit(
        table.select(few), labels, sensitive_features=table.select(sex)
    )
    usual = SelectiveLabelsClassifier(cost=0.6).fit(X[few], y, sensitive_features=X["sex"])
    np.testing.assert_array_equal(
        by_argument.decide(table.select(few), sensitive_features=table.select(sex)),
        usual.decide(X[few], sensitive_features=X["sex"]),
    )


@pytest.mark.parametrize("method", ["stacked", "greedy", "ensemble", "fairlog", "unfairlog"])
def test_weights_multiply_the_losses_of_labels(method: str, numbers: Any) -> None:
    x, label, p = numbers
    linear: dict[str, Any] = (
        {} if method == "stacked" else {"hyperparameters": {"clf_arch": []}, "words": QUICK}
    )
    plain, ones, good = (
        SelectiveLabelsClassifier(method, **linear).fit(x, label, propensity=p, sample_weight=weight)
        for weight in (None, np.ones(200), 1 + 4 * (label == 1))
    )
    np.testing.assert_array_equal(ones.predict_proba(x), plain.predict_proba(x))
    assert good.predict_proba(x)[:, 1].mean() > plain.predict_proba(x)[:, 1].mean() + 0.002
    if "fairlog" not in method:
        good.partial_fit(x[:50], label[:50])
        rows = remembered(good).rows()
        assert rows.weight is not None
        n = int((~np.isnan(label)).sum())
        torch.testing.assert_close(rows.weight[:, :n], 1 + 4 * rows.label[:, :n])
        assert (rows.weight[:, n:] == 1).all()


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        (np.ones(5), r"inconsistent numbers of samples: \[200, 5\]"),
        (-np.ones(200), "Negative values in data passed to sample_weight"),
        (np.full(200, np.nan), "sample_weight contains NaN"),
        (np.zeros(200), "sample_weight: it must not be zero for all labels"),
    ],
)
def test_impossible_weights(weight: np.ndarray, told: str, numbers: Any) -> None:
    x, label, _ = numbers
    with pytest.raises(ValueError, match=told):
        SelectiveLabelsClassifier().fit(x, label, sample_weight=weight)
    with pytest.raises(InputError, match="it must not be zero for all labels of a class"):
        SelectiveLabelsClassifier().fit(x, label, sample_weight=np.nan_to_num(label))
    with pytest.raises(InputError, match="model=accepted_only is not possible: it must be parity_stacked"):
        SelectiveLabelsClassifier("accepted_only").fit(x, label, sample_weight=np.ones(200))


@pytest.mark.filterwarnings("ignore")
def test_reductions_of_fairlearn(X: pd.DataFrame) -> None:
    reductions = pytest.importorskip("fairlearn.reductions", reason="fairlearn is not installed")
    good = (X["income"] + X["sex"].eq("male") * X["income"].std() > X["income"].median()).astype(int)

    def gap(decision: Any) -> float:
        rates = pd.Series(np.asarray(decision)).groupby(X["sex"]).mean()
        return abs(float(rates["male"] - rates["female"]))

    before = gap(SelectiveLabelsClassifier("stacked").fit(X, good).predict(X))
    for made in (
        reductions.ExponentiatedGradient(
            SelectiveLabelsClassifier("stacked"), reductions.DemographicParity(), max_iter=4
        ),
        reductions.GridSearch(
            SelectiveLabelsClassifier("stacked"), reductions.DemographicParity(), grid_size=7
        ),
    ):
        made.fit(X, good, sensitive_features=X["sex"])
        assert gap(made.predict(X)) < before - 0.1


def test_random_states(numbers: Any, tmp_path: Path) -> None:
    x, label, _ = numbers
    seeds = []
    states: list[Any] = [np.random.RandomState(3), np.random.RandomState(3), None, np.int64(5)]
    for state in states:
        policy = SelectiveLabelsClassifier("accept_all", random_state=state).fit(x, label)
        policy.save(tmp_path)
        seeds += policy.policy_.seeds
        assert SelectiveLabelsClassifier.load(tmp_path).random_state == seeds[-1]
    assert seeds[0] == seeds[1] != seeds[2]
    assert seeds[3] == 5


@pytest.mark.parametrize(
    ("given", "missing", "classes"),
    [
        ([0.0, np.nan, 1.0], np.nan, [0, 1]),
        ([0, -1, 1], -1, [0, 1]),
        ([False, None, True], None, [False, True]),
        (["no", None, "yes"], np.nan, ["no", "yes"]),
        (["no", "?", "yes"], "?", ["no", "yes"]),
        (pd.array([0, None, 1], dtype="Int64"), np.nan, [0, 1]),
        (pd.Series([0, None, 1], index=[5, 3, 4], dtype="Int64"), np.nan, [0, 1]),
        (pd.Series(["no", None, "yes"], dtype="category"), np.nan, ["no", "yes"]),
        (pd.Series([0, -1, 1], dtype="Int64"), -1, [0, 1]),
    ],
)
def test_labels_are_missing_as_one_says(given: Any, missing: Any, classes: list[Any]) -> None:
    label, found = labels_of(given, missing)
    np.testing.assert_array_equal(label, [0, np.nan, 1])
    assert found.tolist() == classes


def test_new_people_may_lack_values_and_be_odd(fitted: SelectiveLabelsClassifier, X: pd.DataFrame) -> None:
    few = X[:20].copy()
    few.loc[3, "job"] = np.nan
    few.loc[4, "job"] = "astronaut"
    with pytest.warns(UserWarning, match="'astronaut', not known from training"):
        assert np.isfinite(fitted.predict_proba(few)).all()


def test_a_time_step_is_an_update_of_the_method(X: pd.DataFrame, y: pd.Series, loans: pd.DataFrame) -> None:
    policy = SelectiveLabelsClassifier("ensemble", sensitive="sex", words=QUICK).fit(X[:300], y[:300])
    same = pickle.loads(pickle.dumps(policy))
    new, labels, p = X[300:], y[300:], loans["propensity"][300:]
    policy.partial_fit(new, labels, propensity=p)
    x, s = same.policy_.encoded(new)
    known = torch.tensor(labels.notna().to_numpy())
    columns = (
        x,
        s,
        torch.tensor(p.to_numpy()).float(),
        known,
        torch.tensor((labels == "yes").to_numpy()).float(),
    )
    same._version.process.learn([Decided(*(one.expand(1, *one.shape) for one in columns))])
    np.testing.assert_array_equal(policy.decision_proba(X), same.policy_.decision_proba(X))


@pytest.mark.parametrize("method", ["parity_stacked", "ensemble", "fairlog"])
def test_saved_and_loaded_it_goes_on(method: str, X: pd.DataFrame, y: pd.Series, tmp_path: Path) -> None:
    policy = SelectiveLabelsClassifier(method, sensitive="sex", words=QUICK).fit(X[:300], y[:300])
    policy.save(tmp_path / "policy")
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pt", ".pkl")]
    loaded = SelectiveLabelsClassifier.load(tmp_path / "policy")
    assert str(loaded.get_params()) == str(policy.get_params())
    for one in (policy, loaded):
        one.partial_fit(X[300:], y[300:])
    np.testing.assert_array_equal(loaded.decision_proba(X), policy.decision_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), policy.predict(X))


def test_damaged_or_no_estimator(fitted: SelectiveLabelsClassifier, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no estimator"):
        SelectiveLabelsClassifier.load(tmp_path)
    fitted.save(tmp_path)
    about = tmp_path / "estimator.json"
    about.write_text(about.read_text().replace("0.6", "0.7"))
    with pytest.raises(InputError, match="a damaged one"):
        SelectiveLabelsClassifier.load(tmp_path)
    for change in (
        lambda about: about["classes"].reverse(),
        lambda about: about.update(classes=["no"]),
        lambda about: about.update(object="<U99999999"),
        lambda about: about["fitted"].update(positive_="no"),
        lambda about: about["fitted"]["_columns"].reverse(),
        lambda about: about["parameters"].update(cost=1e300),
        lambda about: about.clear(),
    ):
        fitted.save(tmp_path)
        plain = json.loads(about.read_text())
        change(plain)
        about.write_text(json.dumps(plain))
        write_sums(tmp_path / "SUMS", ["state.safetensors", "estimator.json"])
        with pytest.raises(InputError, match="was edited") as error:
            SelectiveLabelsClassifier.load(tmp_path)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="cannot be saved"):
        pickle.loads(pickle.dumps(fitted)).set_params(missing=object()).save(tmp_path)


@pytest.mark.parametrize(
    "parameters",
    [
        *({"words": [word]} for word in ("outputs_dir=/theirs", "+tracking.uri=http://theirs")),
        *(
            {"words": [word]}
            for word in ("++hydra.searchpath=[pkg://theirs]", "evaluation.measures=[theirs.f]")
        ),
        *({"words": [word]} for word in ("model={_target_: theirs.Method}", "cost.value=${oc.env:SECRET}")),
        {"hyperparameters": {"_target_": "theirs.Method"}},
    ],
)
def test_an_estimator_of_others_says_nowhere_where_something_is_written(
    parameters: dict[str, Any], fitted: SelectiveLabelsClassifier, tmp_path: Path
) -> None:
    pickle.loads(pickle.dumps(fitted)).set_params(**parameters).save(tmp_path)
    with pytest.raises(InputError, match="no file may"):
        SelectiveLabelsClassifier.load(tmp_path)
    # Whoever lets its code be imported lets it say anything.
    assert SelectiveLabelsClassifier.load(tmp_path, modules=["theirs"]).get_params()["method"]


@pytest.mark.parametrize(
    ("parameters", "arguments", "told"),
    [
        ({"method": "parity_stakced"}, {}, "did you mean parity_stacked"),
        ({"hyperparameters": {"optimsm": 1}}, {}, "did you mean model.optimism"),
        ({"hyperparameters": "tunde"}, {}, "give a dict of keys of the method, or 'tuned'"),
        ({"kinds": 5}, {}, "kinds=5: give a dict of kinds by column"),
        ({"missing": [1, 2]}, {}, "missing=[1, 2]: give the one value"),
        ({"sensitive": ["sex"]}, {}, "X with the column ['sex']"),
        ({"random_state": "x"}, {}, "'x' cannot be used to seed"),
        ({"cost": 1.5}, {}, "cost.value=1.5 is not possible"),
        ({"seeds": 0}, {}, "seeds=0 is not possible"),
        ({"sensitive": "gender"}, {}, "X with the column 'gender'"),
        ({"kinds": {"age": "reel"}}, {}, "kinds.age=reel is not possible"),
        ({"missing": 0}, {"y": np.arange(400) % 2}, "known labels have 1 class"),
        ({}, {"accepted": ["granted"] * 400}, "accepted: it must be 1 or 0"),
        ({}, {"accepted": [1, 0]}, "inconsistent numbers of samples"),
        ({}, {"propensity": np.zeros(400)}, "propensity: it must be above 0"),
        ({}, {"sensitive_features": ["f"] * 400}, "everybody is of one group"),
        (
            {},
            {"sensitive_features": [None, *["f", "m"] * 199, "m"]},
            "an empty cell is no sensitive attribute",
        ),
        ({}, {"y": np.arange(400) % 3}, "known labels have 3 classes"),
        ({}, {"y": [np.nan] * 400}, "known labels have 0 classes"),
    ],
)
def test_bad_input_is_one_clear_line(
    parameters: dict[str, Any], arguments: dict[str, Any], told: str, X: pd.DataFrame, y: pd.Series
) -> None:
    with pytest.raises(ValueError, match=re.escape(told)) as error:
        SelectiveLabelsClassifier(**parameters).fit(X, **{"y": y} | arguments)
    assert "\n" not in str(error.value)


def test_a_column_to_leave_out_is_told_in_python(X: pd.DataFrame, y: pd.Series) -> None:
    with pytest.raises(FairAllError, match="drop=paid"):
        SelectiveLabelsClassifier().fit(X.assign(paid=y.eq("yes").astype(int)), y)


def test_hyperparameters(X: pd.DataFrame, y: pd.Series) -> None:
    given = {"clf_arch": [8, np.int64(4)], "learning_rate": np.float64(0.02)}
    policy = SelectiveLabelsClassifier("greedy", hyperparameters=given, words=QUICK).fit(X, y)
    assert config_of(policy).model["clf_arch"] == [8, 4]
    assert config_of(policy).model["learning_rate"] == 0.02
    tuned = SelectiveLabelsClassifier("fairlog", hyperparameters="tuned", words=QUICK).fit(X, y)
    assert config_of(tuned).hyperparameters == "chosen by the other data sets"


def test_without_an_estimate_of_the_label(numbers: Any) -> None:
    x, label, _ = numbers
    policy = SelectiveLabelsClassifier("fair_reductions", words=QUICK).fit(
        x, label, sensitive_features=np.arange(200) % 2
    )
    with pytest.raises(InputError, match="has no estimate of p"):
        policy.predict(x, sensitive_features=np.arange(200) % 2)
    fixed = SelectiveLabelsClassifier("accept_all").fit(x, label)
    assert fixed.decide(x).all()
    with pytest.raises(InputError, match="learns nothing"):
        fixed.partial_fit(x, label)


def test_policy_value_is_that_of_an_evaluation(
    fitted: SelectiveLabelsClassifier, X: pd.DataFrame, y: pd.Series, loans: pd.DataFrame
) -> None:
    value = policy_value(fitted, X, y, propensity=loans["propensity"])
    log = loans[[*FEATURES, "repaid", "propensity"]].assign(known=y.notna().astype(int))
    columns = {"decision": "known", "label": "repaid", "sensitive": "sex", "propensity": "propensity"}
    same = evaluate(fitted.decide(X), log, positive="yes", cost=0.6, **columns)
    assert value == pytest.approx(same.values["dr"].estimate, rel=1e-9)
    known = y.notna()
    taken = fitted.decide(X[known])
    assert policy_value(fitted, X[known], y[known]) == pytest.approx(
        (taken * (y[known].eq("yes") - 0.6)).mean()
    )
    with pytest.raises(InputError, match="is no SelectiveLabelsClassifier"):
        policy_value(StandardScaler(), X, y)


def test_search_with_missing_labels(X: pd.DataFrame, y: pd.Series) -> None:
    policy = SelectiveLabelsClassifier(cost=0.6, sensitive="sex")
    grid = {"hyperparameters": [{"optimism": 0.0}, {"optimism": 2.0}]}
    search = GridSearchCV(policy, grid, scoring=policy_value, cv=KFold(2, shuffle=True, random_state=0))
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    marked = y.map({"yes": 1, "no": 0}).fillna(-1).astype(int)
    policy.set_params(missing=-1)
    folds = StratifiedKFold(2)
    assert np.isfinite(cross_val_score(policy, X, marked, scoring=policy_value, cv=folds)).all()


def test_a_search_over_the_cost_is_judged_at_one_cost(X: pd.DataFrame, y: pd.Series) -> None:
    policy = make_pipeline(SelectiveLabelsClassifier("stacked", cost=0.6, sensitive="sex"))
    grid, scorers = (
        {"selectivelabelsclassifier__cost": [0.01, 0.6]},
        {"own": policy_value, "at": PolicyValue(0.6)},
    )
    search = GridSearchCV(policy, grid, scoring=scorers, refit=False, cv=KFold(2)).fit(X, y)
    own, at = (search.cv_results_[f"mean_test_{name}"] for name in scorers)
    np.testing.assert_array_equal(own, at)
    assert own[0] < own[1]  # at its own cost of 0.01 the first would be worth more
    fitted = SelectiveLabelsClassifier(cost=0.6).fit(X, y)
    assert policy_value(fitted.set_params(cost=0.5), X, y) == PolicyValue(0.5)(fitted, X, y)
    with pytest.raises(InputError, match="is not possible; it must be between 0 and 1"):
        PolicyValue(2)(fitted, X, y)


def test_pipeline(X: pd.DataFrame, y: pd.Series) -> None:
    scaled = ColumnTransformer(
        [("scaled", StandardScaler(), ["age", "income"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = make_pipeline(scaled, SelectiveLabelsClassifier(cost=0.6, sensitive="sex")).fit(X, y)
    assert set(pipeline.predict(X)) == {"no", "yes"}
    assert np.isfinite(policy_value(pipeline, X, y))


@pytest.mark.usefixtures("routing")
def test_metadata_routing(X: pd.DataFrame, y: pd.Series, loans: pd.DataFrame) -> None:
    routed = {"propensity": True, "sensitive_features": True}
    policy = SelectiveLabelsClassifier(cost=0.6).set_fit_request(**routed)
    policy.set_score_request(sensitive_features=True).set_predict_request(sensitive_features=True)
    scorer = PolicyValue().set_score_request(**routed)
    search = GridSearchCV(policy, {"method": ["stacked"]}, scoring=scorer, cv=KFold(2))
    given = {"propensity": loans["propensity"], "sensitive_features": X["sex"]}
    search.fit(X.drop(columns="sex"), y, **given)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert column_of(search.best_estimator_) == "sex"


def test_fairlearn(fitted: SelectiveLabelsClassifier, X: pd.DataFrame, y: pd.Series) -> None:
    reason = "fairlearn is not installed"
    metrics = pytest.importorskip("fairlearn.metrics", reason=reason)
    postprocessing = pytest.importorskip("fairlearn.postprocessing", reason=reason)
    decision = fitted.decide(X)
    frame = metrics.MetricFrame(
        metrics=metrics.selection_rate, y_true=decision, y_pred=decision, sensitive_features=X["sex"]
    )
    assert frame.difference() < 0.02
    known, number = y.notna(), y.map({"yes": 1, "no": 0})
    policy = SelectiveLabelsClassifier(cost=0.6, sensitive="sex").fit(X, number)
    optimised = postprocessing.ThresholdOptimizer(
        estimator=policy, constraints="demographic_parity", prefit=True, predict_method="predict_proba"
    )
    optimised.fit(X[known], number[known].astype(int), sensitive_features=X["sex"][known])
    found = optimised.predict(X[known], sensitive_features=X["sex"][known], random_state=0)
    assert set(np.unique(found)) <= {0, 1}


@pytest.mark.filterwarnings("ignore")
def test_aif360(fitted: SelectiveLabelsClassifier, X: pd.DataFrame) -> None:
    from aif360.sklearn.metrics import disparate_impact_ratio

    decision = pd.Series(fitted.decide(X), index=pd.Index(X["sex"], name="sex"))
    ratio = disparate_impact_ratio(decision, prot_attr="sex", priv_group="male", pos_label=1)
    rates = decision.groupby(level="sex").mean()
    assert ratio == pytest.approx(rates["female"] / rates["male"])


def test_the_page_runs_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fairlearn.metrics", reason="the page uses fairlearn, which is not installed")
    (tmp_path / "tests").symlink_to(CHECKOUT / "tests")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    page = (CHECKOUT / "docs" / "sklearn.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks[0].splitlines()) <= 25
    for block in blocks:
        exec(block, names)
    assert names["policy"] is not names["search"].best_estimator_
