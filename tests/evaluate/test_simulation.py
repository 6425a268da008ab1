"""Estimates from simulated logs against the truth of their population."""

import functools
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate import evaluation, simulation
from fairall.evaluate.estimators import ESTIMATORS
from fairall.evaluate.intervals import Bootstrap
from fairall.evaluate.simulation import GAPS, Population, simulate, summary
from fairall.evaluate.views import VIEWS

N, LOGS = 1000, 20


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    """Few bootstrap draws, and a population that is quickly made."""
    Population.of.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "Bootstrap", functools.partial(Bootstrap, draws=200))
        patch.setattr(simulation, "LARGE_POPULATION", 20_000)
        yield
    Population.of.cache_clear()


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return simulate(("synthetic",), (N,), ("recorded", "estimated"), logs=LOGS)


@pytest.fixture(scope="module")
def wrong() -> pd.DataFrame:
    return simulate(("synthetic",), (N,), ("wrong propensity", "wrong outcome"), logs=LOGS // 2)


def of_value(found: pd.DataFrame, condition: str) -> pd.DataFrame:
    table = summary(found)
    return table[(table["condition"] == condition) & (table["quantity"] == "value")].set_index("estimator")


def test_the_population() -> None:
    population = Population.of("synthetic")
    assert len(population.people) == 20_000
    assert set(np.unique(population.label)) == {0, 1}
    for chance in (population.propensity, population.target, population.p_label):
        assert ((chance > 0) & (chance < 1)).all()
    truth = population.truth(population.label)
    assert truth["value"] == pytest.approx(np.mean(population.target * (population.label - population.cost)))
    by_group = [population.target[population.people["s"] == s].mean() for s in (-1, 1)]
    assert truth["dpu"] == pytest.approx(abs(by_group[0] - by_group[1]))
    assert truth.keys() == {"value", *GAPS}


@pytest.mark.parametrize("simulated", [False, True])
def test_logs_of_the_population(simulated: bool) -> None:
    population, draw = Population.of("synthetic"), np.random.default_rng(0)
    log, label = population.draw(10_000, draw, simulated)
    accepted = log["decision"] == 1
    np.testing.assert_array_equal(log["label"].notna(), accepted)
    np.testing.assert_array_equal(log["label"][accepted], label[accepted])
    # Decisions follow the propensities, labels their probabilities, within four standard errors.
    assert (accepted - log["propensity"]).mean() == pytest.approx(0, abs=4 * 0.5 / 100)
    expected = population.p_label if simulated else population.label
    assert label.mean() == pytest.approx(expected.mean(), abs=4 * 0.5 / 100)


@pytest.mark.parametrize("condition", ["recorded", "estimated"])
def test_estimates_are_within_simulation_error_and_naive_ones_are_not(
    condition: str, found: pd.DataFrame
) -> None:
    value = of_value(found, condition)
    error = value["mean_error"].abs() / value["standard_error"]
    for name in ("ips", "snips", "dr", "sndr"):
        assert error[name] < 4, name
        assert value.loc[name, "covered"] >= 0.8
    assert error["naive"] > 4
    assert value.loc["dr", "deviation"] < 0.05
    assert value.loc["guarantee", "covered"] == 1


def test_one_right_model_is_enough_for_doubly_robust_estimates(wrong: pd.DataFrame) -> None:
    for condition, off in (("wrong propensity", "ips"), ("wrong outcome", "dm")):
        value = of_value(wrong, condition)
        error = value["mean_error"].abs() / value["standard_error"]
        assert error["dr"] < 4
        assert error[off] > 4


def test_manski_bounds_always_contain_the_truth_of_the_log(found: pd.DataFrame, wrong: pd.DataFrame) -> None:
    for table in (found, wrong):
        bounds = table[table["estimator"] == "manski"]
        assert set(bounds["quantity"]) == {"value", *GAPS}
        within = (bounds["low"] <= bounds["truth"] + 1e-9) & (bounds["truth"] <= bounds["high"] + 1e-9)
        assert within.all()
        # Wide enough to say something, and tight enough to be refuted.
        width = (bounds["high"] - bounds["low"])[bounds["quantity"] == "value"]
        assert (width > 0.05).all()
        assert (width < 0.9).all()


def test_the_table_and_its_summary(found: pd.DataFrame) -> None:
    assert list(found.columns[:4]) == ["population", "size", "condition", "log"]
    per_log = 2 + len(ESTIMATORS) + len(GAPS) * len(VIEWS) + 1 + len(GAPS)
    assert len(found) == 2 * LOGS * per_log
    table = summary(found)
    assert list(table.columns) == [
        "population", "size", "condition", "quantity", "estimator",
        "truth", "mean_error", "standard_error", "deviation", "covered", "logs", "answered",
    ]  # fmt: skip
    assert len(table) == 2 * per_log
    assert (table["logs"] == LOGS).all()
    answered = table[table["estimator"] != "naive"]["answered"]
    assert (answered == LOGS).all()
    own = table.set_index(["condition", "quantity", "estimator"]).loc[("recorded", "value", "ips")]
    rows = found.query("condition == 'recorded' and quantity == 'value' and estimator == 'ips'")
    error = rows["estimate"] - rows["truth"]
    assert own["mean_error"] == pytest.approx(error.mean())
    assert own["standard_error"] == pytest.approx(error.std() / np.sqrt(LOGS))
    assert own["covered"] == pytest.approx(
        ((rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])).mean()
    )


def test_a_log_is_the_same_however_many_are_simulated(found: pd.DataFrame) -> None:
    one = simulate(("synthetic",), (N,), ("estimated",), logs=1)
    same = found[(found["condition"] == "estimated") & (found["log"] == 0)].reset_index(drop=True)
    pd.testing.assert_frame_equal(one, same)
