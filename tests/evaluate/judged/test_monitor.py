"""Monitors: coverage at all moments over logs of learners, what they learn from, and what they refuse."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.evaluate import evaluate
from fairall.evaluate.estimated import past
from fairall.evaluate.estimated.past import FIRST_FIT, MOST_MOMENTS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged.models import Models
from fairall.evaluate.judged.monitor import RATES, Course, Monitor, spelt
from fairall.evaluate.log import DecisionLog
from tests.evaluate.adaptive import KEYS, logs

N = 2000


def log_of(table: pd.DataFrame, **keys: Any) -> DecisionLog:
    return DecisionLog.of(table, **(KEYS | {"propensity": "p"} | keys))


def judged(log: DecisionLog, target: Any = None, **options: Any) -> Evaluation:
    models = Models(log, propensity_model="logistic", outcome_model="logistic", **options)
    if target is None:
        return Evaluation(models, "decisions", log.accepted.astype(float), logged=True)
    return Evaluation(models, "new", np.asarray(target, dtype=float))


def monitor_of(log: DecisionLog, target: Any = None, **options: Any) -> Monitor:
    found = judged(log, target, **options).monitor
    assert found is not None
    return found


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return logs(1, N)[0][0]


@pytest.fixture(scope="module")
def watched(table: pd.DataFrame) -> Monitor:
    return monitor_of(log_of(table), table["new"])


def courses(one: Monitor) -> dict[str, Course]:
    return {"value": one.value} | one.gaps


# Coverage


@pytest.mark.slow
def test_coverage_at_all_moments_of_logs_of_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fits, which take long: each q is the share of positive labels so far."""
    monkeypatch.setattr(past, "_spans", lambda ends: iter(()))
    tables, truth = logs(300, N, seed=10)
    covered: dict[tuple[str, str], list[bool]] = {}
    for k, table in enumerate(tables):
        log = log_of(table)
        models: Any = SimpleNamespace(log=log, shown=np.arange(2), largest_gap=0.05)
        models.past = past.past(log, "logistic", "logistic", folds=5, seed=0)
        for policy, target in (("new", table["new"].to_numpy()), ("taken", log.accepted * 1.0)):
            own: Any = SimpleNamespace(
                log=log,
                models=models,
                target=target,
                logged=policy == "taken",
                refused_value=None,
                doubt=lambda *_: (True, None),
            )
            one = Monitor(own)
            for name, course in courses(one).items():
                true = truth.new[name] if policy == "new" else truth.taken[name][k][one.past.last]
                covered.setdefault((policy, name), []).append(
                    not ((course.low > true) | (course.high < true)).any()
                )
            if policy == "new":
                low, high = one.guarantee.low, one.guarantee.high
                inside = (low <= truth.new["value"]).all() and (high >= truth.new["value"]).all()
                covered.setdefault((policy, "guarantee"), []).append(bool(inside))
    for what, of_logs in covered.items():
        assert np.mean(of_logs) > 0.95 - 0.025, what


def test_intervals_of_one_log_hold_the_truth(table: pd.DataFrame, watched: Monitor) -> None:
    truth = logs(1, N)[1]
    for name, course in courses(watched).items():
        some = ~np.isnan(course.low)
        assert some[-1]
        assert not some[0]
        assert (course.low[some] <= truth.new[name]).all()
        assert (course.high[some] >= truth.new[name]).all()
        assert course.high[-1] - course.low[-1] < course.high[some][0] - course.low[some][0]
    taken = monitor_of(log_of(table))
    for name, course in courses(taken).items():
        some = ~np.isnan(course.low)
        true = truth.taken[name][0][taken.past.last]
        assert ((course.low <= true) & (true <= course.high))[some].all()


def test_the_last_estimates_are_near_those_of_the_finished_log(table: pd.DataFrame) -> None:
    one = judged(log_of(table), table["new"])
    assert one.monitor is not None
    own, finished = one.monitor.value.at(-1), one.values["dr"]
    assert own.estimate == pytest.approx(finished.estimate, abs=0.01)
    width = finished.high - finished.low
    assert width < own.high - own.low < 2.2 * width
    for name in RATES:
        gap = one.monitor.gaps[name].at(-1)
        assert gap.estimate == pytest.approx(one.fairness[name]["dr"].estimate, abs=0.02)
    acceptance = one.monitor.rates["dpu"]["a"].at(-1).estimate
    assert acceptance == pytest.approx(one.groups["a"]["rates"]["dpu"]["dr"].estimate, abs=1e-9)


def test_errors_of_people_with_several_rows_are_by_person(table: pd.DataFrame) -> None:
    """A log with each row twice is worth as much as with each row once."""
    once = monitor_of(log_of(table))
    twice = table.loc[np.repeat(table.index, 2)].assign(id=np.repeat(np.arange(N), 2))
    one = judged(log_of(twice, person="id"))
    assert one.monitor is not None
    for name, own in courses(one.monitor).items():
        single, double = courses(once)[name].at(-1), own.at(-1)
        assert double.estimate == pytest.approx(single.estimate, abs=0.01)
        ratio = (double.high - double.low) / (single.high - single.low)
        assert 0.85 < ratio < 1.15
    assert any("people have several rows" in told for told in one.warnings)


# The past


@pytest.mark.parametrize("recorded", [True, False])
def test_what_comes_later_changes_nothing(table: pd.DataFrame, recorded: bool) -> None:
    keys: dict[str, Any] = {} if recorded else {"propensity": None, "drop": ["p"]}
    other = table.copy()
    later = table.index >= 1200
    other.loc[later, "x"] = 5.0 * table["x"][later] + 2.0
    other.loc[later & other["repaid"].notna().to_numpy(), "repaid"] = 1.0
    other.loc[table.index[-2:], "repaid"] = table["repaid"].iloc[-2:]
    first, second = (monitor_of(log_of(one, **keys), table["new"]) for one in (table, other))
    before = first.past.last < 1200
    assert before.sum() > 50
    for own, changed in zip(courses(first).values(), courses(second).values(), strict=True):
        np.testing.assert_allclose(own.estimate[before], changed.estimate[before], atol=1e-6)
        np.testing.assert_allclose(own.low[before], changed.low[before], atol=1e-6)
    assert abs(first.value.estimate[-1] - second.value.estimate[-1]) > 1e-3


def test_before_the_first_fit_labels_count_only_with_recorded_propensities(table: pd.DataFrame) -> None:
    recorded = monitor_of(log_of(table), table["new"]).past
    estimated = monitor_of(log_of(table, propensity=None, drop=["p"]), table["new"]).past
    assert np.isfinite(recorded.weight).all()
    assert np.isnan(estimated.weight[:FIRST_FIT]).all()
    assert np.isfinite(estimated.weight[FIRST_FIT:]).all()
    assert len(recorded.last) == len(estimated.last) == MOST_MOMENTS


def test_rows_are_watched_in_the_order_of_time(table: pd.DataFrame) -> None:
    shuffled = table.sample(frac=1.0, random_state=0)
    log = log_of(shuffled)
    assert any("not in the order of time" in note for note in log.notes)
    assert not any("order of time" in note for note in log_of(table).notes)
    first, second = monitor_of(log_of(table), table["new"]), monitor_of(log, shuffled["new"])
    np.testing.assert_array_equal(first.time, second.time)
    np.testing.assert_array_equal(first.log.group, second.log.group)
    np.testing.assert_allclose(first.gaps["dpu"].estimate, second.gaps["dpu"].estimate)
    assert first.alarms["dpu"] == second.alarms["dpu"]


# Alarms, moments, and what cannot be told


def test_alarms_are_there_where_the_gap_is_larger(table: pd.DataFrame) -> None:
    found = {gap: monitor_of(log_of(table), table["new"], largest_gap=gap).alarms for gap in (0.0, 0.9)}
    alarm = found[0.0]["dpu"]
    assert alarm.rows is not None
    assert alarm.time == table["row"][alarm.rows - 1]
    assert [one.time for one in found[0.9].values()] == [None, None]


@pytest.mark.parametrize(
    ("written", "last"),
    [
        (lambda day: f"2025-{1 + day // 28:02d}-{1 + day % 28:02d}", "2025-02-12"),
        (lambda day: f"{1 + day % 28:02d}.{1 + day // 28:02d}.2025 10:30", "2025-02-12 10:30:00"),
        (lambda day: f"{1 + day // 28}/{1 + day % 28}/2025", "2025-02-12"),
        (lambda day: day, 39),
        (lambda day: 0.5 * day, 19.5),
    ],
)
def test_moments_are_numbers_or_dates(table: pd.DataFrame, written: Any, last: Any) -> None:
    days = [written(row // 50) for row in range(N)]
    log = log_of(table.assign(row=days))
    assert log.time is not None
    assert len(np.unique(log.time)) == 40
    assert spelt(log.time[-1]) == last


@pytest.mark.parametrize("rows", [40, 99, 100, 130])
@pytest.mark.parametrize("recorded", [True, False])
def test_logs_of_few_rows(table: pd.DataFrame, rows: int, recorded: bool) -> None:
    """There are no intervals before 100 rows, in a log that has ended there or goes on."""
    keys: dict[str, Any] = {} if recorded else {"propensity": None, "drop": ["p"]}
    found = judged(log_of(table.head(rows), **keys), table["new"].head(rows))
    one = found.monitor
    assert one is not None
    (told,) = [text for text in found.warnings if "over time" in text] or [""]
    assert told.startswith("no intervals over time yet") == (rows < 100)
    assert np.isnan(one.value.low[one.past.last + 1 < 100]).all()
    assert np.isnan(one.rates["dpu"]["a"].low[one.past.last + 1 < 100]).all()
    if recorded:
        assert np.isfinite(one.value.low[one.past.last + 1 >= 100]).all()
    longer = monitor_of(log_of(table, **keys), table["new"])
    same = longer.past.last[longer.past.last < rows]
    at = np.isin(one.past.last, same)
    # Models are fitted to the same rows, in other folds.
    np.testing.assert_allclose(one.value.low[at], longer.value.low[: len(same)], atol=0.005)


@pytest.mark.parametrize("rows", [60, 100, 140])
def test_a_new_version_of_few_rows(table: pd.DataFrame, rows: int) -> None:
    """Its labels count from the first fit on; the old version's are as in the log without it."""
    keys = {"propensity": None, "drop": ["p"], "policy_version": "version"}
    part = table.head(300 + rows).assign(version=np.where(np.arange(300 + rows) < 300, "old", "new"))
    one = judged(log_of(part, **keys), part["new"])
    weight = one.models.past.weight  # type: ignore[union-attr]
    assert np.isnan(weight[300:400]).all()
    assert np.isfinite(weight[400:]).all()
    (told,) = [text for text in one.warnings if "policy version new count" in text] or [""]
    assert told.endswith(f"it has {rows} rows") == (rows <= 100)
    before = judged(log_of(part.head(300), **keys), part["new"].head(300)).models.past
    assert before is not None
    np.testing.assert_allclose(weight[:300], before.weight, rtol=1e-5)


def test_groups_that_are_small_and_periods_without_acceptance(table: pd.DataFrame) -> None:
    early = table["row"] <= 200.0
    nobody = table.assign(granted=table["granted"].where(~early, 0), repaid=table["repaid"].where(~early))
    rare = nobody.assign(group=np.where(np.arange(N) % 100 == 0, "rare", nobody["group"]))
    found = monitor_of(log_of(rare))
    acceptance = found.rates["dpu"]["a"]
    start = np.flatnonzero(~np.isnan(acceptance.low))[0]
    assert acceptance.estimate[start] == 0.0
    assert acceptance.high[start] > 0.05
    assert np.isnan(found.value.low[: np.searchsorted(found.moments, 200.0)]).all()
    assert found.gaps["dpu"].why == "group rare has fewer than 30 people"
    assert found.gaps["equal_opportunity"].why is not None
    plain = found.to_plain()
    assert plain["gaps"]["dpu"]["low"][-1] is None
    assert plain["value"]["low"][-1] is not None


def test_what_is_refused_stays_refused(table: pd.DataFrame) -> None:
    few = np.zeros(N)
    few[:5] = 1.0
    one = judged(log_of(table), few)
    assert one.refused_value is not None
    assert one.monitor is not None
    plain = one.monitor.to_plain()
    assert plain["value"]["why"] == plain["gaps"]["equal_opportunity"]["why"] == one.refused_value
    assert plain["alarms"]["equal_opportunity"]["why"] == one.refused_value
    assert plain["gaps"]["dpu"]["low"][-1] is not None


def test_from_python(table: pd.DataFrame) -> None:
    options = KEYS | {"outcome_model": "logistic", "propensity": "p"}
    del options["not_features"]
    plain = evaluate("new", table, **options).to_plain()["monitor"]
    assert plain["largest_gap"] == 0.05
    assert plain["rows"][-1] == N
    assert plain["guarantee"]["low"][-1] <= plain["value"]["estimate"][-1] <= plain["guarantee"]["high"][-1]
    without = {name: value for name, value in options.items() if name != "time"}
    assert evaluate("new", table.drop(columns="row"), **without).to_plain()["monitor"] is None


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({3: "soon"}, "column 'row', row 4: 'soon' is no time"),
        ({0: "2025-01-01", 1: "2025-13-01"}, "row 1: '2025-01-01' is no time"),
        ({5: None}, "row 6: an empty cell is no time"),
        (dict(enumerate(["1/2/2025"] * N)), "row 1: '1/2/2025' may be two dates"),
    ],
)
def test_times_that_do_not_parse(table: pd.DataFrame, row: dict[int, Any], told: str) -> None:
    rows = table["row"].astype(object)
    for position, value in row.items():
        rows[position] = value
    with pytest.raises(FairAllError, match=told):
        log_of(table.assign(row=rows))
