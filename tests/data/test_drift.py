"""The population stability index and the test of drift, against simulations."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, chi2_contingency, false_discovery_control

from benchmarks.in_process import typed
from fairall.data.drift import DRIFTED, OF_SINGLE, drift_by_column, stability
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL

DRAWN = {
    "normal": lambda draw, n: draw.normal(size=n),
    "floor": lambda draw, n: draw.normal(400, 100, n).round().clip(300, 850),
    "counts": lambda draw, n: draw.poisson(3, n),
    "heaps": lambda draw, n: draw.choice([0, 10, 20, 30, 31], n),
    "missing": lambda draw, n: np.where(draw.random(n) < 0.2, np.nan, draw.normal(size=n)),
}


def words(draw: np.random.Generator, many: int, n: int, power: float) -> pd.Series:
    """Words of which the k-th is as frequent as k to minus `power`."""
    share = np.arange(1.0, many + 1) ** -power
    return pd.Series(draw.choice(many, n, p=share / share.sum())).map("w{}".format)


@pytest.mark.parametrize("power", [0.0, 1.0], ids=["equal", "Zipf"])
@pytest.mark.parametrize(("many", "n", "m"), [(2, 50, 50), (200, 1000, 1000), (200, 2000, 50)])
def test_words_without_drift_are_seldom_significant(many: int, n: int, m: int, power: float) -> None:
    """With bins of the levels that are most frequent in the earlier table 87 % were, of 200 levels."""
    draw = np.random.default_rng(0)
    tables = ((words(draw, many, n, power), words(draw, many, m, power)) for _ in range(150))
    assert np.mean([stability(*table, number=False).p < DRIFTED for table in tables]) <= 0.08


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_of_few_people_without_drift_are_seldom_significant(name: str) -> None:
    draw, made = np.random.default_rng(0), DRAWN[name]
    tables = ([pd.Series(made(draw, 30)) for _ in range(2)] for _ in range(250))
    assert np.mean([stability(*table, number=True).p < DRIFTED for table in tables]) <= 0.08


def test_p_is_corrected_for_all_columns() -> None:
    draw = np.random.default_rng(0)
    columns = {k: (words(draw, 20, 300, 0.0), words(draw, 20, 300, 0.0), False) for k in range(30)}
    single = [stability(*column).p for column in columns.values()]
    corrected = [column.p for column in drift_by_column(columns).values()]
    assert corrected == pytest.approx(false_discovery_control(single))


def table_with(k: int, counts: list[list[int]]) -> pd.Series:
    """Words a, b and c as often as row `k` of counts says."""
    return pd.Series(np.repeat(list("abc"), counts[k]))


@pytest.mark.parametrize(
    ("counts", "frequent"), [([[40, 60, 0], [60, 36, 4]], 2), ([[40, 60, 0], [60, 30, 10]], 3)]
)
def test_p_by_hand(counts: list[list[int]], frequent: int) -> None:
    """Pearson's χ² of the frequent bins, and the smallest binomial tail of a bin."""
    found = stability(table_with(0, counts), table_with(1, counts), number=False)
    often = chi2_contingency(np.array(counts)[:, :frequent], correction=False).pvalue
    single = min(binomtest(new, old + new, 0.5).pvalue for old, new in zip(*counts, strict=True))
    assert found.p == pytest.approx(min(often / (1 - OF_SINGLE), 3 * single / OF_SINGLE))


def test_people_who_are_all_in_rare_bins_have_a_p() -> None:
    """No frequent bin has anybody of the new table."""
    old, new = table_with(0, [[500, 500, 0]]), table_with(0, [[0, 0, 10]])
    assert stability(old, new, number=False).p < 1e-9


def test_the_index_of_many_people_is_that_of_their_distributions() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.3])
    counts = [(100_000 * share).round().astype(int).tolist() for share in (p, q)]
    found = stability(table_with(0, counts), table_with(1, counts), number=False)
    assert found.psi == pytest.approx(((q - p) * np.log(q / p)).sum(), rel=1e-3)
    assert (found.most, *found[-2:]) == ("c", pytest.approx(0.2), pytest.approx(0.3))


WORDS, FLOOR = (
    words(np.random.default_rng(0), 200, 1000, 1.0),
    np.random.default_rng(1).normal(400, 115, 2000),
)
FLOOR = FLOOR.round().clip(300, 850)
FLAGS = np.random.default_rng(0).integers(0, 2, 400)
NORMAL = np.random.default_rng(0).normal(size=500)


@pytest.mark.parametrize(
    ("old", "new", "number", "most"),
    [
        (NORMAL, NORMAL + 0.5, True, None),
        (WORDS, WORDS.mask(np.arange(1000) < 60, "w199"), False, "w199"),
        (WORDS, "new " + WORDS, False, None),
        (WORDS, WORDS[:50].mask(np.arange(50) < 4), False, MISSING_LEVEL),
        (words(np.random.default_rng(0), 200, 5000, 0.0), ["new"] * 40 + ["w1"] * 60, False, None),
        (FLOOR[:1000], np.where(FLOOR[1000:] == 300, -999, FLOOR[1000:]), True, "300"),
        (np.arange(1000.0), np.arange(900.0), True, "854.1 to 999"),
        (np.full(500, np.nan), NORMAL, True, MISSING_LEVEL),
        (NORMAL, np.full(500, 5.0), True, "5"),
        (NORMAL, np.full(500, 5.0), False, "5.0"),
    ],
)
def test_a_change_is_found_and_named(old: Any, new: Any, number: bool, most: str | None) -> None:
    tables = pd.Series(old), pd.Series(new)
    found = stability(*tables, number=number)
    assert found.p < 1e-2
    assert found.most == (most or found.most)
    assert stability(*reversed(tables), number=number).p < 1e-2
    assert stability(tables[0], tables[0], number=number).p == 1.0


def test_rare_words_of_both_tables_are_one_bin() -> None:
    """The fifty most frequent words, whichever table they are of, have their own."""
    old, new = (pd.Series([f"{name}{k}" for k in range(40) for _ in range(k)]) for name in "ab")
    rare = [f"c{k}" for k in range(400)]
    found = stability(old, pd.concat([new, pd.Series(rare)]), number=False)
    assert (found.most, found.before) == (OTHER_LEVEL, sum(range(15)) / len(old))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (str, lambda one: str(float(one))),
        (int, float),
        (bool, int),
        (lambda one: str(bool(one)), int),
        (lambda one: ["no", "yes"][one], lambda one: ["NO", " Yes"][one]),
    ],
    ids=["'0' and '0.0'", "0 and 0.0", "False and 0", "'False' and 0", "no and NO"],
)
def test_other_spellings_are_no_drift(old: Any, new: Any) -> None:
    first, second = pd.Series(list(map(old, FLAGS))), pd.Series(list(map(new, FLAGS)))
    assert stability(first, second, number=False)[:2] == (0.0, 1.0)
    assert stability(first, pd.Series([new(1)] * 400), number=False).p < 1e-6


def test_the_command_names_columns_that_have_changed(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)

    def people(n: int, shift: float) -> pd.DataFrame:
        sex = draw.choice(["f", "m"], n)
        income = draw.normal(size=n).round(3) + shift * (sex == "f")
        return pd.DataFrame({"income": income, "sex": sex, "town": draw.choice(["a", "b", "c"], n)})

    def compare(*words: str) -> Any:
        return typed("data", "compare", *words, cwd=tmp_path)

    people(1500, 0.0).to_csv(tmp_path / "old.csv", index=False)
    people(1500, 1.0).assign(further=draw.normal(size=1500)).to_csv(tmp_path / "new.csv", index=False)
    ended = compare("old.csv", "new.csv", "dataset.sensitive=sex")
    assert ended.returncode == 0, ended.stderr
    assert "Columns that differ, more than by chance: income." in ended.stdout
    assert "new.csv has further columns: further" in ended.stdout
    assert "old.csv: no column 'further', which new.csv has" in compare("new.csv", "old.csv").stderr
    told = compare("old.csv", "old.csv", "dataset.label=repaid", "dataset.drop=[id]").stderr
    assert "label=repaid: old.csv has no such column" in told
    assert "drop=id: old.csv has no such column" in told
