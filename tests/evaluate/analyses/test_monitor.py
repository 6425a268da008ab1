"""The monitor: intervals at all moments of a learner's log, alarms, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate.analyses import monitor
from fairall.evaluate.analyses.monitor import MONITOR, Monitor, ratio, watch
from fairall.evaluate.estimated.past import FIRST_FIT, MOST_MOMENTS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models
from fairall.measuring.sequences import OBSERVATIONS
from tests.evaluate.adaptive import KEYS, TRUTHS, learner
from tests.evaluate.simulated import judged

N = 2000
GUARANTEED = "guaranteed utility"
ESTIMATED: dict[str, Any] = {"propensity": None, "drop": ["p"]}


def evaluation(table: pd.DataFrame, policy: str | None = "new", keys: Any = (), **options: Any) -> Evaluation:
    log = DecisionLog.of(table, **(KEYS | {"propensity": "p"} | dict(keys)))
    models = Models(log, propensity_model="logistic", outcome_model="logistic", **options)
    return judged(models, None if policy is None else table[policy])


def watched(*arguments: Any, **options: Any) -> Monitor:
    return watch(evaluation(*arguments, **options))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return learner(N)[0]


# Intervals


@pytest.mark.parametrize("policy", ["new", None])
def test_intervals_hold_the_truth_at_all_moments(policy: str | None) -> None:
    table, *truths = learner(N)
    true = truths[policy is None]
    seen = watched(table, policy)
    for what in TRUTHS:
        _, low, high = seen.courses[what]
        begun = np.isfinite(low)
        at = true[what][seen.rows - 1]
        assert begun[-1]
        assert ((low <= at) & (at <= high))[begun].all()
    assert (GUARANTEED in seen.courses) == (policy is not None)
    if policy:
        _, low, high = seen.courses[GUARANTEED]
        assert low.max() <= true["utility"][-1] <= high.min()


@pytest.mark.parametrize("persons", [60, None])
def test_variances_are_by_person(persons: int | None) -> None:
    draw = np.random.default_rng(0)
    over, under, weight = draw.random((3, 300))
    weight[200:] = np.nan  # rows that do not count
    person = np.arange(300) % (persons or 300)
    value, variance, rows = ratio(np.array([149, 299]), person if persons else None, [over, under, weight])
    for k, n in enumerate((150, 200)):
        assert value[k] == pytest.approx(over[:n].sum() / under[:n].sum())
        errors = np.bincount(person[:n], (over - value[k] * under)[:n])
        assert variance[k] == pytest.approx(((errors**2).sum() + OBSERVATIONS) / under[:n].sum() ** 2)
        assert rows[k] == n


@pytest.mark.parametrize(("every", "start"), [(1, FIRST_FIT), (10, 310), (500, None)])
def test_ratios_begin_with_100_rows_and_more_than_30_equal_weights(every: int, start: int | None) -> None:
    rows = np.arange(1, 401)
    value, *_ = ratio(rows - 1, None, [np.ones(400), np.ones(400), 2.0 * (rows % every == 0)])
    assert rows[np.isfinite(value)].tolist() == [*range(start or 401, 401)]


# The past


@pytest.mark.parametrize("keys", [{}, ESTIMATED], ids=["recorded", "estimated"])
def test_what_comes_later_changes_nothing(table: pd.DataFrame, keys: Any) -> None:
    later = table.index >= 1200
    good = later & table["repaid"].notna()
    other = table.assign(
        x=table["x"].where(~later, 5.0 * table["x"] + 2.0), repaid=table["repaid"].where(~good, 1.0)
    )
    first, second = watched(table, "new", keys), watched(other, "new", keys)
    before = first.rows <= 1200
    for what in TRUTHS:
        courses = first.courses[what], second.courses[what]
        np.testing.assert_allclose(courses[0][:, before], courses[1][:, before], atol=1e-6)
    assert abs(courses[0] - courses[1])[0, -1] > 1e-3


def test_rows_are_watched_in_the_order_of_time(table: pd.DataFrame) -> None:
    first, second = watched(table), watched(table.sample(frac=1.0, random_state=0))
    np.testing.assert_allclose(first.courses[TRUTHS[1]], second.courses[TRUTHS[1]])
    assert first.alarms == second.alarms


@pytest.mark.parametrize("rows", [60, 140])
def test_a_new_version_of_few_rows(table: pd.DataFrame, rows: int) -> None:
    """Its labels count from its own first fit on; the old version's are as in the log without it."""
    part = table.head(300 + rows).assign(version=np.repeat(["old", "new"], [300, rows]))
    models = evaluation(part, "new", ESTIMATED | {"policy_version": "version"}).models
    before = evaluation(part.head(300), "new", ESTIMATED | {"drop": ["p", "version"]}).models
    weight = models.past.weight
    np.testing.assert_array_equal(np.isfinite(weight), np.arange(len(part)) % 300 >= FIRST_FIT)
    np.testing.assert_allclose(weight[:300], before.past.weight, rtol=1e-5)


# Alarms, and what is refused


def test_bets_are_about_acceptance_and_intervals_about_the_rate_by_label(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched(table, largest_gap=0.9).alarms == {}
    monkeypatch.setattr(monitor, "gap_wealth", lambda phi, *_: np.where(np.arange(len(phi)) < 6, 1.0, 20.0))
    seen = watched(table, largest_gap=0.0)
    first = np.flatnonzero(seen.courses[TRUTHS[2]][1] > 0.0)[0]
    assert seen.alarms == {TRUTHS[1]: 3.5, TRUTHS[2]: seen.moments[first]}


def test_intervals_of_the_utility_begin_with_acceptance(table: pd.DataFrame) -> None:
    nobody = table.assign(granted=table["granted"].where(table.index >= 400, 0))
    courses = watched(nobody.assign(repaid=table["repaid"].where(nobody["granted"] == 1)), None).courses
    assert np.isnan(courses["utility"][1, : MOST_MOMENTS // 5]).all()
    assert np.isfinite(courses["utility"][:, -1]).all()


def test_what_is_refused_stays_refused(table: pd.DataFrame) -> None:
    refused = evaluation(table.assign(new=np.where(np.arange(N) < 5, 1.0, 0.0)))
    assert refused.refused_value is not None
    assert watch(refused).courses.keys() == {TRUTHS[1]}


# What is shown


def test_the_table_has_the_last_moment_the_files_have_all(table: pd.DataFrame) -> None:
    shown = evaluation(table, largest_gap=0.0).page
    page_table = MONITOR.table(shown)
    assert page_table is not None
    assert [name for _, name in page_table.frame.index] == ["all rows so far", "first alarm"]
    assert list(page_table.frame) == ["utility", GUARANTEED, *TRUTHS[1:]]
    assert page_table.records["low"].count() > 3 * 150
    alarms = watch(shown.first).alarms
    for what, cell in page_table.frame.loc[("", "first alarm")].items():
        assert cell == (f"{alarms[what]:g}" if what in alarms else "")


def test_a_log_without_times_and_versions_has_no_table(table: pd.DataFrame) -> None:
    shown = evaluation(table, "new", {"time": None, "drop": ["row"]}).page
    assert (MONITOR.table(shown), MONITOR.figure(shown)) == (None, None)


def test_the_figure_has_a_panel_each_with_course_limit_and_alarm(table: pd.DataFrame) -> None:
    days = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(N) // 50, unit="D")
    shown = evaluation(table.assign(row=days), largest_gap=0.0).page
    figure = monitor.draw(shown)
    assert [axes.get_title() for axes in figure.axes] == [f"{what} ×100" for what in TRUTHS]
    assert [len(axes.lines) for axes in figure.axes] == [1, 3, 3]
