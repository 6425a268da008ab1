"""The population stability index and the test of drift; docs/simulations.md has how often it errs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, chi2_contingency, false_discovery_control

from fairall.data.drift import OF_SINGLE, drift_by_column, stability
from fairall.data.own_table import PREFIX
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL
from tests.conftest import LOANS, typed


def words(draw: np.random.Generator, n: int, many: int = 200, power: float = 1.0) -> pd.Series:
    """Words of which the k-th is as frequent as k to minus `power`."""
    share = np.arange(1.0, many + 1) ** -power
    return pd.Series(draw.choice(many, n, p=share / share.sum())).map("w{}".format)


def often(counts: list[int]) -> pd.Series:
    """Words a, b and c, each so often."""
    return pd.Series(np.repeat(list("abc"), counts))


def test_p_is_corrected_for_all_columns() -> None:
    draw = np.random.default_rng(0)
    columns = {k: (words(draw, 300, 20), words(draw, 300, 20), False) for k in range(30)}
    single = [stability(*column).p for column in columns.values()]
    corrected = [column.p for column in drift_by_column(columns).values()]
    assert corrected == pytest.approx(false_discovery_control(single))


@pytest.mark.parametrize(
    ("old", "new", "frequent"),
    [([40, 60, 0], [60, 36, 4], 2), ([40, 60, 0], [60, 30, 10], 3), ([500, 500, 0], [0, 0, 10], 0)],
    ids=["a rare bin", "frequent bins", "nobody new in a frequent bin"],
)
def test_p_by_hand(old: list[int], new: list[int], frequent: int) -> None:
    """Pearson's χ² of the frequent bins, and the smallest binomial tail of a bin."""
    share = sum(new) / sum(old + new)
    single = 6 * min(
        binomtest(k, k + before, share, side).pvalue
        for before, k in zip(old, new, strict=True)
        for side in ("less", "greater")
    )
    both = np.array([old, new])[:, :frequent]
    squares = chi2_contingency(both, correction=False).pvalue if frequent else 1.0
    expected = min(squares / (1 - OF_SINGLE), single / OF_SINGLE)
    assert stability(often(old), often(new), False).p == pytest.approx(expected)


def test_the_index_of_many_people_is_that_of_their_distributions() -> None:
    found = stability(often([50_000, 30_000, 20_000]), often([40_000, 30_000, 30_000]), False)
    assert found.psi == pytest.approx(0.1 * np.log(0.5 / 0.4) + 0.1 * np.log(0.3 / 0.2), rel=1e-3)
    assert found.most == "c"
    assert [found.before, found.after] == pytest.approx([0.2, 0.3])


DRAWN = np.random.default_rng(0)
NORMAL, WORDS = DRAWN.normal(size=500), words(DRAWN, 1000)
FLOOR, LATER = DRAWN.normal(400, 115, (2, 1000)).round().clip(300, 850)


@pytest.mark.parametrize(
    ("old", "new", "number", "most"),
    [
        (WORDS, WORDS.mask(np.arange(1000) < 60, "w199"), False, "w199"),
        (WORDS, WORDS[:50].mask(np.arange(50) < 4), False, MISSING_LEVEL),
        (WORDS, [*WORDS, *map(str, range(400))], False, OTHER_LEVEL),
        (FLOOR - 300, np.where(LATER == 300, -999, LATER - 300), True, "0"),
        (np.arange(1000.0), np.arange(900.0), True, "855 to 999"),
        (np.full(500, np.nan), NORMAL, True, MISSING_LEVEL),
        (NORMAL, np.full(500, 5.0), True, "5"),
    ],
)
def test_a_change_is_found_and_named(old: Any, new: Any, number: bool, most: str) -> None:
    earlier, later = pd.Series(old), pd.Series(new)
    found = stability(earlier, later, number)
    assert found.p < 0.01
    assert found.most == most
    assert stability(later, earlier, number).p < 0.01
    assert stability(earlier, earlier, number).p == 1.0


def test_other_spellings_are_no_drift() -> None:
    first, second = pd.Series(["False", "True"] * 100), pd.Series([0.0, 1.0] * 100)
    assert stability(first, second, False)[:2] == (0.0, 1.0)


def test_the_command_names_columns_that_have_changed(tmp_path: Path) -> None:
    loans = pd.read_csv(LOANS)
    loans.assign(income=loans["income"] + 1000.0, further=0).to_csv(tmp_path / "new.csv", index=False)

    def compare(*words: str | Path) -> Any:
        return typed("data", "compare", *map(str, words), "dataset.sensitive=sex", cwd=tmp_path)

    ended = compare(LOANS, "new.csv")
    assert ended.returncode == 0, ended.stderr
    assert "Columns that differ, more than by chance: income." in ended.stdout
    assert "new.csv has further columns: further" in ended.stdout
    assert "loans.csv: no column 'further', which new.csv has" in compare("new.csv", LOANS).stderr
    assert compare(LOANS, LOANS, "dataset.drop=[idd]").stderr.endswith(f"{PREFIX}\n")
