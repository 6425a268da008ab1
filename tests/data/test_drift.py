"""The population stability index and what chance explains of it, against simulations."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.in_process import typed
from fairall.data.drift import CHANCE, binned, stability
from fairall.data.features import MISSING_LEVEL, OTHER_LEVEL


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
    assert [names[k] for k in after] == ["up to 9.9", "49.5 to 59.4", MISSING_LEVEL, "above 89.1"]
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
