"""Classifiers from a configuration: what may be named, how they are fitted, and their archives."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from fairall import load_policy, run
from fairall.config import compose
from fairall.errors import FairAllError
from fairall.models.estimators import (
    Fitted,
    boosted_trees,
    estimator_of,
    fitted,
    log_odds,
    logistic,
    node_of,
)
from fairall.storage.archive import archive_of, of_archive

KINDS = [
    logistic(0.5),
    boosted_trees(),
    GaussianNB(),
    KNeighborsClassifier(),
    MLPClassifier((4,), max_iter=20),
    RandomForestClassifier(5),
    ExtraTreesClassifier(5),
    GradientBoostingClassifier(n_estimators=5),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(SimpleImputer(), MinMaxScaler((0.0, 2.0)), SelectKBest(k=2), LogisticRegression()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft"),
    CalibratedClassifierCV(GaussianNB(), cv=3),
    KNeighborsClassifier(algorithm="ball_tree"),
    MLPClassifier((4,), solver="sgd", max_iter=20),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, 3))
    return x, (draw.random(n) < expit(x[:, 0])).astype(float)


@pytest.mark.parametrize("model", KINDS, ids=lambda one: type(one).__name__)
def test_an_archive_gives_the_same_estimates_and_has_the_same_bytes(model: Any) -> None:
    x, label = table()
    own = fitted(model, x, label, seed=3)
    archive = archive_of(own)
    if not isinstance(model, GridSearchCV):  # it keeps how long its fits took
        assert archive == archive_of(fitted(model, x, label, seed=3))
    twin = of_archive(archive, ())
    np.testing.assert_array_equal(log_odds(own, x), log_odds(twin, x))
    assert b"pickle" not in archive


def test_an_archive_has_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np\n"
        "from fairall.models.estimators import boosted_trees, fitted\n"
        "from fairall.storage.archive import archive_of\n"
        "x = np.random.default_rng(0).normal(size=(200, 3))\n"
        "open(sys.argv[1], 'wb').write(archive_of(fitted(boosted_trees(), x, (x[:, 0] > 0) * 1.0)))\n"
    )
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        subprocess.run([sys.executable, "-c", code, path], check=True)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.whole
def test_a_policy_of_a_package_that_is_not_trusted_is_not_read(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    words = "model=estimator model.estimator._target_=lightgbm.LGBMClassifier model.estimator.verbose=-1"
    quick = "dataset=credit preset=quick seeds=1 tracking.enabled=false"
    made = run(*words.split(), *quick.split(), f"outputs_dir={tmp_path}")
    assert made.path is not None
    policy = load_policy(made.path, modules=["lightgbm"])
    people = tmp_path / "people.csv"
    policy.reader.example().to_csv(people, index=False)
    decide = [sys.executable, "-m", "fairall", "decide", str(made.path), str(people), "-o", "decided.csv"]
    refused = subprocess.run(decide, capture_output=True, text=True, cwd=tmp_path)
    assert refused.returncode == 1
    assert "would run code of the module lightgbm" in refused.stderr
    assert refused.stderr.count("\n") == 1
    decided = subprocess.run([*decide, "--trust", "lightgbm"], capture_output=True, text=True, cwd=tmp_path)
    assert decided.returncode == 0, decided.stderr
    # The types of the archive are asked too, where the configuration names no package.
    weights = policy.learner.state_dict()
    own = compose.typed_config(*quick.split(), "model=estimator").model.build(policy.learner.setting)
    own.load_state_dict(weights)
    with pytest.raises(FairAllError, match=r"has the type lightgbm\.\S+, which could run code of lightgbm"):
        own.fitted[0].read()


class Own(BaseEstimator):
    """An estimator of the user's."""

    def fit(self, x: Any, y: Any) -> Any:
        self.mean_ = float(np.mean(y))
        return self

    def predict_proba(self, x: Any) -> np.ndarray:
        return np.tile([1 - self.mean_, self.mean_], (len(x), 1))


class OneColumn(Own):
    """The same with p alone."""

    def predict_proba(self, x: Any) -> np.ndarray:
        return np.full(len(x), self.mean_)


def test_what_could_not_be_read_again_ends_a_run_at_its_first_fit() -> None:
    own = Fitted(1)
    own.keep([fitted(Own(), *table())])
    with pytest.raises(FairAllError, match=r"cannot be saved: it has the type tests\.models\S+Own"):
        own.require_readable()
    own.keep([fitted(GaussianNB(), *table())])
    own.require_readable()


def test_an_archive_of_others_has_as_many_classifiers_as_the_method() -> None:
    for content in ([5], [], 5):
        own = Fitted(2)
        own.set_extra_state(torch.tensor(np.frombuffer(archive_of(content), np.uint8).copy()))
        with pytest.raises(FairAllError, match="the saved classifiers do not fit the method: run it anew"):
            own.read()


def test_types_of_others_are_read_where_they_are_trusted() -> None:
    archive = archive_of(fitted(Own(), *table()))
    with pytest.raises(FairAllError, match=r"has the type tests\.models.*could run code.*--trust tests"):
        of_archive(archive, ())
    assert isinstance(of_archive(archive, ["tests"]), Own)
    with pytest.raises(FairAllError, match="--trust tests"):
        of_archive(archive, ["test"])  # no package, only the beginning of its name


@pytest.mark.parametrize("wrong", [b"", b"nothing", archive_of(LogisticRegression())[:-40]])
def test_a_damaged_archive_is_one_line(wrong: bytes) -> None:
    with pytest.raises(FairAllError, match=r"a saved classifier is damaged.*run it anew"):
        of_archive(wrong, ())


@pytest.mark.parametrize("model", [*KINDS, SVC(probability=True), Pipeline([("c", GaussianNB())])])
def test_a_node_describes_an_estimator(model: Any) -> None:
    made = estimator_of(node_of(model), "model.estimator")
    assert type(made) is type(model)
    assert repr(made) == repr(model) or node_of(made) == node_of(model)


@pytest.mark.parametrize(
    ("node", "line"),
    [
        ({"_target_": "os.system"}, r"model\.estimator\._target_=os\.system: no subclass of sklearn"),
        (
            {"_target_": "pathlib.Path"},
            r"pathlib\.Path: no subclass of sklearn\.base\.BaseEstimator",
        ),
        (
            {"_target_": "sklearn.svm.Nothing"},
            r"sklearn\.svm\.Nothing names no class as module\.Class",
        ),
        ({"_target_": "nowhere.Class"}, "names no class as module"),
        ({"_target_": "sklearn.linear_model.Perceptron"}, "Perceptron has no predict_proba to decide by"),
        ({"_target_": "sklearn.naive_bayes.GaussianNB", "depth": 3}, "unexpected keyword argument 'depth'"),
        (
            {"_target_": "sklearn.pipeline.Pipeline", "steps": [["s", {"_target_": "os.system", "a": 1}]]},
            r"model\.estimator\.steps\[0\]\[1\]\._target_=os\.system: no subclass",
        ),
        (
            {"_target_": "sklearn.pipeline.Pipeline", "steps": [], "memory": "there"},
            r"model\.estimator\.memory: leave it out",
        ),
    ],
)
def test_what_is_no_classifier_is_not_called(node: dict[str, Any], line: str) -> None:
    with pytest.raises(FairAllError, match=line):
        estimator_of(node, "model.estimator")


def test_a_key_that_is_no_text_has_no_node() -> None:
    with pytest.raises(FairAllError, match=r"estimator\.class_weight: .*: only texts can be keys"):
        node_of(LogisticRegression(class_weight={0: 1, 1: 5}))


def test_a_function_has_no_node() -> None:
    with pytest.raises(FairAllError, match=r"estimator\.func: <ufunc 'log1p'> is no number, text, list or"):
        node_of(FunctionTransformer(np.log1p))


def test_a_label_between_counts_as_both() -> None:
    x, label = table()
    p = np.where(np.arange(200) % 3 == 0, 0.3, label)
    rows = np.concatenate([np.arange(200), np.flatnonzero(p == 0.3)])
    of_rows = np.concatenate([np.where(p == 0.3, 1.0, p), np.zeros((p == 0.3).sum())])
    weight = np.concatenate([np.where(p == 0.3, 0.3, 1.0), np.full((p == 0.3).sum(), 0.7)])
    for model in (LogisticRegression(), HistGradientBoostingClassifier()):
        expected = model.fit(x[rows], of_rows, weight).predict_proba(x)[:, 1]
        np.testing.assert_allclose(expit(log_odds(fitted(model, x, p), x)), expected, atol=1e-6)


def test_weights_reach_the_last_step_of_a_pipeline() -> None:
    x, label = table()
    weight = np.where(np.arange(200) < 100, 3.0, 1.0)
    model = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression(C=1e6)))
    repeated = np.repeat(np.arange(200), weight.astype(int))
    plain = LogisticRegression(C=1e6).fit(x[repeated], label[repeated]).predict_proba(x)[:, 1]
    np.testing.assert_allclose(expit(log_odds(fitted(model, x, label, weight), x)), plain, atol=1e-3)


def test_a_classifier_that_takes_no_weights_needs_none_that_are_equal() -> None:
    x, label = table()
    fitted(KNeighborsClassifier(), x, label, np.full(200, 2.0))
    with pytest.raises(FairAllError, match="KNeighborsClassifier: its fit takes no sample_weight, and rows"):
        fitted(KNeighborsClassifier(), x, label, np.arange(200.0))


def test_every_random_state_that_is_not_given_has_the_seed() -> None:
    x, label = table()
    model = make_pipeline(StandardScaler(), RandomForestClassifier(3))
    given = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=9))
    one, same, other = (log_odds(fitted(model, x, label, seed=seed), x) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    first, second = (log_odds(fitted(given, x, label, seed=seed), x) for seed in (1, 2))
    np.testing.assert_array_equal(first, second)


def test_what_a_classifier_raises_is_one_line() -> None:
    x, label = table()
    for odd, line in (
        (KNeighborsClassifier(300), "KNeighborsClassifier cannot estimate (ValueError: Expected n_neighbors"),
        (OneColumn(), "OneColumn: predict_proba gives no two finite probabilities for each person"),
    ):
        with pytest.raises(FairAllError, match=re.escape(line)):
            log_odds(fitted(odd, x, label), x)
    with pytest.raises(FairAllError, match=r"LogisticRegression cannot be fitted \(\w*Error: .*C"):
        fitted(LogisticRegression(C=-1.0), x, label)
    constant = fitted(Perceptron(), x, np.ones(200), cost=0.3)
    np.testing.assert_allclose(expit(log_odds(constant, x)), 200.6 / 202)
