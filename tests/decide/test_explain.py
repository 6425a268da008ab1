"""Explanations of decisions: Shapley values against known ones, places among others, the command."""

import itertools
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import Tensor

from fairall.config.compose import typed_config
from fairall.data.dataset import dataset
from fairall.decide.explain import BACKGROUND, explain, training_people, write_explanation
from fairall.decide.load import load_policy
from fairall.errors import FairAllError
from fairall.models.fairall import FairAll
from fairall.models.learner import Setting
from fairall.policy import Policy
from fairall.runtime.randomness import SeedStreams
from tests.conftest import Ended, run_folder, typed
from tests.test_policy import WORDS, crowd

FEATURES = ["income", "children", "owner", "town", "rooms"]


class Additive(FairAll):
    """π = ½ + Σ w·x + v·s, in the seed with number e divided by e + 1: its Shapley values are known."""

    weight = torch.tensor([0.02, -0.01, 0.03, 0.005, -0.04])
    of_group = 0.06

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        size = torch.arange(1.0, 1.0 + len(x)).reshape(-1, 1)
        return 0.5 + (x @ self.weight + self.of_group * s) / size


class Interacting(Additive):
    """Products of two and of three features."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return 0.5 + 0.1 * torch.tanh(x[..., 0] * x[..., 1]) + 0.1 * torch.tanh(x[..., 0] * x[..., 2] * s)


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("loans") / "loans.csv"
    crowd().to_csv(path, index=False)
    return [*WORDS, f"dataset.path={path}", "dataset.kinds={rooms: categorical}"]


def of_method(method: type[FairAll], words: list[str]) -> tuple[Policy, tuple[Tensor, Tensor]]:
    """A policy, and training people to compare with."""
    config = typed_config(*words)
    data = dataset(config.dataset).prepare()
    learner = method(config.model, Setting.of(data.schema, config))
    return Policy.of(learner, data), (data.train.x, data.train.s)


def person(i: int = 3) -> pd.DataFrame:
    return crowd().iloc[[i]]


def test_contributions_of_an_additive_policy(loans: list[str]) -> None:
    policy, (x, s) = of_method(Additive, loans)
    found = explain(policy, person(), (x, s))
    own_x, own_s = policy.encoded(person())
    of_features = Additive.weight * (own_x[0] - x[:BACKGROUND].mean(0))
    of_group = Additive.of_group * (own_s - s[:BACKGROUND].mean())
    expected = torch.cat([of_features, of_group]).numpy()
    assert list(found.contributions.index) == [*FEATURES, "sex"]
    mean = (1 + 1 / 2) / 2  # of the two seeds
    np.testing.assert_allclose(found.contributions["contribution"], mean * expected, atol=2e-6)
    np.testing.assert_allclose(
        found.contributions["spread"], np.abs(expected) * (1 - 1 / 2) / math.sqrt(2), atol=2e-6
    )
    np.testing.assert_allclose(found.contributions["error"], 0, atol=2e-6)
    assert list(found.contributions["value"]) == [str(person()[name].item()) for name in [*FEATURES, "sex"]]


def exact(policy: Policy, own: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Shapley values by all subsets of the features."""

    def value(known: tuple[int, ...]) -> float:
        rows = background.copy()
        rows[:, known] = own[list(known)]
        values = torch.tensor(rows, dtype=torch.float32)
        return float(policy.encoded_propensity(values[:, :-1], values[:, -1]).mean())

    m = len(own)
    values = np.zeros(m)
    for i in range(m):
        rest = [j for j in range(m) if j != i]
        for size in range(m):
            weight = math.factorial(size) * math.factorial(m - 1 - size) / math.factorial(m)
            for known in itertools.combinations(rest, size):
                values[i] += weight * (value((*known, i)) - value(known))
    return values


@pytest.mark.parametrize("method", [FairAll, Interacting])
def test_contributions_with_interactions(method: type[FairAll], loans: list[str]) -> None:
    policy, (x, s) = of_method(method, loans)
    x, s = x[:40], s[:40]
    found = explain(policy, person(), (x, s)).contributions
    own_x, own_s = policy.encoded(person())
    rows = torch.cat([x, s.unsqueeze(-1)], dim=-1).numpy()
    truth = exact(policy, torch.cat([own_x[0], own_s]).numpy(), rows)
    assert np.abs(truth).max() > 20 * np.abs(found["contribution"] - truth).max()
    assert (np.abs(found["contribution"] - truth) <= 3 * found["error"] + 1e-5).all()


def test_contributions_add_up_and_places_are_right(loans: list[str]) -> None:
    policy, others = of_method(FairAll, loans)
    found = explain(policy, person(), others)
    assert found.average + found.contributions["contribution"].sum() == pytest.approx(found.probability)
    assert found.probability == pytest.approx(policy.decision_proba(person())[0, 1])
    below = policy.encoded_propensity(*others).mean(0) < found.probability
    own_group = (others[1] == policy.encoded(person())[1]).numpy()
    assert found.share_below == pytest.approx((below.mean(), below[own_group].mean()))
    assert found.position is not None
    z = policy.learner.representation(others[0].expand(2, -1, -1), others[1].expand(2, -1))
    assert z is not None
    np.testing.assert_allclose(found.position.share_below, (z[0].numpy() < found.position.z).mean(0))


def test_the_same_explanation_twice_and_random_numbers_of_others_as_before(loans: list[str]) -> None:
    policy, others = of_method(Interacting, loans)
    np.random.seed(5)
    expected = np.random.RandomState(5).random(3)
    first = explain(policy, person(), others)
    np.testing.assert_array_equal(np.random.random(3), expected)
    assert explain(policy, person(), others).to_plain() == first.to_plain()


def test_a_person_like_all_others_has_nothing_to_explain(loans: list[str]) -> None:
    policy, _ = of_method(FairAll, loans)
    found = explain(policy, person(), policy.encoded(pd.concat([person()] * 5)))
    np.testing.assert_array_equal(found.contributions["contribution"], 0)
    assert found.average == found.probability


def test_what_cannot_be_explained(loans: list[str]) -> None:
    policy, (x, s) = of_method(FairAll, loans)
    with pytest.raises(FairAllError, match="one decision is explained at a time, not 2"):
        explain(policy, crowd(2), (x, s))
    with pytest.raises(FairAllError, match="nobody to compare"):
        explain(policy, person(), (x[:0], s[:0]))


@pytest.fixture(scope="module")
def run(loans: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished run on a file of its own, in that file's folder."""
    folder = tmp_path_factory.mktemp("run")
    crowd().to_csv(folder / "own.csv", index=False)
    words = [*loans, "dataset.path=own.csv", "preset=quick", "tracking.enabled=false"]
    said = typed(*words, cwd=folder)
    assert said.returncode == 0, said.stderr
    return run_folder(folder / "outputs")


def commanded(run: Path, *words: str) -> Ended:
    """`fairall.decide` in the folder that the run was started in."""
    return typed("decide", run.name, "own.csv", *words, cwd=run.parents[4], drawn=True)


@pytest.mark.whole
def test_training_people_are_those_of_the_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parents[4])
    policy = load_policy(run)
    x, s = training_people(policy)
    assert policy.config is not None
    data = dataset(typed_config(*WORDS, "dataset.path=own.csv", "dataset.kinds={rooms: categorical}").dataset)
    train = data.prepare().train
    assert {tuple(row) for row in x.tolist()} == {tuple(row) for row in train.x.tolist()}
    assert len(x) == len(train)
    assert s.sum() == train.s.sum()


def test_the_command_explains_a_row(run: Path) -> None:
    said = commanded(run, "--explain", "4", "-o", "why")
    assert (said.returncode, said.stderr) == (0, "")
    folder = run.parents[4] / "why"
    assert sorted(path.name for path in folder.iterdir()) == ["explanation.json", "explanation.png"]
    plain = json.loads((folder / "explanation.json").read_text())
    probability = load_policy(run).decision_proba(person(3))[0, 1]
    assert plain["probability"] == pytest.approx(probability)
    assert f"Probability of acceptance: {probability:.3f}" in said.stdout
    for row in plain["contributions"]:
        assert f"{row['feature']} = {row['value']}" in said.stdout
        assert f" {row['contribution']:+.3f} │ ± {row['error']:.3f}" in said.stdout
    assert "They describe the policy." in said.stdout
    with Image.open(folder / "explanation.png") as picture:
        assert picture.width > 1000
        assert len(picture.convert("RGB").getcolors(10**6) or []) > 20, "something is drawn"


def test_people_to_compare_with_are_others_where_there_are_no_training_people(run: Path) -> None:
    folder = run.parents[4]
    (folder / "some.csv").write_text(crowd(50).to_csv(index=False))
    (folder / "own.csv").rename(folder / "moved.csv")
    try:
        lost = typed("decide", run.name, "moved.csv", "--explain", "1", "-o", "lost", cwd=folder)
        words = ("--explain", "1", "--against", "some.csv", "-o", "other")
        other = typed("decide", run.name, "moved.csv", *words, cwd=folder)
    finally:
        (folder / "moved.csv").rename(folder / "own.csv")
    assert lost.returncode == 1
    assert re.search(
        r"no training people of csv \(.*own.csv.*\); give people to compare with: --against FILE", lost.stderr
    )
    assert not (folder / "lost").exists()
    assert other.returncode == 0
    assert "of 50 people" in other.stdout


def test_a_data_set_that_has_changed_is_refused(run: Path) -> None:
    own = run.parents[4] / "own.csv"
    before = own.read_text()
    own.write_text(crowd(150).to_csv(index=False))
    try:
        said = commanded(run, "--explain", "1", "-o", "changed")
    finally:
        own.write_text(before)
    assert said.returncode == 1
    assert "csv has changed since the run; give people to compare with: --against FILE" in said.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--explain", "201", "-o", "x"], "own.csv: there is no row 201, only 200"),
        (["--explain", "1", "-o", "own.csv"], "own.csv: File exists"),
        (["--explain", "0", "-o", "x"], "a whole number of at least 1, not 0"),
        (["--against", "own.csv", "-o", "x"], "--against: needs --explain"),
        (["--explain", "1", "--draw", "1", "-o", "x"], "--draw: not possible with --explain"),
        (
            ["--explain", "1", "--against", "no.csv", "-o", "x"],
            "--against no.csv: there is no such file; give a CSV",
        ),
    ],
)
def test_mistakes(words: list[str], told: str, run: Path) -> None:
    said = commanded(run, *words)
    assert said.returncode != 0
    assert told in said.stderr
    assert not (run.parents[4] / "x").exists()


def test_a_row_with_a_value_unknown_from_training_is_judged_with_its_table(run: Path) -> None:
    people = crowd(5)
    people.loc[2, "town"] = "Rome"
    people.to_csv(run.parents[4] / "unknown.csv", index=False)
    words = (run.name, "unknown.csv", "--explain", "3", "-o", "unknown", "--threshold", "0.9")
    said = typed("decide", *words, cwd=run.parents[4])
    assert (said.returncode, said.stderr) == (0, "")
    assert (
        "Warning: column 'town': 1 of 5 rows hold 'Rome', not known from training and taken as" in said.stdout
    )
    assert "town = Rome" in said.stdout
    assert "Threshold of decisions that are not drawn: 0.9" in said.stdout
    assert typed("decide", *words, "--strict", cwd=run.parents[4]).returncode == 1


def test_the_error_is_that_of_the_mean_over_orders(loans: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    policy, (x, s) = of_method(Interacting, loans)
    x, s = x[:20], s[:20]
    own_x, own_s = policy.encoded(person())
    rows = torch.cat([x, s.unsqueeze(-1)], dim=-1).numpy()
    truth = exact(policy, torch.cat([own_x[0], own_s]).numpy(), rows)
    monkeypatch.setattr("fairall.decide.explain.ORDERS", 200)
    found = explain(policy, person(), (x, s)).contributions
    # 200 orders estimate the error well; ten have an error larger by √20.
    monkeypatch.setattr("fairall.decide.explain.ORDERS", 10)
    few = explain(policy, person(), (x, s)).contributions
    told, expected = few["error"].to_numpy(), found["error"].to_numpy() * math.sqrt(20)
    assert (np.abs(found["contribution"] - truth) <= 4 * found["error"] + 1e-5).all()
    varying = expected > 1e-4
    assert varying.any()
    assert 0.5 < np.sqrt((told[varying] ** 2).mean() / (expected[varying] ** 2).mean()) < 2


def test_one_seed_has_no_spread_and_the_json_no_nan(loans: list[str], tmp_path: Path) -> None:
    policy, others = of_method(FairAll, [*loans, "seeds=1"])
    found = explain(policy, person(), others)
    write_explanation(found, tmp_path)
    plain = json.loads((tmp_path / "explanation.json").read_text())
    assert {row["spread"] for row in plain["contributions"]} == {None}


def test_without_shap_an_explanation_ends_in_one_line(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)
    said = commanded(run, "--explain", "4", "-o", "none")
    assert said.returncode == 1
    assert said.stderr == "fairall: explain: needs shap; install it with: pip install shap\n"
    assert not (run.parents[4] / "none").exists()
