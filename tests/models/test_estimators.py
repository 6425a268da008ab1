"""Classifiers from a configuration: what may be named, how they are fitted, and their archives."""

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
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
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
from tests.conftest import own_process

KINDS = [
    logistic(0.5),
    boosted_trees(),
    KNeighborsClassifier(),
    KNeighborsClassifier(algorithm="ball_tree"),
    MLPClassifier((4,), max_iter=20),
    MLPClassifier((4,), solver="sgd", max_iter=20),
    SVC(probability=True),
    RandomForestClassifier(5),
    ExtraTreesClassifier(5),
    GradientBoostingClassifier(n_estimators=5),
    make_pipeline(SimpleImputer(), MinMaxScaler((0.0, 2.0)), SelectKBest(k=2), LogisticRegression()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft"),
    CalibratedClassifierCV(GaussianNB(), cv=3),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*probability:FutureWarning"),
]


def table(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, 3))
    return x, (draw.random(n) < expit(x[:, 0])).astype(float)


class Own(BaseEstimator):
    """An estimator of the user's, which gives p alone."""

    def fit(self, x: Any, y: Any) -> Any:
        return self

    def predict_proba(self, x: Any) -> np.ndarray:
        return np.full(len(x), 0.5)


@pytest.mark.parametrize("model", KINDS, ids=lambda one: type(one).__name__)
def test_a_node_and_an_archive_give_the_same_classifier(model: Any) -> None:
    x, label = table()
    made = estimator_of(node_of(model), "model.estimator")
    assert node_of(made) == node_of(model)
    own = fitted(made, x, label, seed=3)
    archive = archive_of(own)
    if not isinstance(model, GridSearchCV):  # it keeps how long its fits took
        assert archive == archive_of(fitted(made, x, label, seed=3))
    np.testing.assert_array_equal(log_odds(own, x), log_odds(of_archive(archive, ()), x))
    assert b"pickle" not in archive


CODE = """
import sys, numpy as np
from fairall.models.estimators import boosted_trees, fitted
from fairall.storage.archive import archive_of
x = np.random.default_rng(0).normal(size=(200, 3))
print(archive_of(fitted(boosted_trees(), x, (x[:, 0] > 0) * 1.0)))
"""


@pytest.mark.whole
def test_an_archive_has_the_same_bytes_in_another_process() -> None:
    x = np.random.default_rng(0).normal(size=(200, 3))
    own = archive_of(fitted(boosted_trees(), x, (x[:, 0] > 0) * 1.0))
    assert own_process("-c", CODE, check=True).stdout == f"{own!r}\n"


@pytest.mark.whole
def test_a_policy_of_a_package_that_is_not_trusted_is_not_read(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    # With threads of its own, later tests of this process could not fork.
    lightgbm = "model.estimator={_target_:lightgbm.LGBMClassifier,verbose:-1,n_jobs:1}"
    words = f"model=estimator {lightgbm}"
    quick = "dataset=credit preset=quick seeds=1 tracking.enabled=false"
    made = run(*words.split(), *quick.split(), f"outputs_dir={tmp_path}")
    assert made.path is not None
    policy = load_policy(made.path, modules=["lightgbm"])
    policy.reader.example().to_csv(tmp_path / "people.csv", index=False)
    decide = "-m", "fairall", "decide", made.path, "people.csv", "-o", "decided.csv"
    refused = own_process(*decide, cwd=tmp_path)
    assert "would run code of the module lightgbm" in refused.stderr
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    own_process(*decide, "--trust", "lightgbm", cwd=tmp_path, check=True)
    # The types of the archive are asked too, where the configuration names no package.
    own = compose.typed_config(*quick.split(), "model=estimator").model.build(policy.learner.setting)
    own.load_state_dict(policy.learner.state_dict())
    with pytest.raises(FairAllError, match=r"has the type lightgbm\.\S+, which could run code of lightgbm"):
        own.fitted.read()


def test_types_of_others_are_kept_and_read_where_they_are_trusted() -> None:
    others, sound = fitted(Own(), *table()), fitted(GaussianNB(), *table())
    known = Fitted(1)
    known.keep([sound])
    with pytest.raises(FairAllError, match=r"cannot be saved: it has the type tests\.models\S+Own"):
        known.keep([others])
    Fitted(1, ["tests"]).keep([others])
    assert isinstance(of_archive(archive_of(others), ["tests"]), Own)
    for trusted in ([], ["test"]):  # no package, only the beginning of its name
        with pytest.raises(FairAllError, match=r"has the type tests\.models.*could run code.*--trust tests"):
            of_archive(archive_of(others), trusted)


@pytest.mark.parametrize("content", [[5], [], 5])
def test_an_archive_of_others_has_as_many_classifiers_as_the_method(content: Any) -> None:
    own = Fitted(2)
    own.set_extra_state(torch.tensor(np.array(bytearray(archive_of(content)))))
    with pytest.raises(FairAllError, match="the saved classifiers do not fit the method: run it anew"):
        own.read()


@pytest.mark.parametrize("wrong", [b"", b"nothing", archive_of(LogisticRegression())[:-40]])
def test_a_damaged_archive_is_one_line(wrong: bytes) -> None:
    with pytest.raises(FairAllError, match=r"a saved classifier is damaged: run it anew"):
        of_archive(wrong, ())


def test_an_archive_that_unpacks_to_much_more_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairall.storage.archive.IN_ANY_CASE", 0)
    with pytest.raises(FairAllError, match="a saved classifier is damaged"):
        of_archive(archive_of(np.zeros(10**6)), ())


@pytest.mark.parametrize(
    ("node", "line"),
    [
        ({"_target_": "os.system"}, r"model\.estimator: os\.system cannot be made \(TypeError"),
        ({"_target_": "pathlib.Path"}, r"no subclass of sklearn\.base\.BaseEstimator"),
        ({"_target_": "sklearn.svm.Nothing"}, "has no attribute 'Nothing'"),
        ({"_target_": "nowhere.Class"}, "No module named 'nowhere'"),
        ({"_target_": "sklearn.naive_bayes.GaussianNB", "depth": 3}, "unexpected keyword argument 'depth'"),
        (
            {"_target_": "sklearn.pipeline.Pipeline", "steps": [["s", {"_target_": "os.system", "a": 1}]]},
            r"model\.estimator\.steps\[0\]\[1\]: os\.system cannot be made",
        ),
        ({"_target_": "sklearn.pipeline.Pipeline", "steps": [], "memory": "there"}, "memory: leave it out"),
    ],
)
def test_what_is_no_classifier_is_not_called(node: dict[str, Any], line: str) -> None:
    with pytest.raises(FairAllError, match=line):
        estimator_of(node, "model.estimator")


@pytest.mark.parametrize(
    ("model", "key"),
    [
        (LogisticRegression(class_weight={0: 1, 1: 5}), "class_weight"),
        (FunctionTransformer(np.log1p), "func"),
        (VotingClassifier([("a", GaussianNB)]), r"estimators\[0\]\[1\]"),
    ],
)
def test_what_cannot_be_written_down_has_no_node(model: Any, key: str) -> None:
    with pytest.raises(FairAllError, match=rf"estimator\.{key}: .* is no number, text, list, mapping of"):
        node_of(model)


@pytest.mark.parametrize("model", [LogisticRegression(C=1e6), HistGradientBoostingClassifier()])
@pytest.mark.parametrize("nested", [False, True])
def test_rows_count_by_their_weight_and_labels_between_as_both(model: Any, nested: bool) -> None:
    x, label = table()
    p, weight = np.where(np.arange(200) % 3 == 0, 0.3, label), 1.0 + np.arange(200) % 2
    given = np.concatenate([p * weight, (1.0 - p) * weight])
    rows, ones = np.tile(np.arange(200), 2)[given > 0], (np.arange(400) < 200)[given > 0]
    expected = model.fit(x[rows], ones, given[given > 0]).predict_proba(x)[:, 1]
    own = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), model)) if nested else model
    np.testing.assert_allclose(expit(log_odds(fitted(own, x, p, weight), x)), expected, atol=1e-3)


def test_every_random_state_that_is_not_given_has_the_seed() -> None:
    x, label = table()
    for given in (None, 9):
        model = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=given))
        one, same, other = (log_odds(fitted(model, x, label, seed=seed), x) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        assert np.array_equal(one, other) == (given is not None)


@pytest.mark.parametrize(
    ("odd", "line"),
    [
        (KNeighborsClassifier(300), r"KNeighborsClassifier cannot estimate \(ValueError: Expected n_neigh"),
        (Own(), "Own cannot estimate .* gives no two finite probabilities for each person"),
        (LogisticRegression(C=-1.0), r"LogisticRegression cannot be fitted \(\w*Error: .*C"),
    ],
)
def test_what_a_classifier_raises_is_one_line(odd: Any, line: str) -> None:
    x, label = table()
    with pytest.raises(FairAllError, match=line) as told:
        log_odds(fitted(odd, x, label), x)
    assert "\n" not in str(told.value)


def test_weights_that_differ_need_a_classifier_that_takes_them() -> None:
    fitted(KNeighborsClassifier(), *table(), np.full(200, 2.0))
    with pytest.raises(
        FairAllError, match=r"KNeighborsClassifier .*its fit takes no sample_weight, and rows"
    ):
        fitted(KNeighborsClassifier(), *table(), np.arange(200.0))
