"""`python -m fairall decide` on small tables."""

import csv
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

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
from tests.conftest import MEANING, Ended, records, succeeded, typed, typed_line
from tests.test_docs import CHECKOUT, commands
from tests.test_policy import crowd

PAGE = CHECKOUT / "docs" / "decide.md"
COLUMNS = ["probability", "spread", "label_probability", "decision", "propensity"]
WORDS = ("dataset=csv", *MEANING, "dataset.kinds={rooms: categorical}", "seeds=4")
COST = 0.55


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
def methods(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Policy]]:
    """Policies that draw decisions, and that have a threshold."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("fairlog", "greedy")}
    return {
        name: (at / "policy", built(at, f"model={name}", f"cost.value={COST}"))
        for name, at in folders.items()
    }


@pytest.fixture
def saved(methods: dict[str, tuple[Path, Policy]]) -> Path:
    """Folder of a policy that draws decisions."""
    return methods["fairlog"][0]


@pytest.fixture
def people(tmp_path: Path) -> pd.DataFrame:
    """30 people, also in people.csv."""
    people = crowd(30).drop(columns="repaid")
    people.insert(0, "id", [f"00{i}" for i in range(30)])
    people.to_csv(tmp_path / "people.csv", index=False)
    return people


def decide(folder: Path, run: object, *words: str, people: str = "people.csv", out: str = "out.csv") -> Ended:
    return typed("decide", str(run), people, "-o", out, *words, cwd=folder)


def decided(folder: Path, run: object, *words: str, **files: str) -> tuple[pd.DataFrame, str]:
    """The decisions of a command that succeeds, and what it printed."""
    said = decide(folder, run, *words, **files)
    assert (said.returncode, said.stderr) == (0, "")
    return pd.read_csv(folder / files.get("out", "out.csv")), said.stdout


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


# What is decided


def best(pi: np.ndarray, margin: np.ndarray, n: int) -> np.ndarray:
    """The n people of the greatest margins of those whom the seeds accept together."""
    order = np.argsort(np.where(pi >= 0.5, -margin, np.inf))
    return np.isin(np.arange(len(pi)), order[:n])


def nearest(pi: np.ndarray, margin: np.ndarray, n: int) -> np.ndarray:
    order = np.lexsort((np.abs(margin), np.abs(pi - 0.5).round(6)))
    return np.isin(np.arange(len(pi)), order[:n])


# What is accepted, and who is referred, of π and the margin of each seed, shape (E, N).
Chosen = Callable[[np.ndarray, np.ndarray], np.ndarray]
RULES: dict[str, tuple[Chosen, Chosen | None]] = {
    "": (lambda pi, _: pi.mean(0) >= 0.5, None),
    "--policy median": (lambda pi, _: np.median(pi, 0) >= 0.5, None),
    "--policy seed:2": (lambda pi, _: pi[2] >= 0.5, None),
    "--threshold 0.7": (lambda pi, _: pi.mean(0) >= 0.7, None),
    "--capacity 5": (lambda pi, margin: best(pi.mean(0), margin.mean(0), 5), None),
    "--capacity 10% --policy seed:2": (lambda pi, margin: best(pi[2], margin[2], 3), None),
    "--refer 20%": (
        lambda pi, _: pi.mean(0) >= 0.5,
        lambda pi, margin: nearest(pi.mean(0), margin.mean(0), 6),
    ),
    "--refer 0.5-0.7 --capacity 2": (
        lambda pi, margin: best(np.where(pi.mean(0) <= 0.7, 0.0, pi.mean(0)), margin.mean(0), 2),
        lambda pi, _: (pi.mean(0) >= 0.5) & (pi.mean(0) <= 0.7),
    ),
}


@pytest.mark.parametrize("method", ["fairlog", "greedy"])
@pytest.mark.parametrize("words", RULES)
def test_decisions_are_those_of_the_rule_beside_the_columns_of_the_table(
    words: str, method: str, methods: dict[str, tuple[Path, Policy]], people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, policy = methods[method]
    out, said = decided(tmp_path, folder, *words.split())
    # The loss of fairlog has the cost, so that its score is ½ where p(ỹ = 1 | x, s) is c.
    x, s = policy.encoded(people)
    if isinstance(policy.learner, Greedy):
        with torch.no_grad():
            odds = policy.learner.classifier.logit(x.expand(4, -1, -1), s.expand(4, -1)).double().numpy()
        margin = odds - logit(COST)
        pi = (margin >= 0).astype(float)
    else:
        pi = policy.propensity(people).astype(float)
        margin = logit(pi)
        odds = margin + logit(COST)
    kind = {"median": np.median, "seed:2": lambda values, axis: values[2]}
    average = kind.get(words.rpartition(" ")[2], np.mean)
    accepts, refers = RULES[words]
    referred = np.zeros(30, dtype=bool) if refers is None else refers(pi, margin)
    expected = accepts(pi, margin) & ~referred
    assert 0 < expected.sum() < 30
    before, after = rows(tmp_path / "people.csv"), rows(tmp_path / "out.csv")
    further = [*COLUMNS, *["referred"] * (refers is not None)]
    assert after[0] == [*people, *further]
    assert [row[: len(before[0])] for row in after] == before
    np.testing.assert_allclose(out["probability"], average(pi, axis=0), atol=1.1e-6)
    np.testing.assert_allclose(out["spread"], pi.std(0, ddof=1), atol=2e-6)
    np.testing.assert_allclose(out["label_probability"], average(expit(odds), axis=0), atol=1e-5)
    for column in ("decision", "propensity"):
        np.testing.assert_array_equal(out[column], np.where(referred, np.nan, expected))
    if refers is not None:
        assert out["referred"].tolist() == referred.astype(int).tolist()
        assert f"without a decision: {referred.sum()} of 30" in said
    shown = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in said.splitlines() if "│" in line}
    groups = {"all": np.ones(30, dtype=bool), "S = −1 (female)": (people["sex"] == "female").to_numpy()}
    for name, of in groups.items():
        numbers = [of.sum(), expected[of].sum(), *[referred[of].sum()] * (refers is not None)]
        share = f"{100 * expected[of].sum() / (of & ~referred).sum():.1f} %"
        assert [cell.strip() for cell in shown[name]] == [*map(str, numbers), share]
    if words == "":
        assert policy.decide(people).tolist() == expected.tolist()
        assert policy.classes_.tolist() == [0, 1]
        label = expit(odds).mean(0)
        np.testing.assert_allclose(policy.predict_proba(people), np.stack([1 - label, label], 1), atol=1e-5)
        assert policy.predict(people).tolist() == (label >= 0.5).astype(int).tolist()
        np.testing.assert_allclose(policy.decision_proba(people).sum(1), 1.0)


def test_deterministic_policies_decide_by_their_majority(tmp_path: Path) -> None:
    people = crowd(30)
    words = "model=fairall_I_II", "model.policy=dec", f"cost.value={COST}"
    assert built(tmp_path, *words).threshold == COST
    voting = built(tmp_path, *words, "model.decision=deterministic")
    votes = voting.propensity(people)
    assert set(votes.flatten()) == {0.0, 1.0}
    assert voting.threshold == 0.5
    assert voting.decide(people).tolist() == (votes.sum(axis=0) >= 2).astype(int).tolist()


def test_what_is_written_does_not_depend_on_the_size_of_parts(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Everybody has the same probability, of which no digit depends on other rows.
    built(tmp_path, "model=random")
    for words in ("--threshold 0.2", "--draw 3", "--capacity 37% --refer 7", "--draw 3 --capacity 9"):
        found = set()
        for size in (1, 7, 30, 1000):
            monkeypatch.setattr(writing, "ROWS", size)
            decided(tmp_path, "policy", *words.split())
            found.add((tmp_path / "out.csv").read_bytes())
        assert len(found) == 1


def test_a_policy_without_a_score_gives_places_by_lot_and_says_so(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    policy = built(tmp_path, "model=accept_all")
    out, said = decided(tmp_path, "policy", "--capacity", "6")
    assert (out["decision"].sum(), set(out["propensity"])) == (6, {0.2})
    assert set(np.flatnonzero(out["decision"])) != set(range(6))
    assert out["label_probability"].isna().all()
    assert "Note: model=accept_all has no estimate of the label: label_probability is empty" in said
    assert "Note: drawn by lot for the last places: 30 people, of whom 6 accepted; `propensity`" in said
    with pytest.raises(FairAllError, match=r"^model=accept_all has no estimate of p\(label = 1\)"):
        policy.predict_proba(people)


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
    said = decided(tmp_path, "policy")[1]
    assert "mean of 3 seeds\n" in said
    assert "Note: left out, since they have diverged: seeds 1\n" in said
    said = decide(tmp_path, "policy", "--policy", "seed:1").stderr
    known = "mean and median of seed:0, seed:2, seed:3"
    assert said == f"fairall: policy seed:1: no such policy, or it has diverged; there are {known}\n"


def test_reasons_name_features_and_a_note_counts_those_whom_the_group_decided(
    methods: dict[str, tuple[Path, Policy]], people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, policy = methods["greedy"]
    out, said = decided(tmp_path, folder, "--reasons", "2", "--refer", "conflict:3")
    rejected = out["decision"] == 0
    named = {reason for text in out["reasons"].dropna() for reason in text.split("; ")}
    assert named <= {"income", "children", "owner", "town", "rooms"}
    assert out["reasons"].notna().sum() <= rejected.sum() < 30
    assert out["reasons"][~rejected].isna().all()
    other = people.assign(sex=people["sex"].map({"male": "female", "female": "male"}))
    changed = (policy.decide(other) == 1) & rejected
    assert changed.any()
    told = f"{changed.sum()} of {rejected.sum()} rejected people would be accepted in another one"
    assert f"Note: the rule depends on the group: {told}" in said
    assert "Warning: the group may be no lawful reason" in said


# Files


def test_names_that_the_table_has_are_kept(saved: Path, people: pd.DataFrame, tmp_path: Path) -> None:
    people.assign(decision="granted").to_csv(tmp_path / "people.csv", index=False)
    out, said = decided(tmp_path, saved)
    assert [*out][-6:] == "decision probability spread label_probability new_decision propensity".split()
    assert "Note: out.csv has the new decision in 'new_decision'; 'decision' is a column of" in said
    assert (out["decision"] == "granted").all()
    (tmp_path / "out.csv").rename(tmp_path / "people.csv")
    again, _ = decided(tmp_path, saved)
    assert [*again][-5:] == [f"new_{name}" for name in [*out][-5:]]


def test_files_of_all_kinds_give_the_same_decisions(
    saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    first, _ = decided(tmp_path, saved, "--refer", "3")
    people.to_parquet(tmp_path / "people.parquet")
    for source, out in (("parquet", "parquet"), ("csv", "parquet"), ("parquet", "csv")):
        place = f"from_{source}.{out}"
        assert decide(tmp_path, saved, "--refer", "3", people=f"people.{source}", out=place).returncode == 0
        table = pd.read_csv(tmp_path / place) if out == "csv" else pd.read_parquet(tmp_path / place)
        further = [*COLUMNS, "referred"]
        pd.testing.assert_frame_equal(table[further], first[further], check_dtype=False)
    typed_columns = pq.read_table(tmp_path / "from_parquet.parquet")
    assert typed_columns.select([*people]).to_pandas().equals(people)
    assert [str(typed_columns.field(name).type) for name in ("decision", "propensity")] == ["int8", "double"]
    half = people.assign(income=people["income"].astype(np.float16), day=pd.Timestamp("2020-01-01"))
    half.to_parquet(tmp_path / "people.parquet")
    assert decide(tmp_path, saved, people="people.parquet", out="out.parquet").returncode == 0
    assert pq.read_schema(tmp_path / "out.parquet").field("income").type == "halffloat"
    people["id"] = "Müller; O."
    people.to_csv(tmp_path / "people.csv", index=False, sep=";", encoding="latin-1")
    assert decide(tmp_path, saved, 'separator=";"', "dataset.text_encoding=latin-1").returncode == 0
    text = (tmp_path / "out.csv").read_text(encoding="latin-1")
    assert text.startswith("id;income;")
    assert '\n"Müller; O.";' in text


def test_values_are_judged_by_the_whole_table(
    methods: dict[str, tuple[Path, Policy]], people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, policy = methods["fairlog"]
    people["rooms"] = [9] * 10 + [1] * 20  # parts of it without any known level
    people["children"] = [None] * 10 + [1] * 20
    people.loc[[3, 29], "income"] = [9000.0, 8000.0]
    people.to_csv(tmp_path / "people.csv", index=False)
    with pytest.warns(UserWarning, match=r"rows hold '8000\.0', '9000\.0'") as caught:
        expected = policy.decision_proba(people)[:, 1]
    out, said = decided(tmp_path, folder)
    warned = [line.removeprefix("Warning: ") for line in said.splitlines() if "Warning" in line]
    assert "; ".join(warned) == str(caught[0].message)
    assert len(warned) == 2
    np.testing.assert_allclose(out["probability"], expected, atol=1.1e-6)
    assert "row 1: '9' is not known; it must be" in decide(tmp_path, folder, "--strict").stderr


# A cell of row 28 that is changed, words, and what is said.
MISTAKES = [
    ({"income": "much"}, "", "column 'income', row 28: 'much' is not possible; it must be a finite number"),
    (
        {"owner": "perhaps"},
        "",
        "column 'owner', row 28: 'perhaps' is not known; it must be one of False, True",
    ),
    (
        {"sex": ""},
        "",
        "column 'sex', row 28: an empty cell is no group: it is the sensitive attribute, which",
    ),
    (
        {},
        "--policy seed:9",
        "policy seed:9: no such policy, or it has diverged; there are mean and median of",
    ),
    ({}, "--policy best", "policy best: no such policy"),
    ({}, "separatr=x", "separatr=x: no such key, did you mean separator?"),
    ({}, "-o people.csv", "-o people.csv: is read by this command; give another file"),
    ({}, "-o pipe.csv", "-o pipe.csv: is a pipe, not a file"),
    ({}, "-o folder", "-o folder: is a folder"),
    ({}, "-o new/out.csv", "-o new/out.csv: there is no folder new"),
    ({}, "-o people.csv/out.csv", "-o people.csv/out.csv: there is no folder people.csv"),
    ({}, "--threshold 2", "threshold=2.0 is not possible"),
    ({}, "--capacity 0", "it must be a whole number of at least 1"),
    ({}, "--capacity 120%", "invalid number_or_share value: '120%'"),
    ({}, "--draw -1", "draw=-1 is not possible"),
    ({}, "--refer 0.6-0.4", "refer=0.6-0.4 is not possible: it must be two probabilities, the smaller first"),
    ({}, "--refer 1%", "refer=0.01 is not possible: it must be a place for one of 30 people"),
    ({}, "--refer 0.1-x", "invalid referral value: '0.1-x'"),
    ({}, "--reasons 2 --wording words.csv", "--wording words.csv: give a CSV file with columns feature and"),
    ({}, "text_encoding=rot13", "people.csv: cannot be read ('rot13' is not a text encoding"),
    ({}, "text_encoding=punycode", "people.csv: cannot be read ("),
    ({}, "--explain 31", "there is no row 31, only 30"),
]


@pytest.mark.parametrize(("cell", "words", "told"), MISTAKES)
def test_mistakes_are_told_in_one_line_and_nothing_is_written(
    cell: dict[str, str], words: str, told: str, saved: Path, people: pd.DataFrame, tmp_path: Path
) -> None:
    for column, value in cell.items():
        people[column] = people[column].astype(object)
        people.loc[27, column] = value
    people.to_csv(tmp_path / "people.csv", index=False)
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "out.csv").write_text("from before")
    said = decide(tmp_path, saved, *words.split())
    assert (said.returncode in (1, 2), said.stdout, said.stderr.count("\n")) == (True, "", 1)
    assert told in said.stderr
    assert (tmp_path / "out.csv").read_text() == "from before"
    assert (tmp_path / "people.csv").read_text() == people.to_csv(index=False)
    assert (tmp_path / "pipe.csv").is_fifo()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["folder", "out.csv", "people.csv", "pipe.csv"]


def test_what_is_at_the_place_of_the_output_stays(saved: Path, people: pd.DataFrame, tmp_path: Path) -> None:
    people.head(0).to_csv(tmp_path / "none.csv", index=False)
    assert "there are columns, but no rows" in decide(tmp_path, saved, people="none.csv").stderr
    (tmp_path / "link.csv").symlink_to(tmp_path / "out.csv")
    decided(tmp_path, saved, out="link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert len(rows(tmp_path / "out.csv")) == 31


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
    decided(tmp_path, "policy", "--trust", "other", "--trust", "trusted_method")


# Evaluation of the decisions


@pytest.mark.whole
def test_commands_of_the_page(saved: Path, tmp_path: Path) -> None:
    people = crowd()
    people.insert(0, "id", [f"L{i:04}" for i in range(len(people))])
    people.to_csv(tmp_path / "people.csv", index=False)
    told = {}
    for line in commands(PAGE):
        said = typed_line(line.replace(" RUN ", f" {saved} "), tmp_path)
        assert (said.returncode, said.stderr) == (0, "")
        told[line.split()[3]] = said.stdout
        if " --draw " in line:
            accepted = pd.read_csv(tmp_path / "decisions.csv")["decision"].sum()
    assert len(commands(PAGE)) == 9
    assert f"Log: people 200, accepted {accepted}, labelled {accepted}" in told["evaluate"]


@pytest.mark.parametrize(("method", "column", "draw"), [("fairlog", "pi", 7), ("greedy", "mine", None)])
def test_evaluate_judges_what_decide_decides(
    method: str,
    column: str,
    draw: int | None,
    methods: dict[str, tuple[Path, Policy]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Analysis, "figure", lambda *_: None)
    folder, options = str(methods[method][0]), [] if draw is None else ["--draw", str(draw)]
    random = np.random.default_rng(0)
    people = crowd(500).assign(past=random.choice(["granted", "refused"], 500), chance=0.5)
    people["repaid"] = people["repaid"].where(people["past"] == "granted", None)
    people.drop(columns=["repaid", "past", "chance"]).to_csv(tmp_path / "people.csv", index=False)
    out, _ = decided(tmp_path, folder)
    people = people.assign(mine=out["decision"], pi=out["probability"])
    people.to_csv(tmp_path / "log.csv", index=False)
    columns = "decision=past", "accepted=granted", "label=repaid", "positive=yes", "sensitive=sex"
    log = ["log.csv", *columns, "propensity=chance", "cost=0.6", "drop=[mine,pi]", "--json"]
    log += ["--outcome-model", "logistic"]
    ours, theirs = (
        json.loads(succeeded("evaluate", *log, "--policy", *named, cwd=tmp_path).stdout)
        for named in ([folder, *options], [column])
    )
    for name in ("value", "fairness"):
        assert [row | {"policy": ""} for row in records(ours, name)] == [
            row | {"policy": ""} for row in records(theirs, name)
        ]
    (used,) = ours["policies"]
    assert used["acceptance"] == pytest.approx(people[column].mean(), abs=1e-6)
    assert (used["rule"] == "accept with the probability, drawn with seed 7") == bool(options)
    refused = typed("evaluate", *log, "--policy", "mine", "--draw", "7", cwd=tmp_path)
    assert refused.stderr.startswith("fairall: --draw 7, or draw=7: decisions are drawn of saved policies")
