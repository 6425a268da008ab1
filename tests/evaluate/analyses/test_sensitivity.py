"""Records, figure and sentences of the sensitivity analysis."""

import pytest

from fairall.evaluate import compare, evaluate
from fairall.evaluate.analyses.sensitivity import SENSITIVITY
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.evaluation import Comparison
from fairall.evaluate.page import Page
from tests.evaluate.estimated.test_officers import KEYS, cases
from tests.evaluate.simulated import applicants, judged, models_of

LOGISTIC = {"propensity_model": "logistic", "outcome_model": "logistic"}


@pytest.fixture(scope="module")
def shown() -> Page:
    """Two policies on a log of decision makers."""
    return compare("new", "other", cases(3000, 1), **LOGISTIC, **KEYS).page


def test_records_are_bounds_and_turning_points(shown: Page) -> None:
    first, difference = shown.first, shown.difference
    assert difference is not None
    rows = {(row["policy"], row["measure"], row["view"]): row["value"] for row in SENSITIVITY.records(shown)}
    assert list(first.bounds) == ["no assumption", OFFICERS]
    for view, bounds in (*first.bounds.items(), ("Γ = 3", first.bounded(3.0, ["utility_gap"]))):
        for name, limits in bounds.items():
            assert rows["A: new", name, view] == limits
    point = difference.turning_point
    assert point is not None
    assert difference.bounded(point - 0.01)["utility"].exclude_0
    assert not difference.bounded(point + 0.01)["utility"].exclude_0
    assert rows["B − A", "utility", "turning point"] == f"up to Γ = {point:.2f}"
    assert rows["A: new", "utility", "turning point"] == "for every Γ up to 10"


def test_the_table_has_a_few_odds_ratios_and_the_figure_a_band_for_each_policy(shown: Page) -> None:
    table, figure = SENSITIVITY.table(shown), SENSITIVITY.figure(shown)
    assert table is not None
    assert [*table.frame] == ["no assumption", OFFICERS, "Γ = 1.5", "Γ = 2", "Γ = 3", "turning point"]
    assert figure is not None
    assert figure.draw is not None
    (panel,) = figure.draw().axes
    assert len(panel.collections) == 2


def test_why_decision_makers_bound_nothing_is_said() -> None:
    people = cases(4000, 1, forgers=True).drop(columns="other")
    page = evaluate("new", people, **LOGISTIC, **KEYS).page
    sentence = "No bounds by decision makers: those of different decision makers exclude each other"
    assert sentence in " ".join(SENSITIVITY.told(page))


def test_bounds_of_a_difference_from_the_logged_decisions_are_those_of_the_policy() -> None:
    """Of accepted people all labels are known; with the policy first, ends change places."""
    people = applicants(600)
    models = models_of(people, propensity="p")
    logged, policy = judged(models, None), judged(models, people["new"])
    value = logged.values["dr"].estimate
    for assumption in ("no assumption", 2.0):
        low, high, *_ = policy.bounded(assumption, ())["utility"]
        difference, turned = (
            Comparison(*pair).bounded(assumption)["utility"][:2]
            for pair in ((logged, policy), (policy, logged))
        )
        assert difference == pytest.approx((low - value, high - value))
        assert turned == pytest.approx((value - high, value - low))


def test_without_labels_there_are_bounds_without_assumption_alone() -> None:
    people = applicants(600)
    unlabelled = judged(models_of(people, label=None), people["new"]).page
    assert {record["view"] for record in SENSITIVITY.records(unlabelled)} == {"no assumption"}
    assert SENSITIVITY.figure(unlabelled) is None
