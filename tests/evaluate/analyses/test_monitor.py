"""The monitor: intervals at all moments, what counts until then, alarms, and what is shown."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate.analyses import monitor
from fairall.evaluate.analyses.monitor import GAPS, MONITOR, UTILITY, Monitor, ratio, watch
from fairall.evaluate.estimated.past import FIRST_FIT, MOST_MOMENTS
from fairall.evaluate.evaluation import Evaluation
from fairall.measuring.sequences import OBSERVATIONS
from tests.evaluate.simulated import applicants, evaluated

N = 2000
GUARANTEED = "guaranteed utility"


def evaluation(table: pd.DataFrame, policy: str | None = "new", **options: Any) -> Evaluation:
    return evaluated(table, policy, **({"propensity": "p", "time": "row"} | options))


def watched(*arguments: Any, **options: Any) -> Monitor:
    return watch(evaluation(*arguments, **options))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return applicants(N).assign(row=np.arange(N) * 0.5)


# Intervals


@pytest.mark.parametrize("policy", ["new", None])
def test_intervals_hold_the_truth_at_all_moments(policy: str | None, table: pd.DataFrame) -> None:
    """That of a large log. How often they do in the logs of a learner is the claim of a simulation."""
    large, seen = evaluation(applicants(30_000, seed=1), policy, time=None), watched(table, policy)
    gaps = [large.fairness[name]["dr"] for name in ("dpu", "equal_opportunity")]
    for what, known in zip((UTILITY, *GAPS), (large.values["dr"], *gaps), strict=True):
        _, low, high = seen.courses[what]
        assert ((low <= known.estimate) & (known.estimate <= high))[np.isfinite(low)].all()
        assert high[-1] - low[-1] < 0.3
    assert (GUARANTEED in seen.courses) == (policy is not None)
    _, low, high = seen.courses.get(GUARANTEED, seen.courses[UTILITY])
    assert np.nanmax(low) <= large.values["dr"].estimate <= np.nanmin(high)


@pytest.mark.parametrize("persons", [60, 300])
def test_variances_are_by_person(persons: int) -> None:
    over, under, weight = parts = np.random.default_rng(0).random((3, 300))
    weight[200:] = np.nan  # rows that do not count
    person = np.arange(300) % persons
    found = ratio(np.array([149, 299]), person if persons < 300 else None, [*parts])
    for n, (value, variance, rows) in zip((150, 200), found.T, strict=True):
        errors, total = np.bincount(person[:n], (over - value * under)[:n]), under[:n].sum()
        assert value == pytest.approx(over[:n].sum() / total)
        assert variance == pytest.approx(((errors**2).sum() + OBSERVATIONS) / total**2)
        assert rows == n


@pytest.mark.parametrize(("every", "start"), [(1, FIRST_FIT), (10, 310), (500, None)])
def test_ratios_begin_with_100_rows_and_more_than_30_equal_weights(every: int, start: int | None) -> None:
    rows = np.arange(1, 401)
    value, *_ = ratio(rows - 1, None, [np.ones(400), np.ones(400), 2.0 * (rows % every == 0)])
    assert rows[np.isfinite(value)].tolist() == [*range(start or 401, 401)]


# The past


@pytest.mark.parametrize("propensity", ["p", None])
def test_what_comes_later_changes_nothing(propensity: str | None, table: pd.DataFrame) -> None:
    later = table.index >= 1200
    other = table.assign(
        score=table["score"].where(~later, 5.0 - table["score"]),
        repaid=table["repaid"].mask(later & table["repaid"].notna(), 1.0),
    )
    first, second = (watched(log, propensity=propensity) for log in (table, other))
    before = first.rows <= 1200
    for what in (UTILITY, *GAPS):
        courses = first.courses[what], second.courses[what]
        np.testing.assert_allclose(courses[0][:, before], courses[1][:, before], atol=1e-6)
    assert abs(courses[0] - courses[1])[0, -1] > 1e-3


@pytest.mark.parametrize("rows", [60, 140])
def test_a_new_version_of_few_rows(table: pd.DataFrame, rows: int) -> None:
    """Its labels count from its own first fit on; the old version's are as in the log without it."""
    part = table.head(300 + rows).assign(version=np.repeat(["old", "new"], [300, rows]))
    weight, before = (
        evaluation(log, propensity=None, drop=drop, policy_version=version).models.past.weight
        for log, drop, version in ((part, [], "version"), (part.head(300), ["version"], None))
    )
    np.testing.assert_array_equal(np.isfinite(weight), np.arange(len(part)) % 300 >= FIRST_FIT)
    np.testing.assert_allclose(weight[:300], before, rtol=1e-5)


# Alarms, and what is refused


def test_bets_are_about_acceptance_and_intervals_about_the_rate_by_label(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfair = table.assign(new=table["new"].where(table["sex"] == "m", 0.1))
    assert watched(unfair, largest_gap=0.9).alarms == {}
    monkeypatch.setattr(monitor, "gap_wealth", lambda phi, *_: np.where(np.arange(len(phi)) < 6, 1.0, 20.0))
    seen = watched(unfair, largest_gap=0.0)
    first = np.flatnonzero(seen.courses[GAPS[1]][1] > 0.0)[0]
    assert seen.alarms == {GAPS[0]: 3.0, GAPS[1]: seen.moments[first]}


def test_intervals_of_the_utility_begin_with_acceptance(table: pd.DataFrame) -> None:
    nobody = table.index < 400
    closed = table.assign(granted=table["granted"].mask(nobody, 0), repaid=table["repaid"].mask(nobody))
    courses = watched(closed, None).courses
    assert np.isnan(courses[UTILITY][1, : MOST_MOMENTS // 5]).all()
    assert np.isfinite(courses[UTILITY][:, -1]).all()


def test_what_is_refused_stays_refused(table: pd.DataFrame) -> None:
    refused = evaluation(table.assign(new=np.where(np.arange(N) < 5, 1.0, 0.0)))
    assert refused.refused_value is not None
    assert watch(refused).courses.keys() == {GAPS[0]}


# What is shown


def test_the_files_have_all_moments_and_the_figure_a_panel_each(table: pd.DataFrame) -> None:
    """With course, limit and alarm."""
    assert evaluation(table).table("monitor")["low"].count() > 3 * 150
    days = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(N) // 50, unit="D")
    unfair = table.assign(row=days, new=np.where(table["sex"] == "m", 0.9, 0.2))
    figure = monitor.draw(evaluation(unfair, largest_gap=0.0).page)
    assert [axes.get_title() for axes in figure.axes] == [f"{what} ×100" for what in (UTILITY, *GAPS)]
    assert [len(axes.lines) for axes in figure.axes] == [1, 3, 3]


def test_a_log_without_times_and_versions_has_no_table(table: pd.DataFrame) -> None:
    shown = evaluation(table, time=None, drop=["row"]).page
    assert (MONITOR.table(shown), MONITOR.figure(shown)) == (None, None)
