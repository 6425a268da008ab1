"""Simulations of promises about errors, and their tables in docs/simulations.md."""

from collections.abc import Mapping
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairall import FairAllError
from reproduction import simulated_splits, simulations
from reproduction.fingerprint import SIMULATED
from reproduction.pages import BLOCK
from reproduction.simulations import COMPARE, Case, found, make, summary

PAGE = Path(__file__).parents[2] / "docs" / "simulations.md"


def rows_of(content: str) -> list[list[str]]:
    """Cells of the rows of a Markdown table."""
    lines = [line for line in content.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("name", SIMULATED)
def test_claims_hold_in_the_committed_tables(name: str) -> None:
    blocks = dict(BLOCK.findall(PAGE.read_text()))
    case, cases = "", {case.name: case for case in simulations.study(name).CASES}
    claimed: dict[str, set[str]] = {name: set() for name in cases}
    for shown, event, count, share, claim in rows_of(blocks[f"simulations_{name}"]):
        case = unescape(shown) or case
        times, of = (int(part) for part in count.split(" of "))
        assert float(share.split(" ")[0]) == pytest.approx(100 * times / of, abs=0.051)
        if claim:
            sign, limit, _ = claim.split()
            assert COMPARE[sign](times, float(limit) / 100 * of), (case, event, count, claim)
            assert (sign, float(limit) / 100) == cases[case].claims[unescape(event)]
            claimed[case].add(unescape(event))
        assert of <= cases[case].replicates
    assert claimed == {name: {*case.claims} for name, case in cases.items()}


def test_equal_methods_differ_more_often_over_splits_of_the_same_people() -> None:
    said = {
        anew: [
            simulated_splits.replicate(np.random.default_rng([number, anew]), 700, anew=anew)
            for number in range(80)
        ]
        for anew in (False, True)
    }
    differ = {
        (anew, event): sum(one[event] for one in of)
        for anew, of in said.items()
        for event in (simulated_splits.WILCOXON, simulated_splits.CORRECTED)
    }
    assert differ[False, simulated_splits.WILCOXON] >= 12  # of 80; at a level of 5 % expected are 4
    assert differ[True, simulated_splits.WILCOXON] <= 10
    assert differ[False, simulated_splits.CORRECTED] <= 8


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A study of a coin, with the numbers that it has drawn."""
    drawn: list[float] = []

    def toss(random: np.random.Generator) -> Mapping[str, bool]:
        drawn.append(random.random())
        return {"heads": drawn[-1] < 0.5} if drawn[-1] < 0.9 else {}

    own = SimpleNamespace(CASES=(Case("fair", toss, 12, {"heads": ("≤", 0.9)}),), drawn=drawn)
    monkeypatch.setattr(simulations, "study", lambda _: own)
    return own


def test_a_study_goes_on_where_it_was_interrupted(coin: SimpleNamespace, tmp_path: Path) -> None:
    make("coin", tmp_path, 1)
    whole, drawn = found(tmp_path, 0), list(coin.drawn)
    assert len(drawn) == 12
    assert len(set(drawn)) == 12
    file = tmp_path / "00.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    coin.drawn.clear()
    make("coin", tmp_path, 1)
    assert coin.drawn == drawn[5:]
    assert found(tmp_path, 0).equals(whole)
    (row,) = summary(coin.CASES[0], whole)
    counted = [number for number in drawn if number < 0.9]
    assert (row["times"], row["of"]) == (sum(number < 0.5 for number in counted), len(counted))
    assert row["holds"]


def test_no_replicate_is_begun_after_the_time(coin: SimpleNamespace, tmp_path: Path) -> None:
    make("coin", tmp_path, 1, 0.0)
    assert coin.drawn == []
    assert not [*tmp_path.iterdir()]


def test_an_unknown_study_is_one_line() -> None:
    with pytest.raises(FairAllError, match=r"^gaurd: no such simulation"):
        simulations.simulations([], asked=["gaurd"])
