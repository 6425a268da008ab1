"""Simulations of promises about errors, and their tables in docs/simulations.md."""

from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from fairall import FairAllError
from reproduction import simulations
from reproduction.fingerprint import SIMULATED
from reproduction.pages import read_table
from reproduction.simulations import COLUMNS, Case, cases, events, found, make, table


@pytest.mark.parametrize("name", SIMULATED)
def test_claims_hold_in_the_committed_tables(name: str) -> None:
    own, shown = {case.name: case for case in cases(name)}, dict[str, set[str]]()
    for row in read_table(f"simulations_{name}").itertuples():
        (case, event), count, _, claim = (*map(unescape, row[0]),), *row[1:]
        times, of = (int(part) for part in count.split(" of "))
        assert claim == own[case].claims.get(event, "")
        sign, limit, _ = (claim or "≥ 0 %").split()
        beyond = times - float(limit) / 100 * of
        assert beyond * {"≥": 1, "≤": -1}[sign] >= 0, (case, event, count, claim)
        shown.setdefault(case, set()).add(event)
    assert shown.keys() == own.keys()
    assert all(case.claims.keys() <= shown[case.name] for case in own.values())
    *_, last = own.values()
    if SIMULATED[name]["module"] != "simulated_ledgers":  # which take seconds
        assert {*last.replicate(np.random.default_rng(0))} <= shown[last.name]


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The numbers that a study of a coin has drawn."""
    drawn: list[float] = []

    def toss(random: np.random.Generator) -> dict[str, bool]:
        drawn.append(random.random())
        return {"heads": drawn[-1] < 0.5} if drawn[-1] < 0.9 else {}

    monkeypatch.setitem(SIMULATED, "coin", {"title": "Coin", "note": ""})
    monkeypatch.setattr(
        simulations,
        "cases",
        lambda _: [Case(name, toss, 12, {"heads": "≤ 90 %"}) for name in ("fair", "of one toss")],
    )
    return drawn


def test_a_study_goes_on_where_it_was_interrupted(coin: list[float], tmp_path: Path) -> None:
    file = tmp_path / "coin.csv"
    make_on = partial(make, file, COLUMNS, partial(events, "coin"), [12, 1])
    make_on(hours=0.0)
    assert not file.exists()
    make_on()
    whole, first = found(file), [*coin]
    assert len(first) == len({*first}) == 13
    # The cases progress alike.
    assert [line[0] for line in file.read_text().splitlines()] == [*"0100000000000"]
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    make_on()
    assert coin == first + first[5:]
    assert found(file).equals(whole)
    row, *_ = table("coin", file).frame.itertuples()
    counted = [number for number in (first[0], *first[2:]) if number < 0.9]
    heads = sum(number < 0.5 for number in counted)
    assert (row[0], row[1], row[3]) == (("fair", "heads"), f"{heads} of {len(counted)}", "≤ 90 %")


def test_an_unknown_study_is_one_line() -> None:
    with pytest.raises(FairAllError, match=r"^gaurd: no such simulation"):
        simulations.simulations([], asked=["gaurd"])
