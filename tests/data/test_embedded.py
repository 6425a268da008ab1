"""The embedded files, draws of FICO against the known distribution, and the codes of German Credit."""

import hashlib
import re
from importlib.resources import files

import numpy as np
import pytest
from scipy import stats

from fairall.data.credit import raw_applicants
from fairall.data.fico import CreditScores, Fico
from fairall.data.load import load_dataset
from tests.conftest import CHECKOUT


def fico(*words: str) -> Fico:
    dataset = load_dataset("fico", *words)
    assert isinstance(dataset, Fico)
    return dataset


@pytest.fixture(scope="module")
def scores() -> CreditScores:
    return fico().scores


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("german.data", "b21f3d81"),  # of the UCI repository
        ("fico_tables/totals.csv", "60ba4af5"),  # of the package whynot 0.13.0
        ("fico_tables/transrisk_cdf_by_race_ssa.csv", "04c9691a"),
        ("fico_tables/transrisk_performance_by_race_ssa.csv", "77af654a"),
    ],
)
def test_embedded_files_are_the_published_ones(name: str, digest: str) -> None:
    content = files("fairall.data").joinpath(name).read_bytes()
    assert hashlib.sha256(content).hexdigest().startswith(digest)


def test_shares_are_those_of_the_report(scores: CreditScores) -> None:
    # Rows of the report's tables: white 0.26 % and black 1.19 % have at most 0.5.
    assert scores.share.sum(1) == pytest.approx([1.0, 1.0])
    assert scores.share[:, :2].sum(1) == pytest.approx([0.0119, 0.0026])
    assert scores.repays[:, 0] == pytest.approx([1 - 0.9967, 1 - 0.9854])
    assert scores.group_share == pytest.approx([18274 / 151439, 133165 / 151439])


def test_people_follow_the_distribution(scores: CreditScores) -> None:
    score, s, label = scores.individuals(np.random.default_rng(0).random((400_000, 3)))
    for g, sign in enumerate((-1.0, 1.0)):
        rows = s == sign
        assert rows.mean() == pytest.approx(scores.group_share[g], abs=0.003)
        level = np.searchsorted(scores.score, score[rows])
        counts, expected = np.bincount(level, minlength=len(scores.score)), scores.share[g] * rows.sum()
        often = expected >= 5
        assert often.mean() > 0.9
        scaled = expected[often] * counts[often].sum() / expected[often].sum()
        assert stats.chisquare(counts[often], scaled).pvalue > 1e-3
        repays = scores.repays[g, level]
        assert abs((label[rows] - repays).sum()) < 4 * np.sqrt((repays * (1 - repays)).sum())


def test_categories_are_coded_in_string_order_and_the_page_of_data_has_those_of_sex() -> None:
    table, raw = load_dataset("credit").table(), raw_applicants()
    # The first applicant is A11 ... A34 A43 ...; A410 comes before A42 as a string.
    assert table.x.iloc[0][["status", "credit_history", "purpose"]].tolist() == [1, 5, 5]
    people = table.x.assign(code=raw["personal_status"], s=table.s, good=raw["credit"] == 1)
    page = (CHECKOUT / "docs" / "data.md").read_text()
    for (code, s), good in people.groupby(["code", "s"])["good"]:
        row = rf"^\| {code} \| {len(good)} \| {100 * good.mean():.0f} \|.*\| {'[+]1' if s > 0 else '−1'} \|$"
        assert re.search(row, page, re.MULTILINE), code
    assert "92 single women among its 690 people" in page
