"""Explanations of decisions: Shapley values against known ones, and the command."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from fairall.config.compose import checked, compose_config
from fairall.data.dataset import dataset
from fairall.decide.explain import BACKGROUND, explain
from fairall.decide.reasons import typical
from fairall.errors import FairAllError
from fairall.models.fairall import FairAll
from fairall.models.learner import Setting
from fairall.policy import Policy
from fairall.runtime.randomness import SeedStreams
from tests.conftest import typed
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


def of_method(method: type[FairAll], folder: Path, *words: str) -> Policy:
    """A policy, which is also saved."""
    crowd().to_csv(folder / "own.csv", index=False)
    own = f"dataset.path={folder / 'own.csv'}", "dataset.kinds={rooms: categorical}"
    config = checked(compose_config(*WORDS, *own, *words))
    data = dataset(config.dataset).prepare()
    policy = Policy.of(method(config.model, Setting.of(data.schema, config)), data)
    policy.save(folder / "policy", config)
    return policy


def test_contributions_of_an_additive_policy(tmp_path: Path) -> None:
    policy, people = of_method(Additive, tmp_path), crowd()
    others = people[50:140]
    found = explain(policy, people, 3, others)
    (own_x, own_s), (x, s) = policy.encoded(people[3:4]), policy.encoded(others)
    of_features, of_group = Additive.weight * (own_x[0] - x.mean(0)), Additive.of_group * (own_s - s.mean())
    expected = torch.cat([of_features, of_group]).numpy()
    table = found.contributions.loc[[*FEATURES, "sex"]]
    np.testing.assert_allclose(table["contribution"], (1 + 1 / 2) / 2 * expected, atol=2e-6)  # of two seeds
    np.testing.assert_allclose(table["spread"], np.abs(expected) * (1 - 1 / 2) / math.sqrt(2), atol=2e-6)
    np.testing.assert_allclose(table["error"], 0, atol=2e-6)
    assert table["value"].tolist() == [str(people[name][3]) for name in table.index]
    assert found.contributions["contribution"].abs().is_monotonic_decreasing
    assert found.probability == pytest.approx(policy.decision_proba(people[3:4])[0, 1])
    # By default with the people of `reasons`.
    made_up = typical(policy.reader, BACKGROUND, np.random.default_rng(0))
    found = explain(policy, people, 3)
    average = policy.encoded_propensity(made_up[:, :-1], made_up[:, -1]).mean()
    assert found.average == pytest.approx(average, abs=1e-6)
    assert found.average + found.contributions["contribution"].sum() == pytest.approx(found.probability)
    with pytest.raises(FairAllError, match="there is no row 201, only 200"):
        explain(policy, people, 200)


def test_errors_are_those_of_the_mean_over_orders_and_random_numbers_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, people = of_method(Interacting, tmp_path), crowd()
    np.random.seed(5)
    few = explain(policy, people, 3, people[:20])
    np.testing.assert_array_equal(np.random.random(3), np.random.RandomState(5).random(3))
    assert explain(policy, people, 3, people[:20]).to_plain() == few.to_plain()
    monkeypatch.setattr("fairall.decide.explain.ORDERS", 200)
    known = explain(policy, people, 3, people[:20]).contributions
    told = few.contributions.loc[known.index]
    assert (np.abs(told["contribution"] - known["contribution"]) <= 4 * told["error"] + 1e-5).all()
    # 200 orders estimate the error well; ten have an error larger by √20.
    expected = known["error"] * math.sqrt(20)
    varying = expected > 1e-4
    assert varying.any()
    assert 0.5 < np.sqrt((told["error"][varying] ** 2).mean() / (expected[varying] ** 2).mean()) < 2


def test_the_command_explains_a_row_that_is_judged_with_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, people = of_method(FairAll, tmp_path, "seeds=1"), crowd(5)
    people.loc[2, "town"] = "Rome"
    people.to_csv(tmp_path / "people.csv", index=False)
    words = "decide", "policy", "people.csv", "--explain", "3", "-o", "why"
    said = typed(*words, cwd=tmp_path, drawn=True)
    assert (said.returncode, said.stderr) == (0, "")
    with pytest.warns(UserWarning, match="not known"):
        probability = policy.decision_proba(people)[2, 1]
    assert f"Probability of acceptance: {probability:.3f} (policy mean)" in said.stdout
    assert "Warning: column 'town': 1 of 5 rows hold 'Rome', not known from training and" in said.stdout
    assert "They describe the policy." in said.stdout
    plain = json.loads((tmp_path / "why" / "explanation.json").read_text())
    assert plain["probability"] == pytest.approx(probability)
    shown = [[*map(str.strip, line.split("│")[1:-1])] for line in said.stdout.splitlines() if "│" in line]
    assert shown == [
        [row["feature"], row["value"], f"{row['contribution']:+.3f}", f"± {row['error']:.3f}"]
        for row in plain["contributions"]
    ]
    assert {row["spread"] for row in plain["contributions"]} == {None}, "there is one seed"
    assert dict(shown_row[:2] for shown_row in shown)["town"] == "Rome"
    with Image.open(tmp_path / "why" / "explanation.png") as picture:
        assert picture.width > 500
        assert len(picture.convert("RGB").getcolors(10**6) or []) > 20, "something is drawn"
    assert typed(*words, "--strict", cwd=tmp_path).returncode == 1
    assert typed(*words[:-1], "people.csv", cwd=tmp_path).stderr == "fairall: people.csv: File exists\n"
    monkeypatch.setitem(sys.modules, "shap", None)
    said = typed(*words[:-1], "none", cwd=tmp_path)
    assert said.stderr == "fairall: explain: needs shap; install it with: pip install shap\n"
    assert not (tmp_path / "none").exists()
