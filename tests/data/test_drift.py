"""The population stability index and the test of drift, against simulations."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, chi2_contingency, false_discovery_control

from benchmarks.in_process import typed
from fairall.data.drift import DRIFTED, OF_SINGLE, Stability, binned, drift_by_column, stability
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL


def levels(draw: np.random.Generator, many: int, n: int, power: float) -> pd.Series:
    """Words of which the k-th is as frequent as k to minus `power`."""
    share = np.arange(1.0, many + 1) ** -power
    return pd.Series(draw.choice(many, n, p=share / share.sum())).map("w{}".format)


@pytest.mark.parametrize("power", [0.0, 1.0], ids=["equal", "Zipf"])
@pytest.mark.parametrize(("many", "n", "m"), [(2, 50, 50), (200, 1000, 1000), (200, 2000, 50)])
def test_words_without_drift_are_seldom_significant(many: int, n: int, m: int, power: float) -> None:
    """With bins of the levels that are most frequent in the earlier table 87 % were, of 200 levels."""
    draw = np.random.default_rng(0)
    tables = ((levels(draw, many, n, power), levels(draw, many, m, power)) for _ in range(150))
    assert np.mean([compared(*table, number=False).p < DRIFTED for table in tables]) <= 0.08


@pytest.mark.parametrize("name", ["normal", "floor", "counts", "heaps", "missing"])
def test_numbers_of_few_people_without_drift_are_seldom_significant(name: str) -> None:
    draw, made = np.random.default_rng(0), KINDS_OF_VALUES[name]
    p = [compared(made(draw, 30), made(draw, 30), number=True).p for _ in range(250)]
    assert np.mean(np.array(p) < DRIFTED) <= 0.08


def test_p_is_corrected_for_all_columns() -> None:
    draw = np.random.default_rng(0)
    columns = {k: (levels(draw, 20, 300, 0.0), levels(draw, 20, 300, 0.0), False) for k in range(30)}
    single = [compared(old, new, number=False).p for old, new, _ in columns.values()]
    found = drift_by_column(columns)
    assert [one.p for one in found.values()] == pytest.approx(false_discovery_control(single))


def test_a_shift_is_found() -> None:
    """Of the mean, of one word among many, of all words, and of missing cells that were not there before."""
    draw = np.random.default_rng(0)
    same, words = draw.normal(size=1000), levels(draw, 200, 1000, 1.0)
    assert compared(same, draw.normal(0.3, 1.0, 1000), number=True).p < 0.01
    one = compared(words, levels(draw, 200, 1000, 1.0).mask(draw.random(1000) < 0.06, "w199"), number=False)
    assert one.p < 1e-3
    assert one.most == "w199"
    assert compared(words, "new " + words, number=False).p < 1e-6
    few = levels(draw, 200, 50, 1.0).mask(np.arange(50) < 4)
    assert compared(words, few, number=False).p < 0.01
    assert compared(words, few, number=False).most == MISSING_LEVEL


def test_p_by_hand() -> None:
    """Pearson's χ² of the frequent bins, and the binomial tail of the rarest."""
    counts = np.array([[40, 60, 0], [60, 36, 4]])
    old, new = (np.repeat(range(3), row) for row in counts)
    found = stability(old, new, ["a", "b", "c"])
    often = chi2_contingency(counts[:, :2], correction=False).pvalue
    rare = min(
        binomtest(int(new), int(both), 0.5).pvalue for new, both in zip(counts[1], counts.sum(0), strict=True)
    )
    assert found.p == pytest.approx(min(often / (1 - OF_SINGLE), 3 * rare / OF_SINGLE))
    many = np.array([[40, 60, 0], [60, 30, 10]])
    old, new = (np.repeat(range(3), row) for row in many)
    found = stability(old, new, ["a", "b", "c"])
    assert found.p == pytest.approx(chi2_contingency(many).pvalue / (1 - OF_SINGLE))


def test_the_index_of_many_people_is_that_of_their_distributions() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.3])
    old, new = (np.repeat(range(3), (100_000 * of).round().astype(int)) for of in (p, q))
    found = stability(old, new, ["a", "b", "c"])
    assert found.psi == pytest.approx(((q - p) * np.log(q / p)).sum(), rel=1e-3)
    assert found.most == "c"
    assert [found.before, found.after] == pytest.approx([0.2, 0.3])


def test_bins_are_deciles_words_and_missing_cells_of_both_tables() -> None:
    old, new = pd.Series(np.arange(0.0, 200, 2)), pd.Series([*np.arange(1.0, 199, 2), np.nan])
    before, after, names = binned(old, new, number=True)
    assert np.bincount(before).tolist() == [10] * 10
    assert sorted(np.bincount(after)) == [1, 9, *[10] * 9]
    assert names[:2] == ["0 to 19", "20 to 39"]
    assert names[10] == MISSING_LEVEL
    # Fewer bins where a table has fewer than a hundred people.
    assert len(binned(old, new[:30], number=True)[2]) == 3
    words = pd.Series(["x", "y", None]), pd.Series(["x", "z"])
    before, after, names = binned(*words, number=False)
    assert [names[k] for k in before] == ["x", "y", MISSING_LEVEL]
    assert [names[k] for k in after] == ["x", "z"]
    # The most frequent of both tables, whichever they are of.
    old, new = (pd.Series([f"{name}{k}" for k in range(40) for _ in range(k)]) for name in "ab")
    before, after, names = binned(old, new, number=False)
    assert names == [f"{name}{k}" for k in range(39, 14, -1) for name in "ab"] + [OTHER_LEVEL]
    assert [(before == 50).sum(), (after == 50).sum()] == [105, 105]


def test_bins_have_the_names_of_the_numbers_that_are_in_them() -> None:
    grades = pd.Series([1.0] * 30 + [3.0] * 30 + [6.0] * 30 + [8.0] * 60)
    _, _, names = binned(grades, grades, number=True)
    assert names == ["1", "3", "6", "8"]


def test_the_command_names_columns_that_have_changed(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)

    def people(n: int, shift: float) -> pd.DataFrame:
        sex = draw.choice(["f", "m"], n)
        income = draw.normal(size=n).round(3) + shift * (sex == "f")
        return pd.DataFrame({"income": income, "sex": sex, "town": draw.choice(["a", "b", "c"], n)})

    people(1500, 0.0).to_csv(tmp_path / "old.csv", index=False)
    people(1500, 1.0).assign(further=draw.normal(size=1500)).to_csv(tmp_path / "new.csv", index=False)
    words = "data", "compare", "old.csv", "new.csv", "dataset.sensitive=sex"
    ended = typed(*words, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "Columns that differ, more than by chance: income." in ended.stdout
    assert "new.csv has further columns: further" in ended.stdout
    swapped = typed("data", "compare", "new.csv", "old.csv", cwd=tmp_path)
    assert swapped.returncode == 1
    assert "old.csv: no column 'further', which new.csv has" in swapped.stderr


def compared(old: Any, new: Any, *, number: bool) -> Stability:
    """The stability of a column of two tables."""
    before, after, names = binned(pd.Series(old), pd.Series(new), number=number)
    return stability(before, after, names)


FLAGS = np.random.default_rng(0).integers(0, 2, (2, 400))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (str, lambda one: str(float(one))),
        (int, float),
        (bool, int),
        (lambda one: str(bool(one)), int),
        (lambda one: ["no", "yes"][one], lambda one: ["NO", " Yes"][one].strip()),
    ],
    ids=["'0' and '0.0'", "0 and 0.0", "False and 0", "'False' and 0", "no and NO"],
)
def test_other_spellings_are_no_drift(old: Any, new: Any) -> None:
    values = [old(one) for one in FLAGS[0]], [new(one) for one in FLAGS[1]]
    before, after, names = binned(*map(pd.Series, values), number=False)
    assert len(names) == 2
    found = stability(before, after, names)
    assert found == stability(FLAGS[0], FLAGS[1], names)._replace(most=found.most)
    moved = [new(one) for one in np.repeat([0, 1], [50, 350])]
    assert compared(values[0], moved, number=False).p < 1e-6


def test_scores_that_fell_from_the_floor_are_seen_and_named() -> None:
    draw = np.random.default_rng(0)

    def scores(n: int) -> np.ndarray:
        return draw.normal(400, 115, n).round().clip(300, 850)

    old, new = scores(3000), scores(1000)
    at_floor = (new == 300).mean()
    assert 0.15 < at_floor < 0.25
    assert compared(old, new, number=True).p > 0.01
    found = compared(old, np.where(new == 300, -999, new), number=True)
    assert found.p < 1e-6
    assert found.most in ("-999", "-999 to 300", "300")
    assert {found.before, found.after} & {0.0, at_floor}


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize("empty", [np.nan, 5.0], ids=["empty", "constant"])
def test_columns_that_were_empty_or_constant_are_seen(empty: float, number: bool) -> None:
    old, filled = np.full(500, empty), np.random.default_rng(0).normal(size=300)
    assert compared(old, filled, number=number).p < 1e-6
    assert compared(filled, old, number=number).p < 1e-6
    assert compared(old, np.full(300, empty), number=number).p == 1.0


KINDS_OF_VALUES = {
    "normal": lambda draw, n: draw.normal(size=n),
    "floor": lambda draw, n: draw.normal(400, 100, n).round().clip(300, 850),
    "counts": lambda draw, n: draw.poisson(3, n),
    "heaps": lambda draw, n: draw.choice([0, 10, 20, 30, 31], n),
    "missing": lambda draw, n: np.where(draw.random(n) < 0.2, np.nan, draw.normal(size=n)),
    "words": lambda draw, n: draw.choice(list("abcdefgh"), n),
}


def test_keys_that_name_no_column_are_refused(tmp_path: Path) -> None:
    people = pd.DataFrame({"income": np.arange(100.0) / 7, "sex": ["f", "m"] * 50})
    people.to_csv(tmp_path / "old.csv", index=False)
    for word, told in (
        ("label=repaid", "label=repaid"),
        ("drop=[id]", "drop=id"),
        ("sensitive=s", "sensitive=s"),
    ):
        ended = typed("data", "compare", "old.csv", "old.csv", f"dataset.{word}", cwd=tmp_path)
        assert ended.returncode == 1
        assert f"dataset.{told}: old.csv has no such column" in ended.stderr
