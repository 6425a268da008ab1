"""Rows of one person: known by values that hardly recur by chance, and by nothing else."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator

from fairall.evaluate.persons import repeated
from fairall.tables.features import Kind

Table = tuple[pd.DataFrame, dict[str, Kind], np.ndarray]
Made = Callable[[Generator], Table]
N = 600


def categories(draw: Generator, columns: int, levels: int, n: int) -> dict[str, np.ndarray]:
    return {f"c{k}": draw.integers(levels, size=n).astype(float) for k in range(columns)}


def of(x: dict[str, np.ndarray], group: np.ndarray, *real: str) -> Table:
    kinds = {name: Kind.REAL if name in real else Kind.CATEGORICAL for name in x}
    return pd.DataFrame(x), kinds, group


def rates(products: int, further: int = 0, *, determined: bool = False, n: int = N) -> Made:
    """Different people; product and sex set a rate, and with `determined` a segment and a region."""

    def made(draw: Generator) -> Table:
        product, sex = draw.integers(products, size=n), draw.integers(2, size=n)
        rate = draw.uniform(2, 9, (products, 2)).round(2)[product, sex]
        x = {"rate": rate, "product": product.astype(float)} | categories(draw, further, 3, n)
        if determined:
            x |= {
                name: draw.integers(5, size=products)[product].astype(float) for name in ("segment", "region")
            }
        return of(x, sex, "rate")

    return made


def incomes(digits: int, further: int = 2, n: int = N) -> Made:
    """Different people with incomes of so many digits."""

    def made(draw: Generator) -> Table:
        income = np.array([float(f"{one:.{digits - 1}e}") for one in draw.lognormal(10, 0.6, n)])
        return of({"income": income} | categories(draw, further, 4, n), draw.integers(2, size=n), "income")

    return made


def returning(times: int, real: int, decimals: int, share: float = 1.0, n: int = 300) -> Made:
    """People with normal numbers, of whom a share come back so many times in all, with their number last."""

    def made(draw: Generator) -> Table:
        x = {f"x{k}": draw.normal(size=n).round(decimals) for k in range(real)} | categories(draw, 2, 4, n)
        again = np.repeat(draw.permutation(n)[: int(share * n)], times - 1)
        rows = draw.permutation(np.concatenate([np.arange(n), again]))
        group = draw.integers(2, size=n)
        made = of(
            {name: values[rows] for name, values in x.items()}, group[rows], *(f"x{k}" for k in range(real))
        )
        made[0].attrs["person"] = rows
        return made

    return made


def found(made: Made, seed: int) -> np.ndarray | None:
    x, kinds, group = made(np.random.default_rng(seed))
    person, notes = repeated(x, kinds, group, "person=COLUMN")
    copies = int(pd.concat([x, pd.Series(group, name="")], axis=1).duplicated().sum())
    if person is not None:
        assert len(set(person)) == len(x) - copies
        (note,) = notes
        assert f"and {copies} row" in note
        assert note.endswith("of the same person; give person=COLUMN")
    elif notes:
        assert notes[0].endswith("are taken to be of other people; if not, give person=COLUMN")
    return person


def share_found(made: Made, times: int) -> float:
    return float(np.mean([found(made, seed) is not None for seed in range(times)]))


@pytest.mark.parametrize("products", [2, 4, 50, 200])
@pytest.mark.parametrize("further", [0, 2, 4])
@pytest.mark.parametrize("determined", [False, True])
def test_a_rate_that_product_and_sex_set_tells_nobody_from_others(
    products: int, further: int, determined: bool
) -> None:
    assert share_found(rates(products, further, determined=determined), 3) == 0.0


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("further", [0, 2, 5])
def test_rounded_incomes_make_no_person(digits: int, further: int) -> None:
    assert share_found(incomes(digits, further), 3) == 0.0


@pytest.mark.parametrize("times", [2, 3, 18])
@pytest.mark.parametrize(("real", "decimals"), [(1, 4), (3, 2), (4, 1)])
def test_people_who_come_back_are_found(times: int, real: int, decimals: int) -> None:
    made = returning(times, real, decimals)
    for seed in range(3):
        x, _, _ = made(np.random.default_rng(seed))
        person = found(made, seed)
        assert person is not None
        # Two rows are of one person exactly where they are of the same row of the people.
        pairs = pd.DataFrame({"found": person, "true": x.attrs["person"]}).drop_duplicates()
        assert len(pairs) == len(set(person)) == 300


def test_nobody_comes_back_where_all_rows_differ() -> None:
    assert found(returning(1, 1, 6), 0) is None


def test_columns_without_numbers_or_with_missing_ones() -> None:
    draw = np.random.default_rng(0)
    group = draw.integers(2, size=N)
    x = pd.DataFrame(categories(draw, 3, 2, N))
    assert repeated(x, dict.fromkeys(x, Kind.CATEGORICAL), group, "") == (None, [])
    counts = pd.DataFrame({"children": draw.poisson(1, N).astype(float)})
    assert repeated(counts, {"children": Kind.COUNT}, group, "") == (None, [])
    nothing = x.assign(income=np.nan)
    assert repeated(nothing, dict.fromkeys(x, Kind.CATEGORICAL) | {"income": Kind.REAL}, group, "") == (
        None,
        [],
    )
    income = np.where(np.arange(N) % 2, np.nan, np.repeat(draw.normal(size=N // 2), 2))
    one, _ = repeated(pd.DataFrame({"income": income}), {"income": Kind.REAL}, np.zeros(N, int), "")
    assert one is None


@pytest.mark.parametrize("n", [2, 3])
def test_very_few_rows(n: int) -> None:
    same = pd.DataFrame({"income": np.full(n, 1.2345)})
    person, (note,) = repeated(same, {"income": Kind.REAL}, np.zeros(n, int), "person=COLUMN")
    assert person is None
    assert note.startswith("rows 1 and 2 are equal")


@pytest.mark.whole
def test_different_people_are_hardly_ever_taken_for_the_same() -> None:
    tables = [rates(p, k, n=n) for p in (2, 4, 50, 200) for k in (0, 2, 4, 6) for n in (200, 600)]
    tables += [rates(p, 1, determined=True, n=n) for p in (2, 4, 50, 200) for n in (200, 2000)]
    tables += [incomes(digits, k, n) for digits in (1, 2, 3, 4, 5) for k in (0, 2, 5) for n in (200, 2000)]
    assert np.mean([share_found(made, 10) for made in tables]) <= 0.01


@pytest.mark.whole
def test_people_who_come_back_are_nearly_always_found() -> None:
    tables = [returning(t, real, 4, share) for t in (2, 3, 18) for real in (1, 3) for share in (0.3, 1)]
    assert np.mean([share_found(made, 20) for made in tables]) >= 0.95


def many_categories(levels: int, n: int) -> Made:
    """Different people with a rate by product and sex, and columns in which a few pairs agree by chance."""

    def made(draw: Generator) -> Table:
        product, sex = draw.integers(4, size=n), draw.integers(2, size=n)
        rate = draw.uniform(2, 9, (4, 2)).round(2)[product, sex]
        x = {"rate": rate, "product": product.astype(float)} | categories(draw, 8, levels, n)
        return of(x, sex, "rate")

    return made


@pytest.mark.whole
def test_a_single_pair_that_chance_explains_makes_no_person() -> None:
    """Of these tables 4 % have two people who agree in all columns."""
    assert share_found(many_categories(5, 600), 300) <= 0.01
