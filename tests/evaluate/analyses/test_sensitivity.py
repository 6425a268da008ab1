"""Records, figure and sentences of the sensitivity analysis."""

import pytest

from fairall.evaluate import compare, evaluate
from fairall.evaluate.analyses.sensitivity import SENSITIVITY, sensitivity
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.page import Page
from tests.evaluate.estimated.test_officers import KEYS, cases
from tests.evaluate.simulated import applicants, judged, models_of

LOGISTIC = {"propensity_model": "logistic", "outcome_model": "logistic"}


@pytest.fixture(scope="module")
def shown() -> Page:
    """Two policies on a log of decision makers."""
    people = cases(3000, 1).drop(columns="truth")
    return compare("new", "other", people, **LOGISTIC, **KEYS).page


def test_records_are_bounds_turning_points_and_the_greatest_benchmark(shown: Page) -> None:
    first = shown.first
    rows = {
        (row["measure"], row["view"]): (row["value"], row["gamma"])
        for row in SENSITIVITY.records(shown)
        if row["policy"] == "A: new"
    }
    found = sensitivity(first)
    assert found is not None
    for view, limits in (("no assumption", first.bounds), (OFFICERS, first.officers)):
        assert {name: rows[name, view] for name in limits} == {name: (limits[name], None) for name in limits}
    assert rows["utility", "Γ = 3"] == (found.bounds["utility"][-1], 3.0)
    assert found.benchmark is not None
    feature, gamma = found.benchmark
    assert rows["utility", "greatest benchmark"] == (f"{gamma:.2f} ({feature})", gamma)
    for measure, point in found.turning_points.items():
        assert rows[measure, "turning point"] == ("> 10" if point is None else f"{point:.2f}", point)


def test_the_table_has_a_few_odds_ratios_and_differences_of_rates_of_all_people(shown: Page) -> None:
    table = SENSITIVITY.table(shown)
    assert table is not None
    columns = ["no assumption", OFFICERS, "Γ = 1.5", "Γ = 2", "Γ = 3", "turning point", "greatest benchmark"]
    assert list(table.frame) == columns
    differences = table.frame.loc["B − A"]
    assert [*differences.index] == ["utility", "true-positive rate", "false-positive rate"]
    assert shown.difference is not None
    assert differences.loc["utility", "turning point"] == f"{shown.difference.turning_point:.2f}"


def test_the_figure_has_a_panel_for_each_measure_and_a_band_for_each_policy(shown: Page) -> None:
    figure = SENSITIVITY.figure(shown)
    assert figure is not None
    assert figure.draw is not None
    panels = figure.draw().axes
    assert [len(axes.collections) for axes in panels] == [2, 2, 2, 2]
    assert panels[1].get_title() == "equal-opportunity gap\nturning point 1.00, 1.00"


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "Decision makers as an instrument, 4 levels of strictness: no sign that cases were assigned by"),
        (
            {"by_score": 1.0},
            "4 levels of strictness: the bounds allow for cases that were assigned by",
        ),
        ({"forgers": True}, "Bounds by decision makers: none, those of different decision makers exclude"),
    ],
)
def test_what_decision_makers_tell_is_said(keys: dict[str, float], sentence: str) -> None:
    people = cases(4000, 1, **keys).drop(columns=["truth", "other"])  # type: ignore[arg-type]
    one = evaluate("new", people, **LOGISTIC, **KEYS).page
    assert sentence in " ".join(SENSITIVITY.told(one))


def test_without_labels_there_are_bounds_without_assumption_alone() -> None:
    people = applicants(600)
    unlabelled = judged(models_of(people, label=None), people["new"]).page
    assert {record["view"] for record in SENSITIVITY.records(unlabelled)} == {"no assumption"}
    assert SENSITIVITY.figure(unlabelled) is None
    assert [*SENSITIVITY.told(unlabelled)] == []
