"""What a target policy can be, which are refused, and whom they were learnt from."""

import shutil
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
QUICK = """
    model=unfairlog preset=quick seeds=2 schedule.time_steps=2 schedule.warm_up_epochs=1
    evaluation.window=[0,2] tracking.enabled=false
""".split()
OF_FILE = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=m
    dataset.decision=granted dataset.accepted=granted
""".split()
CANNOT = "was learnt from people of this log cannot be told"


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


@pytest.fixture(scope="module")
def log() -> DecisionLog:
    people = applicants(target=TARGET, other=np.where(TARGET > 0.3, "granted", "refused"), flags=TARGET > 0.3)
    return log_of(people, not_features=["target", "other", "flags"])


def test_columns(log: DecisionLog) -> None:
    given = target_policy("target", log)
    assert given.name == "target"
    np.testing.assert_array_equal(given.probability, TARGET)
    for column in ("other", "flags"):
        np.testing.assert_array_equal(target_policy(column, log).probability, TARGET > 0.3)


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", "object", "category", "str"])
def test_truth_values_of_any_type_are_decisions(dtype: str) -> None:
    flags = pd.Series(TARGET > 0.3).astype(dtype)
    log = log_of(applicants(flags=flags), not_features=["flags"])
    np.testing.assert_array_equal(target_policy("flags", log).probability, TARGET > 0.3)
    np.testing.assert_array_equal(label_score("flags", log), TARGET > 0.3)
    missing = log_of(applicants(flags=flags.where(flags.index > 0, None)), not_features=["flags"])
    with pytest.raises(FairAllError, match="and empty cells; it must hold probabilities"):
        target_policy("flags", missing)


def test_decisions_are_told_by_the_word_of_the_logs_own(tmp_path: Path) -> None:
    people = applicants(granted=np.where(TARGET > 0.6, "0", "1"), other=np.where(TARGET > 0.3, "0", "1"))
    people.to_csv(tmp_path / "log.csv", index=False)
    words = """
        decision=granted accepted='0' sensitive=sex drop=[other] label=repaid positive=yes
    """.split()
    log = DecisionLog.read(tmp_path / "log.csv", words)
    np.testing.assert_array_equal(log.accepted, TARGET > 0.6)
    np.testing.assert_array_equal(target_policy("other", log).probability, TARGET > 0.3)


def test_arrays_functions_and_predictors(log: DecisionLog, tmp_path: Path) -> None:
    np.testing.assert_array_equal(target_policy(TARGET, log).probability, TARGET)
    assert target_policy(pd.Series(TARGET, name="mine"), log).name == "mine"
    model = LogisticRegression().fit(log.raw[["income"]], log.raw["granted"])
    expected = model.predict_proba(log.raw[["income"]])[:, 0]  # of granted, refused
    np.testing.assert_array_equal(target_policy(model, log).probability, expected)

    # Numbers in a file, which are text in the log, reach policies as numbers.
    log.raw.to_csv(tmp_path / "log.csv", index=False)
    words = ["decision=granted", "accepted=granted", "sensitive=sex", "drop=[officer,repaid]"]
    read = DecisionLog.read(tmp_path / "log.csv", words)
    given = target_policy(model, read)
    assert given.name == "LogisticRegression"
    np.testing.assert_allclose(given.probability, expected)

    def rich(people: pd.DataFrame) -> pd.Series:
        return (people["income"] > 30) * 1.0

    given = target_policy(rich, read)
    assert given.name == "rich"
    np.testing.assert_array_equal(given.probability, log.raw["income"] > 30)


class Fixed:
    """A predictor of given classes, the probability of the second of which is `TARGET`."""

    def __init__(self, classes: Any) -> None:
        if classes is not None:
            self.classes_ = np.array(classes)

    def predict_proba(self, people: pd.DataFrame) -> np.ndarray:
        return np.stack([1 - TARGET, TARGET], axis=1)


COST = 0.7
ACCEPTS = {  # by what the probability of the second class is
    "acceptance": TARGET,
    "rejection": 1 - TARGET,
    "positive": (TARGET >= COST).astype(float),
    "negative": (1 - TARGET >= COST).astype(float),
}


@pytest.mark.parametrize(
    ("classes", "proba", "of"),
    [
        (["refused", "granted"], None, "acceptance"),
        (["granted", "refused"], None, "rejection"),
        (["Granted ", "REFUSED"], "decision", "rejection"),
        (["no", "yes"], None, "positive"),
        (["yes", "no"], None, "negative"),
        ([0, 1], "decision", "acceptance"),
        ([0, 1], "label", "positive"),
        ([False, True], "label", "positive"),
        (["1", "0"], "label", "negative"),
        (None, "decision", "acceptance"),
        (None, "label", "positive"),
    ],
)
def test_the_classes_of_a_predictor_say_what_its_probabilities_are_of(
    classes: Any, proba: str | None, of: str
) -> None:
    log = log_of(applicants(), cost=COST)
    target = target_policy(Fixed(classes), log, proba=proba)
    np.testing.assert_array_equal(target.probability, ACCEPTS[of])
    second = "is at least c = 0.7" if "tive" in of else "accept with its predict_proba of"
    assert second in target.rule
    if classes is not None:
        wanted = {"acceptance": 1, "rejection": 0, "positive": 1, "negative": 0}[of]
        assert f"of class {np.array(classes)[wanted]}" in target.rule


@pytest.mark.parametrize(
    ("classes", "proba", "told"),
    [
        (
            [0, 1],
            None,
            r"its classes are 0 or 1, which can be those of the decision or of the label: say "
            r"what its predict_proba is of, .*--proba label or --proba decision",
        ),
        ([False, True], None, "its classes are False or True, which can be"),
        (None, None, "has no classes_: say what"),
        (
            ["paid", "unpaid"],
            None,
            "its classes are paid or unpaid; the decision in this log is refused or "
            "granted, the label no or yes: which class is acceptance or a positive label cannot be told",
        ),
        (["paid", "unpaid"], "label", "the label no or yes: which class is a positive label cannot"),
        (["no", "yes"], "decision", "which class is acceptance cannot be told"),
        (["refused", "granted"], "label", "which class is a positive label cannot be told"),
        ([-1, 1], None, "its classes are -1 or 1;"),
        (["granted", "refused", "withdrawn"], None, "its classes are granted or refused or withdrawn;"),
        (["granted"], None, "its classes are granted;"),
        ([0, 1], "labels", "proba=labels is not possible: it must be decision or label"),
    ],
)
def test_classes_that_do_not_say_it_are_refused(classes: Any, proba: str | None, told: str) -> None:
    with pytest.raises(FairAllError, match=told) as caught:
        target_policy(Fixed(classes), log_of(applicants(), cost=COST), proba=proba)
    assert "\n" not in str(caught.value)


def test_words_that_decision_and_label_share_are_refused_until_it_is_said() -> None:
    people = applicants()
    people["granted"] = people["granted"].map({"granted": "yes", "refused": "no"})
    log = log_of(people, accepted="yes", cost=COST)
    with pytest.raises(FairAllError, match="which can be those of the decision or of the label"):
        target_policy(Fixed(["no", "yes"]), log)
    np.testing.assert_array_equal(
        target_policy(Fixed(["no", "yes"]), log, proba="label").probability, ACCEPTS["positive"]
    )


def test_0_and_1_are_of_the_column_that_has_them_and_the_other_has_not() -> None:
    people, target = applicants(), ACCEPTS
    of_decision = people.assign(granted=people["granted"].map({"granted": 1, "refused": 0}))
    log = log_of(of_decision, accepted=1, cost=COST)
    np.testing.assert_array_equal(target_policy(Fixed([0, 1]), log).probability, target["acceptance"])
    of_label = people.assign(repaid=people["repaid"].map({"yes": 1, "no": 0}))
    log = log_of(of_label, positive=1, cost=COST)
    np.testing.assert_array_equal(target_policy(Fixed([1, 0]), log).probability, target["negative"])
    both = of_label.assign(granted=of_decision["granted"])
    with pytest.raises(FairAllError, match="which can be those of the decision or of the label"):
        target_policy(Fixed([0, 1]), log_of(both, accepted=1, positive=1, cost=COST))


def test_classes_are_those_of_the_log_where_its_good_value_is_0() -> None:
    people = applicants()
    people["repaid"] = people["repaid"].map({"yes": 0.0, "no": 1.0})
    log = log_of(people, positive=0, cost=COST)
    np.testing.assert_array_equal(
        target_policy(Fixed([0, 1]), log, proba="label").probability, ACCEPTS["negative"]
    )
    with pytest.raises(FairAllError, match="which class is a positive label cannot be told"):
        target_policy(Fixed([False, True]), log, proba="label")  # True is 1, or the good value 0


def test_a_log_whose_labels_are_all_positive_knows_the_other_class() -> None:
    people = applicants()
    people["repaid"] = people["repaid"].where(people["repaid"] == "yes", None)
    target = target_policy(Fixed(["yes", "default"]), log_of(people, cost=COST))
    np.testing.assert_array_equal(target.probability, ACCEPTS["negative"])


def test_who_is_accepted_by_the_label_pays_at_the_amounts_of_the_row() -> None:
    people = applicants(gain=np.linspace(1, 900, 600), loss=300.0)
    log = log_of(people, gain="gain", loss="loss")
    target = target_policy(Fixed(["no", "yes"]), log)
    gained = TARGET * people["gain"] - (1 - TARGET) * people["loss"]
    np.testing.assert_array_equal(target.probability, gained >= 0)
    assert target.rule.endswith("is at least loss/(gain + loss) of the row")
    of_column = target_policy(
        "target",
        log_of(people.assign(target=TARGET), gain="gain", loss="loss", not_features=["target"]),
        proba="label",
    )
    np.testing.assert_array_equal(of_column.probability, target.probability)


def test_what_is_no_predictor_has_probabilities_of_acceptance_unless_it_is_said(log: DecisionLog) -> None:
    for policy in ("target", TARGET, lambda people: TARGET):
        np.testing.assert_array_equal(target_policy(policy, log).probability, TARGET)
        target = target_policy(policy, log, proba="label")
        np.testing.assert_array_equal(target.probability, TARGET >= 0.5)
        assert "of a positive label" in target.rule
    assert target_policy("other", log).rule == "the decisions in column 'other'"
    with pytest.raises(FairAllError, match=r"policy other: --proba label.*: the column holds decisions"):
        target_policy("other", log, proba="label")


def test_decision_proba_is_of_acceptance(log: DecisionLog) -> None:
    class Both(Fixed):
        def decision_proba(self, people: pd.DataFrame) -> np.ndarray:
            return np.stack([TARGET, 1 - TARGET], axis=1)

    class One(Fixed):
        def decision_proba(self, people: pd.DataFrame) -> np.ndarray:
            return 1 - TARGET

    for policy in (Both([0, 1]), One(["no", "yes"])):
        np.testing.assert_array_equal(target_policy(policy, log).probability, 1 - TARGET)
        with pytest.raises(FairAllError, match="its decision_proba is of acceptance; of several policies"):
            target_policy(policy, log, proba="label")


def test_a_score_is_of_a_positive_label(log: DecisionLog) -> None:
    np.testing.assert_array_equal(label_score("target", log), TARGET)
    np.testing.assert_array_equal(label_score(TARGET, log), TARGET)
    np.testing.assert_array_equal(label_score(Fixed(["no", "yes"]), log), TARGET)
    np.testing.assert_array_equal(label_score(Fixed(["yes", "no"]), log), 1 - TARGET)
    np.testing.assert_array_equal(label_score(Fixed([0, 1]), log), TARGET)
    with pytest.raises(FairAllError, match="which class is a positive label cannot be told"):
        label_score(Fixed(["refused", "granted"]), log)
    with pytest.raises(FairAllError, match="score other: the column has 2 values"):
        label_score("other", log)


def test_saved_policies_decide_as_the_command_or_draw(log: DecisionLog, tmp_path: Path) -> None:
    accepted = 0.75 * TARGET >= 0.4
    target = target_policy(Saved(), log)
    np.testing.assert_array_equal(target.probability, accepted)
    assert (target.rule, target.draw) == ("accept from a probability of 0.4 on", None)
    drawn = target_policy(Saved(), log, draw=7)
    np.testing.assert_allclose(drawn.probability, 0.75 * TARGET, atol=1e-6)
    assert (drawn.rule, drawn.draw) == ("accept with the probability, drawn with seed 7", 7)
    with pytest.raises(FairAllError, match="a saved policy decides by its own rule"):
        target_policy(Saved(), log, proba="label")
    folder = tmp_path / "runs" / "fairall" / "loans" / "2a0b" / "policy"
    folder.mkdir(parents=True)
    (folder / "SUMS").touch()
    with mock.patch.object(Policy, "load", return_value=Saved()) as load:
        given = target_policy(folder, log)
        load.assert_called_with(folder, modules=())
        np.testing.assert_array_equal(given.probability, accepted)
        assert given.name == "2a0b"
        (folder.parent / "config.yaml").touch()
        with pytest.raises(FairAllError, match="2a0b: unfinished"):
            target_policy("2a0", log, outputs_dir=tmp_path)
        with mock.patch("fairall.decide.load.load_result", return_value=mock.Mock(path=folder.parent)):
            assert target_policy("2a0", log, outputs_dir=tmp_path).name == "2a0b"
        load.assert_called_with(folder, modules=())
    with mock.patch("fairall.evaluate.saved.find_policy", return_value=(Saved(), "models:/bank/1")):
        given = target_policy("models:/bank/1", log)
    np.testing.assert_array_equal(given.probability, accepted)
    assert given.name == "models:/bank/1"


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("targt", "policy targt: neither a column of the log, .*; did you mean the column target?"),
        ("income", "policy income, row 1: .* is no probability"),
        ("town", r"policy town: the column has 3 values \(Hull, Leeds, York\); it must hold probabilities"),
        ("repaid", r"the column has 2 values \(no, yes\) and empty cells"),
        (TARGET[:5], r"policy array gives an array of shape \(5,\); it must be \(600,\)"),
        (TARGET * 2, "policy array, row 301: 1.0016.* is no probability"),
        (lambda people: people["wealth"], "gives no probabilities of this log .*wealth"),
    ],
)
def test_what_is_no_policy(policy: Any, told: str, log: DecisionLog) -> None:
    with pytest.raises(FairAllError, match=told) as caught:
        target_policy(policy, log)
    assert "\n" not in str(caught.value)


def test_policies_that_need_columns_the_log_lacks() -> None:
    log = log_of(applicants().drop(columns="income"))
    model = LogisticRegression().fit(applicants()[["income"]], applicants()["granted"])
    with pytest.raises(FairAllError, match=r"policy LogisticRegression: it needs 1 column \(income\) that"):
        target_policy(model, log)
    with pytest.raises(FairAllError, match="policy object: the column 'income' is needed"):
        target_policy(Saved(), log)


def borrowers(**columns: Any) -> pd.DataFrame:
    """1,000 applicants, some of whom have an income of 0 or of −0, which are equal."""
    people = applicants(1000, **columns)
    people.loc[:5, "income"] = [0.0, -0.0] * 3
    return people


def learnt(folder: Path, people: pd.DataFrame, drop: str = "officer,chance") -> tuple[Path, np.ndarray]:
    """Folder of a run on a file of the people, and which of them are its test rows, shape (N,)."""
    path = folder / "loans.csv"
    people.to_csv(path, index=False)
    own = [f"dataset.path={path}", f"dataset.drop=[{drop}]", f"outputs_dir={folder}"]
    composed = compose_config(*QUICK, *OF_FILE, *own)
    test = np.zeros(len(people), dtype=bool)
    found = run(composed)
    test[OwnTable(checked_node(composed, "dataset")).splits.test] = True
    return found.path, test


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    return learnt(tmp_path_factory.mktemp("run"), borrowers())


def test_a_run_is_judged_on_its_test_rows_of_the_file_it_was_learnt_from(
    trained: tuple[Path, np.ndarray],
) -> None:
    (folder, test), people = trained, borrowers()
    words = [*(word.removeprefix("dataset.") for word in OF_FILE[1:]), "drop=[officer,chance]"]
    read = DecisionLog.read(folder.parents[3] / "loans.csv", words)
    completed = people.assign(more=TARGET[0], repaid=people["repaid"].where(people.index > 9, None))
    for log in (read, log_of(people), log_of(completed)):
        for given in (folder, folder / "policy"):
            target = target_policy(given, log)
            assert target.held_out is not None
            np.testing.assert_array_equal(target.held_out, test)
            assert target.notes == (
                f"policy {folder.name} was learnt from 850 of the log's 1000 rows, as training or validation "
                "rows, and is judged on the other 150 only",
            )
    order = np.random.default_rng(0).permutation(1000)[:900]
    some = target_policy(folder, log_of(people.iloc[order]))
    np.testing.assert_array_equal(some.held_out, test[order])


def test_other_people_are_all_judged(trained: tuple[Path, np.ndarray]) -> None:
    people = borrowers()
    others = people.assign(income=people["income"] + 0.001)
    target = target_policy(trained[0], log_of(others))
    assert (target.held_out, target.notes) == (None, ())
    both = pd.concat([people, others])
    held_out = target_policy(trained[0], log_of(both)).held_out
    np.testing.assert_array_equal(held_out, np.r_[trained[1], np.ones(1000, dtype=bool)])


def test_too_few_others(trained: tuple[Path, np.ndarray]) -> None:
    people, (folder, test) = borrowers(), trained
    for n in (LEAST_HELD_OUT - 1, LEAST_HELD_OUT):
        rows = np.r_[np.flatnonzero(~test), np.flatnonzero(test)[:n]]
        log = log_of(people.iloc[rows])
        if n == LEAST_HELD_OUT:
            assert target_policy(folder, log).held_out.sum() == n  # type: ignore[union-attr]
            continue
        with pytest.raises(
            FairAllError, match=r"from 850 of the log's 949 rows.* 99 are too few: .* 100 are"
        ):
            target_policy(folder, log)
    unlabelled = people.assign(repaid=people["repaid"].where(~test, None))
    with pytest.raises(FairAllError, match="the other 150 have no label; give a log of other people"):
        target_policy(folder, log_of(unlabelled))
    first = np.flatnonzero(test & (people["granted"] == "granted"))[0]
    one = unlabelled["repaid"].where(unlabelled.index != first, "yes")
    assert target_policy(folder, log_of(people.assign(repaid=one))).held_out is not None
    assert target_policy(folder, log_of(people, label=None)).held_out is not None


def test_rows_of_few_values_are_only_compared_in_place(tmp_path: Path) -> None:
    people = borrowers().drop(columns=["income", "chance"])
    folder, test = learnt(tmp_path, people, "officer")
    np.testing.assert_array_equal(target_policy(folder, log_of(people, drop=["officer"])).held_out, test)
    target = target_policy(folder, log_of(people[::-1], drop=["officer"]))
    assert target.held_out is None
    assert "have many equal rows" in target.notes[0]


def test_an_identifier_tells_people_apart(tmp_path: Path) -> None:
    people = borrowers(officer=[f"P{i}" for i in range(1000)]).drop(columns=["income", "chance"])
    folder, test = learnt(tmp_path, people, "officer")
    np.testing.assert_array_equal(
        target_policy(folder, log_of(people[::-1], drop=["officer"])).held_out, test[::-1]
    )


def test_files_that_have_moved_or_changed(tmp_path: Path) -> None:
    people = borrowers()
    folder, _ = learnt(tmp_path, people)
    people.assign(income=people["income"] + 1).to_csv(tmp_path / "loans.csv", index=False)
    target = target_policy(folder, log_of(people))
    assert target.held_out is None
    assert f"{CANNOT} (its data, {tmp_path}/loans.csv, are no longer those" in target.notes[0]
    (tmp_path / "loans.csv").unlink()
    assert (
        f"{CANNOT} (its data, {tmp_path}/loans.csv, cannot be read"
        in target_policy(folder, log_of(people)).notes[0]
    )


def test_runs_on_other_data_sets_are_not_compared(trained: tuple[Path, np.ndarray]) -> None:
    other = mock.Mock(config=Config(dataset={"_target_": "my.data.Loans"}))
    other.name.return_value = "loans"
    with mock.patch("fairall.evaluate.saved.load_result", return_value=other):
        target = target_policy(trained[0], log_of(borrowers()))
    assert target.held_out is None
    assert "(its data set, loans, is no file of dataset=csv)" in target.notes[0]


def test_of_policies_from_elsewhere_a_note_says_that_it_cannot_be_told(
    log: DecisionLog, trained: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    people = log_of(borrowers())
    copied = shutil.copytree(trained[0] / "policy", tmp_path / "sent")
    for policy in ("chance", load_policy(trained[0]), copied, lambda people: people["income"] > 30):
        with mock.patch.object(OwnTable, "load", side_effect=AssertionError):
            target = target_policy(policy, people)
        assert target.held_out is None
        assert target.notes == (f"whether {target.name} {CANNOT}; if it was, its estimates are too good",)
    assert CANNOT in target_policy(TARGET, log).notes[0]


def test_the_logged_decisions_are_recognised(log: DecisionLog) -> None:
    assert target_policy(None, log).name == LOGGED
    for policy in (None, "granted", log.accepted, log.accepted.astype(float)):
        target = target_policy(policy, log)
        assert target.logged
        assert target.notes == ()
        np.testing.assert_array_equal(target.probability, log.accepted)
    nearly = log.accepted.copy()
    nearly[7] = ~nearly[7]
    for policy in (nearly, ~log.accepted):
        assert not target_policy(policy, log).logged
