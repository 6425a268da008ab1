"""`python -m fairall decide` on small tables."""

import csv
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from scipy.special import expit, logit

from fairall.config.compose import checked, compose_config
from fairall.data.dataset import dataset
from fairall.decide import writing
from fairall.errors import FairAllError
from fairall.evaluate.analysis import Analysis
from fairall.models.learner import Setting
from fairall.models.rivals.greedy import Greedy
from fairall.policy import Policy, learner_of
from tests.conftest import MEANING, Ended, records, typed, typed_line
from tests.test_docs import CHECKOUT, commands
from tests.test_policy import crowd

PAGE = CHECKOUT / "docs" / "decide.md"
COLUMNS = ["probability", "spread", "label_probability", "decision", "propensity"]
WORDS = ("dataset=csv", *MEANING, "dataset.kinds={rooms: categorical}", "seeds=4")


def built(folder: Path, *words: str) -> Policy:
    """An untrained policy for people like those of `crowd`, and the configuration to save it with."""
    table = folder / "training.csv"
    crowd().to_csv(table, index=False)
    config = checked(compose_config(*WORDS, f"dataset.path={table}", *words))
    data = dataset(config.dataset).prepare()
    policy = Policy.of(learner_of(config, Setting.of(data.schema, config)), data)
    with torch.no_grad():
        for weights in policy.learner.parameters():
            weights.mul_(1.5)  # to differ between people and seeds
    policy.save(folder / "policy", config)
    return policy


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a policy that draws decisions."""
    folder = tmp_path_factory.mktemp("drawing")
    built(folder, "model=fairlog")
    return folder / "policy"


@pytest.fixture(scope="module")
def policy(saved: Path) -> Policy:
    return Policy.load(saved)


@pytest.fixture
def people(tmp_path: Path) -> pd.DataFrame:
    """30 people, also in people.csv."""
    people = crowd(30).drop(columns="repaid")
    people.insert(0, "id", [f"00{i}" for i in range(30)])
    people.to_csv(tmp_path / "people.csv", index=False)
    return people


def decide(folder: Path, run: object, *words: str, people: str = "people.csv", out: str = "out.csv") -> Ended:
    return typed("decide", str(run), people, "-o", out, *words, cwd=folder)


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_columns_of_the_table_are_as_they_were_and_the_decision_follows(
    saved: Path, policy: Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    said = decide(tmp_path, saved)
    assert (said.returncode, said.stderr) == (0, "")
    before, after = rows(tmp_path / "people.csv"), rows(tmp_path / "out.csv")
    assert [row[:-5] for row in after] == before
    assert after[0][-5:] == COLUMNS
    out = pd.read_csv(tmp_path / "out.csv")
    propensity = policy.propensity(people)
    np.testing.assert_allclose(out["probability"], propensity.mean(0), atol=1e-6)
    np.testing.assert_allclose(out["spread"], propensity.std(0, ddof=1), atol=2e-6)
    assert out["decision"].tolist() == policy.decide(people).tolist()
    assert out["decision"].tolist() == (propensity.mean(0).round(6) >= 0.5).astype(int).tolist()
    assert 0 < out["decision"].sum() < 30
    assert out["propensity"].tolist() == out["decision"].tolist()
    women = out[out["sex"] == "female"]
    shown = {
        line.split("│")[1].strip(): line.split("│")[2:4] for line in said.stdout.splitlines() if "│" in line
    }
    assert [*map(int, shown["all"])] == [30, out["decision"].sum()]
    assert [*map(int, shown["S = −1 (female)"])] == [len(women), women["decision"].sum()]
    assert "Rule: accept from a probability of 0.5 on\n" in said.stdout


@pytest.mark.parametrize("which", ["median", "seed:2"])
def test_another_policy_than_the_mean(
    which: str, saved: Path, policy: Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    assert decide(tmp_path, saved, "--policy", which).returncode == 0
    propensity = policy.propensity(people)
    expected = np.median(propensity, axis=0) if which == "median" else propensity[2]
    out = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(out["probability"], expected, atol=1e-6)
    assert np.abs(out["probability"] - propensity.mean(0)).max() > 0.01
    assert policy.classes_.tolist() == [0, 1]
    both = policy.decision_proba(people, policy=which)
    np.testing.assert_allclose(both[:, 1], expected, atol=1e-6)
    np.testing.assert_allclose(both.sum(axis=1), 1.0)


def test_deterministic_policies_decide_by_their_majority(tmp_path: Path) -> None:
    people = crowd(30)
    words = "model=fairall_I_II", "model.policy=dec", "cost.value=0.3"
    assert built(tmp_path, *words).threshold == 0.3
    voting = built(tmp_path, *words, "model.decision=deterministic")
    assert voting.threshold == 0.5
    votes = voting.propensity(people)
    assert set(votes.flatten()) == {0.0, 1.0}
    assert voting.decide(people).tolist() == (votes.sum(axis=0) >= 2).astype(int).tolist()
    greedy = built(tmp_path, "model=greedy", "cost.value=0.3")
    assert (greedy.learner.rule.threshold, greedy.threshold) == (0.3, 0.5)


@pytest.mark.parametrize(
    "words",
    [("--threshold", "0.2"), ("--draw", "3"), ("--capacity", "37%"), ("--draw", "3", "--capacity", "9")],
)
def test_what_is_written_does_not_depend_on_the_size_of_parts(
    words: tuple[str, ...], people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Everybody has the same probability, of which no digit depends on other rows.
    built(tmp_path, "model=random")
    found = set()
    for size in (1, 7, 30, 1000):
        monkeypatch.setattr(writing, "ROWS", size)
        assert decide(tmp_path, "policy", *words).returncode == 0
        found.add((tmp_path / "out.csv").read_bytes())
    assert len(found) == 1


def test_few_places_go_by_the_mean_log_odds_of_a_policy_that_draws(
    saved: Path, policy: Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    assert decide(tmp_path, saved, "--capacity", "5").returncode == 0
    out = pd.read_csv(tmp_path / "out.csv")
    propensity = policy.propensity(people)
    np.testing.assert_allclose(out["probability"], propensity.mean(0), atol=1.1e-6)
    assert out["decision"].sum() == 5
    margin = logit(propensity.astype(float)).mean(0)  # the threshold is ½ in all seeds
    assert set(np.flatnonzero(out["decision"])) == set(np.argsort(-margin)[:5])


def test_the_estimate_of_the_label_is_not_the_probability_of_acceptance(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    policy = built(tmp_path, "model=fairlog", "cost.value=0.3")
    assert decide(tmp_path, "policy").returncode == 0
    # Its loss has the cost, so that the score is ½ where p(ỹ = 1 | x, s) is c.
    label = expit(logit(policy.propensity(people).astype(float)) + logit(0.3)).mean(0)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["label_probability"], label, atol=2e-6)
    np.testing.assert_allclose(policy.predict_proba(people), np.stack([1 - label, label], axis=1), atol=2e-6)
    assert policy.predict(people).tolist() == (label >= 0.5).astype(int).tolist()
    assert policy.predict(people).tolist() != policy.decide(people).tolist()


def test_few_places_go_by_the_log_odds_where_the_policy_is_a_threshold(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    policy = built(tmp_path, "model=greedy", "cost.value=0.3")
    said = decide(tmp_path, "policy", "--capacity", "4")
    out, (x, s) = pd.read_csv(tmp_path / "out.csv"), policy.encoded(people)
    with torch.no_grad():
        assert isinstance(policy.learner, Greedy)
        logits = policy.learner.classifier.logit(x.expand(4, -1, -1), s.expand(4, -1))
    odds = logits.double().numpy()
    votes = (odds >= logit(0.3)).mean(0)
    np.testing.assert_allclose(out["probability"], votes)
    np.testing.assert_allclose(out["label_probability"], expit(odds).mean(0), atol=1e-5)
    accepted = np.flatnonzero(votes >= 0.5)
    best = accepted[np.argsort(-odds.mean(0)[accepted])][:4]
    assert set(np.flatnonzero(out["decision"])) == set(best) != set(accepted[:4])
    assert out["propensity"].tolist() == out["decision"].tolist()
    assert "of these at most 4, in the order of log odds less the policy's own threshold" in said.stdout
    assert "by lot" not in said.stdout.split("Spread")[1]


def test_a_policy_without_a_score_gives_places_by_lot_and_says_so(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    built(tmp_path, "model=accept_all")
    said = decide(tmp_path, "policy", "--capacity", "6")
    out = pd.read_csv(tmp_path / "out.csv")
    assert (out["decision"].sum(), set(out["propensity"])) == (6, {0.2})
    assert set(np.flatnonzero(out["decision"])) != set(range(6))
    assert out["label_probability"].isna().all()
    assert "Note: model=accept_all has no estimate of the label: 'label_probability' is empty" in said.stdout
    assert (
        "Note: drawn by lot for the last places: 30 people, of whom 6 accepted; `propensity`" in said.stdout
    )
    with pytest.raises(FairAllError, match=r"^model=accept_all has no estimate of p\(label = 1\)"):
        Policy.load(tmp_path / "policy").predict_proba(people)


def test_a_diverged_seed_is_left_out(people: pd.DataFrame, tmp_path: Path) -> None:
    policy = built(tmp_path, "model=greedy")
    with torch.no_grad():
        for weights in policy.learner.parameters():
            weights[1] = torch.nan
    # A comparison with NaN is false: the policy seems to reject everybody.
    assert np.isfinite(policy.propensity(people)).all()
    assert policy.diverged == [1]
    expected = policy.propensity(people)[[0, 2, 3]].mean(axis=0)
    np.testing.assert_allclose(policy.decision_proba(people)[:, 1], expected, atol=1e-6)
    policy.save(tmp_path / "policy", checked(compose_config(*WORDS, "dataset.path=x.csv", "model=greedy")))
    said = decide(tmp_path, "policy")
    assert "mean of 3 seeds\nLeft out, since they have diverged: seeds 1\n" in said.stdout
    said = decide(tmp_path, "policy", "--policy", "seed:1")
    assert said.stderr == "fairall: policy seed:1 has diverged: choose another, or the mean of the others\n"


def test_names_that_the_table_has_are_kept(saved: Path, people: pd.DataFrame, tmp_path: Path) -> None:
    people.assign(decision="granted").to_csv(tmp_path / "people.csv", index=False)
    said = decide(tmp_path, saved)
    assert (
        rows(tmp_path / "out.csv")[0][-6:]
        == "decision probability spread label_probability new_decision propensity".split()
    )
    assert "Note: out.csv has the new decision in 'new_decision'; 'decision' is a column of" in said.stdout
    assert (pd.read_csv(tmp_path / "out.csv")["decision"] == "granted").all()
    (tmp_path / "people.csv").write_bytes((tmp_path / "out.csv").read_bytes())
    assert decide(tmp_path, saved).returncode == 0
    assert (
        rows(tmp_path / "out.csv")[0][-5:]
        == """
        new_probability new_spread new_label_probability new_new_decision new_propensity
    """.split()
    )


def test_parquet_keeps_its_types_and_gives_the_same_decisions(
    saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    people.to_parquet(tmp_path / "people.parquet")
    assert decide(tmp_path, saved).returncode == 0
    assert decide(tmp_path, saved, people="people.parquet", out="typed.parquet").returncode == 0
    assert decide(tmp_path, saved, people="people.csv", out="text.parquet").returncode == 0
    assert decide(tmp_path, saved, people="people.parquet", out="typed.csv").returncode == 0
    out = pd.read_csv(tmp_path / "out.csv")
    table = pq.read_table(tmp_path / "typed.parquet")
    assert table.select(people.columns.tolist()).to_pandas().equals(people)
    for other in (
        table.to_pandas(),
        pd.read_parquet(tmp_path / "text.parquet"),
        pd.read_csv(tmp_path / "typed.csv"),
    ):
        pd.testing.assert_frame_equal(other[COLUMNS], out[COLUMNS], check_dtype=False)


def test_another_separator_and_encoding_are_kept(saved: Path, people: pd.DataFrame, tmp_path: Path) -> None:
    people["id"] = "Müller; O."
    people.to_csv(tmp_path / "people.csv", index=False, sep=";", encoding="latin-1")
    assert decide(tmp_path, saved, 'separator=";"', "dataset.text_encoding=latin-1").returncode == 0
    text = (tmp_path / "out.csv").read_text(encoding="latin-1")
    assert text.startswith("id;income;")
    assert '\n"Müller; O.";' in text


# What is wrong or doubtful in the table


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("income", "much", "column 'income', row 28: 'much' is not possible; it must be a finite number"),
        (
            "owner",
            "perhaps",
            "column 'owner', row 28: 'perhaps' is not known; it must be one of False, True",
        ),
        (
            "sex",
            "",
            "column 'sex', row 28: an empty cell is no group: it is the sensitive attribute, which must be "
            "one of male, female",
        ),
    ],
)
def test_a_wrong_value_is_named_by_its_row_and_nothing_is_written(
    column: str, value: str, message: str, saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    people[column] = people[column].astype(object)
    people.loc[27, column] = value
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "out.csv").write_text("from before")
    said = decide(tmp_path, saved)
    assert (said.returncode, said.stdout, said.stderr) == (1, "", f"fairall: {message}\n")
    assert (tmp_path / "out.csv").read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "people.csv"]


def test_values_are_judged_by_the_whole_table(
    saved: Path, policy: Policy, people: pd.DataFrame, tmp_path: Path
) -> None:
    people["rooms"] = [9] * 10 + [1] * 20  # parts of it without any known level
    people["children"] = [None] * 10 + [1] * 20
    people.loc[[3, 29], "income"] = [9000.0, 8000.0]
    people.to_csv(tmp_path / "people.csv", index=False)
    with pytest.warns(UserWarning, match="rows hold '8000.0', '9000.0'") as caught:
        expected = policy.decision_proba(people)[:, 1]
    said = decide(tmp_path, saved)
    warned = [line.removeprefix("Warning: ") for line in said.stdout.splitlines() if "Warning" in line]
    assert "; ".join(warned) == str(caught[0].message)
    assert len(warned) == 2
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["probability"], expected, atol=1.1e-6)
    assert "row 1: '9' is not known; it must be" in decide(tmp_path, saved, "--strict").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "seed:9"], "policy seed:9: no such seed; there are 0, 1, 2, 3"),
        (["--policy", "best"], "policy best: no such policy; there are mean, median and seed:NUMBER"),
        (
            ["separatr=x"],
            "separatr=x: no such key, did you mean separator?",
        ),
        (["-o", "people.csv"], "-o people.csv: is read by this command; give another file"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    words: list[str], message: str, saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    said = decide(tmp_path, saved, *words)
    assert (said.returncode, said.stderr) == (1, f"fairall: {message}\n")
    assert (tmp_path / "people.csv").read_text() == people.to_csv(index=False)


@pytest.mark.parametrize(
    "words",
    [
        ["--threshold", "2"],
        ["--threshold", "0.5", "--draw", "1"],
        ["--capacity", "0"],
        ["--capacity", "120%"],
        ["--draw", "-1"],
    ],
)
def test_impossible_options_are_refused(
    words: list[str], saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    ended = decide(tmp_path, saved, *words)
    assert ended.returncode in (1, 2)  # by the rule, or by the parser
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()


def test_an_interruption_leaves_nothing(
    saved: Path, people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = Policy.encoded_label_probability

    def interrupted(self: Policy, *people: torch.Tensor) -> np.ndarray:
        os.kill(os.getpid(), signal.SIGINT)
        return computed(self, *people)

    monkeypatch.setattr(Policy, "encoded_label_probability", interrupted)
    monkeypatch.setattr("fairall.runtime.signals._State.requested", None)
    said = decide(tmp_path, saved)
    assert (said.returncode, said.stderr) == (
        130,
        "fairall: interrupted; the same command starts anew, or goes on from what was saved\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_method_of_ones_own_is_imported_where_it_is_trusted(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trusted_method.py").write_text(
        "from fairall.models.fairlog import FairLog\n\n\nclass Own(FairLog):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    built(tmp_path, "model=fairlog", "model._target_=trusted_method.Own")
    del sys.modules["trusted_method"]
    refused = decide(tmp_path, "policy")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "--trust trusted_method, or load_policy(..., modules=['trusted_method'])" in refused.stderr
    assert "trusted_method" not in sys.modules
    said = decide(tmp_path, "policy", "--trust", "other", "--trust", "trusted_method")
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize(
    ("encoding", "refused"),
    [
        ("rot13", "people.csv: cannot be read ('rot13' is not a text encoding"),
        ("punycode", "people.csv: cannot be read ("),
    ],
)
def test_what_is_no_encoding_of_text_is_refused(
    encoding: str, refused: str, saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    said = decide(tmp_path, saved, f"text_encoding={encoding}")
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert refused in said.stderr


def test_half_precision_and_tables_without_rows(saved: Path, people: pd.DataFrame, tmp_path: Path) -> None:
    half = people.assign(income=people["income"].astype(np.float16), day=pd.Timestamp("2020-01-01"))
    half.to_parquet(tmp_path / "half.parquet")
    assert decide(tmp_path, saved, people="half.parquet", out="out.parquet").returncode == 0
    assert pq.read_schema(tmp_path / "out.parquet").field("income").type == "halffloat"
    half.head(0).to_parquet(tmp_path / "none.parquet")
    said = decide(tmp_path, saved, people="none.parquet")
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert "there are columns, but no rows" in said.stderr


def test_what_is_at_the_place_of_the_output_stays(saved: Path, tmp_path: Path) -> None:
    crowd(5).to_csv(tmp_path / "people.csv", index=False)
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder").mkdir()
    for out, told in (
        ("pipe.csv", "-o pipe.csv: is a pipe, not a file"),
        ("folder", "-o folder: is a folder"),
        ("new/out.csv", "-o new/out.csv: there is no folder new"),
        ("people.csv/out.csv", "-o people.csv/out.csv: there is no folder people.csv"),
    ):
        said = decide(tmp_path, saved, out=out)
        assert said.returncode == 1
        assert told in said.stderr
    assert (tmp_path / "pipe.csv").is_fifo()
    (tmp_path / "link.csv").symlink_to(tmp_path / "out.csv")
    assert decide(tmp_path, saved, out="link.csv").returncode == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert len(rows(tmp_path / "out.csv")) == 6
    assert (
        sorted(path.name for path in tmp_path.iterdir())
        == "folder link.csv out.csv people.csv pipe.csv".split()
    )


# Evaluation of the decisions


@pytest.mark.whole
def test_commands_of_the_page(saved: Path, tmp_path: Path) -> None:
    people = crowd()
    people.insert(0, "id", [f"L{i:04}" for i in range(len(people))])
    people.to_csv(tmp_path / "people.csv", index=False)
    typed_there = [line.replace(" RUN ", f" {saved} ") for line in commands(PAGE)]
    *deciding, evaluating, explaining = typed_there
    assert len(deciding) == 5
    for line in (*deciding, explaining):
        said = typed_line(line, tmp_path)
        assert (said.returncode, said.stderr) == (0, "")
    said = typed_line(evaluating, tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    accepted = pd.read_csv(tmp_path / "decisions.csv")["decision"].sum()
    assert f"Log: people 200, accepted {accepted}, labelled {accepted}" in said.stdout


def test_a_policy_is_evaluated_by_decisions_without_labels(saved: Path, tmp_path: Path) -> None:
    crowd().drop(columns="repaid").to_csv(tmp_path / "people.csv", index=False)
    assert decide(tmp_path, saved, "--draw", "2").returncode == 0
    roles = "decision=decision", "sensitive=sex", "propensity=propensity", "drop=[probability,spread]"
    said = typed("evaluate", "out.csv", "--policy", str(saved), *roles, cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert "the log has no labels: only acceptance rates are known" in said.stdout


@pytest.mark.parametrize(
    ("words", "column", "options"),
    [(["model=fairlog"], "pi", ["--draw", "7"]), (["model=greedy", "cost.value=0.6"], "mine", [])],
)
def test_evaluate_judges_what_decide_decides(
    words: list[str], column: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Analysis, "figure", lambda *_: None)
    built(tmp_path, *words)
    random = np.random.default_rng(0)
    people = crowd(500).assign(past=random.choice(["granted", "refused"], 500), chance=0.5)
    people["repaid"] = people["repaid"].where(people["past"] == "granted", None)
    people.drop(columns=["repaid", "past", "chance"]).to_csv(tmp_path / "people.csv", index=False)
    assert decide(tmp_path, "policy").returncode == 0
    out = pd.read_csv(tmp_path / "out.csv")
    people = people.assign(mine=out["decision"], pi=out["probability"])
    people.to_csv(tmp_path / "log.csv", index=False)
    columns = "decision=past", "accepted=granted", "label=repaid", "positive=yes", "sensitive=sex"
    log = [*columns, "propensity=chance", "cost=0.6", "drop=[mine,pi]", "--outcome-model", "logistic"]

    def judged(policy: str, *options: str) -> dict[str, Any]:
        said = typed("evaluate", "log.csv", "--policy", policy, *log, *options, "--json", cwd=tmp_path)
        assert said.stderr == ""
        return json.loads(said.stdout)

    # The value by inverse propensity, without the code under test.
    label = (people["repaid"] == "yes") - 0.6
    saved, of_column = judged("policy", *options), judged(column)
    for name in ("value", "fairness"):
        ours, theirs = (
            [row | {"policy": ""} for row in records(content, name)] for content in (saved, of_column)
        )
        assert ours == theirs
    utility = (people[column] * label * (people["past"] == "granted") / 0.5).mean()
    (ips,) = records(saved, "value", estimator="ips")
    (used,) = saved["policies"]
    assert ips["estimate"] == pytest.approx(utility, abs=1e-6)
    assert used["acceptance"] == pytest.approx(people[column].mean(), abs=1e-6)
    assert (used["rule"] == "accept with the probability, drawn with seed 7") == bool(options)
    refused = typed("evaluate", "log.csv", "--policy", "mine", *log, "--draw", "7", cwd=tmp_path)
    assert refused.stderr.startswith("fairall: --draw 7, or draw=7: decisions are drawn of saved policies")
