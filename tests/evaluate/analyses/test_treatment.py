"""Equal treatment: a hand-written estimate, known direct effects, refusals, decision makers and scores."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate import evaluate
from fairall.evaluate.analyses import treatment
from fairall.evaluate.analyses.treatment import equal_treatment
from fairall.evaluate.estimated.nuisance import Fitted, fit
from fairall.evaluate.evaluation import Evaluation

KEYS: dict[str, Any] = {"decision": "granted", "sensitive": "sex", "propensity": "p", "reference": "m"}


def people(n: int = 4000, direct: float = 0.0, shift: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """Women of lower x, who of equal x are accepted less often by `direct`."""
    draw = np.random.default_rng(seed)
    woman = draw.random(n) < 0.4
    x = draw.normal(size=n) - shift * woman
    chance = 0.1 + 0.7 * expit(2 * x) - direct * woman
    granted = (draw.random(n) < chance).astype(int)
    table = {"sex": np.where(woman, "f", "m"), "x": x, "p": 0.5, "granted": granted, "chance": chance}
    return pd.DataFrame(table)


def judged(table: pd.DataFrame, policy: Any = None, **keys: Any) -> Evaluation:
    keys = {"propensity_model": "logistic", "not_features": ["chance"]} | KEYS | keys
    return evaluate(policy, table, **keys)


def measures(evaluation: Evaluation, who: str = "f") -> dict[str, Any]:
    return {one["measure"]: one["value"] for one in equal_treatment(evaluation) if one["who"] == who}


def test_the_estimate_is_that_written_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the true P(group | x), and a model of acceptance that is wrong."""
    table = people(600, direct=0.1)
    woman, a, x = (table["sex"] == "f").to_numpy(), table["granted"].to_numpy(), table["x"].to_numpy()
    models = [expit(np.log(0.4 / 0.6) - 0.5 - x), expit(x), np.full(600, 0.3)]
    fitted = iter([Fitted(probability, "known", 0.0, 0.5) for probability in models])
    monkeypatch.setattr(treatment, "fit", lambda *_: next(fitted))
    values = measures(judged(table))
    rates, parts = np.empty(2), np.empty((2, 600))
    for k, (side, e) in enumerate(((woman, models[0]), (~woman, 1 - models[0]))):
        weight, residual = side / e / (side / e).mean(), a - models[1 + k]
        rates[k] = (models[1 + k] + weight * residual).mean()
        parts[k] = models[1 + k] + weight * (residual - (weight * residual).mean())
    adjusted, raw = rates[0] - rates[1], a[woman].mean() - a[~woman].mean()
    assert values["adjusted"].estimate == pytest.approx(adjusted)
    assert values["raw"].estimate == pytest.approx(raw)
    assert values["explained"].estimate == pytest.approx(raw - adjusted)
    half = 1.96 * np.std(parts[0] - parts[1]) / np.sqrt(600)
    assert values["adjusted"].high - adjusted == pytest.approx(half, rel=0.05)  # few people are heeded
    odds = rates / (1 - rates)
    assert values["odds_ratio"].estimate == pytest.approx(odds[0] / odds[1])
    of_log = parts / (rates * (1 - rates))[:, None]
    factor = np.exp(1.96 * np.std(of_log[0] - of_log[1]) / np.sqrt(600))
    assert values["odds_ratio"].high == pytest.approx(odds[0] / odds[1] * factor, rel=0.01)


@pytest.mark.parametrize("direct", [0.0, 0.1])
def test_features_explain_the_raw_gap_but_the_direct_effect(direct: float) -> None:
    judgement = judged(people(direct=direct))
    values = measures(judgement)
    assert values["raw"].high < -0.15
    assert values["adjusted"].low < -direct < values["adjusted"].high
    assert (values["adjusted"].high < 0) == (values["odds_ratio"].high < 1) == (direct > 0)
    assert values["explained"].estimate == pytest.approx(values["raw"].estimate + direct, abs=0.05)
    shown = judgement.table("treatment").set_index("measure")
    assert shown.loc["adjusted", "estimate"] == values["adjusted"].estimate
    (sentence,) = treatment.told(judgement.page)
    assert f"by {100 * values['adjusted'].estimate:.1f}".replace("-", "−") in sentence


def test_probabilities_of_a_policy_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    table, recorded = people(2000, direct=0.1), Mock(wraps=fit)
    monkeypatch.setattr(treatment, "fit", recorded)
    adjusted = measures(judged(table, "chance"))["adjusted"]
    assert adjusted.low < -0.1 < adjusted.high < adjusted.low + 0.03  # without the noise of drawn decisions
    # Models learn a probability as a share of decisions.
    _, *by_group = (call.args[1].reshape(2000, treatment.COPIES).mean(1) for call in recorded.call_args_list)
    for sex, shares in zip("fm", by_group, strict=True):
        assert (np.isnan(shares) == (table["sex"] != sex)).all()
        assert np.nanmax(abs(shares - table["chance"])) <= 1 / treatment.COPIES


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (people(shift=5.0), treatment.NO_OVERLAP),
        (people(60), treatment.NO_OVERLAP),
        (people(400).assign(x=1.0), treatment.NO_FEATURES),
    ],
)
def test_groups_that_cannot_be_compared_are_refused(table: pd.DataFrame, why: str) -> None:
    evaluation = judged(table)
    assert f"Equal treatment of f, the logged decisions: {why}" in [*treatment.told(evaluation.page)]


def test_groups_by_probabilities_are_refused() -> None:
    table = people(300).assign(f=0.4, m=0.6).drop(columns="sex")
    assert measures(judged(table, sensitive=["f", "m"]))["adjusted"].why == treatment.PROBABLE


def test_nobody_or_everybody_accepted_has_no_odds_ratio() -> None:
    table = people(600)
    everybody = judged(table.assign(granted=np.where(table["sex"] == "m", 1, table["granted"])))
    assert measures(everybody)["odds_ratio"].why == treatment.NO_ODDS
    assert measures(everybody)["adjusted"].high < 0


def test_rows_of_a_person_count_once() -> None:
    table = people(600, 0.1)
    table["who"] = np.arange(600)
    once, thrice = (
        measures(judged(rows, person="who"))["adjusted"] for rows in (table, pd.concat([table] * 3))
    )
    assert thrice.high - thrice.low == pytest.approx(once.high - once.low, rel=0.15)


def test_decision_makers_are_compared_by_themselves() -> None:
    """One takes .3 off for women, the other nothing; one of few people is left out."""
    table = people(3000)
    maker = np.array(["Abel", "Berg"])[np.arange(3000) % 2]
    maker[:20] = "Cohn"
    less = np.random.default_rng(1).random(3000) < 0.5
    unfair = (table["sex"] == "f") & (maker == "Abel") & less
    evaluation = judged(table.assign(granted=table["granted"] * ~unfair, who=maker), decision_maker="who")
    assert {one["decision_maker"] for one in equal_treatment(evaluation)} == {None, "Abel", "Berg"}
    abel, berg = (measures(evaluation, f"f, decided by {name}")["adjusted"] for name in ("Abel", "Berg"))
    assert abel.high < -0.1
    assert berg.low < 0 < berg.high


def test_the_residual_difference_of_a_score() -> None:
    """A score that is a feature is left out: here x and 0.1 for men; another one is x alone."""
    table = people(2000)
    woman = table["sex"] == "f"
    scores = {True: expit(table["x"] - 0.5 * woman), False: expit(table["x"])}
    for lower, score in scores.items():
        value = measures(judged(table.assign(score=score), score=score.to_numpy()))["score"]
        assert (value.high < -0.2) == lower
        assert lower or value.low < 0 < value.high
