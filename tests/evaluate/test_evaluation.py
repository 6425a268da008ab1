"""Evaluations and comparisons: what has an interval, what is hidden, and identities between them."""

import itertools
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
from tests.evaluate.simulated import COST, KEYS, applicants, evaluated, judged, log_of, models_of

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
    assert [content[name] for name in ("refused", "warnings", "in_doubt")] == [None, [], []]
    assert content["policies"][0]["acceptance"] == pytest.approx(people["new"].mean())
    assert [model["model"] for model in content["models"]] == ["propensity", "outcome"]
    values = new.table("value").set_index("estimator")
    assert values.loc["ips", ["estimate", "low", "high"]].tolist() == list(new.values["ips"][:3])
    assert values.loc["no assumption", "bound_low"] == new.bounds["no assumption"]["utility"].low
    with pytest.raises(FairAllError, match=r"^table 'vlaue': the tables are value, "):
        new.table("vlaue")


def test_the_truth_is_within_intervals_and_bounds(new: Evaluation, people: pd.DataFrame) -> None:
    """The utility of these very people is known; estimates differ from it by less than from that of all."""
    truth, naive = ((people["new"] * (people[label] - COST)).mean() for label in ("truth", "repaid"))
    for value in (*new.values.values(), new.bounds["no assumption"]["utility"].interval):
        assert value.low < truth < value.high
    assert naive > new.values["dr"].high, "selection must matter here"
    assert 30 < new.effective() < people["granted"].sum()
    assert new.summary().loc["utility", "low"] == new.values["dr"].low


# What has an interval


@pytest.mark.parametrize("incomplete", [False, True])
@pytest.mark.parametrize("keys", [{}, {"propensity": "p"}])
@pytest.mark.parametrize("model", ["logistic", GaussianNB()])
def test_what_has_an_interval(
    model: Any, keys: dict[str, str], incomplete: bool, people: pd.DataFrame
) -> None:
    if incomplete:
        people = people.assign(repaid=people["repaid"].where(np.random.default_rng(0).random(1500) < 0.8))
    models = models_of(people, model, **keys)
    policy, logged = judged(models, people["new"]), judged(models, None)
    theory, complete = model == "logistic", bool(keys) and not incomplete
    weights = theory or complete
    expected = {"dr": True, "sndr": True, "dm": theory, "ips": weights, "snips": weights}
    assert {name: has_ends(value) for name, value in policy.values.items()} == expected
    reasons = {value.why for value in policy.values.values() if value.why}
    assert all("whose error has no theory: read DR" in why for why in reasons)
    for measure in MEASURES:
        ends = [has_ends(gap(policy, measure, view)) for view in VIEWS]
        assert ends == [True, weights or measure == "dpu", True]
    assert np.isnan(policy.guarantee.low) != complete
    assert complete or "recorded propensities, labels of all accepted" in str(policy.guarantee.why)
    # The logged decisions were observed, whatever the propensities.
    assert has_ends(logged.values["ips"]) == (theory or not incomplete)
    assert has_ends(gap(logged, "equal_opportunity", "ips")) == weights


# Small groups and few labels


@pytest.mark.parametrize("size", [9, 10])
def test_nothing_is_shown_of_groups_with_fewer_than_ten_people(size: int) -> None:
    people = applicants(1200).assign(sex=lambda table: table["sex"].where(table.index >= size, "x"))
    found, hidden = evaluated(people, propensity="p"), size < 10
    for key, table in found.to_plain()["tables"].items():
        groups = {row["group"] for row in table if "group" in row}
        assert not groups or ("x" in groups) != hidden, key
    assert ("nothing is shown of groups with fewer than 10 people" in " ".join(found.warnings)) == hidden
    assert has_ends(gap(found, "equal_opportunity")) == hidden
    if hidden:
        rates = people[people["sex"] != "x"].groupby("sex")["new"].mean()
        assert gap(found, "dpu").estimate == pytest.approx(np.ptp(rates))


def test_no_number_of_a_group_or_gap_tells_a_label_of_a_hidden_group() -> None:
    """The label of the one person of a group is in sums over all people only."""
    people = applicants(1200).assign(sex=lambda table: table["sex"].where(table.index > 0, "x"))
    people.loc[0, ["granted", "p"]] = 1, 0.5
    tables = []
    for label in (0.0, 1.0):
        people.loc[0, "repaid"] = label
        tables.append(evaluated(people, propensity="p").to_plain()["tables"])
    assert tables[0]["value"] != tables[1]["value"]
    # Other groups are judged by the labels of everybody through the outcome model only.
    through_model = {"dr", *(measure.rate for measure in MEASURES.values())}
    for key, kind in (("fairness", "view"), ("groups", "measure")):
        for row, other in zip(tables[0][key], tables[1][key], strict=True):
            assert row.get("group") != "x"
            assert row[kind] in through_model or row == other


@pytest.mark.parametrize(("measure", "kind"), [("equal_opportunity", 1.0), ("false_positive", 0.0)])
@pytest.mark.parametrize(
    ("number", "why"),
    [(400, "None"), (24, "group f has fewer than 30"), (6, "group f has fewer than 10")],
)
def test_few_labels_have_an_estimate_without_an_interval(
    measure: str, kind: float, number: int, why: str
) -> None:
    """Fewer than 30 effective ones of that kind in a group; fewer than 10 are not shown."""
    people = applicants(2000)
    known = people.index[(people["repaid"] == kind) & (people["sex"] == "f")]
    people.loc[known[number:], "repaid"] = 1.0 - kind
    found = evaluated(people, propensity="p")
    assert has_ends(gap(found, measure)) == (why == "None")
    assert why in str(gap(found, measure).why)
    assert np.isnan(gap(found, measure).estimate) == (number == 6)
    assert has_ends(found.values["dr"])


@pytest.mark.parametrize("defaults", [0, 1])
def test_one_default_among_the_labels_leaves_what_needs_no_model(defaults: int, people: pd.DataFrame) -> None:
    for log in (log_of(people), log_of(people, propensity="p")):
        label = np.where(log.revealed, 1.0, np.nan)
        label[np.flatnonzero(log.revealed)[:defaults]] = 0.0
        models = models_of(replace(log, label=label))
        found = judged(models, people["new"])
        for name in ("dr", "sndr", "dm"):
            assert np.isnan(found.values[name].estimate)
            assert found.values[name].why == "a model of the label needs two people with either label"
        for value in (found.values["ips"], found.values["snips"], gap(found, "dpu")):
            assert has_ends(value)
        assert np.isfinite(found.bounds["no assumption"]["utility"].low)
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
    assert found.bounds["no assumption"]["utility"][:2] == (0.0, 0.0)
    assert np.isnan(gap(found, "predictive_parity").estimate)


def test_estimators_that_disagree_are_named(people: pd.DataFrame, recorded: Models) -> None:
    """With the model that is likely wrong: where propensities are, balance tells in which feature."""
    assert judged(recorded, people["new"]).in_doubt == []
    constant = Models(log_of(people), propensity_model=DummyClassifier(), outcome_model="logistic")
    lottery = np.random.default_rng(0).random(1500) < people["new"]
    no_outcome = Models(recorded.log, outcome_model=DummyClassifier())
    for models, target, start, reason in (
        (constant, lottery, "IPS and doubly robust differ by", "doubt the propensities"),
        (no_outcome, people["new"], "direct method and doubly robust differ by", "the outcome model fails"),
    ):
        assert any(text.startswith(start) and reason in text for text in judged(models, target).warnings)


# The logged decisions


def test_the_logged_decisions_are_judged_as_taken(
    estimated: Models, recorded: Models, people: pd.DataFrame
) -> None:
    gain = people["granted"] * (people["repaid"].fillna(0) - COST)
    by_sex, accepted = people.groupby("sex"), people[people["granted"] == 1].groupby("sex")
    sizes = {"dpu": by_sex["granted"].mean(), "predictive_parity": accepted["repaid"].mean()}
    for found in (judged(estimated, None), judged(recorded, None)):
        for name in WEIGHTED:
            assert found.values[name].estimate == pytest.approx(gain.mean(), abs=1e-12)
        assert found.value("ips").error == pytest.approx(gain.std() / np.sqrt(1500), rel=1e-3)
        assert found.values["dm"].low < gain.mean() < found.values["dm"].high
        for measure, view in itertools.product(sizes, VIEWS):
            if (measure, view) != ("dpu", "naive"):
                size = np.ptp(sizes[measure])
                assert gap(found, measure, view).estimate == pytest.approx(size, abs=1e-12)
        # Utility and precision were observed, whatever the rejected are like.
        for gamma in (1.0, 3.0):
            assert found.bounded(gamma)["utility"][:2] == pytest.approx([gain.mean()] * 2)


def test_labels_that_are_missing_by_group_are_modelled() -> None:
    """All of the men and a third of the women have one: as if missing at random over all, IPS is biased."""
    people = applicants(6000)
    men = people["sex"] == "m"
    people["truth"] = np.where(men, people["truth"], people["truth"] * (people["score"] > 0.5))
    known = men | (np.random.default_rng(0).random(6000) < 0.3)
    people["repaid"] = people["truth"].where((people["granted"] == 1) & known)
    truth = (people["new"] * (people["truth"] - COST)).mean()
    found = evaluated(people, propensity="p")
    for name in WEIGHTED:
        assert found.values[name].low < truth < found.values[name].high, name
    share = people["repaid"].count() / people["granted"].sum()
    biased = (people["new"] / people["p"] / share * (people["repaid"] - COST)).sum() / 6000
    assert abs(biased - truth) > 4 * found.value("ips").error


# Comparisons


def test_the_order_of_policies_turns_the_sign_and_pairing_narrows(
    estimated: Models, people: pd.DataFrame
) -> None:
    both = [judged(estimated, people[name], name) for name in ("new", "steep")]
    ours, theirs = Comparison(*both), Comparison(*reversed(both))
    assert ours.refused is None
    shown = [[*one.values.values(), *(gap["dr"] for gap in one.fairness.values())] for one in (ours, theirs)]
    for one, other in zip(*shown, strict=True):
        assert (one.estimate, one.low) == pytest.approx((-other.estimate, -other.high), abs=1e-12)
        assert (one.probability or 0.5) + (other.probability or 0.5) == pytest.approx(1)
    for name in ESTIMATORS:
        difference, (first, second) = ours.values[name], [one.values[name] for one in both]
        assert difference.estimate == pytest.approx(second.estimate - first.estimate, abs=1e-12)
        assert difference.high - difference.low < 0.2 * (first.high - first.low)
    assert ours.turning_point == theirs.turning_point


def test_better_and_fairer_policies_are_found(recorded: Models, people: pd.DataFrame) -> None:
    better = Comparison(judged(recorded, 1 - people["new"]), judged(recorded, people["new"]))
    assert all(value.low > 0.05 for value in better.values.values())
    assert better.turning_point is None or better.turning_point > 2
    unfair = judged(recorded, np.where(people["sex"] == "m", 0.9, 0.3))
    fairer = Comparison(unfair, judged(recorded, np.full(1500, 0.6))).fairness
    for name in ("dpu", "equal_opportunity", "false_positive"):
        for gained in fairer[name].values():
            assert gained.high < 0
            assert gained.estimate == pytest.approx(-0.6, abs=0.1)
    assert {*Comparison(unfair, unfair).values.values()} == {(0.0, 0.0, 0.0, None, 0.5)}


# Kinds of policies and of groups


def test_comparing_from_python_leaves_both_policies_out_of_the_features(people: pd.DataFrame) -> None:
    table = people.drop(columns=["truth"])
    keys = KEYS | {"propensity": "p", "outcome_model": "logistic", "seed": 3}
    found = compare("new", "steep", table, **keys, score="chance")
    assert [feature.name for feature in found.first.log.features] == ["score", "chance"]
    several = judge(["new", "steep", None], table, **keys)
    assert several[0].models is several[2].models
    assert found.first.values == several[0].values == evaluate("new", table, **keys, drop=["steep"]).values
    assert [one.logged for one in several] == [False, False, True]


def test_three_groups_and_intersections() -> None:
    people = applicants(3000)
    people["region"] = np.array(["a", "b", "c"])[np.arange(3000) % 3]
    people["new"] *= np.where(people["region"] == "c", 0.3, 1.0)
    found = evaluated(people, sensitive="region", drop=["sex"])
    size = np.ptp(people.groupby("region")["new"].mean())
    assert gap(found, "dpu").estimate == pytest.approx(size, abs=0.01)
    assert found.bounds["no assumption"]["dpu"][:2] == pytest.approx((size, size))
    crossed = evaluated(people, sensitive=None, groups=("sex", "region"))
    names = [f"{sex}, {region}" for sex in "fm" for region in "abc"]
    assert list(crossed.log.groups) == list(dict.fromkeys(crossed.table("groups")["group"])) == names
    assert crossed.effective(crossed.log.group == 0) < crossed.effective()


def test_arguments_mean_the_number_that_they_equal(people: pd.DataFrame) -> None:
    """Groups too: 1 is the group 1.0, and the values of a combination are one group."""
    numbers = people.assign(sex=np.where(people["sex"] == "f", 1.0, 0.0), half=people.index % 2)
    models = evaluated(numbers, None, propensity="p", reference=1, folds=3.0, seed=np.int64(2)).models
    assert (models.reference, models.folds, models.seed) == ("1.0", 3, 2)
    of_both = {"sensitive": ["sex", "half"], "reference": (1.0, 0), "cost": np.float32(0.5)}
    models = evaluated(numbers, None, propensity="p", **of_both).models
    assert (models.reference, models.log.cost) == ("1.0, 0", 0.5)
