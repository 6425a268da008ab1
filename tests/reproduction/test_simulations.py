"""Simulations of promises about errors, and their tables in docs/simulations.md."""

from html import unescape
from pathlib import Path

import numpy as np
import pytest

from fairall import FairAllError
from reproduction import simulations
from reproduction.fingerprint import SIMULATED
from reproduction.pages import BLOCK
from reproduction.simulations import Case, cases, found, holds, make, table

PAGE = Path(__file__).parents[2] / "docs" / "simulations.md"


@pytest.mark.parametrize("name", SIMULATED)
def test_claims_hold_in_the_committed_tables(name: str) -> None:
    lines = dict(BLOCK.findall(PAGE.read_text()))[f"simulations_{name}"].splitlines()
    rows = [[unescape(cell.strip()) for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    own, claimed = {case.name: case for case in cases(name)}, dict[str, dict[str, str]]()
    for case, event, count, share, claim in rows[2:]:
        times, of = (int(part) for part in count.split(" of "))
        assert float(share.split(" ")[0]) == pytest.approx(100 * times / of, abs=0.051)
        assert holds(claim, times, of), (case, event, count, claim)
        assert of <= own[case].replicates
        claimed.setdefault(case, {})[event] = claim
    assert {case: {event: claim for event, claim in of.items() if claim} for case, of in claimed.items()} == {
        case: dict(of.claims) for case, of in own.items()
    }
    *_, last = cases(name)
    if SIMULATED[name]["module"] != "simulated_ledgers":  # which take seconds
        assert {*last.replicate(np.random.default_rng(0))} <= {*claimed[last.name]}


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The numbers that a study of a coin has drawn."""
    drawn: list[float] = []

    def toss(random: np.random.Generator) -> dict[str, bool]:
        drawn.append(random.random())
        return {"heads": drawn[-1] < 0.5} if drawn[-1] < 0.9 else {}

    monkeypatch.setitem(SIMULATED, "coin", {"title": "Coin", "note": ""})
    monkeypatch.setattr(simulations, "cases", lambda _: [Case("fair", toss, 12, {"heads": "≤ 90 %"})])
    return drawn


def test_a_study_goes_on_where_it_was_interrupted(coin: list[float], tmp_path: Path) -> None:
    file = tmp_path / "coin.csv"
    make("coin", file, 1)
    whole, first = found(file), [*coin]
    assert len(first) == len({*first}) == 12
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    make("coin", file, 1)
    assert coin == first + first[5:]
    assert found(file).equals(whole)
    (row,) = table("coin", file).records.to_dict("records")
    counted = [number for number in first if number < 0.9]
    assert (row["times"], row["of"]) == (sum(number < 0.5 for number in counted), len(counted))
    assert row["holds"]


def test_no_replicate_is_begun_after_the_time(coin: list[float], tmp_path: Path) -> None:
    make("coin", tmp_path / "coin.csv", 1, 0.0)
    assert not coin
    assert not [*tmp_path.iterdir()]


def test_an_unknown_study_is_one_line() -> None:
    with pytest.raises(FairAllError, match=r"^gaurd: no such simulation"):
        simulations.simulations([], asked=["gaurd"])
