"""The monitor: intervals at all moments of a learner's log, alarms, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate.analyses import monitor
from fairall.evaluate.analyses.monitor import GUARANTEED, MONITOR, Monitor, ratio, watch
from fairall.evaluate.estimated.past import FIRST_FIT, MOST_MOMENTS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models
from fairall.measuring.sequences import OBSERVATIONS
from tests.evaluate.adaptive import KEYS, TRUTHS, learner
from tests.evaluate.simulated import judged

N = 2000
ESTIMATED: dict[str, Any] = {"propensity": None, "drop": ["p"]}


def evaluation(table: pd.DataFrame, policy: str | None = "new", keys: Any = (), **options: Any) -> Evaluation:
    log = DecisionLog.of(table, **(KEYS | {"propensity": "p"} | dict(keys)))
    models = Models(log, propensity_model="logistic", outcome_model="logistic", **options)
    return judged(models, None if policy is None else table[policy])


def watched(*given: Any, **options: Any) -> Monitor:
    found = watch(evaluation(*given, **options))
    assert found is not None
    return found


def ends(one: Monitor, what: str) -> np.ndarray:
    """Estimates, lower and upper ends, shape (3, T)."""
    return np.array([value[:3] for value in one.courses[what]]).T


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return learner(N)[0]


@pytest.fixture(scope="module")
def new(table: pd.DataFrame) -> Monitor:
    return watched(table)


# Intervals


@pytest.mark.parametrize("policy", ["new", None])
def test_intervals_hold_the_truth_at_all_moments(policy: str | None) -> None:
    table, *truths = learner(N)
    true, one = truths[policy is None], watched(table, policy)
    for what in TRUTHS:
        _, low, high = ends(one, what)
        at, some = true[what][one.rows - 1], ~np.isnan(low)
        assert some[-1]
        assert not some[0]
        assert ((low <= at) & (at <= high))[some].all()
        assert high[-1] - low[-1] < (high - low)[some][0]
    if policy:
        _, low, high = ends(one, GUARANTEED)
        assert ((low <= true["utility"][-1]) & (true["utility"][-1] <= high)).all()
        assert high[-1] - low[-1] < 0.3 < high[0] - low[0]


@pytest.mark.parametrize("several", [False, True])
def test_variances_are_by_person(several: bool) -> None:
    """Beside sums over persons, at each moment by themselves."""
    draw = np.random.default_rng(0)
    parts = np.stack([*draw.normal(1.0, 0.5, (2, 300)), draw.random(300)])
    parts[:, draw.random(300) < 0.2] = np.nan
    person, last = draw.integers(0, 60 if several else 10**9, 300), np.array([149, 299])
    value, variance, rows = ratio(last, person if several else None, [*parts], scale=2.0)
    for k, n in enumerate(last + 1):
        frame = pd.DataFrame(parts[:, :n].T, columns=["over", "under", "weight"]).dropna()
        over, under = frame["over"], frame["under"]
        assert value[k] == pytest.approx(over.sum() / under.sum())
        errors = (over - value[k] * under).groupby(person[frame.index]).sum()
        assert variance[k] == pytest.approx(((errors**2).sum() + 4 * OBSERVATIONS) / under.sum() ** 2)
        assert rows[k] == len(frame)


def test_ratios_begin_with_100_rows_and_30_equal_weights() -> None:
    last, one = np.arange(400), np.ones(400)
    value, *_ = ratio(last, None, [one, one, one])
    assert np.flatnonzero(~np.isnan(value))[0] == FIRST_FIT - 1
    value, *_ = ratio(last, None, [one, one, np.where(last % 10 == 9, 2.0, 0.0)])
    assert np.flatnonzero(~np.isnan(value))[0] == 299
    assert np.isnan(ratio(last, None, [one, one, 0.0 * one])[0]).all()


def test_the_last_estimates_are_near_those_of_the_finished_log(table: pd.DataFrame, new: Monitor) -> None:
    one = evaluation(table)
    last, finished = new.courses["utility"][-1], one.values["dr"]
    assert last.estimate == pytest.approx(finished.estimate, abs=0.01)
    assert 1.0 < (last.high - last.low) / (finished.high - finished.low) < 2.2
    for what, measure in zip(TRUTHS[1:], ("dpu", "equal_opportunity"), strict=True):
        assert new.courses[what][-1].estimate == pytest.approx(one.fairness[measure]["dr"].estimate, abs=0.02)
    rate = new.courses["acceptance rate, a"][-1].estimate
    assert rate == pytest.approx(table["new"][table["group"] == "a"].mean())


# The past


@pytest.mark.parametrize("keys", [{}, ESTIMATED], ids=["recorded", "estimated"])
def test_what_comes_later_changes_nothing(table: pd.DataFrame, keys: Any) -> None:
    later, labelled = table.index >= 1200, table["repaid"].notna()
    other = table.assign(x=table["x"].where(~later, 5.0 * table["x"] + 2.0))
    other.loc[later & labelled & (table.index < N - 2), "repaid"] = 1.0
    first, second = watched(table, "new", keys), watched(other, "new", keys)
    before = first.rows <= 1200
    assert before.sum() > 50
    for what in TRUTHS:
        np.testing.assert_allclose(ends(first, what)[:, before], ends(second, what)[:, before], atol=1e-6)
    assert abs(first.courses["utility"][-1].estimate - second.courses["utility"][-1].estimate) > 1e-3
    assert len(first.rows) == MOST_MOMENTS


def test_rows_are_watched_in_the_order_of_time(table: pd.DataFrame, new: Monitor) -> None:
    shuffled = table.sample(frac=1.0, random_state=0)
    assert any("not in the order of time" in note for note in evaluation(shuffled).log.notes)
    assert not any("order of time" in note for note in evaluation(table).log.notes)
    other = watched(shuffled)
    np.testing.assert_array_equal(new.moments, other.moments)
    np.testing.assert_allclose(ends(new, TRUTHS[1]), ends(other, TRUTHS[1]))
    assert new.alarms[TRUTHS[1]] == other.alarms[TRUTHS[1]]


@pytest.mark.parametrize("rows", [99, 130])
def test_logs_of_few_rows(table: pd.DataFrame, new: Monitor, rows: int) -> None:
    """There are no intervals before 100 rows, in a log that has ended there or goes on."""
    short, warnings = watched(table.head(rows)), evaluation(table.head(rows)).warnings
    assert any(text.startswith("no intervals over time yet") for text in warnings) == (rows < 100)
    at, of_longer = np.isin(short.rows, new.rows), new.rows <= rows
    for what in ("utility", "acceptance rate, a"):
        low = ends(short, what)[1]
        np.testing.assert_array_equal(np.isnan(low), short.rows < 100)
        # Models are fitted to the same rows, in other folds.
        np.testing.assert_allclose(low[at], ends(new, what)[1][of_longer], atol=0.005)


@pytest.mark.parametrize("rows", [60, 100, 140])
def test_a_new_version_of_few_rows(table: pd.DataFrame, rows: int) -> None:
    """Its labels count from the first fit on; the old version's are as in the log without it."""
    keys = ESTIMATED | {"policy_version": "version"}
    part = table.head(300 + rows).assign(version=np.where(np.arange(300 + rows) < 300, "old", "new"))
    one, before = evaluation(part, "new", keys), evaluation(part.head(300), "new", keys).models.past
    assert one.models.past is not None
    assert before is not None
    weight = one.models.past.weight
    np.testing.assert_array_equal(np.isfinite(weight), np.arange(len(part)) % 300 >= FIRST_FIT)
    (told,) = [text for text in one.warnings if "policy version new count" in text] or [""]
    assert told.endswith(f"it has {rows} rows") == (rows <= 100)
    np.testing.assert_allclose(weight[:300], before.weight, rtol=1e-5)


# Alarms, and what cannot be told


def test_alarms_are_there_where_the_gap_is_larger(table: pd.DataFrame) -> None:
    time, text = watched(table, largest_gap=0.0).alarms[TRUTHS[1]]
    assert text == f"{monitor.spelt(time)}, after {int(2 * time)} rows"
    assert set(watched(table, largest_gap=0.9).alarms.values()) == {(None, "none")}


def test_bets_are_about_acceptance_and_intervals_about_the_rate_by_label(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "gap_wealth", lambda phi, *_: np.where(np.arange(len(phi)) < 6, 1.0, 20.0))
    one = watched(table, largest_gap=0.0)
    assert one.alarms[TRUTHS[1]] == (3.5, "3.5, after 7 rows")
    first = np.flatnonzero(ends(one, TRUTHS[2])[1] > 0.0)[0]
    assert one.alarms[TRUTHS[2]][0] == one.moments[first]


def test_groups_that_are_small_and_periods_without_acceptance(table: pd.DataFrame) -> None:
    early = table["row"] <= 200.0
    nobody = table.assign(granted=table["granted"].where(~early, 0), repaid=table["repaid"].where(~early))
    rare = nobody.assign(group=np.where(np.arange(N) % 100 == 0, "rare", nobody["group"]))
    one = watched(rare, None)
    estimate, low, high = ends(one, "acceptance rate, a")
    start = np.flatnonzero(~np.isnan(low))[0]
    assert estimate[start] == 0.0
    assert high[start] > 0.05
    low = ends(one, "utility")[1]
    assert np.isnan(low[: np.searchsorted(one.moments, 200.0)]).all()
    assert np.isfinite(low[-1])
    for what in TRUTHS[1:]:
        assert np.isnan(ends(one, what)).all()
    assert str(one.courses[TRUTHS[1]][-1].why).startswith("it begins with 100 rows")


def test_what_is_refused_stays_refused(table: pd.DataFrame) -> None:
    one = evaluation(table.assign(new=np.where(np.arange(N) < 5, 1.0, 0.0)))
    assert one.refused_value is not None
    monitor = watch(one)
    assert monitor is not None
    courses = monitor.courses
    refused = {what for what, course in courses.items() if course[-1].why == one.refused_value}
    assert refused == {"utility", GUARANTEED, *(what for what in courses if "true-positive" in what)}
    assert not np.isnan(courses[TRUTHS[1]][-1].low)


# What is shown


def test_the_table_has_some_moments_the_files_have_all(table: pd.DataFrame) -> None:
    shown = evaluation(table).page
    found = MONITOR.table(shown)
    assert found is not None
    until = [f"until {n // 2}, {n} rows" for n in (10, 510, 1010, 1500, 2000)]
    assert [name for _, name in found.frame.index] == [*until, "first alarm"]
    assert list(found.frame) == ["utility", GUARANTEED, *TRUTHS[1:]]
    records = found.records[found.records["what"] == "utility"]
    assert len(records) == MOST_MOMENTS
    assert records["estimate"].notna().sum() == records["low"].notna().sum() > 150
    assert records["rows"].iloc[-1] == N
    (told,) = MONITOR.told(shown)
    assert told.startswith("policy: over all rows until 1000, ×100, with 95 % intervals")
    assert f"utility: {found.frame['utility'].iloc[-2]}; guaranteed utility: [" in told
    alarm = found.frame[TRUTHS[1]].iloc[-1]
    assert f"; gap of acceptance rates above ε = 5.0: first alarm {alarm}; gap of true-positive" in told


def test_a_log_without_times_and_versions_has_no_table(table: pd.DataFrame) -> None:
    shown = evaluation(table, "new", {"time": None, "drop": ["row"]}).page
    assert MONITOR.table(shown) is None
    assert MONITOR.figure(shown) is None
    assert [*MONITOR.told(shown)] == []


def test_the_figure_has_a_panel_each_and_first_alarms(table: pd.DataFrame) -> None:
    days = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(N) // 50, unit="D")
    one = evaluation(table.assign(row=days), largest_gap=0.0)
    shown = one.page
    assert "until 2025-02-09, ×100" in next(MONITOR.told(shown))
    found = MONITOR.figure(shown)
    assert found is not None
    assert found.draw is not None
    figure = found.draw()
    assert [axes.get_title() for axes in figure.axes] == [f"{what} ×100" for what in TRUTHS]
    (legend,) = figure.legends
    names = ["policy", "guaranteed", "ε", "first alarm"]
    assert [text.get_text() for text in legend.get_texts()] == names
