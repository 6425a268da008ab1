"""Evaluations in which some quantities have no value, and what the logged decisions have observed."""

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate.comparison import Comparison
from fairall.evaluate.evaluation import Evaluator
from fairall.evaluate.figures import draw_sensitivity
from fairall.evaluate.log import DecisionLog


def _log(n: int = 1200, *, never: str | None = None) -> DecisionLog:
    random = np.random.default_rng(0)
    x, sex = random.normal(size=n), random.choice(["f", "m"], n)
    p = 1 / (1 + np.exp(-x - 0.5 * (sex == "m")))
    accepted = (random.random(n) < p) & (sex != never)
    label = np.where(accepted, random.random(n) < 1 / (1 + np.exp(-2 * x)), np.nan)
    people = pd.DataFrame({"x": x, "sex": sex, "p": p, "d": accepted.astype(int), "y": label})
    return DecisionLog.of(people, decision="d", label="y", sensitive="sex", propensity="p")


def test_sensitivity_of_the_logged_decisions_keeps_what_was_observed() -> None:
    plain = Evaluator(_log()).evaluate().to_plain()
    by_gamma = plain["sensitivity"]["bounds"]
    for row in by_gamma["utility"]:
        assert row["low"] == pytest.approx(plain["value"]["dr"]["estimate"])
        assert row["high"] == pytest.approx(plain["value"]["dr"]["estimate"])
    for name, rows in by_gamma.items():
        if name != "utility":
            assert rows[0]["low"] == pytest.approx(plain["fairness"][name]["dr"]["estimate"]), name
        assert all(row["low"] <= row["high"] + 1e-12 for row in rows), name


def test_a_group_that_was_never_accepted_and_is_not_wanted_leaves_panels_empty() -> None:
    log = _log(never="f")
    target = np.where(np.array(log.groups)[log.group] == "f", 0.0, 0.5)
    plain = Evaluator(log).evaluate(target).to_plain()
    assert plain["value"]["dr"]["estimate"] is not None
    assert "equal_opportunity" not in plain["sensitivity"]["bounds"]
    draw_sensitivity({"policy": plain})


@pytest.mark.filterwarnings("error")
def test_gaps_without_a_value_have_no_probability() -> None:
    log = _log()
    target = np.where(log.group == 0, 0.0, 0.5)  # no precision of group 0
    evaluator = Evaluator(log)
    plain = Comparison(evaluator.evaluate(), evaluator.evaluate(target)).to_plain()
    found = plain["difference"]["fairness"]["predictive_parity"]["dr"]
    assert found["estimate"] is None
    assert found["probability_fairer"] is None
