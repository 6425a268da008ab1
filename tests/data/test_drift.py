"""The population stability index and what chance explains of it, against simulations."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.in_process import typed
from fairall.data.drift import CHANCE, Stability, binned, stability
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL


@pytest.mark.parametrize(("n", "m", "bins"), [(4000, 500, 10), (300, 300, 4)])
def test_without_drift_the_index_is_above_its_quantile_as_often_as_it_says(n: int, m: int, bins: int) -> None:
    draw, names = np.random.default_rng(0), [str(k) for k in range(bins)]
    found = [stability(draw.integers(bins, size=n), draw.integers(bins, size=m), names) for _ in range(1000)]
    above = np.mean([one.psi > one.chance for one in found])
    assert above == pytest.approx(1 - CHANCE, abs=0.02)
    assert np.mean([one.p < 0.05 for one in found]) == pytest.approx(above)


def test_the_index_of_many_people_is_that_of_their_distributions() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.3])
    old, new = (np.repeat(range(3), (100_000 * of).round().astype(int)) for of in (p, q))
    found = stability(old, new, ["a", "b", "c"])
    assert found.psi == pytest.approx(((q - p) * np.log(q / p)).sum(), rel=1e-3)
    assert found.most == "c"
    assert [found.before, found.after] == pytest.approx([0.2, 0.3])


def test_bins_are_deciles_words_and_missing_cells() -> None:
    old, new = pd.Series(np.arange(100.0)), pd.Series([-5.0, 50.2, np.nan, 200.0])
    before, after, names = binned(old, new, number=True)
    assert np.bincount(before).tolist() == [10] * 10
    assert [names[k] for k in after] == ["0 to 9.9", "49.5 to 59.4", MISSING_LEVEL, "89.1 to 99"]
    before, after, names = binned(old, pd.Series([*[-5.0] * 9, 50.2]), number=True)
    assert [names[k] for k in after] == ["below 0"] * 9 + ["49.5 to 59.4"]
    words = pd.Series(["x", "y", None]), pd.Series(["x", "z"])
    before, after, names = binned(*words, number=False)
    assert [names[k] for k in before] == ["x", "y", MISSING_LEVEL]
    assert [names[k] for k in after] == ["x", OTHER_LEVEL]


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
    assert found.most in ("below 300", "300")
    assert {found.before, found.after} & {0.0, at_floor}


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize("empty", [np.nan, 5.0], ids=["empty", "constant"])
def test_columns_that_were_empty_or_constant_are_seen(empty: float, number: bool) -> None:
    old, filled = np.full(500, empty), np.random.default_rng(0).normal(size=300)
    assert compared(old, filled, number=number).p < 1e-6
    if number:
        assert compared(filled, old, number=True).p < 1e-6
    assert compared(old, np.full(300, empty), number=number).p == 1.0


KINDS_OF_VALUES = {
    "normal": lambda draw, n: draw.normal(size=n),
    "floor": lambda draw, n: draw.normal(400, 100, n).round().clip(300, 850),
    "counts": lambda draw, n: draw.poisson(3, n),
    "heaps": lambda draw, n: draw.choice([0, 10, 20, 30, 31], n),
    "missing": lambda draw, n: np.where(draw.random(n) < 0.2, np.nan, draw.normal(size=n)),
    "words": lambda draw, n: draw.choice(list("abcdefgh"), n),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", KINDS_OF_VALUES)
def test_without_drift_p_is_below_a_level_about_as_often_as_it_says(name: str) -> None:
    draw, made = np.random.default_rng(0), KINDS_OF_VALUES[name]
    tables = ((made(draw, 2000), made(draw, 1000)) for _ in range(500))
    p = np.array([compared(*table, number=name != "words").p for table in tables])
    for level in (0.05, 0.2):
        assert (p < level).mean() == pytest.approx(level, abs=0.035)


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
