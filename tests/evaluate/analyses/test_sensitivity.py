"""Records, figure and sentences of the sensitivity analysis."""

import pytest

from fairall.evaluate import compare
from fairall.evaluate.analyses.sensitivity import SENSITIVITY
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.evaluation import Comparison
from fairall.evaluate.page import Page
from tests.evaluate.estimated.test_officers import BY_OFFICERS, cases
from tests.evaluate.simulated import KEYS, LOGISTIC, applicants, evaluated, judged, models_of


@pytest.fixture(scope="module")
def shown() -> Page:
    """Two policies on a log of decision makers."""
    return compare("new", "steep", cases(3000, 1), **KEYS, **LOGISTIC, **BY_OFFICERS).page


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


def test_the_figure_has_a_band_for_each_policy(shown: Page) -> None:
    figure = SENSITIVITY.figure(shown)
    assert figure is not None
    assert figure.draw is not None
    assert [len(panel.collections) for panel in figure.draw().axes] == [2]


def test_why_decision_makers_bound_nothing_is_said() -> None:
    page = evaluated(cases(4000, 1, forgers=True), **BY_OFFICERS).page
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
        for sign, *pair in ((1.0, logged, policy), (-1.0, policy, logged)):
            found, ends = Comparison(*pair).bounded(assumption)["utility"], (low - value, high - value)
            assert [*found[:2]] == pytest.approx(sorted(sign * end for end in ends))


def test_without_labels_there_are_bounds_without_assumption_alone() -> None:
    unlabelled = evaluated(applicants(600), label=None, drop=["repaid"]).page
    assert {record["view"] for record in SENSITIVITY.records(unlabelled)} == {"no assumption"}
    assert SENSITIVITY.figure(unlabelled) is None
