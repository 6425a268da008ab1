"""Evaluations and comparisons: what has an interval, what is hidden, and identities between them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

from fairall.errors import FairAllError
from fairall.evaluate import compare, evaluate, judge
from fairall.evaluate.estimated.estimates import Interval
from fairall.evaluate.estimated.estimators import ESTIMATORS
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS
from fairall.evaluate.evaluation import Comparison, Evaluation
from fairall.evaluate.models import Models
from tests.evaluate.simulated import COST, KEYS, applicants, judged, log_of, models_of

SOURCES: tuple[dict[str, Any], ...] = ({}, {"propensity": "p"})
WEIGHTED = ("dr", "sndr", "ips", "snips")


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants()


@pytest.fixture(scope="module")
def recorded(people: pd.DataFrame) -> Models:
    return models_of(people, propensity="p")


@pytest.fixture(scope="module")
def estimated(people: pd.DataFrame) -> Models:
    return models_of(people)


@pytest.fixture(scope="module")
def new(estimated: Models, people: pd.DataFrame) -> Evaluation:
    return judged(estimated, people["new"])


def has_ends(value: Interval) -> bool:
    """Whether there is an interval around the estimate; where there is none, a reason stands in its place."""
    assert (value.why is None) == (value.low <= value.estimate <= value.high)
    return value.why is None


def gap(evaluation: Evaluation, measure: str, view: Any = "dr") -> Interval:
    return evaluation.fairness[measure][view]


# Content


def test_the_content_is_json_with_a_table_for_each_analysis(new: Evaluation, people: pd.DataFrame) -> None:
    content = new.to_plain()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    accepted = int(people["granted"].sum())
    assert content["log"] == {
        "people": 1500,
        "accepted": accepted,
        "labelled": accepted,
        "persons": None,
        "cost": COST,
        "propensities": "estimated",
    }
    assert content["refused"] is None
    assert content["warnings"] == content["in_doubt"] == []
    assert content["policies"][0]["acceptance"] == pytest.approx(people["new"].mean())
    assert [model["model"] for model in content["models"]] == ["propensity", "outcome"]
    values = {row["estimator"]: row for row in content["tables"]["value"]}
    assert list(values)[:5] == list(ESTIMATORS)
    for estimator, value in new.values.items():
        assert [values[estimator][end] for end in ("estimate", "low", "high")] == list(value[:3])
    assert values["no assumption"]["bound_low"] == new.bounds["utility"].low
    with pytest.raises(FairAllError, match=r"^table 'vlaue': the tables are value, "):
        new.table("vlaue")


def test_the_truth_is_within_intervals_and_bounds(new: Evaluation, people: pd.DataFrame) -> None:
    """The utility of these very people is known; estimates differ from it by less than from that of all."""
    truth = float((people["new"] * (people["truth"] - COST)).mean())
    for value in new.values.values():
        assert value.low < truth < value.high
    assert new.bounds["utility"].low <= truth <= new.bounds["utility"].high
    naive = float((people["new"] * (people["repaid"] - COST)).mean())
    assert naive > new.values["dr"].high, "selection must matter here"
    assert 30 < new.overlap()["effective_sample_size"] < people["granted"].sum()
    for measure in MEASURES:
        ends = new.bounds[measure]
        assert 0 <= ends.interval_low <= ends.low <= ends.high <= ends.interval_high
        assert measure == "utility_gap" or ends.interval_high <= 1.0


def test_gaps_are_those_of_the_rates_by_group(new: Evaluation, people: pd.DataFrame) -> None:
    table = new.table("groups").set_index(["group", "measure"])
    for code, (group, members) in enumerate(people.groupby("sex")):
        assert table.loc[(group, "people"), "value"] == len(members)
        assert table.loc[(group, "accepted"), "value"] == members["granted"].sum()
        assert new.rate("dpu", "dr", code).estimate == pytest.approx(members["new"].mean())
        row = table.loc[(group, "acceptance rate")]
        assert row["estimate"] == new.rate("dpu", "dr", code).estimate
    for measure in MEASURES:
        for view in VIEWS:
            first, second = (new.rate(measure, view, code).estimate for code in (0, 1))
            assert has_ends(gap(new, measure, view))
            assert gap(new, measure, view).estimate == pytest.approx(abs(first - second), abs=1e-12)
    accepted = people[people["granted"] == 1]
    by_group = [np.average(of["new"], weights=of["repaid"]) for _, of in accepted.groupby("sex")]
    naive = gap(new, "equal_opportunity", "naive").estimate
    assert naive == pytest.approx(abs(by_group[0] - by_group[1]))


@pytest.mark.parametrize("keys", SOURCES)
def test_the_same_call_gives_the_same_bytes(keys: dict[str, str], people: pd.DataFrame) -> None:
    first, second = (
        json.dumps(judged(models_of(people, "auto", **keys), people["new"]).to_plain()) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("model", ["auto", "logistic"])
@pytest.mark.parametrize("by", [["granted", "score"], ["sex", "repaid"]])
def test_the_order_of_rows_does_not_matter(model: str, by: list[str]) -> None:
    people = applicants(1200)
    tables = (people, people.sort_values(by, ignore_index=True))
    shuffled, in_order = (judged(models_of(table, model), table["new"]) for table in tables)
    assert (shuffled.refused, shuffled.warnings) == (in_order.refused, in_order.warnings)
    error = (shuffled.values["dr"].high - shuffled.values["dr"].low) / 4
    for name in WEIGHTED:
        estimate = shuffled.values[name].estimate
        assert in_order.values[name].estimate == pytest.approx(estimate, abs=0.35 * error)
    for measure in MEASURES:
        ours, other = gap(shuffled, measure), gap(in_order, measure)
        assert other.estimate == pytest.approx(ours.estimate, abs=0.1 * (ours.high - ours.low))


# What has an interval


@pytest.mark.parametrize("incomplete", [False, True])
@pytest.mark.parametrize("keys", SOURCES)
@pytest.mark.parametrize("model", ["auto", "logistic", GaussianNB()])
def test_what_has_an_interval(
    model: Any, keys: dict[str, str], incomplete: bool, people: pd.DataFrame
) -> None:
    if incomplete:
        people = people.assign(repaid=people["repaid"].where(np.random.default_rng(0).random(1500) < 0.8))
    models = models_of(people, model, **keys)
    policy, logged = judged(models, people["new"]), judged(models, None)
    assert policy.refused is None
    theory = model == "logistic"
    weights = theory or (bool(keys) and not incomplete)
    expected = {"dr": True, "sndr": True, "dm": theory, "ips": weights, "snips": weights}
    assert {name: has_ends(value) for name, value in policy.values.items()} == expected
    reasons = {value.why for value in policy.values.values() if value.why}
    assert all("whose error has no theory: read DR" in why for why in reasons)
    for measure in MEASURES:
        assert has_ends(gap(policy, measure))
        assert has_ends(gap(policy, measure, "naive"))
        assert has_ends(gap(policy, measure, "ips")) == (weights or measure == "dpu")
    complete = bool(keys) and not incomplete
    assert np.isnan(policy.guarantee.low) != complete
    assert complete or "recorded propensities, labels of all accepted" in str(policy.guarantee.why)
    # The logged decisions were observed, whatever the propensities.
    for name in ("ips", "snips"):
        assert has_ends(logged.values[name]) == (theory or not incomplete)
    assert has_ends(gap(logged, "equal_opportunity", "ips")) == weights


def test_amounts_by_hand(people: pd.DataFrame) -> None:
    draw = np.random.default_rng(0)
    amounts = people.assign(win=draw.uniform(1, 2, 1500), lose=draw.uniform(2, 5, 1500))
    keys = {"propensity": "p", "cost": None, "gain": "win", "loss": "lose"}
    found = judged(models_of(amounts, **keys), people["new"])
    weight = people["new"] / people["p"] * people["granted"]
    utility = np.where(people["repaid"] == 1, amounts["win"], -amounts["lose"])
    assert found.values["ips"].estimate == pytest.approx(np.mean(weight * utility))
    assert found.value("ips").error == pytest.approx(np.std(weight * utility) / np.sqrt(1500))
    truth = (people["new"] * np.where(people["truth"] == 1, amounts["win"], -amounts["lose"])).mean()
    for value in (found.values["dr"], found.values["sndr"], found.bounds["utility"]):
        assert value.low < truth < value.high
    assert np.isnan(found.guarantee.low)
    # One cost is the amounts 1 − c and c.
    same = judged(models_of(people, propensity="p"), people["new"])
    again = judged(models_of(people.assign(win=1 - COST, lose=COST), **keys), people["new"])
    for name in ("ips", "snips"):
        assert again.values[name][:3] == pytest.approx(same.values[name][:3])
    assert again.bounds["utility"][:4] == pytest.approx(same.bounds["utility"][:4])


def test_persons_widen_intervals(people: pd.DataFrame) -> None:
    five = pd.concat([people.iloc[:600]] * 5, ignore_index=True).assign(who=np.tile(np.arange(600), 5))
    alone, by_person, by_row = (
        judged(models_of(table, propensity="p", **keys), table["new"]).value("ips")
        for table, keys in (
            (people.iloc[:600].reset_index(drop=True), {}),
            (five, {"person": "who"}),
            (five.assign(who=five["who"] * 0.5 + np.arange(3000)), {}),
        )
    )
    assert by_person.error == pytest.approx(alone.error)
    assert by_row.error == pytest.approx(alone.error / np.sqrt(5))


# Small groups and few labels


@pytest.mark.parametrize("size", [9, 10])
def test_nothing_is_shown_of_groups_with_fewer_than_ten_people(size: int) -> None:
    people = applicants(1200).assign(sex=lambda table: table["sex"].where(table.index >= size, "x"))
    found = judged(models_of(people, propensity="p"), people["new"])
    hidden = size < 10
    for key, table in found.to_plain()["tables"].items():
        groups = {row["group"] for row in table if "group" in row}
        assert not groups or ("x" in groups) != hidden, key
    assert (
        any("nothing is shown of groups with fewer than 10 people" in one for one in found.warnings) == hidden
    )
    opportunity = gap(found, "equal_opportunity")
    if hidden:
        rates = people[people["sex"] != "x"].groupby("sex")["new"].mean()
        assert gap(found, "dpu").estimate == pytest.approx(abs(np.subtract(*rates)))
        assert has_ends(opportunity)
    else:
        assert np.isnan([opportunity.estimate, found.rate("equal_opportunity", "dr", 2).estimate]).all()
        assert "fewer than 10 positive labels" in str(opportunity.why)


def test_no_number_of_a_group_or_gap_tells_a_label_of_a_hidden_group() -> None:
    """The label of the one person of a group is in sums over all people only."""
    people = applicants(1200).assign(sex=lambda table: table["sex"].where(table.index > 0, "x"))
    people.loc[0, ["granted", "p"]] = 1, 0.5
    found = []
    for label in (0.0, 1.0):
        log = log_of(people.assign(repaid=people["repaid"].where(people.index > 0, label)), propensity="p")
        found.append(judged(Models(log, outcome_model="logistic"), people["new"]))
    first, second = found
    tables = first.to_plain()["tables"], second.to_plain()["tables"]
    assert tables[0]["value"] != tables[1]["value"]
    for row, other in zip(tables[0]["fairness"], tables[1]["fairness"], strict=True):
        # Other groups are judged by the labels of everybody through the outcome model only.
        assert row["view"] == "dr" or row == other
    for row, other in zip(tables[0]["groups"], tables[1]["groups"], strict=True):
        assert row["group"] != "x"
        through_model = row["measure"] in {measure.rate for measure in MEASURES.values()}
        assert through_model or row == other


@pytest.mark.parametrize("measure", ["equal_opportunity", "false_positive"])
def test_few_labels_have_an_estimate_without_an_interval(measure: str) -> None:
    """Fewer than 30 effective ones of that kind in a group; fewer than 10 are not shown."""
    kind = 1.0 if measure == "equal_opportunity" else 0.0
    for number, told in ((400, None), (24, "of group f count as"), (6, "group f has fewer than 10")):
        people = applicants(2000)
        known = people.index[(people["repaid"] == kind) & (people["sex"] == "f")]
        people.loc[known[number:], ["repaid", "truth"]] = 1.0 - kind
        found = judged(models_of(people, propensity="p"), people["new"])
        assert has_ends(gap(found, measure)) == (told is None)
        assert told is None or told in str(gap(found, measure).why)
        assert np.isnan(gap(found, measure).estimate) == (number == 6)
        assert any("of group f count as" in one for one in found.warnings) == (number == 24)
        assert has_ends(found.values["dr"])


@pytest.mark.parametrize("keys", SOURCES)
@pytest.mark.parametrize("defaults", [0, 1])
def test_one_default_among_the_labels_leaves_what_needs_no_model(
    defaults: int, keys: dict[str, str], people: pd.DataFrame
) -> None:
    nearly = people.assign(repaid=people["repaid"].where(people["repaid"].isna(), 1.0))
    nearly.loc[nearly.index[nearly["granted"] == 1][0], "repaid"] = 0.0
    log = log_of(nearly, **keys)
    if not defaults:
        log = replace(log, label=np.where(log.revealed, 1.0, np.nan))
    models = models_of(log)
    found = judged(models, people["new"])
    for name in ("dr", "sndr", "dm"):
        assert np.isnan(found.values[name].estimate)
        assert found.values[name].why == "a model of the label needs two people with either label"
    for value in (found.values["ips"], found.values["snips"], gap(found, "dpu")):
        assert has_ends(value)
    assert np.isfinite([found.bounds["utility"].low, gap(found, "utility_gap", "ips").estimate]).all()
    assert models.outcome is None
    assert np.isnan(found.guarantee.low) != bool(keys)
    both = Comparison(found, judged(models, None))
    assert json.dumps([one.to_plain() for one in (found, both)], allow_nan=False)


def test_a_policy_that_accepts_nobody(recorded: Models) -> None:
    found = judged(recorded, np.zeros(1500))
    assert json.dumps(found.to_plain(), allow_nan=False)
    assert found.refused is None
    # Of 1500 decisions none was an acceptance: its share, and so its utility, may differ from 0 by chance.
    two = 1.96 * np.sqrt(2) / 1500  # as if it had accepted two people
    for value in found.values.values():
        assert value[:3] == pytest.approx((0.0, -two, two), rel=2e-3)
    known = found.bounds["utility"]
    assert known.low == known.high == 0.0
    assert known.interval[1:3] == pytest.approx(found.values["dr"][1:3])
    assert np.isnan(gap(found, "predictive_parity").estimate)


def test_estimators_that_disagree_are_named_first(people: pd.DataFrame, recorded: Models) -> None:
    """With the model that is likely wrong: where propensities are, balance tells in which feature."""
    assert judged(recorded, people["new"]).disagreement is None
    constant = Models(log_of(people), propensity_model=DummyClassifier(), outcome_model="logistic")
    lottery = np.random.default_rng(0).random(1500) < people["new"]
    told = judged(constant, lottery).warnings
    assert told[0].startswith("IPS and doubly robust differ by")
    assert "doubt the propensities" in told[0]
    constant = Models(recorded.log, outcome_model=DummyClassifier())
    told = judged(constant, people["new"]).warnings
    assert told[0].startswith("direct method and doubly robust differ by")
    assert "the outcome model fails" in told[0]


# The logged decisions


@pytest.mark.parametrize("keys", SOURCES)
def test_the_logged_decisions_are_judged_as_taken(keys: dict[str, str], people: pd.DataFrame) -> None:
    found = judged(models_of(people, **keys), None)
    gain = people["granted"] * (people["repaid"].fillna(0) - COST)
    for name in WEIGHTED:
        assert found.values[name].estimate == pytest.approx(gain.mean(), abs=1e-12)
    assert found.value("ips").error == pytest.approx(gain.std() / np.sqrt(1500), rel=1e-3)
    assert found.values["dm"].low < gain.mean() < found.values["dm"].high
    accepted = people.groupby("sex")["granted"].mean()
    precision = people[people["granted"] == 1].groupby("sex")["repaid"].mean()
    for view in VIEWS:
        expected = abs(precision["f"] - precision["m"])
        assert gap(found, "predictive_parity", view).estimate == pytest.approx(expected, abs=1e-12)
        if view != "naive":
            expected = abs(accepted["f"] - accepted["m"])
            assert gap(found, "dpu", view).estimate == pytest.approx(expected, abs=1e-12)
    # Utility and precision were observed, whatever the rejected are like.
    for gamma in (1.0, 3.0):
        bounds = found.bounded(gamma)
        assert bounds["utility"][:2] == pytest.approx([gain.mean()] * 2)
        assert all(of.low <= of.high + 1e-12 for of in bounds.values())


def test_labels_that_are_missing_by_group_are_modelled() -> None:
    """All of the men and a third of the women have one: as if missing at random over all, IPS is biased."""
    people = applicants(6000)
    men = people["sex"] == "m"
    people["truth"] = np.where(men, people["truth"], people["truth"] * (people["score"] > 0.5))
    known = men | (np.random.default_rng(0).random(6000) < 0.3)
    people["repaid"] = people["truth"].where((people["granted"] == 1) & known)
    truth = float((people["new"] * (people["truth"] - COST)).mean())
    found = judged(models_of(people, propensity="p"), people["new"])
    for name in WEIGHTED:
        assert found.values[name].low < truth < found.values[name].high, name
    share = found.log.revealed.sum() / found.log.accepted.sum()
    weight = people["new"] / people["p"] / share * found.log.revealed
    biased = np.mean(weight * (np.nan_to_num(found.log.label) - COST))
    assert abs(biased - truth) > 4 * found.value("ips").error


# Comparisons


def test_a_policy_equals_itself(recorded: Models, people: pd.DataFrame) -> None:
    found = Comparison(judged(recorded, people["new"]), judged(recorded, people["new"]))
    for value in found.values.values():
        assert value == (0.0, 0.0, 0.0, None, 0.5)
    for views in found.fairness.values():
        for value in views.values():
            assert value[:3] == pytest.approx((0.0, 0.0, 0.0), abs=1e-7)


def test_the_order_of_policies_turns_the_sign_and_pairing_narrows(
    estimated: Models, people: pd.DataFrame
) -> None:
    both = [judged(estimated, people[name], name) for name in ("new", "steep")]
    ours, theirs = Comparison(*both), Comparison(*reversed(both))
    assert ours.refused is None
    pairs = [(ours.values[name], theirs.values[name]) for name in ESTIMATORS]
    pairs += [(ours.fairness[name][view], theirs.fairness[name][view]) for name in MEASURES for view in VIEWS]
    for one, other in pairs:
        assert (one.estimate, one.low) == pytest.approx((-other.estimate, -other.high), abs=1e-12)
    for name in ESTIMATORS:
        first, second = (one.values[name] for one in both)
        difference, turned = ours.values[name], theirs.values[name]
        assert (difference.probability or 0) + (turned.probability or 0) == pytest.approx(1)
        assert difference.estimate == pytest.approx(second.estimate - first.estimate, abs=1e-12)
        widths = [one.high - one.low for one in (difference, first, second)]
        assert widths[0] < 0.3 * np.hypot(widths[1], widths[2])
    assert ours.turning_point == theirs.turning_point


def test_better_and_fairer_policies_are_found(recorded: Models, people: pd.DataFrame) -> None:
    better = Comparison(judged(recorded, 1 - people["new"]), judged(recorded, people["new"]))
    for value in better.values.values():
        assert value.low > 0.05
        assert value.probability is not None
        assert value.probability > 0.999
    assert better.turning_point is None or better.turning_point > 2
    unfair = judged(recorded, np.where(people["sex"] == "m", 0.9, 0.3))
    fairer = Comparison(unfair, judged(recorded, np.full(1500, 0.6))).fairness
    for name in ("dpu", "equal_opportunity", "false_positive"):
        for view in VIEWS:
            assert fairer[name][view].high < 0
            assert fairer[name][view].estimate == pytest.approx(-0.6, abs=0.1)
    some = judged(recorded, np.where(people["sex"] == "m", 0.6, 0.0))  # no precision of women
    nothing = Comparison(some, unfair).fairness["predictive_parity"]["dr"]
    assert np.isnan(nothing[:3]).all()


def test_a_comparison_with_the_logged_decisions_turns_at_an_odds_ratio(
    estimated: Models, people: pd.DataFrame
) -> None:
    for pair in ((None, people["new"]), (people["new"], None)):
        found = Comparison(*(judged(estimated, target) for target in pair))
        value, turn = found.values["dr"], found.turning_point
        assert turn is not None
        assert (turn > 1) == (value.low > 0 or value.high < 0)


# Kinds of policies and of groups


def test_comparing_from_python_leaves_both_policies_out_of_the_features(people: pd.DataFrame) -> None:
    table = people.drop(columns=["truth"])
    keys = KEYS | {"propensity": "p", "outcome_model": "logistic"}
    found = compare("new", "steep", table, **keys, score="chance", seed=3)
    assert [feature.name for feature in found.first.log.features] == ["score", "chance"]
    assert found.first.models is found.second.models
    one = evaluate("new", table, **keys, drop=["steep"], seed=3)
    assert found.first.values == one.values
    several = judge(["new", "steep", None], table, **keys, seed=3)
    assert several[0].models is several[2].models
    assert several[0].values == one.values
    assert several[2].logged
    with pytest.raises(FairAllError, match=r"nonsense=\.\.\.: no such keyword"):
        compare("new", "steep", table, **KEYS, nonsense=1)


def test_three_groups_and_intersections() -> None:
    people = applicants(3000)
    people["region"] = np.array(["a", "b", "c"])[np.arange(3000) % 3]
    target = np.where(people["region"] == "c", 0.3 * people["new"], people["new"])
    found = judged(models_of(people, sensitive="region", drop=["sex"]), target)
    rates = pd.Series(target).groupby(people["region"]).mean()
    size = rates.max() - rates.min()
    assert gap(found, "dpu").estimate == pytest.approx(size, abs=0.01)
    assert found.bounds["dpu"][:2] == pytest.approx((size, size))
    crossed = judged(models_of(people, sensitive=None, groups=("sex", "region")), people["new"])
    names = [f"{sex}, {region}" for sex in "fm" for region in "abc"]
    assert list(crossed.log.groups) == list(dict.fromkeys(crossed.table("groups")["group"])) == names
    for code in range(6):
        assert has_ends(crossed.rate("equal_opportunity", "dr", code))
        size = crossed.overlap(crossed.log.group == code)["effective_sample_size"]
        assert size < crossed.overlap()["effective_sample_size"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cost": "x"}, "cost='x' is not possible: it must be between 0 and 1"),
        ({"kinds": 0}, "kinds=0 is not possible: it must be real or count"),
        ({"max_count": 2.5}, "max_count=2.5 is not possible: it must be a whole number"),
        ({"proba": True}, "proba=True is not possible: it must be decision or label"),
        ({"folds": 2.5}, "folds=2.5 is not possible: it must be a whole number of at least 2"),
        ({"seed": None}, "seed=None is not possible: it must be a whole number of at least 0"),
        (
            {"smallest_cell": "x"},
            "smallest_cell='x' is not possible: it must be a whole number of at least 1",
        ),
        ({"largest_gap": "x"}, "largest_gap='x' is not possible: it must be from 0 to 1"),
        ({"reference": 1}, "reference 1: no such group; there are f, m"),
        ({"policy": "x" * 300}, "policy xxx"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused_in_one_line(
    given: dict[str, Any], told: str, people: pd.DataFrame
) -> None:
    policy = given.pop("policy", people["new"])
    options = KEYS | {"propensity": "p", "drop": ["new", "steep", "truth", "chance"]} | given
    with pytest.raises(FairAllError) as caught:
        evaluate(policy, people, **options)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_arguments_mean_the_number_that_they_equal(people: pd.DataFrame) -> None:
    """Groups too: 1 is the group 1.0, and the values of a combination are one group."""
    options = KEYS | {"propensity": "p", "not_features": ["new", "steep", "truth", "chance"]}
    numbers = people.assign(sex=np.where(people["sex"] == "f", 1.0, 0.0), half=people.index % 2)
    models = evaluate(None, numbers, **options, reference=1, folds=3.0, seed=np.int64(2)).models
    assert (models.reference, models.folds, models.seed) == ("1.0", 3, 2)
    of_both = {"sensitive": ["sex", "half"], "reference": (1.0, 0), "cost": np.float32(0.5)}
    models = evaluate(None, numbers, **options | of_both).models
    assert (models.reference, models.log.cost) == ("1.0, 0", 0.5)
