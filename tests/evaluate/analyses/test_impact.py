"""Adverse impact of known groups, and of groups known by probabilities only, by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import fisher_exact
from scipy.stats import t as student

from fairall.evaluate.analyses import impact
from fairall.evaluate.analyses.impact import adverse_impact, rate_bounds
from fairall.evaluate.estimated.estimates import Sample, ratios
from fairall.evaluate.evaluation import Evaluation
from tests.evaluate.simulated import evaluated

PROBABLE = ["p_black", "p_other", "p_white"]
UNLABELLED: dict[str, Any] = {"label": None, "propensity": "p"}


def of_groups(group: np.ndarray, accepted: np.ndarray, person: Any = None, **keys: Any) -> Evaluation:
    """The decisions of a log without labels, where nothing is fitted."""
    rows = np.arange(len(group))
    person = rows if person is None else person
    columns = {"sex": group, "x": rows, "who": person, "p": 0.5, "granted": accepted.astype(int)}
    return evaluated(pd.DataFrame(columns), None, person="who", **UNLABELLED, **keys)


def table_of(**counts: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Group and decision of people, from accepted and all people of each group."""
    group = np.repeat([*counts], [n for _, n in counts.values()])
    return group, np.concatenate([np.arange(n) < k for k, n in counts.values()])


def known(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Group → measure → value, of tests p."""
    groups: dict[str, dict[str, Any]] = {}
    for record in adverse_impact(evaluation):
        measures = groups.setdefault(record["group"], {})
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
    assert (b["ratio"].estimate, b["ratio"].why, b["shortfall"]) == (1.0, impact.ITSELF, 0.0)
    assert np.isnan(b["ratio"].low)
    assert "p" not in b


def test_another_reference() -> None:
    one = of_groups(*table_of(a=(30, 100), b=(60, 120), tiny=(5, 9)), reference="a")
    groups = known(one)
    assert (reference(one), [*groups]) == ("a", ["a", "b"])  # of fewer than ten nothing is shown
    assert groups["b"]["p"] == pytest.approx(fisher_exact([[30, 70], [60, 60]]).pvalue, abs=0.0005)
    assert groups["b"]["ratio"].estimate == pytest.approx(0.5 / 0.3)


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


def test_p_is_the_level_of_the_interval_by_people_or_of_probabilities() -> None:
    """Near Fisher's of people with two equal rows each; as different people p is below 1e-4."""
    group, accepted = table_of(a=(30, 100), b=(60, 120))
    twice, fisher = np.tile(np.arange(220), 2), fisher_exact([[30, 70], [60, 60]]).pvalue
    nearly = Evaluation(of_groups(group, accepted).models, "nearly", accepted * (1.0 - 1e-9))
    for judgement in (nearly, of_groups(group[twice], accepted[twice], twice)):
        p, rates = known(judgement)["a"]["p"], judgement.rates["dr"]["dpu"]
        assert p == pytest.approx(fisher, rel=0.5)
        assert ratios(rates[[0]], rates[[1]], -ndtri(p / 2)).high.item() == pytest.approx(1.0, abs=0.001)
    assert known(of_groups(group[twice], accepted[twice]))["a"]["p"] < 0.001


@pytest.mark.parametrize("rows", [1, 3])
def test_a_standardised_difference_of_a_score(rows: int) -> None:
    """Of people with one row or three equal ones; a simulation has the coverage of its interval."""
    draw, person = np.random.default_rng(0), np.arange(120).repeat(rows)
    group, score = np.repeat(["a", "b"], [40, 80])[person], draw.beta(2, 5, 120)[person]
    keys = {"score": score, "reference": "b"}
    smd = known(of_groups(group, score > 0.2, person, **keys))["a"]["smd"]
    by_group = pd.Series(score).groupby(group)
    (a, b), deviations = by_group.mean(), score - by_group.transform("mean")
    assert smd.estimate == pytest.approx((a - b) / deviations.std(ddof=0))
    # With the t quantile of 39 people beside those of two groups of normal scores.
    error = np.sqrt(1 / 40 + 1 / 80 + smd.estimate**2 / 240)
    assert (smd.high - smd.low) / 2 == pytest.approx(student.ppf(0.975, 39) * error, rel=0.15)


def test_what_rests_on_nobody_or_on_people_who_are_all_alike() -> None:
    counts = table_of(a=(0, 12), b=(30, 300))
    ratio = known(of_groups(*counts, reference="a"))["b"]["ratio"]
    assert np.isnan(ratio.estimate)
    assert ratio.why == "nobody of the reference group is accepted"
    log = of_groups(*counts, reference="b")
    own = known(log)["a"]["ratio"]
    assert own[:2] == (0.0, 0.0)
    assert own.high > 0.2
    equal = Evaluation(log.models, "equal", np.full(312, 0.5))
    for judgement, p in ((log, fisher_exact([[0, 12], [30, 270]]).pvalue), (equal, 1.0)):
        measures = known(judgement)["a"]
        assert np.isnan(measures["smd"].estimate)
        assert measures["smd"].why == impact.ALIKE
        assert measures["p"] == pytest.approx(p)


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
    return evaluated(people, policy, sensitive=PROBABLE, not_features=["group", "p"], **UNLABELLED, **keys)


def test_probabilities_give_bounds_and_refuse_gaps(people: pd.DataFrame) -> None:
    judgement = bounded(people)
    assert "only probabilities are known" in str(judgement.fairness["dpu"]["dr"].why)
    assert reference(judgement) == "p_white"
    *true, white = people.groupby("group")["granted"].mean()
    *groups, base = known(judgement).values()
    assert base["ratio"].why == impact.ITSELF
    for rate, measures in zip(true, groups, strict=True):
        bounds = measures["rate"]
        assert bounds.interval_low <= bounds.low <= rate <= bounds.high < bounds.interval_high < 1.0
        assert measures["ratio"].low < rate / white < measures["ratio"].high
        assert measures["gap"].low < rate - white < measures["gap"].high
        assert measures["weighted_ratio"].low > rate / white  # selection depends on the group


def test_another_reference_and_another_policy_of_probable_groups(people: pd.DataFrame) -> None:
    ranks = bounded(people, people["x"].rank(pct=True).to_numpy(), reference="p_black")
    assert reference(ranks) == "p_black"
    rates = [one["weighted_rate"].estimate for one in known(ranks).values()]
    assert rates == pytest.approx([0.5] * 3, abs=0.05)


def test_groups_of_few_expected_people_are_hidden_and_rows_of_few_people_have_no_intervals(
    people: pd.DataFrame,
) -> None:
    flat = known(bounded(people.assign(p_black=0.3, p_other=0.001, p_white=0.699)))
    assert [*flat] == ["p_black", "p_white"]
    assert flat["p_black"]["rate"][:2] == (0.0, 1.0)  # its probabilities tell nothing
    two = known(bounded(people.assign(who=np.arange(len(people)) % 2), person="who"))
    assert all("too few" in two["p_other"][name].why for name in ("rate", "weighted_ratio"))


def test_bounds_are_attained() -> None:
    """Where the people of group 0 are accepted last, or first, among those of equal probabilities."""
    share, accepted_share = np.array([0.8, 0.1, 0.3, 0.05]), np.array([0.3, 0.5, 0.6, 0.8])
    rank, p = (np.arange(1000) + 0.5) / 1000, share.repeat(1000)
    member = rank < share[:, None]
    for end, order in enumerate((1 - rank, rank)):
        accepted = order < accepted_share[:, None]
        bounds = rate_bounds(accepted.ravel() * 1.0, np.column_stack([p, 1 - p]), Sample(4000))
        assert bounds[0][end].value.item() == pytest.approx(accepted[member].mean(), abs=0.02)
