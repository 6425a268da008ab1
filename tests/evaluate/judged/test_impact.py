"""Adverse impact of known groups, and of groups known by probabilities only: by hand and by simulation."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, chi2_contingency, fisher_exact

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
    assert a["p"] == pytest.approx(fisher_exact([[30, 70], [60, 60]]).pvalue)
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
    assert alike["groups"][name]["difference"].why == "all people of both groups are alike"
    assert alike["groups"][name]["p"] == 1.0


def test_rows_of_too_few_people_have_no_intervals() -> None:
    group, accepted = table_of(a=(30, 100), b=(60, 120))
    person = np.r_[np.arange(100) % 2, np.arange(120) + 2]
    found = known(of_groups(group, accepted, person=person))
    assert found["test"] == "score test by person"
    a = found["groups"]["a"]
    assert a["ratio"].estimate == pytest.approx(0.6)
    for name in ("ratio", "difference"):
        assert np.isnan(a[name].low)
        assert "too few" in a[name].why


def test_the_score_test_is_that_of_two_shares_and_heeds_people() -> None:
    """Pearson's, and for people with two equal rows each no surer; as different people p is below 1e-4."""
    group, accepted = table_of(a=(30, 100), b=(60, 120))
    pearson = chi2_contingency([[30, 70], [60, 60]], correction=False).pvalue
    log = of_groups(group, accepted).log
    twice = np.r_[np.arange(220), np.arange(220)]
    for of in (
        Evaluation(Models(log), "nearly", accepted * (1.0 - 1e-9)),
        of_groups(group[twice], accepted[twice], person=twice),
    ):
        found = known(of)
        assert found["test"].startswith("score test")
        assert found["groups"]["a"]["p"] == pytest.approx(pearson, rel=0.3)
    assert known(of_groups(group[twice], accepted[twice]))["groups"]["a"]["p"] < 1e-4


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


@pytest.mark.whole
def test_the_score_test_keeps_its_level_with_people_of_several_rows() -> None:
    draw, rejected = np.random.default_rng(1), []
    person = np.repeat(np.arange(200), 3)
    for _ in range(800):
        group = draw.choice(["a", "b"], 200)[person]
        accepted = (draw.random(200) < 0.4)[person] & (draw.random(600) < 0.9)
        rejected.append(
            known(of_groups(group, accepted, person=person, reference="a"))["groups"]["b"]["p"] < 0.05
        )
    assert 0.03 <= np.mean(rejected) <= 0.07


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


def test_policies_of_probable_groups_are_compared_and_shown_without_known_groups() -> None:
    people, _ = proxied()
    found = bounded(people, people["x"].rank(pct=True).to_numpy()).impact_bounds
    assert found is not None
    weighted = [own["weighted_rate"].estimate for own in found["groups"].values()]
    assert weighted == pytest.approx([0.5] * 3, abs=0.05)
