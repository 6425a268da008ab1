"""What a target policy can be, which are refused, and whom they were learnt from."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fairall.config.compose import checked_node, compose_config
from fairall.config.schema import Config
from fairall.data.own_table import OwnTable
from fairall.decide.load import load_policy
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.policies import LEAST_HELD_OUT, LOGGED, label_score, target_policy
from fairall.experiment import run
from fairall.policy import Policy
from tests.evaluate.test_log import applicants, log_of

TARGET = np.linspace(0, 1, 600)
COST = 0.7
ACCEPTS = {  # by what the probability of the second class is
    "acceptance": TARGET,
    "rejection": 1 - TARGET,
    "positive": (TARGET >= COST).astype(float),
    "negative": (1 - TARGET >= COST).astype(float),
}
RUN = """
    model=unfairlog preset=quick seeds=2 schedule.time_steps=2 schedule.warm_up_epochs=1
    evaluation.window=[0,2] tracking.enabled=false dataset=csv dataset.label=repaid dataset.positive=yes
    dataset.sensitive=sex dataset.advantaged=m dataset.decision=granted dataset.accepted=granted
""".split()
CANNOT = "was learnt from people of this log cannot be told"


class Fixed:
    """A predictor of given classes, the probability of the second of which is `TARGET`."""

    def __init__(self, classes: Any) -> None:
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict_proba(self, people: pd.DataFrame) -> np.ndarray:
        return np.stack([1 - TARGET, TARGET], axis=1)


class Deciding(Fixed):
    """It says itself that it rejects with `TARGET`."""

    def decision_proba(self, people: pd.DataFrame) -> np.ndarray:
        return np.stack([TARGET, 1 - TARGET], axis=1)


class Saved(Policy):
    """Two seeds, accepted from 0.4 on."""

    threshold = 0.4

    def __init__(self) -> None:
        self.learner = object()  # type: ignore[assignment]

    def deciding(self, policy: str) -> list[int]:
        return [0, 1]

    def propensity(self, people: pd.DataFrame, *, strict: bool = False) -> np.ndarray:
        if "income" not in people:
            raise FairAllError("the column 'income' is needed")
        return np.stack([TARGET, TARGET / 2])


def check(policy: Any, log: DecisionLog, expected: Any, **options: Any) -> str:
    """Check the acceptance probabilities of a policy; its rule."""
    target = target_policy(policy, log, **options)
    np.testing.assert_array_equal(target.probability, expected)
    return target.rule


def with_values(granted: Any = ("refused", "granted"), repaid: Any = ("no", "yes")) -> DecisionLog:
    """A log with other values of a rejection and an acceptance, of a negative and a positive label."""
    people = applicants()
    people["granted"] = people["granted"].map({"refused": granted[0], "granted": granted[1]})
    people["repaid"] = people["repaid"].map({"no": repaid[0], "yes": repaid[1]})
    return log_of(people, cost=COST, accepted=granted[1], positive=repaid[1])


@pytest.fixture(scope="module")
def log() -> DecisionLog:
    people = applicants(target=TARGET, other=np.where(TARGET > 0.3, "granted", "refused"))
    return log_of(people, not_features=["target", "other"], cost=COST)


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", "object", "category", "str"])
def test_truth_values_of_any_type_are_decisions(dtype: str) -> None:
    flags = pd.Series(TARGET > 0.3).astype(dtype)
    people = applicants(flags=flags, missing=flags.where(flags.index > 0, None))
    log = log_of(people, not_features=["flags", "missing"])
    check("flags", log, TARGET > 0.3)
    with pytest.raises(FairAllError, match="row 1: an empty cell is no probability"):
        target_policy("missing", log)


def test_columns_have_decisions_in_the_words_of_the_log_or_probabilities(log: DecisionLog) -> None:
    assert target_policy("target", log).name == "target"
    assert check("other", log, TARGET > 0.3) == "accept with the given probability"
    people = applicants(granted=np.where(TARGET > 0.6, "0", "1"), other=np.where(TARGET > 0.3, "0", "1"))
    check("other", log_of(people, accepted="0", drop=["other"]), TARGET > 0.3)


def test_functions_and_predictors_get_numbers(log: DecisionLog, tmp_path: Path) -> None:
    """Also those in a file, which are text in the log."""
    model = LogisticRegression().fit(log.raw[["income"]], log.raw["granted"])
    log.raw.to_csv(tmp_path / "log.csv", index=False)
    words = ["decision=granted", "accepted=granted", "sensitive=sex", "drop=[officer,repaid]"]

    def rich(people: pd.DataFrame) -> pd.Series:
        return (people["income"] > 30) * 1.0

    for read in (log, DecisionLog.read(tmp_path / "log.csv", words)):
        expected = model.predict_proba(log.raw[["income"]])[:, 0]  # of granted, refused
        np.testing.assert_allclose(target_policy(model, read).probability, expected)
        check(rich, read, log.raw["income"] > 30)
    policies = (model, rich, pd.Series(TARGET, name="mine"))
    names = [target_policy(policy, log).name for policy in policies]
    assert names == ["LogisticRegression", "rich", "mine"]
    with pytest.raises(FairAllError, match=r"policy LogisticRegression gives no probabilities .*'income'"):
        target_policy(model, log_of(applicants().drop(columns="income")))


NUMBERS = {"granted": (0, 1), "repaid": (0, 1)}


@pytest.mark.parametrize(
    ("classes", "values", "proba", "expected"),
    [
        (["refused", "granted"], {}, None, "acceptance"),
        (["Granted ", "REFUSED"], {}, "decision", "rejection"),
        (["no", "yes"], {}, None, "positive"),
        (["yes", "no"], {}, None, "negative"),
        ([0, 1], {}, "decision", "acceptance"),
        ([False, True], {}, "label", "positive"),
        (["yes", "default"], {}, "label", "negative"),
        (None, {}, "decision", "acceptance"),
        ([0, 1], {"granted": (0, 1)}, None, "acceptance"),
        ([0, 1], {"repaid": (1, 0)}, None, "negative"),
        ([0, 1], NUMBERS, "label", "positive"),
        ([False, True], {"repaid": (True, False)}, None, "negative"),
        ([0, 1], {}, None, "--proba label or --proba decision, in Python proba="),
        ([0, 1], NUMBERS, None, "--proba"),
        (["no", "yes"], {"granted": ("no", "yes")}, None, "--proba"),
        (None, {}, None, "--proba"),
        (["paid", "unpaid"], {}, None, "--proba"),
        (["granted", "refused", "withdrawn"], {}, None, "--proba"),
        (["paid", "unpaid"], {}, "label", "a function of the people"),
        (["no", "yes"], {}, "decision", "a function of the people"),
        ([False, True], {"repaid": (1, 0)}, "label", "a function"),  # True is 1, or the good value 0
    ],
)
def test_classes_of_predictors(classes: Any, values: Any, proba: str | None, expected: str) -> None:
    log = with_values(**values)
    if expected in ACCEPTS:
        rule = check(Fixed(classes), log, ACCEPTS[expected], proba=proba)
        assert ("is at least c = loss/(gain + loss)" in rule) == (expected in ("positive", "negative"))
    else:
        with pytest.raises(FairAllError, match=f"its classes_ are .* cannot be told; .*{expected}") as caught:
            target_policy(Fixed(classes), log, proba=proba)
        assert "\n" not in str(caught.value)


def test_who_is_accepted_by_the_label_pays_at_the_amounts_of_the_row() -> None:
    people = applicants(gain=np.linspace(1, 900, 600), loss=300.0, target=TARGET)
    log = log_of(people, gain="gain", loss="loss", not_features=["target"])
    gained = TARGET * people["gain"] - (1 - TARGET) * people["loss"]
    check(Fixed(["no", "yes"]), log, gained >= 0)
    check("target", log, gained >= 0, proba="label")


def test_what_is_no_predictor_has_probabilities_of_acceptance_unless_it_is_said(log: DecisionLog) -> None:
    for policy in ("target", TARGET, lambda people: TARGET):
        check(policy, log, TARGET)
        check(policy, log, ACCEPTS["positive"], proba="label")
    with pytest.raises(
        FairAllError, match="policy other: column 'other', row 1: 'refused' is no probability"
    ):
        target_policy("other", log, proba="label")


@pytest.mark.parametrize("policy", [Deciding([0, 1]), Saved()])
def test_decision_proba_is_of_acceptance(policy: Any, log: DecisionLog) -> None:
    check(policy, log, 0.75 * TARGET >= 0.4 if isinstance(policy, Saved) else 1 - TARGET)
    with pytest.raises(FairAllError, match=r"it says itself .*; of several policies"):
        target_policy(policy, log, proba="label")


@pytest.mark.parametrize(
    ("score", "score_of", "expected"),
    [
        ("target", "negative", 1 - TARGET),
        (TARGET, "positive", TARGET),
        (Fixed(["yes", "no"]), "positive", 1 - TARGET),
        (Deciding([0, 1]), "positive", TARGET),
        (Fixed(["refused", "granted"]), "positive", "score Fixed: its classes_ are"),
        (Fixed(["no", "yes"]), "negative", "score Fixed: it says itself what its probabilities are of"),
        ("other", "positive", "score other: column 'other', row 1: 'refused' is no probability"),
        (TARGET, "bad", "score_of=bad is not possible: it must be positive or negative"),
    ],
)
def test_a_score_is_of_the_label(score: Any, score_of: str, expected: Any, log: DecisionLog) -> None:
    if isinstance(expected, str):
        with pytest.raises(FairAllError, match=expected):
            label_score(score, log, score_of)
    else:
        np.testing.assert_array_equal(label_score(score, log, score_of), expected)


def test_saved_policies_decide_as_the_command_or_draw(log: DecisionLog, tmp_path: Path) -> None:
    assert check(Saved(), log, 0.75 * TARGET >= 0.4) == "accept from a probability of 0.4 on"
    drawn = target_policy(Saved(), log, draw=7)
    np.testing.assert_allclose(drawn.probability, 0.75 * TARGET, atol=1e-6)
    assert (drawn.rule, drawn.draw) == ("accept with the probability, drawn with seed 7", 7)
    folder = tmp_path / "runs" / "fairall" / "loans" / "2a0b" / "policy"
    folder.mkdir(parents=True)
    (folder / "SUMS").touch()
    with mock.patch.object(Policy, "load", return_value=Saved()) as load:
        assert target_policy(folder, log).name == "2a0b"
        load.assert_called_with(folder, modules=())
        with mock.patch("fairall.decide.load.load_result", return_value=mock.Mock(path=folder.parent)):
            assert target_policy("2a0", log, outputs_dir=tmp_path).name == "2a0b"
    (folder.parent / "config.yaml").touch()
    with pytest.raises(FairAllError, match="2a0b: unfinished"):
        target_policy("2a0", log, outputs_dir=tmp_path)
    with mock.patch("fairall.evaluate.saved.find_policy", return_value=(Saved(), "models:/bank/1")):
        assert target_policy("models:/bank/1", log).name == "models:/bank/1"


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            "targt",
            "policy targt: no such run, .*; the log has no such column, did you mean the column target?",
        ),
        ("income", "policy income: column 'income', row 1: .* is no probability, a number from 0 to 1"),
        ("town", "policy town: column 'town', row 1: 'Leeds' is no probability"),
        (TARGET[:5], r"policy ndarray gives no probabilities of this log \(shape \(5,\) instead of \(600,\)"),
        (TARGET * 2, "policy ndarray: .* row 301: 1.0016.* is no probability"),
        (lambda people: people["wealth"], "gives no probabilities of this log .*wealth"),
        (object(), "policy object gives no probabilities of this log"),
    ],
)
def test_what_is_no_policy(policy: Any, told: str, log: DecisionLog) -> None:
    with pytest.raises(FairAllError, match=told) as caught:
        target_policy(policy, log)
    assert "\n" not in str(caught.value)


def borrowers(**columns: Any) -> pd.DataFrame:
    """1,000 applicants, some of whom have an income of 0 or of −0, which are equal."""
    people = applicants(1000, **columns)
    people.loc[:5, "income"] = [0.0, -0.0] * 3
    return people


def learnt(folder: Path, people: pd.DataFrame, drop: str = "officer,chance") -> tuple[Path, np.ndarray]:
    """Folder of a run on a file of the people, and which of them are its test rows, shape (N,)."""
    path = folder / "loans.csv"
    people.to_csv(path, index=False)
    places = [f"dataset.path={path}", f"dataset.drop=[{drop}]", f"outputs_dir={folder}"]
    composed = compose_config(*RUN, *places)
    finished, test = run(composed).path, np.zeros(len(people), dtype=bool)
    test[OwnTable(checked_node(composed, "dataset")).splits.test] = True
    return finished, test


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    return learnt(tmp_path_factory.mktemp("run"), borrowers())


def test_a_run_is_judged_on_its_test_rows_of_the_file_it_was_learnt_from(
    trained: tuple[Path, np.ndarray],
) -> None:
    (folder, test), people = trained, borrowers()
    read = DecisionLog.read(folder.parents[3] / "loans.csv", [*RUN[8:], "drop=[officer,chance]"])
    completed = people.assign(more=TARGET[0], repaid=people["repaid"].where(people.index > 9, None))
    for log in (read, log_of(people), log_of(completed)):
        target = target_policy(folder, log)
        np.testing.assert_array_equal(target.held_out, test)
        assert target.notes == (
            f"policy {folder.name} was learnt from 850 of the log's 1000 rows, as training or validation "
            "rows, and is judged on the other 150 only",
        )
    order = np.random.default_rng(0).permutation(1000)[:900]
    some = target_policy(folder / "policy", log_of(people.iloc[order]))
    np.testing.assert_array_equal(some.held_out, test[order])
    others = log_of(people.assign(income=people["income"] + 0.001))
    target = target_policy(folder, others)
    assert (target.held_out, target.notes) == (None, ())


def test_too_few_others(trained: tuple[Path, np.ndarray]) -> None:
    people, (folder, test) = borrowers(), trained
    rows = np.r_[np.flatnonzero(~test), np.flatnonzero(test)[:LEAST_HELD_OUT]]
    for log in (log_of(people.iloc[rows]), log_of(people, label=None)):
        assert target_policy(folder, log).held_out is not None
    for lacking, told in (
        (people.iloc[rows[:-1]], r"from 850 of the log's 949 rows.* 99 are too few: .* 100 are"),
        (
            people.assign(repaid=people["repaid"].where(~test, None)),
            "the other 150 have no label; give a log",
        ),
    ):
        with pytest.raises(FairAllError, match=told):
            target_policy(folder, log_of(lacking))


@pytest.mark.parametrize("identified", [False, True])
def test_rows_of_few_values_are_compared_in_place_or_by_an_identifier(
    identified: bool, tmp_path: Path
) -> None:
    people = borrowers().drop(columns=["income", "chance"])
    if identified:
        people["officer"] = [f"P{i}" for i in range(1000)]
    folder, test = learnt(tmp_path, people, "officer")
    np.testing.assert_array_equal(target_policy(folder, log_of(people, drop=["officer"])).held_out, test)
    target = target_policy(folder, log_of(people[::-1], drop=["officer"]))
    assert (target.held_out is not None) == identified
    assert ("have many equal rows" in target.notes[0]) != identified
    if identified:
        np.testing.assert_array_equal(target.held_out, test[::-1])


def test_files_that_have_changed_and_other_data_sets_are_not_compared(tmp_path: Path) -> None:
    people = borrowers()
    folder, _ = learnt(tmp_path, people)
    other = mock.Mock(config=Config(dataset={"_target_": "my.data.Loans"}))
    with mock.patch("fairall.evaluate.saved.load_result", return_value=other):
        note = target_policy(folder, log_of(people)).notes[0]
    assert f"{CANNOT} (it was not learnt from one split of a file, dataset=csv)" in note
    path, changed = tmp_path / "loans.csv", people.assign(income=people["income"] + 1)
    for change in (partial(changed.to_csv, path, index=False), path.unlink):
        change()
        target = target_policy(folder, log_of(people))
        assert target.held_out is None
        assert f"{CANNOT} (its data, {path}, are no longer those" in target.notes[0]


def test_of_policies_from_elsewhere_a_note_says_that_it_cannot_be_told(
    trained: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    people = log_of(borrowers())
    copied = shutil.copytree(trained[0] / "policy", tmp_path / "sent")
    for policy in ("chance", load_policy(trained[0]), copied, lambda people: people["income"] > 30):
        with mock.patch.object(OwnTable, "load", side_effect=AssertionError):
            target = target_policy(policy, people)
        assert target.held_out is None
        assert target.notes == (f"whether {target.name} {CANNOT}; if it was, its estimates are too good",)


def test_the_logged_decisions_are_recognised(log: DecisionLog) -> None:
    assert target_policy(None, log).name == LOGGED
    for policy in (None, "granted", log.accepted):
        target = target_policy(policy, log)
        assert (target.logged, target.notes) == (True, ())
        np.testing.assert_array_equal(target.probability, log.accepted)
    nearly = log.accepted.copy()
    nearly[7] = ~nearly[7]
    assert not target_policy(nearly, log).logged
