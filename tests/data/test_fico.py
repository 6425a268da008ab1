"""FICO: the embedded tables, draws against the known distribution, and the best policies in closed form."""

import hashlib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from fairall.data.fico import REPORT_COLUMNS, CreditScores, Fico
from fairall.data.load import load_dataset
from fairall.errors import FairAllError

SUMS = {  # of the package whynot 0.13.0
    "totals": "60ba4af5",
    "transrisk_cdf_by_race_ssa": "04c9691a",
    "transrisk_performance_by_race_ssa": "77af654a",
}


def fico(*words: str) -> Fico:
    found = load_dataset("fico", *words)
    assert isinstance(found, Fico)
    return found


@pytest.fixture(scope="module")
def scores() -> CreditScores:
    return fico().scores


@pytest.mark.parametrize("name", SUMS)
def test_embedded_files_are_the_published_ones(name: str, raw_data: Path) -> None:
    content = files("fairall.data").joinpath("fico_tables", f"{name}.csv").read_bytes()
    assert hashlib.sha256(content).hexdigest().startswith(SUMS[name])
    assert content == (raw_data / "fico" / f"{name}.csv").read_bytes()


def test_shares_are_those_of_the_report(scores: CreditScores) -> None:
    # Rows of the report's tables: white 0.26 % and black 1.19 % have at most 0.5.
    assert scores.share.sum(1) == pytest.approx([1.0, 1.0])
    assert scores.share[:, :2].sum(1) == pytest.approx([0.0119, 0.0026])
    assert scores.repays[:, 0] == pytest.approx([1 - 0.9967, 1 - 0.9854])
    assert scores.group_share == pytest.approx([18274 / 151439, 133165 / 151439])
    half = fico("dataset.advantaged_share=0.5", "dataset.disadvantaged=asian").scores
    assert half.group_share == pytest.approx([0.5, 0.5])
    assert half.repays[0, 0] == pytest.approx(1 - 0.9477)


def test_people_follow_the_distribution(scores: CreditScores) -> None:
    uniform = np.random.default_rng(0).random((400_000, 3))
    score, s, label = scores.individuals(uniform)
    for g, sign in enumerate((-1.0, 1.0)):
        own = s == sign
        assert own.mean() == pytest.approx(scores.group_share[g], abs=0.003)
        counts = np.array([(score[own] == value).sum() for value in scores.score])
        expected = scores.share[g] * own.sum()
        often = expected >= 5
        assert often.mean() > 0.9
        assert (
            stats.chisquare(
                counts[often], expected[often] * counts[often].sum() / expected[often].sum()
            ).pvalue
            > 1e-3
        )
        level = np.searchsorted(scores.score, score[own])
        error = (label[own] - scores.repays[g, level]).sum()
        noise = np.sqrt((scores.repays[g, level] * (1 - scores.repays[g, level])).sum())
        assert abs(error) < 4 * noise


def test_applicants_are_new_and_scaled_by_the_pool() -> None:
    data = fico().prepare()
    first = data.applicants(64, [0, 1]).next()
    assert first.x.shape == (2, 64, 1)
    assert not torch.equal(first.x[0], first.x[1])
    assert torch.equal(first.x, data.applicants(64, [0, 1]).next().x)
    assert data.pool.x.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert [len(data.pool), len(data.validation), len(data.test)] == [5000, 2500, 5000]


def test_bad_groups_are_refused() -> None:
    with pytest.raises(FairAllError, match=r"dataset.disadvantaged=white is not possible"):
        fico("dataset.disadvantaged=white")
    with pytest.raises(FairAllError, match="white or black or hispanic or asian"):
        fico("dataset.advantaged=green")
    with pytest.raises(FairAllError, match="advantaged_share"):
        fico("dataset.advantaged_share=1")
    assert set(REPORT_COLUMNS) == {"white", "black", "hispanic", "asian"}
