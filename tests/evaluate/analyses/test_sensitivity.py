"""Records, figure and sentences of the sensitivity analysis."""

import pytest

from fairall.evaluate import compare, evaluate
from fairall.evaluate.analyses.sensitivity import SENSITIVITY, sensitivity
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.evaluation import Comparison
from fairall.evaluate.page import Page
from tests.evaluate.estimated.test_officers import KEYS, cases
from tests.evaluate.simulated import applicants, judged, models_of

LOGISTIC = {"propensity_model": "logistic", "outcome_model": "logistic"}


@pytest.fixture(scope="module")
def shown() -> Page:
    """Two policies on a log of decision makers."""
    people = cases(3000, 1).drop(columns="truth")
    return compare("new", "other", people, **LOGISTIC, **KEYS).page


def test_records_are_bounds_and_the_turning_point(shown: Page) -> None:
    first, rows = shown.first, dict[tuple[str, str], tuple[object, float]]()
    for row in SENSITIVITY.records(shown):
        if row["policy"] == "A: new":
            rows[row["measure"], row["view"]] = row["value"], row["gamma"]
    answer = sensitivity(first)
    assert answer is not None
    for view, limits in (("no assumption", first.bounds), (OFFICERS, first.officers)):
        assert {name: rows[name, view] for name in limits} == {name: (limits[name], None) for name in limits}
    assert rows["utility", "Γ = 3"] == (answer.bounds[3.0]["utility"], 3.0)
    point = answer.turning_point
    assert point is not None
    assert rows["utility", "turning point"] == (f"up to Γ = {point:.2f}", point)
    for gamma, certain in ((point - 0.01, True), (point + 0.01, False)):
        assert first.bounded(gamma, ())["utility"].exclude_0 is certain


def test_the_table_has_a_few_odds_ratios_and_the_difference_in_utility(shown: Page) -> None:
    table, difference = SENSITIVITY.table(shown), shown.difference
    assert table is not None
    assert difference is not None
    views = ["no assumption", OFFICERS, "Γ = 1.5", "Γ = 2", "Γ = 3", "turning point"]
    assert list(table.frame) == views
    assert [*table.frame.loc["B − A"].index] == ["utility"]
    assert f"up to Γ = {difference.turning_point:.2f}" in table.frame.loc["B − A"].to_numpy()


def test_the_figure_has_a_band_for_each_policy(shown: Page) -> None:
    figure = SENSITIVITY.figure(shown)
    assert figure is not None
    assert figure.draw is not None
    (panel,) = figure.draw().axes
    assert len(panel.collections) == 2


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {},
            "an instrument of 4 levels of strictness, for which features may tell who decides a case; p = 0.",
        ),
        ({"forgers": True}, "Bounds by decision makers: those of different decision makers exclude"),
    ],
)
def test_what_decision_makers_tell_is_said(keys: dict[str, bool], sentence: str) -> None:
    people = cases(4000, 1, **keys).drop(columns=["truth", "other"])  # type: ignore[arg-type]
    page = evaluate("new", people, **LOGISTIC, **KEYS).page
    assert sentence in " ".join(SENSITIVITY.told(page))


def test_bounds_of_a_difference_from_the_logged_decisions_are_those_of_the_policy() -> None:
    """Of accepted people all labels are known; with the policy first, ends change places."""
    people = applicants(600)
    models = models_of(people, propensity="p")
    logged, policy = judged(models, None), judged(models, people["new"])
    value = logged.values["dr"].estimate
    for assumption in (None, 2.0):
        limits = policy.bounded(assumption, ())["utility"]
        expected = limits.low - value, limits.high - value
        assert Comparison(logged, policy).bounded(assumption)[:2] == pytest.approx(expected)
        turned = -limits.high + value, -limits.low + value
        assert Comparison(policy, logged).bounded(assumption)[:2] == pytest.approx(turned)


def test_without_labels_there_are_bounds_without_assumption_alone() -> None:
    people = applicants(600)
    unlabelled = judged(models_of(people, label=None), people["new"]).page
    assert {record["view"] for record in SENSITIVITY.records(unlabelled)} == {"no assumption"}
    assert SENSITIVITY.figure(unlabelled) is None
    assert [*SENSITIVITY.told(unlabelled)] == []
