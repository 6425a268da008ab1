"""Simulations of promises about errors, and their tables in docs/simulations.md."""

from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairall import FairAllError
from reproduction import simulations
from reproduction.fingerprint import SIMULATED
from reproduction.pages import read_table
from reproduction.simulations import Case, cases, events, make, table


@pytest.mark.parametrize("name", SIMULATED)
def test_claims_hold_in_the_committed_tables(name: str) -> None:
    shown, own = read_table(f"simulations_{name}").rename(index=unescape), [*cases(name)]
    claimed = {(case.name, event): claim for case in own for event, claim in case.claims.items()}
    assert shown.loc[shown["claim"] != "", "claim"].to_dict() == claimed
    assert {*shown.index.get_level_values("group")} == {case.name for case in own}
    counts = shown["replicates"].str.extract(r"(\d+) of (\d+)").astype(int)
    share = shown.filter(like="95 % interval").iloc[:, 0].str.split(" ").str[0].astype(float)
    assert share.tolist() == pytest.approx((100 * counts[0] / counts[1]).tolist(), abs=0.0501)
    most = counts[1].groupby("group").max()
    assert {case.name: case.replicates for case in own if most[case.name] > case.replicates} == {}
    for row, claim in claimed.items():
        sign, limit, _ = claim.split()
        assert (100 * counts[0] / counts[1] - float(limit))[row] * {"≥": 1, "≤": -1}[sign] >= 0, row
    if SIMULATED[name]["module"] != "simulated_ledgers":  # which take seconds
        assert {*own[-1].replicate(np.random.default_rng(0))} <= {*shown.loc[own[-1].name].index}


def test_a_study_goes_on_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn: list[float] = []

    def toss(random: np.random.Generator) -> dict[str, bool]:
        drawn.append(random.random())
        return {"heads": drawn[-1] < 0.5} if drawn[-1] < 0.9 else {}

    coins = [Case(name, toss, 12, {"heads": "≤ 90 %"}) for name in ("fair", "of one toss")]
    monkeypatch.setitem(SIMULATED, "coin", {"title": "Coin", "note": ""})
    monkeypatch.setattr(simulations, "cases", lambda _: coins)
    file = tmp_path / "coin.csv"
    make_on = partial(make, file, partial(events, "coin"), [12, 1])
    make_on(hours=0.0)
    assert not file.exists()
    make_on()
    lines, first = file.read_text().splitlines(keepends=True), [*drawn]
    assert len(first) == len({*first}) == 13
    # The cases progress alike.
    assert pd.read_csv(file)["case"].to_list() == [0, 1, *[0] * 11]
    file.write_text("".join(lines[:6]))
    make_on()
    assert drawn == first + first[5:]
    assert file.read_text() == "".join(lines)
    row, *_ = table("coin", file).frame.itertuples()
    counted = [number for number in (first[0], *first[2:]) if number < 0.9]
    heads = sum(number < 0.5 for number in counted)
    assert (row[0], row[1], row[3]) == (("fair", "heads"), f"{heads} of {len(counted)}", "≤ 90 %")


def test_an_unknown_study_is_one_line() -> None:
    with pytest.raises(FairAllError, match=r"^gaurd: no such simulation"):
        simulations.simulations([], asked=["gaurd"])
