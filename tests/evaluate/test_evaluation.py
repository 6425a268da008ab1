"""Evaluations and comparisons: what they hold, what they refuse, and identities between them."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from fairall.errors import FairAllError
from fairall.evaluate import compare, evaluate, evaluation
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimators import ESTIMATORS
from fairall.evaluate.evaluation import BY_LABEL, Evaluation, Evaluator
from fairall.evaluate.fairness import MEASURES
from fairall.evaluate.intervals import Bootstrap
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.views import VIEWS
from tests.test_policy import WORDS, built, crowd

KEYS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": 0.4}
COLUMNS = ("p", "new", "steep", "truth", "race")
GIVEN = {"estimate", "low", "high"}


@pytest.fixture(scope="module", autouse=True)
def _few_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "Bootstrap", functools.partial(Bootstrap, draws=400))
        yield


def applicants(n: int = 1500, *, seed: int = 0) -> pd.DataFrame:
    """A log with recorded propensities `p`, two similar target policies, and all labels in `truth`."""
    draw = np.random.default_rng(seed)
    score, sex = draw.normal(size=n), draw.choice(["f", "m"], n)
    p = expit(0.2 + 0.8 * score + 0.8 * (sex == "m"))
    accepted, repays = draw.random(n) < p, (draw.random(n) < expit(0.3 + score)).astype(float)
    return pd.DataFrame({
        "score": score, "sex": sex, "race": draw.choice(["black", "white"], n),
        "granted": accepted.astype(int), "repaid": np.where(accepted, repays, np.nan), "p": p,
        "new": expit(1.5 * score), "steep": expit(1.7 * score), "truth": repays,
    })  # fmt: skip


def evaluator(people: pd.DataFrame, **keys: Any) -> Evaluator:
    log = DecisionLog.of(people, not_features=COLUMNS, **(KEYS | keys))
    return Evaluator(log, propensity_model="logistic", outcome_model="logistic")


def compared(log: Evaluator, first: Any, second: Any) -> Comparison:
    return Comparison(log.evaluate(first), log.evaluate(second))


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants()


@pytest.fixture(scope="module")
def recorded(people: pd.DataFrame) -> Evaluator:
    return evaluator(people, propensity="p")


@pytest.fixture(scope="module")
def estimated(people: pd.DataFrame) -> Evaluator:
    return evaluator(people)


@pytest.fixture(scope="module")
def plain(estimated: Evaluator) -> dict[str, Any]:
    return estimated.evaluate("new").to_plain()


def check_nothing(one: dict[str, Any]) -> None:
    assert one == dict.fromkeys(one)


def check_given(one: dict[str, Any]) -> None:
    assert one.keys() >= GIVEN
    assert one["low"] <= one["estimate"] <= one["high"]


# Content


def test_the_content_is_json_with_the_keys_that_were_promised(
    plain: dict[str, Any], people: pd.DataFrame
) -> None:
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert list(plain["value"]) == ["ips", "clipped_ips", "snips", "dm", "dr", "sndr", "switch_dr"]
    for name in ESTIMATORS:
        check_given(plain["value"][name])
        assert plain["value"][name].keys() == GIVEN
    assert plain["acceptance"] == pytest.approx(people["new"].mean())
    assert plain["fairness"].keys() == MEASURES.keys()
    for measure, one in plain["fairness"].items():
        assert one.keys() == {"naive", "ips", "dr"}
        for view in VIEWS:
            check_given(one[view])
        low, high = plain["bounds"][measure]["low"], plain["bounds"][measure]["high"]
        assert 0 <= low <= high <= MEASURES[measure].largest
    assert plain["bounds"].keys() == {"utility", *MEASURES}
    assert 30 < plain["overlap"]["effective_sample_size"] < plain["log"]["labelled"]
    assert plain["overlap"]["largest_weight"] > 1
    assert plain["refused"] is None
    assert plain["warnings"] == []
    assert plain["log"] == {
        "people": 1500, "accepted": int(people["granted"].sum()), "labelled": int(people["granted"].sum()),
        "cost": 0.4, "propensities": "estimated",
    }  # fmt: skip
    assert plain["models"]["propensity"]["name"] == "logistic regression"
    assert plain["guarantee"]["low"] < plain["value"]["dr"]["estimate"] < plain["guarantee"]["high"]


def test_the_truth_is_within_intervals_and_bounds(plain: dict[str, Any], people: pd.DataFrame) -> None:
    """The utility of these very people is known; estimates differ from it by less than from that of all."""
    truth = float((people["new"] * (people["truth"] - 0.4)).mean())
    for name in ESTIMATORS:
        assert plain["value"][name]["low"] < truth < plain["value"][name]["high"]
    assert plain["bounds"]["utility"]["low"] <= truth <= plain["bounds"]["utility"]["high"]
    naive = float((people["new"] * (people["repaid"] - 0.4)).mean())
    assert naive > plain["value"]["dr"]["high"], "selection must matter here"


def test_gaps_are_those_of_the_rates_by_group(plain: dict[str, Any], people: pd.DataFrame) -> None:
    groups = plain["groups"]
    assert list(groups) == ["f", "m"]
    for group, one in groups.items():
        members = people[people["sex"] == group]
        assert one["people"] == len(members)
        assert one["accepted"] == members["granted"].sum()
        assert one["acceptance"] == pytest.approx(members["new"].mean())
        assert one["rates"]["dpu"]["dr"]["estimate"] == pytest.approx(members["new"].mean())
        shares = [bin_["share"] for bin_ in one["reliability"]["dr"]]
        assert sum(shares) == pytest.approx(1)
    for measure in MEASURES:
        for view in VIEWS:
            if measure != "calibration_error":
                rates = [one["rates"][measure][view]["estimate"] for one in groups.values()]
                gap = plain["fairness"][measure][view]["estimate"]
                assert gap == pytest.approx(max(rates) - min(rates), abs=1e-12)
    # The naive gap is among the accepted, by plain means.
    accepted = people[people["granted"] == 1]
    by_group = [
        np.average(of["new"], weights=of["repaid"]) for _, of in accepted.groupby("sex") if of["repaid"].any()
    ]
    gap = plain["fairness"]["equal_opportunity"]["naive"]["estimate"]
    assert gap == pytest.approx(abs(by_group[0] - by_group[1]))


@pytest.mark.parametrize("source", ["recorded", "estimated"])
def test_the_same_command_gives_the_same_numbers(source: str, people: pd.DataFrame) -> None:
    keys = {"propensity": "p"} if source == "recorded" else {}
    first, second = (evaluator(people, **keys).evaluate("new").to_plain() for _ in range(2))
    assert first == second
    assert first["log"]["propensities"] == source


# Refusals


def check_refused(plain: dict[str, Any], match: str) -> None:
    """No value and no corrected rates, but naive ones, acceptance and bounds."""
    assert match in plain["refused"]
    assert "\n" not in plain["refused"]
    for one in plain["value"].values():
        check_nothing(one)
    check_nothing(plain["guarantee"])
    assert plain["sensitivity"] is None
    for measure, one in plain["fairness"].items():
        check_given(one["naive"])
        for view in ("ips", "dr"):
            (check_nothing if MEASURES[measure].needs_label else check_given)(one[view])
    for one in plain["bounds"].values():
        assert one["low"] <= one["high"]
    assert plain["overlap"]["effective_sample_size"] is not None


def test_a_log_without_labels_tells_acceptance_only(people: pd.DataFrame) -> None:
    plain = evaluator(people.drop(columns="repaid"), label=None).evaluate("new").to_plain()
    assert "no labels" in plain["refused"]
    for one in (*plain["value"].values(), plain["guarantee"]):
        check_nothing(one)
    accepted = [people.loc[people["sex"] == sex, "new"].mean() for sex in ("f", "m")]
    for view in ("ips", "dr"):
        own = plain["fairness"]["dpu"][view]
        check_given(own)
        assert own["estimate"] == pytest.approx(abs(accepted[0] - accepted[1]))
    for measure in MEASURES:
        check_nothing(plain["fairness"][measure]["naive"])
        if MEASURES[measure].needs_label:
            check_nothing(plain["fairness"][measure]["dr"])
    mean = people["new"].mean()
    assert plain["bounds"]["utility"] == pytest.approx({"low": -0.4 * mean, "high": 0.6 * mean})
    assert plain["warnings"] == []
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.fixture(scope="module")
def closed() -> pd.DataFrame:
    """A log in which nobody of the town of Hull was accepted."""
    people = applicants()
    hull = np.arange(len(people)) % 5 == 0
    people["town"] = np.where(hull, "Hull", "York")
    people["granted"] = people["granted"].where(~hull, 0)
    people["repaid"] = people["repaid"].where(people["granted"] == 1)
    people["elsewhere"] = people["new"].where(~hull, 0.0)
    return people


def test_a_region_that_was_never_accepted(closed: pd.DataFrame) -> None:
    log = evaluator(closed, drop=["elsewhere"])
    check_refused(log.evaluate("new").to_plain(), "none of 300 rows")
    assert "town" in str(log.evaluate("new").refused)
    assert "Hull" in str(log.evaluate("new").refused)
    # Who does not want them has a value, and no rates of people by their label.
    plain = log.evaluate("elsewhere").to_plain()
    told = plain["refused"]
    for name in ESTIMATORS:
        check_given(plain["value"][name])
    for measure in MEASURES:
        check_given(plain["fairness"][measure]["naive"])
        check = check_nothing if measure in BY_LABEL else check_given
        for view in ("ips", "dr"):
            check(plain["fairness"][measure][view])
    assert told.startswith("no equal-opportunity gap, false-positive gap")
    assert "Hull" in told
    assert set(plain["sensitivity"]["bounds"]) == {"utility", *MEASURES} - set(BY_LABEL)
    # A comparison with a refused policy is refused, and says which.
    both = compared(log, "elsewhere", "new").to_plain()
    assert both["refused"].startswith("elsewhere: no equal-opportunity gap")
    for one in both["difference"]["value"].values():
        check_nothing(one)
    assert both["difference"]["fairness"]["dpu"]["dr"]["estimate"] is not None
    check_nothing(both["difference"]["fairness"]["utility_gap"]["dr"])
    assert both["difference"]["fairness"]["utility_gap"]["naive"]["estimate"] is not None


def test_a_group_that_was_never_accepted(people: pd.DataFrame) -> None:
    hidden = people.assign(granted=people["granted"].where(people["sex"] == "m", 0))
    hidden["repaid"] = hidden["repaid"].where(hidden["granted"] == 1)
    plain = evaluator(hidden).evaluate("new").to_plain()
    assert "of group f" in plain["refused"]
    check_nothing(plain["fairness"]["utility_gap"]["dr"])
    check_nothing(plain["fairness"]["utility_gap"]["naive"])
    assert plain["bounds"]["utility_gap"]["high"] is not None
    assert json.dumps(plain, allow_nan=False)


def test_propensities_near_zero() -> None:
    """Of a tenth of the people, who are found in every region."""
    draw = np.random.default_rng(0)
    people = applicants(3000)
    rare = draw.random(3000) < 0.1
    people["p"] = np.where(rare, 0.005, people["p"])
    people["granted"] = (draw.random(3000) < people["p"]).astype(int)
    people["repaid"] = people["truth"].where(people["granted"] == 1)
    people["common"] = np.where(rare, 0.0, people["new"])
    log = evaluator(people, propensity="p", drop=["common"])
    check_refused(log.evaluate("new").to_plain(), "had a propensity below 0.01")
    assert "% of f" in str(log.evaluate("new").refused)
    assert log.evaluate("common").refused_value is None


def test_few_accepted_people_like_those_of_the_policy(people: pd.DataFrame) -> None:
    few = people.assign(top=(people["score"] > np.sort(people["score"])[-25]).astype(float))
    plain = evaluator(few, propensity="p", drop=["top"]).evaluate("top").to_plain()
    check_refused(plain, "effective sample size")
    assert plain["overlap"]["effective_sample_size"] < 30


def test_propensities_of_other_decisions_are_doubted(people: pd.DataFrame) -> None:
    wrong = people.assign(p=np.clip(0.5 * people["p"], 0.05, 1))
    assert any("instead of 1" in one for one in evaluator(wrong, propensity="p").evaluate("new").warnings)


def test_a_group_with_few_labels_is_warned_about(people: pd.DataFrame) -> None:
    rare = people.assign(race=np.where(people.index % 60 == 0, "black", "white"))
    found = evaluator(rare, sensitive="race", propensity="p").evaluate("new")
    told = [one for one in found.warnings if "of group black count as" in one]
    assert len(told) == 1
    assert not any("group white" in one for one in found.warnings)
    assert found.to_plain()["fairness"]["equal_opportunity"]["dr"]["estimate"] is not None


# The logged decisions


@pytest.mark.parametrize("source", ["recorded", "estimated"])
def test_the_logged_decisions_are_judged_as_taken(
    source: str, request: pytest.FixtureRequest, people: pd.DataFrame
) -> None:
    found = request.getfixturevalue(source).evaluate()
    plain = found.to_plain()
    gain = (people["granted"] * (people["repaid"].fillna(0) - 0.4)).mean()
    for name in ESTIMATORS:
        if name != "dm":
            assert plain["value"][name]["estimate"] == pytest.approx(gain, abs=1e-12)
    assert plain["value"]["dm"]["low"] < gain < plain["value"]["dm"]["high"]
    accepted = people.groupby("sex")["granted"].mean()
    for view in ("ips", "dr"):
        gap = plain["fairness"]["dpu"][view]["estimate"]
        assert gap == pytest.approx(abs(accepted["f"] - accepted["m"]), abs=1e-12)
    precision = people[people["granted"] == 1].groupby("sex")["repaid"].mean()
    for view in VIEWS:
        gap = plain["fairness"]["predictive_parity"][view]["estimate"]
        assert gap == pytest.approx(abs(precision["f"] - precision["m"]), abs=1e-12)
    assert plain["policy"] == "the logged decisions"
    assert plain["guarantee"]["low"] < gain < plain["guarantee"]["high"]
    # Known decisions: their interval is that of a mean, whatever the propensities.
    half = 1.96 * (people["granted"] * (people["repaid"].fillna(0) - 0.4)).std() / np.sqrt(1500)
    own = plain["value"]["ips"]
    assert (own["high"] - own["low"]) / 2 == pytest.approx(half, rel=0.2)


def test_labels_that_are_still_missing_are_like_the_others(people: pd.DataFrame) -> None:
    labelled = np.random.default_rng(1).random(1500) < 0.6
    later = people.assign(repaid=people["repaid"].where(labelled))
    log = evaluator(later)
    known = later["repaid"].notna().sum() / later["granted"].sum()
    gain = later["granted"].mean() * (later["repaid"].dropna() - 0.4).mean()
    own = log.evaluate()
    assert own.rows.labelled == pytest.approx(known)
    assert own.value("snips")[0] == pytest.approx(gain, abs=1e-12)
    assert own.value("ips")[0] == pytest.approx(gain, abs=1e-12)
    truth = float((people["new"] * (people["truth"] - 0.4)).mean())
    plain = log.evaluate("new").to_plain()
    for name in ESTIMATORS:
        assert plain["value"][name]["low"] < truth < plain["value"][name]["high"]
    assert plain["log"]["labelled"] < plain["log"]["accepted"]
    assert plain["warnings"] == []


def test_propensities_of_the_rejected_may_be_missing(people: pd.DataFrame, recorded: Evaluator) -> None:
    some = people.assign(p=people["p"].where(people["granted"] == 1))
    log = evaluator(some, propensity="p")
    first, second = recorded.evaluate("new").to_plain(), log.evaluate("new").to_plain()
    assert second["refused"] is None
    for name in ESTIMATORS:
        if name != "switch_dr":  # whose threshold counts the people with a propensity
            assert second["value"][name] == first["value"][name]
    assert second["fairness"] == first["fairness"]
    assert second["sensitivity"] == first["sensitivity"]
    check_given(second["value"]["switch_dr"])
    logged = log.evaluate().to_plain()
    assert logged["value"]["dr"] == recorded.evaluate().to_plain()["value"]["dr"]
    assert json.dumps(logged, allow_nan=False)


# Comparisons


def test_a_policy_equals_itself(recorded: Evaluator) -> None:
    found = compared(recorded, "new", "new").to_plain()
    assert found["first"] == found["second"]
    assert found["difference"]["acceptance"] == 0
    same = dict.fromkeys(GIVEN, 0.0)
    for one in found["difference"]["value"].values():
        assert one == same | {"probability_better": 0.5}
    for of_view in found["difference"]["fairness"].values():
        assert list(of_view) == list(VIEWS)
        for one in of_view.values():
            assert one == same | {"probability_fairer": 0.5}


def test_the_order_of_policies_turns_the_sign(estimated: Evaluator) -> None:
    first, second = (compared(estimated, *pair).to_plain() for pair in (("new", "steep"), ("steep", "new")))
    assert first["first"] == second["second"]
    ours, theirs = first["difference"], second["difference"]
    assert ours["acceptance"] == pytest.approx(-theirs["acceptance"])
    pairs = [(ours["value"][name], theirs["value"][name]) for name in ESTIMATORS]
    pairs += [(ours["fairness"][name][view], theirs["fairness"][name][view])
              for name in ours["fairness"] for view in VIEWS]  # fmt: skip
    for one, other in pairs:
        assert one["estimate"] == pytest.approx(-other["estimate"], abs=1e-12)
        assert one["low"] == pytest.approx(-other["high"], abs=1e-12)
        assert one["high"] == pytest.approx(-other["low"], abs=1e-12)
        chances = [value for both in (one, other) for key, value in both.items() if key.startswith("prob")]
        assert sum(chances) == pytest.approx(1)
    for name in ESTIMATORS:
        values = [first[which]["value"][name]["estimate"] for which in ("first", "second")]
        assert ours["value"][name]["estimate"] == pytest.approx(values[1] - values[0], abs=1e-12)
    assert ours["value"]["dr"]["estimate"] != 0


def test_pairing_narrows_the_interval(recorded: Evaluator) -> None:
    found = compared(recorded, "new", "steep").to_plain()

    def width(one: dict[str, Any]) -> float:
        return one["high"] - one["low"]

    for name in ESTIMATORS:
        first, second = (width(found[which]["value"][name]) for which in ("first", "second"))
        assert width(found["difference"]["value"][name]) < 0.3 * np.hypot(first, second)


def test_better_and_fairer_policies_are_found(people: pd.DataFrame) -> None:
    """One that knows the labels' cause against its contrary; one that is fair against one that is not."""
    targets = people.assign(
        bad=expit(-1.5 * people["score"]),
        unfair=np.where(people["sex"] == "m", 0.9, 0.3),
        fair=0.6,
    )
    log = evaluator(targets, propensity="p", drop=["bad", "unfair", "fair"])
    better = compared(log, "bad", "new").to_plain()["difference"]["value"]
    assert all(
        better[name]["probability_better"] == 1.0 and better[name]["low"] > 0.05 for name in ESTIMATORS
    )
    fairer = compared(log, "unfair", "fair").to_plain()["difference"]["fairness"]
    for name in ("dpu", "equal_opportunity", "false_positive"):
        for view in VIEWS:
            assert fairer[name][view]["probability_fairer"] == 1.0
            assert fairer[name][view]["estimate"] == pytest.approx(-0.6, abs=0.1)


# Policies at the edge


def test_a_policy_that_accepts_nobody(people: pd.DataFrame) -> None:
    log = evaluator(people.assign(none=0.0), propensity="p", drop=["none"])
    plain = log.evaluate("none").to_plain()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["refused"] is None
    for one in plain["value"].values():
        assert one == dict.fromkeys(GIVEN, 0.0)
    assert plain["bounds"]["utility"] == {"low": 0.0, "high": 0.0}
    check_nothing(plain["fairness"]["predictive_parity"]["dr"])
    assert any("predictive-parity gap: no value" in told for told in plain["warnings"])


def test_a_gap_without_a_value_is_not_compared(people: pd.DataFrame) -> None:
    """No precision where a policy accepts nobody of a group."""
    log = evaluator(people.assign(men=people["new"].where(people["sex"] == "m", 0.0)), drop=["men"])
    found = compared(log, "men", "new").to_plain()
    check_nothing(found["first"]["fairness"]["predictive_parity"]["dr"])
    check_nothing(found["difference"]["fairness"]["predictive_parity"]["dr"])
    assert found["difference"]["fairness"]["dpu"]["dr"]["probability_fairer"] == 1.0
    assert found["difference"]["value"]["dr"]["estimate"] is not None


# Groups


def test_three_groups_and_intersections() -> None:
    people = applicants(3000)
    people["region"] = np.array(["a", "b", "c"])[np.arange(3000) % 3]
    people["new"] = np.where(people["region"] == "c", 0.3 * people["new"], people["new"])
    plain = evaluator(people, sensitive="region", drop=["sex"]).evaluate("new").to_plain()
    rates = people.groupby("region")["new"].mean()
    assert list(plain["groups"]) == ["a", "b", "c"]
    assert plain["fairness"]["dpu"]["dr"]["estimate"] == pytest.approx(rates.max() - rates.min())
    assert plain["bounds"]["dpu"] == pytest.approx(dict.fromkeys(("low", "high"), rates.max() - rates.min()))
    crossed = evaluator(people, sensitive=None, groups=("sex", "race"), drop=["region"])
    plain = crossed.evaluate("new").to_plain()
    rates = people.groupby(["sex", "race"])["new"].mean()
    assert list(plain["groups"]) == ["f, black", "f, white", "m, black", "m, white"]
    assert plain["fairness"]["dpu"]["ips"]["estimate"] == pytest.approx(rates.max() - rates.min())
    for group in plain["groups"].values():
        check_given(group["rates"]["equal_opportunity"]["dr"])
        assert group["overlap"]["effective_sample_size"] < plain["overlap"]["effective_sample_size"]


# Kinds of policies


def test_a_policy_in_any_form(people: pd.DataFrame) -> None:
    model = LogisticRegression().fit(people[["score"]], people["truth"])
    chance = model.predict_proba(people[["score"]])[:, 1]
    table = people.drop(columns=["steep", "truth", "race", "new"]).assign(chance=chance)
    options: dict[str, Any] = {"propensity": "p", "outcome_model": "logistic"} | KEYS

    def likely(people: pd.DataFrame) -> np.ndarray:
        return model.predict_proba(people[["score"]])[:, 1]

    column = evaluate("chance", table, **options).to_plain()
    log = DecisionLog.of(table, not_features=["chance"], propensity="p", **KEYS)
    names = {}
    for policy in (model, likely, chance, pd.Series(chance, name="mine"), "chance"):
        found = evaluate(policy, log, outcome_model="logistic")
        assert isinstance(found, Evaluation)
        plain = found.to_plain()
        names[plain["policy"]] = True
        assert plain | {"policy": "chance"} == column
    assert list(names) == ["LogisticRegression", "likely", "array", "mine", "chance"]
    with pytest.raises(FairAllError, match="policy chanc: neither a column"):
        evaluate("chanc", table, **options)


def test_a_saved_policy(tmp_path: Path) -> None:
    people = crowd(600)
    people.to_csv(tmp_path / "loans.csv", index=False)
    saved, config = built(*WORDS, f"dataset.path={tmp_path / 'loans.csv'}")
    saved.save(tmp_path / "policy", config)
    target = saved.propensity(people.drop(columns="repaid")).mean(0)
    granted = np.random.default_rng(0).random(600) < 0.6
    people["granted"], people["repaid"] = granted.astype(int), people["repaid"].where(granted)
    log = DecisionLog.of(people, decision="granted", label="repaid", positive="yes", sensitive="sex")
    by_folder = evaluate(tmp_path / "policy", log, propensity_model="logistic", outcome_model="logistic")
    np.testing.assert_allclose(by_folder.target, target, atol=1e-6)
    assert by_folder.target.std() > 1e-3
    by_array = evaluate(by_folder.target, log, propensity_model="logistic", outcome_model="logistic")
    assert by_folder.to_plain()["value"] == by_array.to_plain()["value"]


def test_boosted_and_given_models(people: pd.DataFrame) -> None:
    log = DecisionLog.of(people, not_features=COLUMNS, **KEYS)
    found = Evaluator(log, propensity_model=LogisticRegression(), outcome_model="boosting").evaluate("new")
    plain = found.to_plain()
    assert plain["models"]["propensity"]["name"] == "LogisticRegression"
    assert plain["models"]["outcome"]["name"] == "gradient boosting"
    truth = float((people["new"] * (people["truth"] - 0.4)).mean())
    for name in ("dr", "ips"):
        assert plain["value"][name]["low"] < truth < plain["value"][name]["high"]


def test_the_odds_ratio_at_which_a_comparison_turns(people: pd.DataFrame) -> None:
    log = evaluator(people)
    for first, second in (("new", None), (None, "new"), ("new", "other")):
        second_policy = (lambda raw: 0.5 * raw["new"].astype(float)) if second == "other" else second
        found = compared(log, first, second_policy)
        estimate = found.to_plain()["difference"]["value"]["dr"]["estimate"]
        # Certain without hidden differences, and the less the larger they are.
        widths = [np.subtract(*found.value_bounds(gamma)[::-1]) for gamma in (1.0, 1.5, 3.0)]
        assert widths[0] == pytest.approx(0.0, abs=1e-9)
        assert widths[0] < widths[1] < widths[2]
        assert found.value_bounds(1.0)[0] == pytest.approx(estimate, abs=2e-3)
        turn = found.to_plain()["difference"]["turning_point"]
        assert turn is None or pytest.approx(min(map(abs, found.value_bounds(turn))), abs=1e-4) == 0.0


def test_comparing_from_python_leaves_both_policies_out_of_the_features(people: pd.DataFrame) -> None:
    log = people.drop(columns=["race", "truth"])
    found = compare("new", "steep", log, **KEYS, propensity="p", propensity_model="logistic", seed=3)
    assert [feature.name for feature in found.first.log.schema] == ["score"]
    assert found.first.evaluator is found.second.evaluator
    one = evaluate("new", log, **KEYS, propensity="p", drop=["steep"], seed=3)
    assert found.to_plain()["first"]["value"] == one.to_plain()["value"]
    with pytest.raises(TypeError, match="nonsense"):
        compare("new", "steep", log, **KEYS, nonsense=1)
