"""Equal treatment: a hand-written estimate, known direct effects, refusals, decision makers and scores."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate.analyses import treatment
from fairall.evaluate.analyses.treatment import equal_treatment
from fairall.evaluate.estimated.nuisance import Fitted
from fairall.evaluate.evaluation import Evaluation
from tests.evaluate.simulated import evaluated


def people(n: int = 4000, direct: float = 0.0, shift: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """Women of lower x, who of equal x are accepted less often by `direct`."""
    draw = np.random.default_rng(seed)
    woman = draw.random(n) < 0.4
    x = draw.normal(size=n) - shift * woman
    chance = 0.1 + 0.7 * expit(2 * x) - direct * woman
    granted = (draw.random(n) < chance).astype(int)
    table = {"sex": np.where(woman, "f", "m"), "x": x, "p": 0.5, "granted": granted, "chance": chance}
    return pd.DataFrame(table)


def judged(table: pd.DataFrame, policy: Any = None, **options: Any) -> Evaluation:
    return evaluated(table, policy, **({"label": None, "propensity": "p", "reference": "m"} | options))


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
    sides, outcomes = np.stack([woman, ~woman]), np.stack(models[1:])
    weight = sides / np.stack([models[0], 1 - models[0]])
    weight /= weight.mean(1, keepdims=True)
    residual = weight * (a - outcomes)
    rates, raw = (outcomes + residual).mean(1), np.subtract(*(a[side].mean() for side in sides))
    parts = outcomes + residual - weight * residual.mean(1, keepdims=True)
    adjusted, odds = np.subtract(*rates), rates / (1 - rates)
    expected = {
        "raw": raw,
        "adjusted": adjusted,
        "explained": raw - adjusted,
        "odds_ratio": odds[0] / odds[1],
    }
    assert {name: value.estimate for name, value in values.items()} == pytest.approx(expected)
    half = 1.96 * np.std(parts[0] - parts[1]) / np.sqrt(600)
    assert values["adjusted"].high - adjusted == pytest.approx(half, rel=0.05)  # few people are heeded
    of_log = parts / (rates * (1 - rates))[:, None]
    factor = np.exp(1.96 * np.std(of_log[0] - of_log[1]) / np.sqrt(600))
    assert values["odds_ratio"].high == pytest.approx(expected["odds_ratio"] * factor, rel=0.01)


def test_features_explain_the_raw_gap_but_the_direct_effect() -> None:
    """A simulation has the coverage, also without a direct effect."""
    judgement = judged(people(direct=0.1))
    values = measures(judgement)
    adjusted = values["adjusted"]
    assert values["raw"].high < -0.15
    assert adjusted.low < -0.1 < adjusted.high < 0
    assert values["odds_ratio"].high < 1
    shown = judgement.table("treatment").set_index("measure")
    assert shown.loc["adjusted", "estimate"] == adjusted.estimate
    (sentence,) = treatment.told(judgement.page)
    assert f"by {100 * adjusted.estimate:.1f}".replace("-", "−") in sentence


def test_probabilities_of_a_policy_are_compared_too() -> None:
    """Without the noise of drawn decisions."""
    adjusted = measures(judged(people(2000, direct=0.1), "chance"))["adjusted"]
    assert adjusted.low < -0.1 < adjusted.high < adjusted.low + 0.03


@pytest.mark.parametrize(
    ("table", "keys", "measure", "why"),
    [
        (people(shift=5.0), {}, "adjusted", treatment.NO_OVERLAP),
        (people(60), {}, "adjusted", treatment.NO_OVERLAP),
        (people(400).assign(x=1.0), {}, "adjusted", treatment.NO_FEATURES),
        (people(300).assign(f=0.4, m=0.6), {"sensitive": ["f", "m"]}, "adjusted", treatment.PROBABLE),
        (
            people(600).assign(granted=lambda table: table["granted"].mask(table["sex"] == "m", 1)),
            {},
            "odds_ratio",
            treatment.NO_ODDS,
        ),
    ],
)
def test_groups_that_cannot_be_compared_are_refused(
    table: pd.DataFrame, keys: dict[str, Any], measure: str, why: str
) -> None:
    """The last ones have no odds ratio, since all men are accepted."""
    evaluation = judged(table, **keys)
    assert measures(evaluation)[measure].why == why
    assert (measure != "adjusted") != (f": {why}" in "".join(treatment.told(evaluation.page)))


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


@pytest.mark.parametrize("lower", [0.5, 0.0])
def test_the_residual_difference_of_a_score(lower: float) -> None:
    """A score that is a feature is left out: here x, which is lower for women; another one is x alone."""
    table = people(2000)
    score = expit(table["x"] - lower * (table["sex"] == "f"))
    value = measures(judged(table.assign(score=score), score=score.to_numpy()))["score"]
    assert value.high < -0.2 if lower else value.low < 0 < value.high
