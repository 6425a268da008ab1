"""Measures of a score, by hand, beside scikit-learn, and by simulation against a known truth."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ks_2samp
from sklearn.metrics import brier_score_loss, roc_auc_score

from fairall.evaluate.estimated.estimates import Column, Sample
from fairall.evaluate.estimated.scores import Partial, Scored

MEASURES = ("auc", "ks", "brier", "calibration")


def labelled(score: np.ndarray, label: np.ndarray, weight: np.ndarray | float = 1.0) -> Scored:
    positive, negative = label * weight, (1.0 - label) * weight
    weights = np.stack([positive, negative])
    return Scored(Sample(len(score)), score, Column(positive), Column(negative), weights)


def drawn(n: int, seed: int, levels: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    chance = draw.random(n)
    score = expit(0.3 + 0.7 * np.log(chance / (1 - chance)))
    score = score if levels is None else np.round(score * levels) / levels
    return score, (draw.random(n) < chance).astype(float)


@pytest.mark.parametrize("levels", [None, 10])
@pytest.mark.parametrize("most", [2, 4])
def test_measures_are_those_of_other_libraries_with_rows_repeated(levels: int | None, most: int) -> None:
    """A label of weight 2 counts as two people, one of weight 0 as none."""
    score, label = drawn(400, 0, levels)
    weight = np.random.default_rng(1).integers(0, most, 400)
    scored = labelled(score, label, weight)
    f, y = np.repeat(score, weight), np.repeat(label, weight)
    assert scored.brier().value == pytest.approx(brier_score_loss(y, f))
    assert scored.calibration().value == pytest.approx(y.mean() - f.mean())
    assert scored.auc().value == pytest.approx(roc_auc_score(y, f))
    assert scored.gini().value == pytest.approx(2 * roc_auc_score(y, f) - 1)
    largest = ks_2samp(f[y == 0], f[y == 1]).statistic
    assert largest - 0.1 < scored.ks().value < largest + 1e-9


def test_nobody_is_a_pair_with_himself() -> None:
    """With pseudo-labels, of which g·b is not 0, the mean over pairs is that over different people."""
    draw = np.random.default_rng(0)
    score, g = draw.random(30), draw.normal(0.5, 2.0, 30)
    pairs = np.outer(g, 1 - g) * ~np.eye(30, dtype=bool)
    expected = (pairs * (score[:, None] > score)).sum() / pairs.sum()
    assert labelled(score, g).auc().value == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_are_the_extremes_over_all_labels(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(6, 12))
    score = draw.integers(0, 6, n) / 5 if seed % 2 else draw.random(n)
    label = (draw.random(n) < 0.5).astype(float)
    label[:2] = (0.0, 1.0)
    label[2:][draw.random(n - 2) < 0.6] = np.nan
    free = np.isnan(label)
    possible = []
    for values in product((0.0, 1.0), repeat=free.sum()):
        y = label.copy()
        y[free] = values
        apart = [abs((score[y == 0] <= t).mean() - (score[y == 1] <= t).mean()) for t in score]
        possible.append((roc_auc_score(y, score), max(apart), ((y - score) ** 2).mean(), (y - score).mean()))
    # One further person, who is not a member.
    members = np.arange(n + 1) < n
    partial = Partial(Sample(n + 1), np.append(score, 0.5), np.append(label, np.nan), members)
    for name, extremes in zip(MEASURES, np.transpose(possible), strict=True):
        low, high = (float(end.value) for end in partial.bounds(name))
        assert high == pytest.approx(max(extremes)), name
        if name == "ks":
            assert low <= min(extremes) + 1e-12
        else:
            assert low == pytest.approx(min(extremes)), name


def test_the_lower_bound_of_ks_is_above_0_where_few_labels_are_missing() -> None:
    score, label = drawn(2000, 0)
    everybody = np.ones(2000, dtype=bool)
    known = Partial(Sample(2000), score, label, everybody).bounds("ks")
    assert known.low.value == pytest.approx(known.high.value)
    label[::10] = np.nan
    low, high = (end.value for end in Partial(Sample(2000), score, label, everybody).bounds("ks"))
    assert 0.1 < low < known.low.value < high < 0.75


def test_errors_are_those_of_repeated_draws_and_the_mean_of_ks_is_the_truth() -> None:
    """The largest difference among the same people is too large: here by .03, more than half of its error."""
    score, label = drawn(10**6, 1)
    truth = ks_2samp(score[label == 0], score[label == 1]).statistic
    logs = [drawn(300, seed) for seed in range(200)]
    for name in MEASURES:
        estimates = [getattr(labelled(*log), name)() for log in logs]
        values = [float(estimate.value) for estimate in estimates]
        assert np.mean([estimate.error for estimate in estimates]) == pytest.approx(
            np.std(values), rel=0.13
        ), name
        if name == "ks":
            largest = [ks_2samp(f[y == 0], f[y == 1]).statistic for f, y in logs]
            assert np.mean(largest) - truth > 0.02
            assert abs(np.mean(values) - truth) < 0.01


def test_rows_of_a_person_make_the_error_larger() -> None:
    score, label = drawn(200, 0)
    rows = np.repeat(np.arange(200), 5)
    alone, weights = labelled(score, label).auc(), np.stack([label[rows], 1.0 - label[rows]])
    positive, negative = map(Column, weights)
    together = Scored(Sample(1000, person=rows), score[rows], positive, negative, weights).auc()
    assert together.error == pytest.approx(alone.error, rel=0.02)
    assert together.interval().low == pytest.approx(alone.interval().low, abs=0.01)
