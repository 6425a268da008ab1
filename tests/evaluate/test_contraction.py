import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.evaluate.contraction import LEAST_ACCEPTED, STEPS, Contraction, contraction

MAKERS = ("anna", "bert", "cleo", "dora")


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
    for _, row in found.curve.iterrows():
        truth = (1 - y)[order[: round(row["acceptance"] * len(a))]].sum() / len(a)
        assert row["failure"] == pytest.approx(truth, abs=0.01)
    # Among the accepted of the strict alone, the policy would look far better than it is.
    middle = found.curve.iloc[STEPS // 2 - 1]
    assert middle["acceptance"] == pytest.approx(0.5)
    assert middle["failure"] > 0.13


def test_people_whom_the_most_lenient_rejects_are_rejected() -> None:
    found, a, y = log_of((0.4, 0.8), at_random=True)
    for _, row in found.curve.iterrows():
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
    by_rate = dict(zip(found.curve["acceptance"].round(2), found.curve["failure"], strict=True))
    assert by_rate[0.25] == pytest.approx(0.25 * 40 / 50)
    assert by_rate[0.5] == by_rate[1.0] == pytest.approx(0.4)
    strict = found.decision_makers.iloc[0]
    assert (strict["acceptance"], strict["failure"], strict["policy_failure"]) == (0, 0, 0)

    order = np.random.default_rng(0).permutation(2 * n)
    again = contraction(a[order], accepted[order], label[order], maker[order])
    pd.testing.assert_frame_equal(again.curve, found.curve)


def test_accepted_without_a_label_count_as_those_with_one() -> None:
    generator = np.random.default_rng(1)
    maker = np.repeat(["lenient", "strict"], 4000)
    accepted = np.r_[np.ones(4000, bool), np.zeros(4000, bool)]
    a = generator.choice([0.2, 0.8], 8000)
    label = (generator.random(8000) < a).astype(float)
    full = contraction(a, accepted, label, maker)
    missing = contraction(a, accepted, np.where(generator.random(8000) < 0.3, np.nan, label), maker)
    assert missing.curve["failure"].tolist() == pytest.approx(full.curve["failure"].tolist(), abs=0.02)


def test_one_decision_maker_is_refused() -> None:
    people = np.ones(100)
    with pytest.raises(FairAllError, match="the log names 1: give a column that names at least two"):
        contraction(people, people > 0, people, np.full(100, "anna"))
    with pytest.raises(FairAllError, match="the log names 0"):
        contraction(people, people > 0, people, np.full(100, None))


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
