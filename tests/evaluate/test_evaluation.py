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
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimated.estimators import ESTIMATORS
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS
from fairall.evaluate.judged.models import Models
from tests.evaluate.simulated import COST, KEYS, applicants, judged, log_of, models_of

GIVEN = {"estimate", "low", "high"}
SOURCES: tuple[dict[str, Any], ...] = ({}, {"propensity": "p"})


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
def plain(estimated: Models, people: pd.DataFrame) -> dict[str, Any]:
    return judged(estimated, people["new"]).to_plain()


def check_given(one: dict[str, Any]) -> None:
    assert one.keys() == GIVEN
    assert one["low"] <= one["estimate"] <= one["high"]


def check_without_interval(one: dict[str, Any], told: str) -> None:
    assert one["estimate"] is not None
    assert one["low"] is one["high"] is None
    assert told in one["why"]


def numbers(plain: Any, path: str = "") -> dict[str, float]:
    """All numbers in nested dicts and lists, by their path."""
    if isinstance(plain, dict | list):
        pairs = plain.items() if isinstance(plain, dict) else enumerate(plain)
        return {name: value for key, one in pairs for name, value in numbers(one, f"{path}/{key}").items()}
    return {path: plain} if isinstance(plain, int | float) else {}


# Content


def test_the_content_is_json_with_the_keys_that_were_promised(
    plain: dict[str, Any], people: pd.DataFrame
) -> None:
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert list(plain["value"]) == list(ESTIMATORS)
    for one in plain["value"].values():
        check_given(one)
    assert plain["acceptance"] == pytest.approx(people["new"].mean())
    assert plain["fairness"].keys() == MEASURES.keys()
    for measure, of in plain["fairness"].items():
        assert tuple(of) == VIEWS
        for one in of.values():
            check_given(one)
        ends = plain["bounds"][measure]
        assert 0 <= ends["interval_low"] <= ends["low"] <= ends["high"] <= ends["interval_high"]
        assert measure == "utility_gap" or ends["interval_high"] <= 1.0
    assert plain["bounds"].keys() == {"utility", *MEASURES}
    assert 30 < plain["overlap"]["effective_sample_size"] < plain["log"]["labelled"]
    assert plain["refused"] is None
    assert plain["warnings"] == []
    accepted = int(people["granted"].sum())
    assert plain["log"] == {
        "people": 1500,
        "accepted": accepted,
        "labelled": accepted,
        "persons": None,
        "cost": COST,
        "policy_versions": None,
        "propensities": "estimated",
    }
    assert plain["models"]["propensity"]["name"] == "logistic regression"
    assert plain["models"]["labelled"] is None


def test_the_truth_is_within_intervals_and_bounds(plain: dict[str, Any], people: pd.DataFrame) -> None:
    """The utility of these very people is known; estimates differ from it by less than from that of all."""
    truth = float((people["new"] * (people["truth"] - COST)).mean())
    for one in plain["value"].values():
        assert one["low"] < truth < one["high"]
    assert plain["bounds"]["utility"]["low"] <= truth <= plain["bounds"]["utility"]["high"]
    naive = float((people["new"] * (people["repaid"] - COST)).mean())
    assert naive > plain["value"]["dr"]["high"], "selection must matter here"


def test_gaps_are_those_of_the_rates_by_group(plain: dict[str, Any], people: pd.DataFrame) -> None:
    groups = plain["groups"]
    assert list(groups) == ["f", "m"]
    for group, one in groups.items():
        members = people[people["sex"] == group]
        assert one["people"] == len(members)
        assert one["accepted"] == members["granted"].sum()
        assert one["rates"]["dpu"]["dr"]["estimate"] == pytest.approx(members["new"].mean())
    for measure in MEASURES:
        for view in VIEWS:
            rates = [one["rates"][measure][view]["estimate"] for one in groups.values()]
            gap = plain["fairness"][measure][view]["estimate"]
            assert gap == pytest.approx(abs(rates[0] - rates[1]), abs=1e-12)
    accepted = people[people["granted"] == 1]
    by_group = [np.average(of["new"], weights=of["repaid"]) for _, of in accepted.groupby("sex")]
    gap = plain["fairness"]["equal_opportunity"]["naive"]["estimate"]
    assert gap == pytest.approx(abs(by_group[0] - by_group[1]))


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
    plains = []
    for table in (people, people.sort_values(by, ignore_index=True)):
        plains.append(judged(models_of(table, model), table["new"]).to_plain())
    shuffled, in_order = plains
    assert (shuffled["refused"], shuffled["warnings"]) == (in_order["refused"], in_order["warnings"])
    for name in ("dr", "sndr", "ips", "snips"):
        one, other = (plain["value"][name] for plain in plains)
        error = (shuffled["value"]["dr"]["high"] - shuffled["value"]["dr"]["low"]) / 4
        assert other["estimate"] == pytest.approx(one["estimate"], abs=0.35 * error)
    for measure in MEASURES:
        one, other = (plain["fairness"][measure]["dr"] for plain in plains)
        assert other["estimate"] == pytest.approx(one["estimate"], abs=0.1 * (one["high"] - one["low"]))


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
    plain = judged(models, people["new"]).to_plain()
    assert plain["refused"] is None
    theory = model == "logistic"
    for name in ("dr", "sndr"):
        check_given(plain["value"][name])
    weights = theory or (bool(keys) and not incomplete)
    for name, has in (("dm", theory), ("ips", weights), ("snips", weights)):
        if has:
            check_given(plain["value"][name])
        else:
            check_without_interval(plain["value"][name], "whose error has no theory: read DR")
    for measure, of in plain["fairness"].items():
        check_given(of["dr"])
        check_given(of["naive"])
        assert ("why" in of["ips"]) == (not weights and measure != "dpu")
    complete = bool(keys) and not incomplete
    assert (plain["guarantee"]["low"] is not None) == complete
    assert complete or "recorded propensities, labels of all accepted" in plain["guarantee"]["why"]
    # The logged decisions were observed, whatever the propensities.
    logged = judged(models, None).to_plain()
    for name in ("ips", "snips"):
        assert ("why" in logged["value"][name]) == (incomplete and not theory)
    assert ("why" in logged["fairness"]["equal_opportunity"]["ips"]) == (not weights)


def test_amounts_by_hand(people: pd.DataFrame) -> None:
    draw = np.random.default_rng(0)
    amounts = people.assign(win=draw.uniform(1, 2, 1500), lose=draw.uniform(2, 5, 1500))
    one = judged(models_of(amounts, propensity="p", cost=None, gain="win", loss="lose"), people["new"])
    plain = one.to_plain()
    weight = people["new"] / people["p"] * people["granted"]
    utility = np.where(people["repaid"] == 1, amounts["win"], -amounts["lose"])
    assert plain["value"]["ips"]["estimate"] == pytest.approx(np.mean(weight * utility))
    assert one.value("ips").error == pytest.approx(np.std(weight * utility) / np.sqrt(1500))
    truth = people["new"] * np.where(people["truth"] == 1, amounts["win"], -amounts["lose"])
    for name in ("dr", "sndr"):
        assert plain["value"][name]["low"] < truth.mean() < plain["value"][name]["high"]
    assert plain["bounds"]["utility"]["low"] <= truth.mean() <= plain["bounds"]["utility"]["high"]
    assert plain["guarantee"]["low"] is plain["log"]["cost"] is None
    # One cost is the amounts 1 − c and c.
    same = judged(models_of(people, propensity="p"), people["new"]).to_plain()
    amounts = people.assign(win=1 - COST, lose=COST)
    with_cost = models_of(amounts, propensity="p", cost=None, gain="win", loss="lose")
    again = judged(with_cost, people["new"]).to_plain()
    for name in ("ips", "snips"):
        assert again["value"][name] == pytest.approx(same["value"][name])
    assert again["bounds"]["utility"] == pytest.approx(same["bounds"]["utility"])


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
    models = models_of(people, propensity="p")
    plain = judged(models, people["new"]).to_plain()
    hidden = size < 10
    assert ("x" in plain["groups"]) != hidden
    told = "nothing is shown of groups with fewer than 10 people"
    assert any(told in one for one in plain["warnings"]) == hidden
    assert ("x" in plain["balance"]) != hidden
    if hidden:
        assert plain["fairness"]["dpu"]["dr"]["estimate"] == pytest.approx(
            abs(np.subtract(*people[people["sex"] != "x"].groupby("sex")["new"].mean()))
        )
        assert plain["fairness"]["equal_opportunity"]["dr"]["low"] is not None
    else:
        assert plain["fairness"]["equal_opportunity"]["dr"]["estimate"] is None
        assert plain["groups"]["x"]["rates"]["equal_opportunity"]["dr"]["estimate"] is None
        assert "fewer than 10 positive labels" in plain["fairness"]["equal_opportunity"]["dr"]["why"]


def test_no_number_of_a_group_or_gap_tells_a_label_of_a_hidden_group() -> None:
    """The label of the one person of a group is in sums over all people only."""
    people = applicants(1200).assign(sex=lambda table: table["sex"].where(table.index > 0, "x"))
    people.loc[0, ["granted", "p"]] = 1, 0.5
    found = []
    for label in (0.0, 1.0):
        log = log_of(people.assign(repaid=people["repaid"].where(people.index > 0, label)), propensity="p")
        models = Models(log, outcome_model="logistic")
        found.append(judged(models, people["new"]).to_plain())
    first, second = map(numbers, found)
    assert first.keys() == second.keys()
    assert not any("/x/" in path for path in first)
    moved = [path for path in first if abs(first[path] - second[path]) > 1e-12]
    assert any(path.startswith("/value") for path in moved)
    for path in moved:
        # Other groups are judged by the labels of everybody through the outcome model only.
        assert not path.startswith(("/balance", "/acceptance", "/overlap", "/log")), path
        assert not ("/naive/" in path or "/ips/" in path) or path.startswith("/value"), path
        assert not path.startswith("/bounds") or path.startswith("/bounds/utility/"), path


@pytest.mark.parametrize("measure", ["equal_opportunity", "false_positive"])
def test_few_labels_have_an_estimate_without_an_interval(measure: str) -> None:
    """Fewer than 30 effective ones of that kind in a group; fewer than 10 are not shown."""
    kind = 1.0 if measure == "equal_opportunity" else 0.0
    for number, state in ((400, "interval"), (24, "estimate"), (6, "nothing")):
        people = applicants(2000)
        known = people.index[(people["repaid"] == kind) & (people["sex"] == "f")]
        people.loc[known[number:], ["repaid", "truth"]] = 1.0 - kind
        plain = judged(models_of(people, propensity="p"), people["new"]).to_plain()
        found = plain["fairness"][measure]["dr"]
        if state == "interval":
            check_given(found)
        elif state == "estimate":
            check_without_interval(found, "of group f count as")
            assert any("of group f count as" in one for one in plain["warnings"])
        else:
            assert found["estimate"] is None
            assert "group f has fewer than 10" in found["why"]
        assert plain["value"]["dr"]["low"] is not None


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
    plain = judged(models, people["new"]).to_plain()
    assert json.dumps(plain, allow_nan=False)
    for name in ("dr", "sndr", "dm"):
        assert plain["value"][name]["estimate"] is None
        assert "a model of the label needs two people with either label" in plain["value"][name]["why"]
    for name in ("ips", "snips"):
        check_given(plain["value"][name])
    assert plain["bounds"]["utility"]["low"] is not None
    check_given(plain["fairness"]["dpu"]["dr"])
    assert plain["fairness"]["utility_gap"]["ips"]["estimate"] is not None
    assert plain["models"]["outcome"] is plain["sensitivity"] is None
    assert (plain["guarantee"]["low"] is not None) == bool(keys)
    both = Comparison(judged(models, people["new"]), judged(models, None))
    assert json.dumps(both.to_plain(), allow_nan=False)


def test_a_policy_that_accepts_nobody(recorded: Models) -> None:
    plain = judged(recorded, np.zeros(1500)).to_plain()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["refused"] is None
    # Of 1500 decisions none was an acceptance: its share, and so its utility, may differ from 0 by chance.
    for one in plain["value"].values():
        assert one["estimate"] == 0.0
        two = 1.96 * np.sqrt(2) / 1500  # as if it had accepted two people
    assert (one["low"], one["high"]) == pytest.approx((-two, two), rel=2e-3)
    known = plain["bounds"]["utility"]
    assert known["low"] == known["high"] == 0.0
    own = plain["value"]["dr"]
    assert (known["interval_low"], known["interval_high"]) == pytest.approx((own["low"], own["high"]))
    assert plain["fairness"]["predictive_parity"]["dr"]["estimate"] is None


def test_estimators_that_disagree_are_named_first(people: pd.DataFrame, recorded: Models) -> None:
    """With the model that is likely wrong: where propensities are, balance tells in which feature."""
    assert judged(recorded, people["new"]).disagreement is None
    constant = Models(log_of(people), propensity_model=DummyClassifier(), outcome_model="logistic")
    lottery = np.random.default_rng(0).random(1500) < people["new"]
    told = judged(constant, lottery).warnings
    assert told[0].startswith("IPS and doubly robust differ by")
    assert "unlike all people in score" in told[0]
    constant = Models(recorded.log, outcome_model=DummyClassifier())
    told = judged(constant, people["new"]).warnings
    assert told[0].startswith("direct method and doubly robust differ by")
    assert "the outcome model fails" in told[0]


# The logged decisions


@pytest.mark.parametrize("keys", SOURCES)
def test_the_logged_decisions_are_judged_as_taken(keys: dict[str, str], people: pd.DataFrame) -> None:
    one = judged(models_of(people, **keys), None)
    plain = one.to_plain()
    gain = people["granted"] * (people["repaid"].fillna(0) - COST)
    for name in ("ips", "snips", "dr", "sndr"):
        assert plain["value"][name]["estimate"] == pytest.approx(gain.mean(), abs=1e-12)
    assert one.value("ips").error == pytest.approx(gain.std() / np.sqrt(1500), rel=1e-3)
    assert plain["value"]["dm"]["low"] < gain.mean() < plain["value"]["dm"]["high"]
    accepted = people.groupby("sex")["granted"].mean()
    precision = people[people["granted"] == 1].groupby("sex")["repaid"].mean()
    for view in VIEWS:
        gap = plain["fairness"]["predictive_parity"][view]["estimate"]
        assert gap == pytest.approx(abs(precision["f"] - precision["m"]), abs=1e-12)
        if view != "naive":
            gap = plain["fairness"]["dpu"][view]["estimate"]
            assert gap == pytest.approx(abs(accepted["f"] - accepted["m"]), abs=1e-12)
    # Utility and precision were observed, whatever the rejected are like.
    for row in plain["sensitivity"]["bounds"]["utility"]:
        assert [row["low"], row["high"]] == pytest.approx([gain.mean()] * 2)
    for name, rows in plain["sensitivity"]["bounds"].items():
        assert all(row["low"] <= row["high"] + 1e-12 for row in rows), name


def test_labels_that_are_missing_by_group_are_modelled() -> None:
    """All of the men and a third of the women have one: as if missing at random over all, IPS is biased."""
    people = applicants(6000)
    men = people["sex"] == "m"
    people["truth"] = np.where(men, people["truth"], people["truth"] * (people["score"] > 0.5))
    known = men | (np.random.default_rng(0).random(6000) < 0.3)
    people["repaid"] = people["truth"].where((people["granted"] == 1) & known)
    truth = float((people["new"] * (people["truth"] - COST)).mean())
    one = judged(models_of(people, propensity="p"), people["new"])
    plain = one.to_plain()
    for name in ("dr", "sndr", "ips", "snips"):
        assert plain["value"][name]["low"] < truth < plain["value"][name]["high"], name
    share = one.log.revealed.sum() / one.log.accepted.sum()
    weight = people["new"] / people["p"] / share * one.log.revealed
    assert abs(np.mean(weight * (np.nan_to_num(one.log.label) - COST)) - truth) > 4 * one.value("ips").error


# Comparisons


def test_a_policy_equals_itself(recorded: Models, people: pd.DataFrame) -> None:
    found = Comparison(judged(recorded, people["new"]), judged(recorded, people["new"])).to_plain()
    assert found["first"] == found["second"]
    for one in found["difference"]["value"].values():
        assert one == dict.fromkeys(GIVEN, 0.0) | {"probability_better": 0.5}
    for of_view in found["difference"]["fairness"].values():
        for one in of_view.values():
            assert one == pytest.approx(dict.fromkeys(GIVEN, 0.0) | {"probability_fairer": 0.5}, abs=1e-7)


def test_the_order_of_policies_turns_the_sign_and_pairing_narrows(
    estimated: Models, people: pd.DataFrame
) -> None:
    new, steep = (judged(estimated, people[name], name) for name in ("new", "steep"))
    first, second = Comparison(new, steep).to_plain(), Comparison(steep, new).to_plain()
    assert first["first"] == second["second"]
    assert first["refused"] is None
    ours, theirs = first["difference"], second["difference"]
    pairs = [(ours["value"][name], theirs["value"][name]) for name in ESTIMATORS]
    pairs += [
        (ours["fairness"][name][view], theirs["fairness"][name][view]) for name in MEASURES for view in VIEWS
    ]
    for one, other in pairs:
        assert one["estimate"] == pytest.approx(-other["estimate"], abs=1e-12)
        assert one["low"] == pytest.approx(-other["high"], abs=1e-12)
        chances = [value for both in (one, other) for key, value in both.items() if key.startswith("prob")]
        assert sum(chances) == pytest.approx(1)
    for name in ESTIMATORS:
        values = [first[which]["value"][name] for which in ("first", "second")]
        own = ours["value"][name]
        assert own["estimate"] == pytest.approx(values[1]["estimate"] - values[0]["estimate"], abs=1e-12)
        widths = [one["high"] - one["low"] for one in (own, *values)]
        assert widths[0] < 0.3 * np.hypot(*widths[1:])
    assert first["difference"]["turning_point"] == second["difference"]["turning_point"]


def test_better_and_fairer_policies_are_found(recorded: Models, people: pd.DataFrame) -> None:
    bad = Comparison(judged(recorded, 1 - people["new"]), judged(recorded, people["new"])).to_plain()
    for one in bad["difference"]["value"].values():
        assert one["probability_better"] > 0.999
        assert one["low"] > 0.05
    turn = bad["difference"]["turning_point"]
    assert turn is None or turn > 2
    unfair = judged(recorded, np.where(people["sex"] == "m", 0.9, 0.3))
    fairer = Comparison(unfair, judged(recorded, np.full(1500, 0.6))).to_plain()["difference"]["fairness"]
    for name in ("dpu", "equal_opportunity", "false_positive"):
        for view in VIEWS:
            assert fairer[name][view]["probability_fairer"] > 0.999
            assert fairer[name][view]["estimate"] == pytest.approx(-0.6, abs=0.1)
    some = judged(recorded, np.where(people["sex"] == "m", 0.6, 0.0))  # no precision of women
    nothing = Comparison(some, unfair).to_plain()["difference"]["fairness"]["predictive_parity"]["dr"]
    assert nothing["estimate"] is nothing["probability_fairer"] is None


def test_a_comparison_with_the_logged_decisions_turns_at_an_odds_ratio(
    estimated: Models, people: pd.DataFrame
) -> None:
    for pair in ((None, people["new"]), (people["new"], None)):
        found = Comparison(*(judged(estimated, target) for target in pair)).to_plain()
        turn = found["difference"]["turning_point"]
        sure = found["difference"]["value"]["dr"]["low"] > 0 or found["difference"]["value"]["dr"]["high"] < 0
        assert (turn > 1) == sure


# Kinds of policies and of groups


def test_comparing_from_python_leaves_both_policies_out_of_the_features(
    people: pd.DataFrame,
) -> None:
    table = people.drop(columns=["truth"])
    keys = KEYS | {"propensity": "p", "outcome_model": "logistic"}
    found = compare("new", "steep", table, **keys, score="chance", seed=3)
    assert [feature.name for feature in found.first.log.features] == ["score", "chance"]
    assert found.first.models is found.second.models
    one = evaluate("new", table, **keys, drop=["steep"], seed=3)
    assert found.to_plain()["first"]["value"] == one.to_plain()["value"]
    several = judge(["new", "steep", None], table, **keys, seed=3)
    assert several[0].models is several[2].models
    assert several[0].to_plain()["value"] == one.to_plain()["value"]
    assert several[2].logged
    with pytest.raises(FairAllError, match=r"nonsense=\.\.\.: no such keyword"):
        compare("new", "steep", table, **KEYS, nonsense=1)


def test_three_groups_and_intersections() -> None:
    people = applicants(3000)
    people["region"] = np.array(["a", "b", "c"])[np.arange(3000) % 3]
    target = np.where(people["region"] == "c", 0.3 * people["new"], people["new"])
    plain = judged(models_of(people, sensitive="region", drop=["sex"]), target).to_plain()
    rates = pd.Series(target).groupby(people["region"]).mean()
    assert list(plain["groups"]) == ["a", "b", "c"]
    gap = rates.max() - rates.min()
    assert plain["fairness"]["dpu"]["dr"]["estimate"] == pytest.approx(gap, abs=0.01)
    assert [plain["bounds"]["dpu"][end] for end in ("low", "high")] == pytest.approx([gap, gap])
    crossed = models_of(people, sensitive=None, groups=("sex", "region"))
    plain = judged(crossed, people["new"]).to_plain()
    assert list(plain["groups"]) == ["f, a", "f, b", "f, c", "m, a", "m, b", "m, c"]
    for group in plain["groups"].values():
        check_given(group["rates"]["equal_opportunity"]["dr"])
        assert group["overlap"]["effective_sample_size"] < plain["overlap"]["effective_sample_size"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cost": "x"}, "cost='x' is not possible: it must be between 0 and 1"),
        ({"cost": [0.3]}, "cost=[0.3] is not possible: it must be between 0 and 1"),
        ({"kinds": 0}, "kinds=0 is not possible: it must be real or count"),
        ({"kinds": ["real"]}, "kinds=['real'] is not possible: it must be real or count"),
        ({"max_categories": "x"}, "max_categories='x' is not possible: it must be a whole number"),
        ({"max_count": 2.5}, "max_count=2.5 is not possible: it must be a whole number"),
        ({"proba": True}, "proba=True is not possible: it must be decision or label"),
        ({"folds": 2.5}, "folds=2.5 is not possible: it must be a whole number of at least 2"),
        ({"folds": 1}, "folds=1 is not possible: it must be a whole number of at least 2"),
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
