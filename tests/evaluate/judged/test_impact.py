"""Adverse impact of known groups, and of groups known by probabilities only: by hand and by simulation."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, fisher_exact
from scipy.stats import t as student

from fairall.errors import FairAllError
from fairall.evaluate import evaluate
from fairall.evaluate.estimated.gaps import Interval
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged import impact
from fairall.evaluate.judged.models import Models
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import plain
from tests.evaluate.simulated import applicants, judged, models_of

WOMEN = 0.4  # share
SHAPES = {"f": (2, 3), "m": (3, 3)}  # of the beta distributions of scores
PROBABLE = ["p_black", "p_other", "p_white"]
KEYS: dict[str, Any] = {"decision": "granted", "propensity": "p"}


def of_groups(group: np.ndarray, accepted: np.ndarray, **keys: Any) -> Evaluation:
    """The decisions of a log without labels, where nothing is fitted."""
    of_log = {"person": keys.pop("person")} if "person" in keys else {}
    table = pd.DataFrame({"g": group, "x": np.arange(len(group)), "p": 0.5, "granted": accepted.astype(int)})
    names = {"person": "who"} if of_log else {}
    table = table.assign(**({"who": of_log["person"]} if of_log else {}))
    log = DecisionLog.of(table, sensitive="g", **names, **KEYS)
    return Evaluation(Models(log, **keys), "decisions", log.accepted.astype(float), logged=True)


def table_of(**counts: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Group and decision of people, from accepted and all people of each group."""
    group = np.repeat([*counts], [n for _, n in counts.values()])
    return group, np.concatenate([np.arange(n) < k for k, n in counts.values()])


def known(one: Evaluation) -> dict[str, Any]:
    found = one.adverse_impact
    assert found is not None
    return found


# Known groups


def test_rates_ratios_and_shortfalls_by_hand() -> None:
    found = known(of_groups(*table_of(a=(30, 100), b=(60, 120), c=(20, 80))))
    assert found["reference"] == "b"
    assert found["test"] == "Fisher's exact test"
    assert found["difference_of"] == "acceptance"
    a, b, c = (found["groups"][name] for name in "abc")
    assert (a["people"], a["accepted"], a["rate"].estimate) == pytest.approx((100, 30.0, 0.3))
    assert a["ratio"].estimate == pytest.approx(0.6)
    assert a["ratio"].low < 0.6 < a["ratio"].high
    assert a["shortfall"] == pytest.approx(0.5 * 100 - 30)
    assert a["shortfall_of_four_fifths"] == pytest.approx(0.4 * 100 - 30)
    assert c["shortfall_of_four_fifths"] == pytest.approx(0.4 * 80 - 20)
    # Of three pairs.
    assert a["p"] == pytest.approx(3 * fisher_exact([[30, 70], [60, 60]]).pvalue)
    assert found["reference_group"].startswith("has the highest rate of the groups with at least 30 people")
    spread = np.sqrt((100 * 0.3 * 0.7 + 120 * 0.25) / 218)
    assert a["difference"].estimate == pytest.approx(-0.2 / spread)
    assert (b["ratio"].estimate, b["ratio"].why) == (1.0, impact.ITSELF)
    assert np.isnan(b["ratio"].low)
    assert np.isnan(b["p"])
    assert b["shortfall"] == 0.0
    assert b["four_fifths"] is None
    assert a["by_score"] == []


@pytest.mark.parametrize(
    ("estimate", "low", "high", "told"),
    [
        (0.6, 0.5, 0.7, "below"),
        (0.7, 0.6, 0.9, "below, 80 in the interval"),
        (0.9, 0.7, 1.1, "not below, 80 in the interval"),
        (0.9, 0.85, 1.0, "not below"),
        (0.9, np.nan, np.nan, "not below"),
        (np.nan, np.nan, np.nan, None),
    ],
)
def test_the_four_fifths_rule_in_words(estimate: float, low: float, high: float, told: str | None) -> None:
    assert impact.verdict(Interval(estimate, low, high)) == told


def test_another_reference_and_none_that_is_not_there() -> None:
    group, accepted = table_of(a=(30, 100), b=(60, 120), tiny=(5, 9))
    found = known(of_groups(group, accepted, reference="a"))
    assert found["reference"] == "a"
    assert found["reference_group"] == "was given: p-values and intervals hold for each comparison by itself"
    assert found["groups"]["b"]["p"] == pytest.approx(fisher_exact([[30, 70], [60, 60]]).pvalue)
    assert found["groups"]["b"]["ratio"].estimate == pytest.approx(0.5 / 0.3)
    assert found["groups"]["b"]["shortfall"] == 0.0
    assert [*found["groups"]] == ["a", "b"]  # of fewer than ten nothing is shown
    for name in ("c", "tiny"):
        with pytest.raises(FairAllError, match=f"^reference '{name}': no such group; there are a, b$"):
            of_groups(group, accepted, reference=name)


def test_what_rests_on_nobody_has_no_ratio() -> None:
    group, accepted = table_of(a=(0, 100), b=(60, 120))
    of_nobody = known(of_groups(group, accepted, reference="a"))["groups"]["b"]
    assert np.isnan(of_nobody["ratio"].estimate)
    assert of_nobody["ratio"].why == "nobody of the reference group is accepted"
    assert of_nobody["four_fifths"] is None
    own = known(of_groups(group, accepted))["groups"]["a"]["ratio"]
    assert own[:2] == (0.0, 0.0)
    assert 0.01 < own.high < 0.2
    models = models_of(applicants(200), propensity="p")
    alike = known(judged(models, np.full(200, 0.5)))
    name = next(name for name in "fm" if name != alike["reference"])
    assert alike["groups"][name]["difference"].why == "all people of a group are alike"
    assert alike["groups"][name]["p"] == 1.0


def test_rows_of_too_few_people_have_no_intervals() -> None:
    group, accepted = table_of(a=(30, 100), b=(60, 120))
    person = np.r_[np.arange(100) % 2, np.arange(120) + 2]
    found = known(of_groups(group, accepted, person=person))
    assert found["test"] == "permutation test of people"
    a = found["groups"]["a"]
    assert a["ratio"].estimate == pytest.approx(0.6)
    for name in ("ratio", "difference"):
        assert np.isnan(a[name].low)
        assert "too few" in a[name].why


def test_a_group_of_few_people_is_never_chosen_as_the_reference() -> None:
    """29 people, or fewer than 2 % of all, of whom everybody is accepted."""
    for small, times in ((29, 1), (39, 10)):
        group, accepted = table_of(a=(small, small), b=(60 * times, 120 * times), c=(20 * times, 80 * times))
        assert known(of_groups(group, accepted))["reference"] == "b"
        assert known(of_groups(group, accepted, reference="a"))["reference"] == "a"
    group, accepted = table_of(a=(30, 30), b=(60, 120), c=(20, 80))
    assert known(of_groups(group, accepted))["reference"] == "a"
    nobody = of_groups(*table_of(a=(9, 20), b=(12, 25)))
    assert nobody.adverse_impact is None
    assert (
        "no adverse impact: no group has 30 people and 2 % of all, to be the reference group; give one"
        in (nobody.warnings)
    )


def test_a_reference_group_has_thirty_people_whatever_their_rows() -> None:
    group, accepted = table_of(a=(30, 30), b=(120, 240))
    person = np.concatenate([np.arange(30) // 3, 10 + np.arange(240)])
    assert known(of_groups(group, accepted))["reference"] == "a"
    assert known(of_groups(group, accepted, person=person))["reference"] == "b"


def test_the_permutation_test_is_not_led_by_unlike_spreads() -> None:
    """Means of two groups of chances are equal; those of the small one are nearly all 0 or 1."""
    draw, side = np.random.default_rng(0), np.arange(200) < 40
    log = of_groups(np.where(side, "a", "b"), draw.random(200) < 0.5, reference="b")
    shape = np.where(side, 0.2, 20.0), np.where(side, 0.8, 80.0)
    found = [known(Evaluation(log.models, "chances", draw.beta(*shape))) for _ in range(40)]
    assert sum(one["groups"]["a"]["p"] < 0.05 for one in found) <= 6


def test_the_level_of_a_chosen_reference_group_is_that_of_all_pairs() -> None:
    """Six equal groups: p by itself is below .05 for the group beside the best in three of ten logs."""
    draw, rejected, excluded = np.random.default_rng(0), 0, 0
    group = np.repeat([*"abcdef"], 100)
    for _ in range(100):
        found = known(of_groups(group, draw.random(600) < 0.5))
        others = [own for name, own in found["groups"].items() if name != found["reference"]]
        rejected += any(own["p"] < 0.05 for own in others)
        excluded += any(own["ratio"].high < 1 for own in others)
        assert found["test"] == "Fisher's exact test"
    assert rejected <= 9
    assert excluded <= 9


def test_the_permutation_test_is_that_of_two_shares_and_heeds_people() -> None:
    """Fisher's nearly, also for people with two equal rows each; as different people p is below 1e-4."""
    group, accepted = table_of(a=(30, 100), b=(60, 120))
    fisher = fisher_exact([[30, 70], [60, 60]]).pvalue
    log = of_groups(group, accepted).log
    twice = np.r_[np.arange(220), np.arange(220)]
    for of in (
        Evaluation(Models(log), "nearly", accepted * (1.0 - 1e-9)),
        of_groups(group[twice], accepted[twice], person=twice),
    ):
        found = known(of)
        assert found["test"] == "permutation test of people"
        assert found["groups"]["a"]["p"] == pytest.approx(fisher, rel=0.5)
    assert known(of_groups(group[twice], accepted[twice]))["groups"]["a"]["p"] < 1e-4


def test_the_permutation_test_by_hand() -> None:
    """Of the 10 ways to choose two of five people one has means of 0 and 1: p = 0.1."""
    group, accepted = np.array(["a"] * 20 + ["b"] * 30), np.array([False] * 20 + [True] * 30)
    person = np.repeat(np.arange(5), 10)
    one = of_groups(group, accepted, person=person, reference="b")
    assert known(one)["groups"]["a"]["p"] == pytest.approx(0.1, abs=0.01)


def test_the_permutation_test_keeps_its_level_with_few_people_in_a_group() -> None:
    """Ten people of 90 %, all accepted in a third of the logs: errors by person are then too small."""
    draw, rejected = np.random.default_rng(0), {"rows": 0, "chances": 0}
    group = np.where(np.arange(200) < 10, "a", "b")
    for _ in range(40):
        accepted = (draw.random(200) < 0.9).repeat(3)
        found = known(of_groups(group.repeat(3), accepted, person=np.arange(200).repeat(3), reference="b"))
        rejected["rows"] += found["groups"]["a"]["p"] < 0.05
        log = of_groups(group, accepted[::3], reference="b")
        chances = known(Evaluation(log.models, "chances", draw.beta(0.5, 0.1, 200)))
        rejected["chances"] += chances["groups"]["a"]["p"] < 0.05
    assert rejected["rows"] <= 5
    assert rejected["chances"] <= 5


def test_a_standardised_difference_has_no_interval_where_a_group_is_uniform() -> None:
    group, accepted = table_of(a=(0, 12), b=(30, 300))
    own = known(of_groups(group, accepted, reference="b"))["groups"]["a"]["difference"]
    assert own.estimate == pytest.approx(-0.1 / np.sqrt(300 * 0.09 / 310))
    assert np.isnan([own.low, own.high]).all()
    assert own.why == "all people of a group are alike"


def test_the_interval_of_a_standardised_difference_by_hand() -> None:
    group, accepted = table_of(a=(9, 10), b=(30, 60))
    own = known(of_groups(group, accepted, reference="b"))["groups"]["a"]["difference"]
    pooled = (10 * 0.09 + 60 * 0.25) / 68
    difference = 0.4 / np.sqrt(pooled)
    # 1/10 + 1/60 is more than (0.09/10 + 0.25/60)/pooled.
    half = student.ppf(0.975, 9) * np.sqrt(1 / 10 + 1 / 60 + difference**2 / 140)
    assert own[:3] == pytest.approx((difference, difference - half, difference + half))


@pytest.mark.parametrize("small", [10, 40])
def test_the_interval_of_a_standardised_difference_covers(small: int) -> None:
    draw, covered, shown = np.random.default_rng(1), 0, 0
    group = np.repeat(["a", "b"], [small, 200])
    for _ in range(100):
        accepted = draw.random(small + 200) < np.where(group == "a", 0.8, 0.6)
        own = known(of_groups(group, accepted, reference="b"))["groups"]["a"]["difference"]
        true = 0.2 / np.sqrt((small * 0.16 + 200 * 0.24) / (small + 200))
        shown += not np.isnan(own.low)
        covered += own.low <= true <= own.high
    assert shown >= 80
    assert covered >= 0.93 * shown


def test_shares_by_score_are_exact_where_grades_tie() -> None:
    """Grades of 42, 16 and 42 people of a hundred: the best 20 % are of the first one, by lot."""
    draw = np.random.default_rng(0)
    score = draw.permutation(np.repeat([0.9, 0.5, 0.1], [420, 160, 420]))
    group = np.where(draw.random(1000) < 0.3 + 0.4 * score, "a", "b")
    rows = known(of_groups(group, score > 0.4, score=score, reference="b"))["groups"]["a"]["by_score"]
    shares = {grade: [((score == grade) & (group == name)).sum() for name in "ab"] for grade in (0.9, 0.5)}
    size = np.array([(group == name).sum() for name in "ab"])
    for row in rows:
        first, second = min(row["share"] / 0.42, 1.0), min(max(row["share"] - 0.42, 0.0) / 0.16, 1.0)
        if row["share"] < 0.58:
            accepted = first * np.array(shares[0.9]) + second * np.array(shares[0.5])
            rate = accepted / size
            assert accepted.sum() == pytest.approx(1000 * row["share"])
            assert row["ratio"].estimate == pytest.approx(rate[0] / rate[1])


def test_ratios_by_score_are_those_of_thresholds() -> None:
    draw = np.random.default_rng(0)
    group, score = draw.choice(["a", "b"], 1000), draw.random(1000)
    score = np.where(group == "a", score**2, score)
    found = known(of_groups(group, score > 0.4, score=score))
    assert found["difference_of"] == "score"
    a, b = score[group == "a"], score[group == "b"]
    pooled = np.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2))
    assert found["groups"]["a"]["difference"].estimate == pytest.approx((a.mean() - b.mean()) / pooled)
    rows = found["groups"]["a"]["by_score"]
    assert [row["share"] for row in rows] == pytest.approx(np.arange(1, 10) / 10)
    for row in rows:
        best = score >= np.quantile(score, 1 - row["share"])
        assert best.mean() == pytest.approx(row["share"], abs=0.002)
        expected = best[group == "a"].mean() / best[group == "b"].mean()
        assert row["ratio"].estimate == pytest.approx(expected)
        assert row["ratio"].low < expected < row["ratio"].high


def test_combinations_of_attributes_are_groups() -> None:
    people = applicants(600).assign(age=np.arange(600) % 2)
    keys: dict[str, Any] = {"decision": "granted", "propensity": "p", "cost": 0.4}
    one = evaluate(None, people.drop(columns="repaid"), groups=["sex", "age"], **keys)
    other = evaluate(None, people.drop(columns="repaid"), sensitive=["sex", "age"], **keys)
    assert [*known(one)["groups"]] == ["f, 0", "f, 1", "m, 0", "m, 1"]
    assert plain(known(one)) == plain(known(other))


def simulated(rows: int, how: str, seed: int) -> dict[str, Any]:
    """Women beside men, accepted by the score, by another one, by chance, or without a difference."""
    draw = np.random.default_rng(seed)
    woman = draw.random(rows) < WOMEN
    score, other = (
        np.where(woman, draw.beta(*SHAPES["f"], rows), draw.beta(*SHAPES["m"], rows)) for _ in range(2)
    )
    chance = {"chance": np.where(woman, 0.3, 0.45), "no difference": np.full(rows, 0.3)}
    accepted = (
        draw.random(rows) < chance[how] if how in chance else (score if how == "score" else other) > 0.5
    )
    group = np.where(woman, "f", "m")
    return known(of_groups(group, accepted, score=score, reference="m"))["groups"]["f"]


def coverage(rows: int, how: str, logs: int) -> dict[str, float]:
    """Shares of logs in which intervals cover the true ratio and difference, and the test rejects."""
    by_score = beta.sf(0.5, *SHAPES["f"]) / beta.sf(0.5, *SHAPES["m"])
    ratio = {"chance": 0.3 / 0.45, "no difference": 1.0}.get(how, by_score)
    variance = (1 - WOMEN) * beta.var(*SHAPES["m"]) + WOMEN * beta.var(*SHAPES["f"])
    difference = (beta.mean(*SHAPES["f"]) - beta.mean(*SHAPES["m"])) / np.sqrt(variance)
    found = [simulated(rows, how, seed) for seed in range(logs)]
    return {
        "ratio": float(np.mean([one["ratio"].low <= ratio <= one["ratio"].high for one in found])),
        "difference": float(
            np.mean([one["difference"].low <= difference <= one["difference"].high for one in found])
        ),
        "rejected": float(np.mean([one["p"] < 0.05 for one in found])),
    }


@pytest.mark.whole
@pytest.mark.parametrize("how", ["score", "other score", "chance", "no difference"])
def test_intervals_cover_the_true_ratio_and_difference(how: str) -> None:
    found = coverage(1000, how, logs=200)
    assert 0.9 <= found["ratio"] <= 0.99
    assert 0.9 <= found["difference"] <= 0.99
    assert found["rejected"] < 0.09 if how == "no difference" else found["rejected"] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1000, 2000, 10_000])
@pytest.mark.parametrize("how", ["score", "other score", "chance", "no difference"])
def test_intervals_cover_in_92_to_98_of_100_logs(how: str, rows: int) -> None:
    found = coverage(rows, how, logs=1000)
    assert 0.92 <= found["ratio"] <= 0.98
    assert 0.92 <= found["difference"] <= 0.98
    if how == "no difference":
        assert found["rejected"] <= 0.07  # Fisher's test is conservative


# Probabilities of groups


def proxied(rows: int = 2000, *, seed: int = 0, dependent: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    """A log with probabilities of three groups, and the group of each person, which is no column."""
    draw = np.random.default_rng(seed)
    probabilities = draw.dirichlet([0.4, 0.3, 1.2], rows)
    group = (draw.random(rows)[:, None] > probabilities.cumsum(1)).sum(1)
    chance = np.where(group == 2, 0.6, 0.3) if dependent else 0.2 + 0.5 * probabilities[:, 2]
    accepted = draw.random(rows) < chance
    people = pd.DataFrame(probabilities, columns=PROBABLE).assign(
        x=draw.normal(size=rows), p=0.5, granted=accepted.astype(int)
    )
    return people, group


def bounded(people: pd.DataFrame, policy: Any = None, **keys: Any) -> Evaluation:
    return evaluate(policy, people, sensitive=PROBABLE, **(KEYS | keys))


def test_probabilities_give_bounds_and_refuse_gaps() -> None:
    people, group = proxied()
    one = bounded(people.assign(repaid=np.where(people["granted"], people["x"] > 0, np.nan)), label="repaid")
    assert one.log.groups == ("everybody",)
    assert one.log.names == ["x"]  # they are no features
    assert one.adverse_impact is None
    assert np.isfinite(one.values["dr"].low)
    gap = one.fairness["dpu"]["dr"]
    assert np.isnan(gap.estimate)
    assert gap.why is not None
    assert "only probabilities are known" in gap.why
    found = one.impact_bounds
    assert found is not None
    assert found["reference"] == "p_white"
    true = [people["granted"][group == k].mean() for k in range(3)]
    for name, rate in zip(PROBABLE, true, strict=True):
        own = found["groups"][name]
        assert own["rate"].interval_low <= own["rate"].low <= rate <= own["rate"].high
        assert own["rate"].high < own["rate"].interval_high < 1.0
        if name != "p_white":
            assert own["ratio"].low < rate / true[2] < own["ratio"].high
            assert own["difference"].low < rate - true[2] < own["difference"].high
            assert own["weighted_ratio"].low > rate / true[2]  # selection depends on the group
    assert found["groups"]["p_white"]["ratio"].why == impact.ITSELF
    written = one.to_plain()["impact_bounds"]["groups"]["p_black"]
    assert written["rate"].keys() == {"low", "high", "interval_low", "interval_high"}


def test_another_reference_of_probable_groups() -> None:
    people, _ = proxied()
    found = bounded(people, reference="p_black").impact_bounds
    assert found is not None
    assert found["reference"] == "p_black"
    assert found["groups"]["p_white"]["ratio"].high > 1.0
    with pytest.raises(
        FairAllError, match=r"reference 'white': no such group; there are p_black, p_other, p_white"
    ):
        bounded(people, reference="white")


def test_probabilities_that_tell_nothing_are_refused() -> None:
    people, _ = proxied()
    flat = people.assign(p_black=0.3, p_other=0.001, p_white=0.699)
    found = bounded(flat).impact_bounds
    assert found is not None
    black, other, white = (found["groups"][name] for name in PROBABLE)
    assert black["rate"].why == "the probabilities of group p_black tell nothing: any rate is possible"
    assert other["rate"].why == "fewer than 10 people are expected in group p_other"
    assert white["rate"].why is None
    for own in (black, other):
        assert np.isnan(own["rate"].low)
        assert own["ratio"].why == own["rate"].why
    assert black["weighted_rate"].estimate == pytest.approx(flat["granted"].mean())
    assert np.isnan(other["weighted_rate"].estimate)
    assert np.isnan(other["weighted_ratio"].estimate)
    with_two = bounded(people.assign(who=np.arange(len(people)) % 2), person="who").impact_bounds
    assert with_two is not None
    assert "too few" in with_two["groups"]["p_other"]["rate"].why
    assert "too few" in with_two["groups"]["p_other"]["weighted_ratio"].why


def test_one_probable_group_with_people_enough_is_shown() -> None:
    people, _ = proxied()
    found = bounded(people.assign(p_black=0.001, p_other=0.001, p_white=0.998)).impact_bounds
    assert found is not None
    assert found["reference"] == "p_white"
    assert found["groups"]["p_black"]["rate"].why == "fewer than 10 people are expected in group p_black"


def test_policies_of_probable_groups_are_compared_and_shown_without_known_groups() -> None:
    people, _ = proxied()
    found = bounded(people, people["x"].rank(pct=True).to_numpy()).impact_bounds
    assert found is not None
    weighted = [own["weighted_rate"].estimate for own in found["groups"].values()]
    assert weighted == pytest.approx([0.5] * 3, abs=0.05)
