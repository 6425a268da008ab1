"""What a target policy can be, which are refused, and whom they were learnt from."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import yaml

from fairall.config.compose import checked_node, compose_config
from fairall.config.schema import Config
from fairall.data.own_table import OwnTable
from fairall.decide.load import load_policy
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog, log_keywords
from fairall.evaluate.policies import LEAST_HELD_OUT, LOGGED, target_policy
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
    dataset.drop=[officer,chance]
""".split()
CLASSES = yaml.safe_load(Path(__file__).with_name("classes.yaml").read_text())
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
        return np.stack([TARGET, TARGET / 2])


def check(policy: Any, log: DecisionLog, expected: Any, **options: Any) -> str:
    """Check the acceptance probabilities of a policy; its rule."""
    target = target_policy(policy, log, **options)
    np.testing.assert_allclose(target.probability, expected, atol=1e-6)
    return target.rule


@pytest.fixture(scope="module")
def log() -> DecisionLog:
    people = applicants(target=TARGET, other=np.where(TARGET > 0.3, "granted", "refused"))
    return log_of(people, not_features=["target", "other"], cost=COST)


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", "object", "category", "str"])
def test_truth_values_of_any_type_are_decisions(dtype: str) -> None:
    flags = pd.Series(TARGET > 0.3).astype(dtype)
    people = applicants(flags=flags, missing=flags.where(flags.index > 0, None))
    people["granted"] = people["granted"] == "granted"
    log = log_of(people, accepted=True, not_features=["flags", "missing"])
    check("flags", log, TARGET > 0.3)
    with pytest.raises(FairAllError, match="row 1: an empty cell is no probability"):
        target_policy("missing", log)


def test_columns_have_decisions_in_the_words_of_the_log_or_probabilities(log: DecisionLog) -> None:
    check("other", log, TARGET > 0.3)
    people = applicants(granted=np.where(TARGET > 0.6, "0", "1"), other=np.where(TARGET > 0.3, "0", "1"))
    check("other", log_of(people, accepted="0", drop=["other"]), TARGET > 0.3)


def test_functions_and_predictors_get_numbers(log: DecisionLog, tmp_path: Path) -> None:
    """Also those in a file, which are text in the log; a predictor its columns only."""
    log.raw.to_csv(tmp_path / "log.csv", index=False)
    words = ["decision=granted", "accepted=granted", "sensitive=sex", "drop=[officer,repaid]"]
    keys, policy = log_keywords([*words, "kinds={income: real}"]), Fixed(None)
    policy.feature_names_in_ = ["income"]  # type: ignore[attr-defined]

    def rich(people: pd.DataFrame) -> pd.Series:
        return people["income"] > 30

    for read in (log, DecisionLog.of(tmp_path / "log.csv", **keys)):
        assert check(rich, read, log.raw["income"] > 30) == "accept with the given probability"
        with mock.patch.object(policy, "predict_proba", lambda people: people.to_numpy()[:, 0] > 30):
            check(policy, read, log.raw["income"] > 30, proba="decision")


@pytest.mark.parametrize(("classes", "labels", "proba", "expected"), CLASSES)
def test_classes_of_predictors(classes: Any, labels: Any, proba: str | None, expected: str) -> None:
    people = applicants()
    people["repaid"] = people["repaid"].map(dict(zip(("no", "yes"), labels, strict=True)))
    log, policy = log_of(people, cost=COST, positive=labels[1]), Fixed(classes)
    if expected in ACCEPTS:
        check(policy, log, ACCEPTS[expected], proba=proba)
        return
    with pytest.raises(FairAllError, match=expected):
        target_policy(policy, log, proba=proba)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (TARGET[:5], "ndarray: one probability for each row is needed, 600 in all"),
        (TARGET * 2, "column 'ndarray', row 301: 1.0016.* is no probability"),
        (object(), "object: one probability for each row is needed"),
        (lambda people: people["no column"], "gives no probabilities of this log .KeyError: 'no column'"),
        (lambda: 1, "gives no probabilities of this log .TypeError: "),
    ],
)
def test_what_gives_no_probabilities_is_refused_in_one_line(policy: Any, told: str, log: DecisionLog) -> None:
    with pytest.raises(FairAllError, match=told) as caught:
        target_policy(policy, log)
    assert "\n" not in str(caught.value)


def test_who_is_accepted_by_the_label_pays_at_the_amounts_of_the_row() -> None:
    people = applicants(gain=np.linspace(1, 900, 600), loss=300.0, target=TARGET)
    log = log_of(people, gain="gain", loss="loss", not_features=["target"])
    gained = TARGET * people["gain"] - (1 - TARGET) * people["loss"]
    assert "is at least c = loss/(gain + loss)" in check("target", log, gained >= 0, proba="label")


def test_what_is_no_predictor_has_probabilities_of_acceptance_unless_it_is_said(log: DecisionLog) -> None:
    for policy, name in (("target", "target"), (TARGET, "ndarray"), (lambda people: TARGET, "<lambda>")):
        check(policy, log, ACCEPTS["positive"], proba="label")
        check(policy, log, TARGET)
        assert target_policy(policy, log).name == name


def test_decision_proba_is_of_acceptance(log: DecisionLog) -> None:
    for policy, expected in ((Deciding([0, 1]), 1 - TARGET), (Saved(), 0.75 * TARGET >= 0.4)):
        check(policy, log, expected)
        with pytest.raises(FairAllError, match=r"decision_proba is of acceptance.*; of several policies"):
            target_policy(policy, log, proba="label")


def test_saved_policies_decide_as_the_command_or_draw(log: DecisionLog, tmp_path: Path) -> None:
    assert check(Saved(), log, 0.75 * TARGET >= 0.4) == "accept from a probability of 0.4 on"
    assert check(Saved(), log, 0.75 * TARGET, draw=7) == "accept with the probability, drawn with seed 7"
    folder = tmp_path / "runs" / "fairall" / "loans" / "2a0b" / "policy"
    folder.mkdir(parents=True)
    (folder / "SUMS").touch()
    with mock.patch.object(Policy, "load", return_value=Saved()) as load:
        assert target_policy(folder, log).name == "2a0b"
        load.assert_called_with(folder, modules=())
    with mock.patch("fairall.evaluate.saved.find_policy", return_value=(Saved(), "models:/bank/1")):
        assert target_policy("models:/bank/1", log).name == "models:/bank/1"


def borrowers() -> pd.DataFrame:
    """1,000 applicants, some of whom have an income of 0 or of −0, which are equal."""
    people = applicants(1000)
    people.loc[:5, "income"] = [0.0, -0.0] * 3
    return people


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """Folder of a run on a file of the people, and which of them are its test rows, shape (N,)."""
    folder = tmp_path_factory.mktemp("run")
    borrowers().to_csv(folder / "loans.csv", index=False)
    composed = compose_config(*RUN, f"dataset.path={folder / 'loans.csv'}", f"outputs_dir={folder}")
    finished, test = run(composed).path, np.zeros(1000, dtype=bool)
    test[OwnTable(checked_node(composed, "dataset")).splits.test] = True
    return finished, test


def test_a_run_is_judged_on_its_test_rows_of_the_file_it_was_learnt_from(
    trained: tuple[Path, np.ndarray],
) -> None:
    (folder, test), people = trained, borrowers()
    read = DecisionLog.of(folder.parents[3] / "loans.csv", **log_keywords(RUN[8:]))
    completed = people.assign(more=TARGET[0], repaid=people["repaid"].where(people.index > 9, None))
    for log in (read, log_of(people), log_of(completed), log_of(people, label=None)):
        target = target_policy(folder / "policy", log)
        np.testing.assert_array_equal(target.held_out, test)
        assert target.notes == (
            f"policy {folder.name} was learnt from 850 of the log's 1000 rows, as training or validation "
            "rows, and is judged on the other 150 only",
        )


def test_too_few_others(trained: tuple[Path, np.ndarray]) -> None:
    people, (folder, test) = borrowers(), trained
    unlabelled = people.assign(repaid=people["repaid"].where(~test, None))
    for table, others in ((people, test & (np.cumsum(test) < LEAST_HELD_OUT)), (unlabelled, test)):
        learnt = mock.patch("fairall.evaluate.saved.not_learnt_from", return_value=others)
        with learnt, pytest.raises(FairAllError, match="at least 100 are needed, some of them with a label"):
            target_policy(folder, log_of(table))


def test_of_other_policies_rows_files_and_data_sets_a_note_says_that_it_cannot_be_told(
    trained: tuple[Path, np.ndarray],
) -> None:
    (folder, _), people = trained, borrowers()

    def check_note(told: str, people: pd.DataFrame, policy: Any = folder) -> None:
        target = target_policy(policy, log_of(people))
        assert target.held_out is None
        assert f"whether {target.name} {CANNOT}{told}" in target.notes[0]

    for policy in ("chance", load_policy(folder), lambda people: people["income"] > 30):
        check_note("; if it was, its estimates are too good", people, policy)

    path = folder.parents[3] / "loans.csv"
    for others in (people[::-1], people[:-1], people.assign(income=people["income"] + 0.001)):
        check_note(f" (the rows of the log are not those of its data, {path}, in their order", others)
    other = mock.Mock(config=Config(dataset={"_target_": "my.data.Loans"}))
    with mock.patch("fairall.evaluate.saved.load_result", return_value=other):
        check_note(" (it was not learnt from one split of a file, dataset=csv", people)
    content = path.read_bytes()
    people.assign(income=people["income"] + 1).to_csv(path, index=False)
    check_note(f" (its data, {path}, are no longer those", people)
    path.write_bytes(content)


def test_the_logged_decisions_are_recognised(log: DecisionLog) -> None:
    for policy in (None, "granted", log.accepted):
        target = target_policy(policy, log)
        assert (target.name == LOGGED, target.logged, target.notes) == (policy is None, True, ())
        np.testing.assert_array_equal(target.probability, log.accepted)
    assert not target_policy(log.accepted ^ (np.arange(600) == 7), log).logged
