"""Measures of a score, by hand, beside scikit-learn, and by simulation against a known truth."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ks_2samp
from sklearn.metrics import brier_score_loss, roc_auc_score

from fairall.evaluate.estimated.estimates import Column, Sample
from fairall.evaluate.estimated.scores import Scored, bounds

MEASURES = {  # of labels and scores, by other libraries
    "auc": roc_auc_score,
    "brier": brier_score_loss,
    "calibration": lambda label, score: (label - score).mean(),
}


def labelled(score: np.ndarray, label: np.ndarray, weight: np.ndarray | float = 1.0) -> Scored:
    weights = np.stack([label * weight, (1.0 - label) * weight])
    return Scored(Sample(len(score)), score, (Column(weights[0]), Column(weights[1])), weights)


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    chance = draw.random(n)
    return expit(0.3 + 0.7 * np.log(chance / (1 - chance))), (draw.random(n) < chance).astype(float)


@pytest.mark.parametrize("ties", [False, True])
def test_measures_are_those_of_other_libraries_with_rows_repeated(ties: bool) -> None:
    """A label of weight 2 counts as two people, one of weight 0 as none."""
    score, label = drawn(400, 0)
    score = score.round(1) if ties else score
    weight = np.random.default_rng(1).integers(0, 4, 400)
    scored = labelled(score, label, weight)
    f, y = np.repeat(score, weight), np.repeat(label, weight)
    for name, measure in MEASURES.items():
        assert getattr(scored, name)().value == pytest.approx(measure(y, f)), name
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


def test_bounds_are_the_extremes_over_all_labels() -> None:
    draw = np.random.default_rng(0)
    for n in range(4, 12):
        score = draw.integers(0, 6, n) / 5 if n % 2 else draw.random(n)
        label = np.append([0.0, 1.0], draw.choice([0.0, 1.0, np.nan], n - 2))
        every, known = np.array([*product([0.0, 1.0], repeat=n)]), ~np.isnan(label)
        possible = every[(every[:, known] == label[known]).all(1)]
        # One further person, who is not a member.
        people = Sample(n + 1), np.append(score, 0.5), np.append(label, np.nan), np.arange(n + 1) < n
        for name, measure in MEASURES.items():
            ends = [float(end.value) for end in bounds(name, *people)]
            tried = [measure(labels, score) for labels in possible]
            assert ends == pytest.approx([min(tried), max(tried)]), name


def test_errors_are_those_of_repeated_draws_and_the_mean_of_ks_is_the_truth() -> None:
    """The largest difference among the same people is too large: here by .03, more than half of its error."""
    score, label = drawn(10**6, 1)
    truth = ks_2samp(score[label == 0], score[label == 1]).statistic
    logs = [drawn(300, seed) for seed in range(200)]
    for name in ("auc", "ks", "brier", "calibration"):
        estimates = [getattr(labelled(*log), name)() for log in logs]
        values, errors = np.transpose([(estimate.value, estimate.error) for estimate in estimates])
        assert np.mean(errors) == pytest.approx(np.std(values), rel=0.13), name
        assert name != "ks" or abs(np.mean(values) - truth) < 0.01
    largest = [ks_2samp(f[y == 0], f[y == 1]).statistic for f, y in logs]
    assert np.mean(largest) - truth > 0.02
