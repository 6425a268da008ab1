import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.evaluate.contraction import LEAST_ACCEPTED, STEPS, Contraction, contraction

MAKERS = ("anna", "bert", "cleo", "dora")
STRICTNESS = np.array([0.36, -0.36, -0.95, -1.8])


def log_of(
    leniency: tuple[float, ...], *, at_random: bool = False
) -> tuple[Contraction, np.ndarray, np.ndarray]:
    """Contraction of a simulated log; probabilities and labels of everybody.

    Decision makers see a feature the policy does not, and have random people.
    """
    generator = np.random.default_rng(3)
    n = 40_000
    x, hidden = generator.normal(size=(2, n))
    y = (generator.random(n) < 1 / (1 + np.exp(-x - 1.5 * hidden))).astype(float)
    a = 1 / (1 + np.exp(-x))
    maker = generator.integers(len(leniency), size=n)
    rank = generator.random(n) if at_random else pd.Series(-x - hidden).rank(pct=True).to_numpy()
    accepted = rank <= np.asarray(leniency)[maker]
    found = contraction(a, accepted, np.where(accepted, y, np.nan), np.asarray(MAKERS, dtype=object)[maker])
    return found, a, y


@pytest.mark.parametrize("leniency", [(0.5, 0.7, 1.0), (0.3, 1.0)])
def test_failures_are_those_of_the_policy_where_the_most_lenient_accepts_everybody(
    leniency: tuple[float, ...],
) -> None:
    found, a, y = log_of(leniency)
    assert found.most_lenient == MAKERS[len(leniency) - 1]
    order = np.argsort(-a)
    for _, row in found.policy.iterrows():
        truth = (1 - y)[order[: round(row["acceptance"] * len(a))]].sum() / len(a)
        assert row["failure"] == pytest.approx(truth, abs=0.01)
    # Among the accepted of the strict alone, the policy would look far better than it is.
    middle = found.policy.iloc[STEPS // 2 - 1]
    assert middle["acceptance"] == pytest.approx(0.5)
    assert middle["failure"] > 0.13


def test_people_whom_the_most_lenient_rejects_are_rejected() -> None:
    found, a, y = log_of((0.4, 0.8), at_random=True)
    for _, row in found.policy.iterrows():
        threshold = np.quantile(a, 1 - min(row["acceptance"] / 0.8, 1))
        assert row["failure"] == pytest.approx(0.8 * np.mean((a > threshold) * (1 - y)), abs=0.01)


def test_decision_makers_have_their_own_rates() -> None:
    found, _, y = log_of((0.4, 0.8, 0.6), at_random=True)
    makers = found.decision_makers
    assert makers["decision_maker"].tolist() == ["anna", "cleo", "bert"]
    assert makers["people"].sum() == len(y)
    assert makers["acceptance"].tolist() == pytest.approx([0.4, 0.6, 0.8], abs=0.01)
    expected = [rate * np.mean(1 - y) for rate in (0.4, 0.6, 0.8)]
    assert makers["failure"].tolist() == pytest.approx(expected, abs=0.01)
    # All of the most lenient's accepted people are kept at that maker's own rate.
    assert makers["policy_failure"].iloc[-1] == pytest.approx(makers["failure"].iloc[-1])
    assert (makers["policy_failure"].iloc[:-1] < makers["failure"].iloc[:-1] - 0.03).all()


def test_equal_probabilities_are_kept_in_equal_parts_whatever_the_order() -> None:
    n = 100
    maker = np.repeat(["lenient", "strict"], n)
    accepted = np.r_[np.ones(n, bool), np.zeros(n, bool)]
    label = np.r_[np.zeros(40), np.ones(60), np.full(n, np.nan)]
    a = np.r_[np.full(50, 0.9), np.full(50, 0.1), np.full(n, 0.5)]
    found = contraction(a, accepted, label, maker)
    by_rate = dict(zip(found.policy["acceptance"].round(2), found.policy["failure"], strict=True))
    assert by_rate[0.25] == pytest.approx(0.25 * 40 / 50)
    assert by_rate[0.5] == by_rate[1.0] == pytest.approx(0.4)
    strict = found.decision_makers.iloc[0]
    assert (strict["acceptance"], strict["failure"], strict["policy_failure"]) == (0, 0, 0)
    assert strict["failure_low"] == 0 < strict["failure_high"] < 0.05

    order = np.random.default_rng(0).permutation(2 * n)
    again = contraction(a[order], accepted[order], label[order], maker[order])
    points = ["acceptance", "failure"]
    pd.testing.assert_frame_equal(again.policy[points], found.policy[points])
    pd.testing.assert_frame_equal(again.policy, found.policy, atol=0.05)  # other draws


def test_accepted_without_a_label_count_as_those_with_one() -> None:
    generator = np.random.default_rng(1)
    maker = np.repeat(["lenient", "strict"], 4000)
    accepted = np.r_[np.ones(4000, bool), np.zeros(4000, bool)]
    a = generator.choice([0.2, 0.8], 8000)
    label = (generator.random(8000) < a).astype(float)
    full = contraction(a, accepted, label, maker)
    missing = contraction(a, accepted, np.where(generator.random(8000) < 0.3, np.nan, label), maker)
    assert missing.policy["failure"].tolist() == pytest.approx(full.policy["failure"].tolist(), abs=0.02)


def test_one_decision_maker_is_refused() -> None:
    people = np.ones(100)
    with pytest.raises(FairAllError, match="the log names 1 with 10 people or more: give a column"):
        contraction(people, people > 0, people, np.full(100, "anna"))
    with pytest.raises(FairAllError, match="the log names 0 with"):
        contraction(people, people > 0, people, np.full(100, None))


def test_a_decision_maker_of_fewer_people_than_the_smallest_is_left_out() -> None:
    maker = np.repeat(["large", "nine", "other", "ten"], [100, 9, 50, 10])
    everybody = np.ones(len(maker))
    found = contraction(everybody, everybody > 0, everybody, maker)
    assert set(found.decision_makers["decision_maker"]) == {"large", "other", "ten"}
    found = contraction(everybody, everybody > 0, everybody, maker, smallest=9)
    assert found.decision_makers["people"].sum() == len(maker)
    # Rows of fewer people are no more people.
    person = np.r_[np.arange(159), np.repeat(np.arange(5), 2)]
    found = contraction(everybody, everybody > 0, everybody, maker, person)
    assert set(found.decision_makers["decision_maker"]) == {"large", "other"}


def drawn(generator: np.random.Generator, n: int, rows: int = 1) -> tuple[np.ndarray, ...]:
    """Person, a, who is accepted, label, and decision maker of n rows.

    People come `rows` times, each time to a decision maker at random, who sees more than the policy.
    """
    x, hidden = generator.normal(size=(2, n // rows))
    y = (generator.random(n // rows) < 1 / (1 + np.exp(-1 - x - hidden))).astype(float)
    person = np.repeat(np.arange(n // rows), rows)
    maker = generator.integers(len(STRICTNESS), size=n)
    accepted = (x + hidden)[person] > STRICTNESS[maker]
    return person, x[person], accepted, y[person], maker


@pytest.mark.whole
@pytest.mark.parametrize(("rows", "missing"), [(1, 0.3), (5, 0.0)])
def test_intervals_cover_the_rates_of_the_population(
    rows: int, missing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.evaluate.contraction.DRAWS", 200)
    _, a, accepted, y, maker = drawn(np.random.default_rng(0), 2_000_000)
    own = np.array([np.mean(((1 - y) * accepted)[maker == k]) for k in range(4)])
    lenient = maker == 3
    order = np.argsort(-a[lenient & accepted])
    failures = np.cumsum((1 - y)[lenient & accepted][order]) / lenient.sum()

    def policy(rates: np.ndarray) -> np.ndarray:
        return np.interp(rates, np.arange(len(failures)) / lenient.sum(), failures)

    at_their_rates = policy(np.array([accepted[maker == k].mean() for k in range(4)]))
    covered: dict[str, list[np.ndarray]] = {"curve": [], "own": [], "policy": []}
    for seed in range(200):
        generator = np.random.default_rng(seed)
        person, a, accepted, y, maker = drawn(generator, 2000, rows)
        label = np.where(accepted & (generator.random(2000) >= missing), y, np.nan)
        found = contraction(a, accepted, label, maker, person if rows > 1 else None, seed)
        assert found.most_lenient == "3"
        makers = found.decision_makers.sort_values("decision_maker")
        truths = policy(found.policy["acceptance"].to_numpy())
        covered["curve"].append(
            found.policy["failure_low"].le(truths) & found.policy["failure_high"].ge(truths)
        )
        for name, column, truth in (
            ("own", "failure", own),
            ("policy", "policy_failure", at_their_rates),
        ):
            covered[name].append((makers[f"{column}_low"] <= truth) & (makers[f"{column}_high"] >= truth))
    assert 0.92 < np.mean(covered["curve"]) < 0.98
    assert 0.92 < np.mean(covered["own"]) < 0.98
    assert 0.92 < np.mean(covered["policy"]) < 0.98


def test_rates_at_the_end_of_their_range_have_intervals_within_it() -> None:
    maker = np.repeat(["good", "bad"], 50)
    everybody = np.ones(100, dtype=bool)
    found = contraction(np.zeros(100), everybody, np.repeat([1.0, 0.0], 50), maker)
    bad, good = found.decision_makers.to_dict("records")
    assert 0.9 < bad["failure_low"] < bad["failure"] == bad["failure_high"] == 1
    assert 0 == good["failure"] == good["failure_low"] < good["failure_high"] < 0.1


@pytest.mark.whole
def test_fewer_failures_are_sure_where_chance_is_no_explanation() -> None:
    generator = np.random.default_rng(2)

    def found(n: int, of: str) -> Contraction:
        _, x, accepted, y, maker = drawn(generator, n)
        accepted = generator.random(n) < np.array([0.3, 0.5, 0.7, 0.95])[maker]  # without a look at anybody
        a = {"good": x, "equal": generator.random(n)}[of]
        return contraction(a, accepted, np.where(accepted, y, np.nan), maker)

    many = found(8000, "good")
    assert (many.others, many.fewer, many.surely_fewer) == (3, 3, 3)
    few = found(300, "good")
    assert few.surely_fewer < few.fewer <= few.others
    equal = [found(1000, "equal") for _ in range(60)]
    assert 60 < sum(one.fewer for one in equal) < 120
    assert sum(one.surely_fewer for one in equal) <= 0.06 * 180  # 2.5 % by chance


def test_a_decision_maker_with_few_people_is_not_the_most_lenient() -> None:
    n = LEAST_ACCEPTED
    maker = np.repeat(["few", "many"], [n - 1, 2 * n])
    accepted = np.r_[np.ones(n - 1, bool), np.arange(2 * n) < n]
    label = np.where(accepted, 1.0, np.nan)
    assert contraction(label, accepted, label, maker).most_lenient == "many"
    accepted[n - 1] = False
    label = np.where(accepted, 1.0, np.nan)
    with pytest.raises(FairAllError, match=f"the most there are is {n - 1}: give a column with fewer"):
        contraction(label, accepted, label, maker)
