"""Explanations of decisions: Shapley values against known ones, and the command."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from pytest_regressions.file_regression import FileRegressionFixture

from fairall.decide.explain import BACKGROUND, explain
from fairall.decide.reasons import typical
from tests.conftest import refused, succeeded
from tests.decide.additive import HERE, READER, Additive, additive
from tests.decide.conftest import check_text

PEOPLE = pd.read_csv(HERE / "people.csv", skiprows=[11])


def test_contributions_of_an_additive_policy(tmp_path: Path) -> None:
    policy = additive(tmp_path, seeds=2)
    others = PEOPLE.assign(income=PEOPLE["income"] / 5, debt=PEOPLE["debt"] % 2)
    made_up = typical(READER, BACKGROUND, np.random.default_rng(0))
    own = torch.column_stack(policy.encoded(PEOPLE))[1]
    for given, compared in ((others, torch.column_stack(policy.encoded(others))), (None, made_up)):
        found = explain(policy, PEOPLE, 1, given)
        table = found.contributions.loc[["income", "debt", "home", "sex"]]
        assert table["value"].tolist() == ["0.0", "1", "own", "female"]
        assert found.contributions["contribution"].abs().is_monotonic_decreasing
        assert found.probability == pytest.approx(policy.decision_proba(PEOPLE)[1, 1])
        average = policy.encoded_propensity(compared[:, :-1], compared[:, -1]).mean()
        assert found.average == pytest.approx(average, abs=1e-6)
        assert found.average + table["contribution"].sum() == pytest.approx(found.probability, abs=2e-6)
        if given is not None:  # scores between 0 and 1, of two seeds
            first = (Additive.weight * (own - compared.mean(0))).numpy()
            of_seeds = np.stack([first, first / [1, 2, 2, 2]])
            np.testing.assert_allclose(table["contribution"], of_seeds.mean(0), atol=2e-6)
            np.testing.assert_allclose(table["spread"], of_seeds.std(0, ddof=1), atol=2e-6)
            np.testing.assert_allclose(table["error"], 0, atol=2e-6)


def test_errors_are_those_of_the_mean_over_orders_and_random_numbers_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = additive(tmp_path)  # scores end at 0 and 1
    np.random.seed(5)
    few = explain(policy, PEOPLE, 3, PEOPLE)
    np.testing.assert_array_equal(np.random.random(3), np.random.RandomState(5).random(3))
    assert explain(policy, PEOPLE, 3, PEOPLE).to_plain() == few.to_plain()
    monkeypatch.setattr("fairall.decide.explain.ORDERS", 200)
    known = explain(policy, PEOPLE, 3, PEOPLE).contributions
    told = few.contributions.loc[known.index]
    # 200 orders know the contributions, and the error, which is larger by √20 for ten.
    expected = (known["error"] ** 2).sum() * 20
    assert ((told["contribution"] - known["contribution"]) ** 2).sum() < 6 * expected
    assert 0.25 < (told["error"] ** 2).sum() / expected < 4
    assert expected > 1e-8


def test_the_command_explains_a_row_that_is_judged_with_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_regression: FileRegressionFixture
) -> None:
    policy = additive(tmp_path / "policy", seeds=1)
    table = pd.read_csv(HERE / "people.csv")
    table.to_csv(tmp_path / "people.csv", index=False)
    words = "decide", "policy", "people.csv", "--explain", "11", "-o", "why"
    said = succeeded(*words, cwd=tmp_path, drawn=True).stdout
    written = (tmp_path / "why" / "explanation.json").read_text()
    with pytest.warns(UserWarning, match="not known"):
        assert json.loads(written)["probability"] == pytest.approx(policy.decision_proba(table)[10, 1])
    check_text(said + written, file_regression)
    with Image.open(tmp_path / "why" / "explanation.png") as picture:
        assert len(picture.convert("RGB").getcolors(10**6) or []) > 20, "something is drawn"
    monkeypatch.setitem(sys.modules, "shap", None)
    told = refused(*words[:-1], "none", cwd=tmp_path)
    assert told == "fairall: explain: needs shap; install it with: pip install shap\n"
    assert not (tmp_path / "none").exists()
