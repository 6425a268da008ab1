"""Measures of a score, by hand, beside scikit-learn, and by simulation against a known truth."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ks_2samp
from sklearn.metrics import brier_score_loss, roc_auc_score

from fairall.evaluate.estimated.gaps import interval
from fairall.evaluate.estimated.influence import Column, Groups, Sample
from fairall.evaluate.estimated.scores import Partial, Scored

MEASURES = ("auc", "ks", "brier", "calibration")


def everybody(n: int) -> Groups:
    return Sample(n).by(np.zeros(n, dtype=int), 1)


def labelled(score: np.ndarray, label: np.ndarray, by_group: Groups | None = None) -> Scored:
    return Scored(score, Column(label), Column(1.0 - label), by_group or everybody(len(score)))


def drawn(n: int, seed: int, levels: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    chance = draw.random(n)
    score = expit(0.3 + 0.7 * np.log(chance / (1 - chance)))
    score = score if levels is None else np.round(score * levels) / levels
    return score, (draw.random(n) < chance).astype(float)


@pytest.mark.parametrize("levels", [None, 10])
def test_measures_of_known_labels_are_those_of_other_libraries(levels: int | None) -> None:
    score, label = drawn(400, 0, levels)
    group = np.random.default_rng(1).integers(2, size=400)
    found = labelled(score, label, Sample(400).by(group, 3))  # the last group is empty
    for code in (0, 1):
        f, y = score[group == code], label[group == code]
        assert found.auc().value[code] == pytest.approx(roc_auc_score(y, f))
        assert found.brier().value[code] == pytest.approx(brier_score_loss(y, f))
        assert found.calibration().value[code] == pytest.approx(y.mean() - f.mean())
        plain = ks_2samp(f[y == 0], f[y == 1]).statistic
        assert plain - 0.1 < found.ks().value[code] < plain + 1e-9
    assert np.isnan(found.auc().value[2])


def test_part_of_a_label_counts_as_that_many_people() -> None:
    score, label = drawn(60, 0, 8)
    weight = np.random.default_rng(1).integers(1, 4, 60).astype(float)
    found = Scored(score, Column(label * weight), Column((1 - label) * weight), everybody(60))
    rows = np.repeat(np.arange(60), weight.astype(int))
    assert found.auc().value[0] == pytest.approx(roc_auc_score(label[rows], score[rows]))
    assert found.brier().value[0] == pytest.approx(brier_score_loss(label[rows], score[rows]))


def test_nobody_is_a_pair_with_himself() -> None:
    """With pseudo-labels, of which g·b is not 0, the mean over pairs is that over different people."""
    draw = np.random.default_rng(0)
    score, g = draw.random(30), draw.normal(0.5, 2.0, 30)
    found = Scored(score, Column(g), Column(1 - g), everybody(30)).auc().value[0]
    ahead = (score[:, None] > score) * np.outer(g, 1 - g)
    both = np.outer(g, 1 - g) * ~np.eye(30, dtype=bool)
    assert found == pytest.approx((ahead * ~np.eye(30, dtype=bool)).sum() / both.sum())


@pytest.mark.parametrize("seed", range(12))
def test_bounds_are_the_extremes_over_all_labels(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(6, 12))
    score = draw.integers(0, 6, n) / 5 if seed % 2 else draw.random(n)
    label = (draw.random(n) < 0.5).astype(float)
    label[:2] = (0.0, 1.0)
    label[2:][draw.random(n - 2) < 0.6] = np.nan
    free = np.flatnonzero(np.isnan(label))
    possible: dict[str, list[float]] = {name: [] for name in MEASURES}
    for values in product((0.0, 1.0), repeat=len(free)):
        y = label.copy()
        y[free] = values
        apart = np.abs([(score[y == 0] <= t).mean() - (score[y == 1] <= t).mean() for t in score])
        for name, value in zip(
            MEASURES,
            (roc_auc_score(y, score), apart.max(), ((y - score) ** 2).mean(), y.mean() - score.mean()),
            strict=True,
        ):
            possible[name].append(value)
    for name, extremes in possible.items():
        low, high = (float(end.value[0]) for end in getattr(Partial(score, label, everybody(n)), name)())
        assert high == pytest.approx(max(extremes)), name
        if name == "ks":
            assert low <= min(extremes) + 1e-12
        else:
            assert low == pytest.approx(min(extremes)), name


def test_the_lower_bound_of_ks_is_above_0_where_few_labels_are_missing() -> None:
    score, label = drawn(2000, 0)
    known = Partial(score, label, everybody(2000)).ks()
    assert known.low.value == pytest.approx(known.high.value)
    label[::10] = np.nan
    low, high = (end.value[0] for end in Partial(score, label, everybody(2000)).ks())
    assert 0.1 < low < known.low.value[0] < high < 0.75


def test_errors_are_those_of_repeated_draws() -> None:
    values: dict[str, list[float]] = {name: [] for name in MEASURES}
    errors: dict[str, list[float]] = {name: [] for name in MEASURES}
    for seed in range(300):
        found = labelled(*drawn(300, seed))
        for name in MEASURES:
            one = getattr(found, name)()
            values[name].append(one.value[0])
            errors[name].append(one.error[0])
    for name in MEASURES:
        assert np.mean(errors[name]) == pytest.approx(np.std(values[name]), rel=0.12), name


def test_the_mean_of_ks_is_the_truth() -> None:
    """The largest difference among the same people is too large: here by .03, more than half of its error."""
    truth = ks_2samp(*(drawn(10**6, 1)[0][drawn(10**6, 1)[1] == y] for y in (0, 1))).statistic
    found, plain = [], []
    for seed in range(200):
        score, label = drawn(300, seed)
        found.append(labelled(score, label).ks().value[0])
        plain.append(ks_2samp(score[label == 0], score[label == 1]).statistic)
    assert np.mean(plain) - truth > 0.02
    assert abs(np.mean(found) - truth) < 0.01


def test_rows_of_a_person_make_the_error_larger() -> None:
    score, label = drawn(200, 0)
    rows = np.repeat(np.arange(200), 5)
    alone = labelled(score, label).auc()
    together = labelled(
        score[rows], label[rows], Sample(1000, person=rows).by(np.zeros(1000, dtype=int), 1)
    ).auc()
    assert together.error[0] == pytest.approx(alone.error[0], rel=0.02)
    assert interval(together, 0).low == pytest.approx(interval(alone, 0).low, abs=0.01)
