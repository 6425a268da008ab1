"""Adverse impact of known groups, and of groups known by probabilities only: by hand and by simulation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact
from scipy.stats import t as student

from fairall.errors import FairAllError
from fairall.evaluate import evaluate
from fairall.evaluate.analyses import impact
from fairall.evaluate.analyses.impact import MOST_CELLS, adverse_impact, cells, rate_bounds
from fairall.evaluate.estimated.estimates import Sample, ratios
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models
from tests.evaluate.simulated import applicants, judged, models_of

PROBABLE = ["p_black", "p_other", "p_white"]
KEYS: dict[str, Any] = {"decision": "granted", "propensity": "p"}


def of_groups(group: np.ndarray, accepted: np.ndarray, person: Any = None, **keys: Any) -> Evaluation:
    """The decisions of a log without labels, where nothing is fitted."""
    table = pd.DataFrame({"g": group, "x": np.arange(len(group)), "p": 0.5, "granted": accepted.astype(int)})
    roles = KEYS if person is None else KEYS | {"person": "who"}
    log = DecisionLog.of(table if person is None else table.assign(who=person), sensitive="g", **roles)
    return Evaluation(Models(log, **keys), "decisions", log.accepted.astype(float), logged=True)


def table_of(**counts: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Group and decision of people, from accepted and all people of each group."""
    group = np.repeat([*counts], [n for _, n in counts.values()])
    return group, np.concatenate([np.arange(n) < k for k, n in counts.values()])


def known(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Group → measure → value; the ratios by score as a list."""
    groups: dict[str, dict[str, Any]] = {}
    for record in adverse_impact(evaluation):
        measures = groups.setdefault(record["group"], {"by_score": []})
        if "share" in record:
            measures["by_score"].append((record["share"], record["value"]))
        else:
            measures[record["measure"]] = record.get("p", record["value"])
    return groups


def reference(evaluation: Evaluation) -> str:
    return adverse_impact(evaluation)[0]["reference"]


# Known groups


def test_rates_ratios_and_shortfalls_by_hand() -> None:
    one = of_groups(*table_of(a=(30, 100), b=(60, 120), c=(20, 80)))
    a, b, c = known(one).values()
    assert reference(one) == "b"
    assert (a["people"], a["accepted"], a["rate"].estimate) == (100, 30.0, pytest.approx(0.3))
    assert a["ratio"].estimate == pytest.approx(0.6)
    assert a["ratio"].low < 0.6 < a["ratio"].high
    assert (a["shortfall"], a["shortfall_of_four_fifths"]) == pytest.approx((20.0, 10.0))
    assert c["shortfall_of_four_fifths"] == pytest.approx(12.0)
    # Of three pairs.
    assert a["p"] == pytest.approx(3 * fisher_exact([[30, 70], [60, 60]]).pvalue, abs=0.0005)
    spread = np.sqrt((100 * 0.3 * 0.7 + 120 * 0.25) / 218)
    assert a["smd"].estimate == pytest.approx(-0.2 / spread)
    assert (b["ratio"].estimate, b["ratio"].why, b["shortfall"]) == (1.0, impact.ITSELF, 0.0)
    assert np.isnan(b["ratio"].low)
    assert "p" not in b
    assert a["by_score"] == []


def test_another_reference_and_none_that_is_not_there() -> None:
    group, accepted = table_of(a=(30, 100), b=(60, 120), tiny=(5, 9))
    one = of_groups(group, accepted, reference="a")
    assert reference(one) == "a"
    groups = known(one)
    assert groups["b"]["p"] == pytest.approx(fisher_exact([[30, 70], [60, 60]]).pvalue, abs=0.0005)
    assert groups["b"]["ratio"].estimate == pytest.approx(0.5 / 0.3)
    assert [*groups] == ["a", "b"]  # of fewer than ten nothing is shown
    for name in ("c", "tiny"):
        with pytest.raises(FairAllError, match=f"^reference '{name}': no such group; there are a, b$"):
            of_groups(group, accepted, reference=name)


def test_what_rests_on_nobody_has_no_ratio() -> None:
    group, accepted = table_of(a=(0, 100), b=(60, 120))
    ratio = known(of_groups(group, accepted, reference="a"))["b"]["ratio"]
    assert np.isnan(ratio.estimate)
    assert ratio.why == "nobody of the reference group is accepted"
    own = known(of_groups(group, accepted))["a"]["ratio"]
    assert own[:2] == (0.0, 0.0)
    assert 0.01 < own.high < 0.2


def test_equal_probabilities_have_no_difference() -> None:
    alike = known(judged(models_of(applicants(200), propensity="p"), np.full(200, 0.5)))
    (beside,) = (measures for measures in alike.values() if "p" in measures)
    assert (beside["smd"].why, beside["p"]) == (impact.ALIKE, 1.0)


def test_rows_of_too_few_people_have_no_intervals() -> None:
    group, accepted = table_of(a=(30, 100), b=(60, 120))
    a = known(of_groups(group, accepted, np.r_[np.arange(100) % 2, np.arange(120) + 2]))["a"]
    assert a["ratio"].estimate == pytest.approx(0.6)
    for name in ("ratio", "smd"):
        assert np.isnan(a[name].low)
        assert "too few" in a[name].why


@pytest.mark.parametrize(
    ("small", "others", "persons", "chosen"),
    [(29, 1, 29, "b"), (39, 10, 39, "b"), (30, 1, 10, "b"), (30, 1, 30, "a")],
)
def test_a_group_of_few_people_is_never_chosen_as_the_reference(
    small: int, others: int, persons: int, chosen: str
) -> None:
    """29 people, or fewer than 2 % of all, or 30 rows of ten people, of whom everybody is accepted."""
    group, accepted = table_of(a=(small, small), b=(60 * others, 120 * others), c=(20 * others, 80 * others))
    person = np.r_[np.arange(small) % persons, small + np.arange(len(group) - small)]
    assert reference(of_groups(group, accepted, person)) == chosen
    assert reference(of_groups(group, accepted, person, reference="a")) == "a"


def test_without_a_group_of_people_enough_there_is_no_adverse_impact() -> None:
    nobody = of_groups(*table_of(a=(9, 20), b=(12, 25)))
    assert adverse_impact(nobody) == []
    assert [*impact.told(nobody.page)] == [f"Adverse impact: none, {impact.NO_REFERENCE}"]


def test_the_level_of_a_chosen_reference_group_is_that_of_all_pairs() -> None:
    """Six equal groups: p by itself is below .05 for the group beside the best in three of ten logs."""
    draw, rejected, excluded = np.random.default_rng(0), 0, 0
    group = np.repeat([*"abcdef"], 100)
    for _ in range(100):
        others = [one for one in known(of_groups(group, draw.random(600) < 0.5)).values() if "p" in one]
        rejected += any(one["p"] < 0.05 for one in others)
        excluded += any(one["ratio"].high < 1 for one in others)
    assert max(rejected, excluded) <= 9


def test_the_permutation_test_is_that_of_two_shares_and_heeds_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fisher's nearly, also for people with two equal rows each; as different people p is below 1e-4."""
    group, accepted = table_of(a=(30, 100), b=(60, 120))
    fisher = fisher_exact([[30, 70], [60, 60]]).pvalue
    log, twice = of_groups(group, accepted).log, np.r_[np.arange(220), np.arange(220)]
    nearly = Evaluation(Models(log), "nearly", accepted * (1.0 - 1e-9))
    for one in (nearly, of_groups(group[twice], accepted[twice], twice)):
        assert known(one)["a"]["p"] == pytest.approx(fisher, rel=0.5)
    assert known(of_groups(group[twice], accepted[twice]))["a"]["p"] < 0.001
    monkeypatch.setattr(impact, "MOST_PERMUTED", 100)  # by the normal distribution
    again = of_groups(group[twice], accepted[twice], twice)
    assert known(again)["a"]["p"] == pytest.approx(fisher, rel=0.5)


def test_the_permutation_test_by_hand() -> None:
    """Of the 10 ways to choose two of five people one has means of 0 and 1: p = 0.1."""
    group, accepted = np.array(["a"] * 20 + ["b"] * 30), np.array([False] * 20 + [True] * 30)
    one = of_groups(group, accepted, np.repeat(np.arange(5), 10), reference="b")
    assert known(one)["a"]["p"] == pytest.approx(0.1, abs=0.01)


def test_the_permutation_test_keeps_its_level_where_groups_are_small_or_spread_otherwise() -> None:
    """Ten people of 90 %, all accepted in a third of the logs; and chances of one group nearly all 0 or 1."""
    draw, rejected = np.random.default_rng(0), {"rows": 0, "spread": 0}
    group = np.where(np.arange(200) < 10, "a", "b")
    spread = of_groups(np.where(np.arange(200) < 40, "a", "b"), draw.random(200) < 0.5, reference="b").models
    shape = np.repeat([0.2, 20.0], [40, 160]), np.repeat([0.8, 80.0], [40, 160])
    for _ in range(30):
        accepted = (draw.random(200) < 0.9).repeat(3)
        rows = of_groups(group.repeat(3), accepted, np.arange(200).repeat(3), reference="b")
        chances = Evaluation(spread, "chances", draw.beta(*shape))
        for name, one in (("rows", rows), ("spread", chances)):
            rejected[name] += known(one)["a"]["p"] < 0.05
    assert max(rejected.values()) <= 4


def test_a_standardised_difference_by_hand() -> None:
    """Hedges and Olkin's interval where the influence function has less; none in uniform groups."""
    smd = known(of_groups(*table_of(a=(9, 10), b=(30, 60)), reference="b"))["a"]["smd"]
    difference = 0.4 / np.sqrt((10 * 0.09 + 60 * 0.25) / 68)
    half = student.ppf(0.975, 9) * np.sqrt(1 / 10 + 1 / 60 + difference**2 / 140)
    assert smd[:3] == pytest.approx((difference, difference - half, difference + half))
    uniform = known(of_groups(*table_of(a=(0, 12), b=(30, 300)), reference="b"))["a"]["smd"]
    assert uniform.estimate == pytest.approx(-0.1 / np.sqrt(300 * 0.09 / 310))
    assert np.isnan([uniform.low, uniform.high]).all()
    assert uniform.why == impact.ALIKE


@pytest.mark.parametrize("rows", [1, 3])
def test_the_interval_of_a_standardised_difference_covers(rows: int) -> None:
    """80 % of 40 and 60 % of 200 people, with one row or with three equal ones."""
    draw, covered = np.random.default_rng(1), 0
    group, person = np.repeat(["a", "b"], [40, 200]), np.arange(240).repeat(rows)
    true = 0.2 / np.sqrt((40 * 0.16 + 200 * 0.24) / 240)
    for _ in range(60):
        accepted = draw.random(240) < np.where(group == "a", 0.8, 0.6)
        log = of_groups(group[person], accepted[person], person, reference="b").log
        smd = impact.standardised(log, log.accepted * 1.0, (0, 1), 1.96)
        covered += smd.low <= true <= smd.high
    assert 53 <= covered <= 59


def test_shares_by_score_are_exact_where_grades_tie() -> None:
    """Grades of 42, 16 and 42 people of a hundred: the best 20 % are of the first one, by lot."""
    draw = np.random.default_rng(0)
    score = draw.permutation(np.repeat([0.9, 0.5, 0.1], [420, 160, 420]))
    group = np.where(draw.random(1000) < 0.3 + 0.4 * score, "a", "b")
    measures = known(of_groups(group, score > 0.4, score=score, reference="b"))["a"]
    sides = [score[group == name] for name in "ab"]
    pooled = sum(len(side) * side.var() for side in sides) / 998
    difference = sides[0].mean() - sides[1].mean()
    assert measures["smd"].estimate == pytest.approx(difference / np.sqrt(pooled))
    rows = measures["by_score"]
    counts = [np.array([((score == grade) & (group == name)).sum() for name in "ab"]) for grade in (0.9, 0.5)]
    size = np.array([(group == name).sum() for name in "ab"])
    assert [share for share, _ in rows] == pytest.approx(np.arange(1, 10) / 10)
    for share, ratio in rows[:5]:
        rate = (min(share / 0.42, 1.0) * counts[0] + max(share - 0.42, 0.0) / 0.16 * counts[1]) / size
        assert ratio.estimate == pytest.approx(rate[0] / rate[1])
        assert ratio.low < ratio.estimate < ratio.high


# Probabilities of groups


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """A log with probabilities of three groups, and the group of each person, which is no feature."""
    draw = np.random.default_rng(0)
    probabilities = draw.dirichlet([0.4, 0.3, 1.2], 2000)
    group = (draw.random(2000)[:, None] > probabilities.cumsum(1)).sum(1)
    accepted = draw.random(2000) < np.where(group == 2, 0.6, 0.3)
    columns = {"x": draw.normal(size=2000), "p": 0.5, "granted": accepted.astype(int), "group": group}
    return pd.DataFrame(probabilities, columns=PROBABLE).assign(**columns)


def bounded(people: pd.DataFrame, policy: Any = None, **keys: Any) -> Evaluation:
    return evaluate(policy, people, sensitive=PROBABLE, not_features=["group"], **(KEYS | keys))


def test_probabilities_give_bounds_and_refuse_gaps(people: pd.DataFrame) -> None:
    labels = people.assign(repaid=np.where(people["granted"], people["x"] > 0, np.nan))
    one = bounded(labels, label="repaid")
    assert (one.log.groups, [*one.log.x]) == (("everybody",), ["x"])
    assert np.isfinite(one.values["dr"].low)
    gap = one.fairness["dpu"]["dr"]
    assert np.isnan(gap.estimate)
    assert "only probabilities are known" in str(gap.why)
    assert reference(one) == "p_white"
    true = people.groupby("group")["granted"].mean()
    for code, (name, measures) in enumerate(known(one).items()):
        rate, ratio = measures["rate"], measures["ratio"]
        assert rate.interval_low <= rate.low <= true[code] <= rate.high < rate.interval_high < 1.0
        if name != "p_white":
            assert ratio.low < true[code] / true[2] < ratio.high
            assert measures["gap"].low < true[code] - true[2] < measures["gap"].high
            assert measures["weighted_ratio"].low > true[code] / true[2]  # selection depends on the group
        else:
            assert ratio.why == impact.ITSELF
    row = one.table("impact").query("measure == 'rate'").iloc[0]
    assert row["low"] <= row["bound_low"] < row["bound_high"] <= row["high"]


def test_another_reference_and_another_policy_of_probable_groups(people: pd.DataFrame) -> None:
    black = bounded(people, reference="p_black")
    assert reference(black) == "p_black"
    assert known(black)["p_white"]["ratio"].high > 1.0
    names = "p_black, p_other, p_white"
    with pytest.raises(FairAllError, match=f"reference 'white': no such group; there are {names}"):
        bounded(people, reference="white")
    ranks = known(bounded(people, people["x"].rank(pct=True).to_numpy()))
    assert [one["weighted_rate"].estimate for one in ranks.values()] == pytest.approx([0.5] * 3, abs=0.05)


def test_probabilities_that_tell_nothing_are_refused(people: pd.DataFrame) -> None:
    flat = known(bounded(people.assign(p_black=0.3, p_other=0.001, p_white=0.699)))
    reasons = [flat[name]["rate"].why for name in PROBABLE]
    nothing = "the probabilities of group p_black tell nothing: any rate is possible"
    assert reasons == [nothing, "fewer than 10 people are expected in group p_other", None]
    for name in PROBABLE[:2]:
        assert np.isnan(flat[name]["rate"].low)
        assert flat[name]["ratio"].why == flat[name]["rate"].why
        assert np.isnan(flat[name]["weighted_rate"].estimate)
    two = known(bounded(people.assign(who=np.arange(len(people)) % 2), person="who"))
    assert all("too few" in two["p_other"][name].why for name in ("rate", "weighted_ratio"))


VECTORS = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4], [0.05, 0.05, 0.9]])
ACCEPTED = np.array([0.3, 0.5, 0.6, 0.8])  # share of the people with each of these


def exact(order: Callable[[np.ndarray], np.ndarray], rows: int = 1000) -> tuple[np.ndarray, ...]:
    """Probabilities, group and decision of people, with the shares of `VECTORS` and `ACCEPTED` exactly.

    Groups have ranges of the ranks of people with equal probabilities; those of the first `order`ed ranks are
    accepted.
    """
    rank = (np.arange(rows) + 0.5) / rows
    group = [(rank[:, None] > vector.cumsum() - 1e-9).sum(1) for vector in VECTORS]
    accepted = np.concatenate([order(rank) < share for share in ACCEPTED])
    return VECTORS.repeat(rows, axis=0), np.concatenate(group), accepted.astype(float)


def test_cells_are_equal_vectors_or_near_ones() -> None:
    draw = np.random.default_rng(0)
    which = draw.integers(4, size=1000)
    cell = cells(VECTORS[which], 0)
    assert len(np.unique(cell)) == len(np.unique(np.stack([cell, which]), axis=1).T) == 4
    sizes = [len(np.unique(cells(draw.dirichlet([1, 1, 1], n), 0))) for n in (10_000, 200)]
    assert sizes == [MOST_CELLS, 4]


@pytest.mark.parametrize("most", [True, False])
def test_bounds_are_attained(most: bool) -> None:
    """Where group 0 is accepted first, or last, by a joint distribution of group and decision."""
    probabilities, group, accepted = exact((lambda rank: rank) if most else (lambda rank: 1 - rank))
    (low, high, _), _, (least, greatest, _) = rate_bounds(accepted, probabilities, Sample(len(group)))
    share = VECTORS[:, 0]
    ends = np.maximum(0, ACCEPTED + share - 1), np.minimum(ACCEPTED, share)
    expected = [end.sum() / share.sum() for end in ends]
    assert (low.value, high.value) == pytest.approx(expected, abs=0.02)
    rate = accepted[group == 0].mean()
    assert rate == pytest.approx(expected[most], abs=1e-6)
    # Group 2 is then accepted last, or first: the ratio attains its end too.
    over, under = (high, least) if most else (low, greatest)
    ratio = ratios(over[None], under[None]).value.item()
    assert rate / accepted[group == 2].mean() == pytest.approx(ratio, rel=0.05)


def test_known_groups_leave_no_width() -> None:
    accepted = exact(lambda rank: rank)[2]
    sure = np.eye(2)[(np.arange(len(accepted)) % 3 == 0).astype(int)]
    for p, bounds in zip(sure.T, rate_bounds(accepted, sure, Sample(len(accepted))), strict=True):
        assert [one.value for one in bounds] == pytest.approx([accepted[p == 1].mean()] * 3)


@pytest.mark.parametrize("how", ["independent", "by group", "last", "both sides equal"])
def test_the_truth_is_within_the_intervals(how: str) -> None:
    """Where the truth is inside of the bounds, at an end, or both sides of a minimum are equal."""

    def drawn(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(seed)
        p, rank = draw.dirichlet([0.5, 0.9], rows), draw.random(rows)
        group, chance = (rank > p[:, 0]).astype(int), 0.2 + 0.5 * p[:, 1]
        accepted = {
            "independent": draw.random(rows) < chance,
            "by group": draw.random(rows) < np.where(group == 0, 0.25, 0.6),
            "last": rank > 1 - chance,
            "both sides equal": rank < p[:, 0],  # everybody of group 0 is accepted, and nobody else
        }
        return p, group, accepted[how].astype(float)

    _, group, accepted = drawn(1_000_000, 10**6)
    true, inside, weighted = accepted[group == 0].mean(), 0, 0
    for seed in range(40):
        p, _, decided = drawn(1000, seed)
        low, high, rate = rate_bounds(decided, p, Sample(1000), seed)[0]
        inside += bool(low.interval().low <= true <= high.interval().high)
        weighted += bool(rate.interval().low <= true <= rate.interval().high)
    assert inside >= 35
    assert (weighted >= 34) == (how == "independent")
