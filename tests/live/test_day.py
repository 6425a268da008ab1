"""An officer's day: spellings, times, rows that are left out, places, reasons, and who is forgotten."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import Ledger, load_policy, run
from fairall.config.compose import compose_config
from fairall.data.people import Decided
from fairall.decide.reasons import PLACES
from fairall.models.known import hashes
from fairall.online.process import Process
from tests.conftest import succeeded
from tests.live.conftest import (
    COPIES,
    MEMORY,
    NAMES,
    SMALL,
    Make,
    at,
    edited,
    noticed,
    people,
    refusing,
    repaid,
    rows,
)


def test_other_spellings_are_the_same_people_and_outcomes(ledger: Make) -> None:
    own, table = ledger(), people(0, 20).assign(id=1_000_000 + np.arange(20)).drop(columns="time")
    first = own.decide(table)
    spelt = table.astype({"id": float, "age": float}).assign(sex=table["sex"].str.upper())
    pd.testing.assert_frame_equal(own.decide(spelt), first.assign(new=False))
    given = spelt.loc[first["decision"] == 1, ["id"]].astype(str)
    assert own.outcomes(given.assign(repaid="YES"))["new"] == len(given)
    assert own.outcomes(given.assign(repaid=1.0))["known"] == len(given)
    own.withdraw(1_000_001.0)  # type: ignore[arg-type]
    # Tables without times are of now.
    assert pd.Timestamp(own.status()["until"]) > pd.Timestamp.now() - pd.Timedelta(days=2)
    with refusing("column 'time': this table is unlike those before"):
        own.decide(people(10, 10))


def test_times_are_confirmed_and_corrected(ledger: Make, tmp_path: Path) -> None:
    own = ledger("live.horizon=85d")
    given = repaid(own.decide(people(0, 100, 16 / 24)), 20)
    with refusing("is before the application"):
        own.outcomes(given.assign(time=at(9 / 24)))
    own.outcomes(given.assign(time=at(0)))  # midnight stands for the day
    given.iloc[:1].assign(time=at(90)).to_csv(tmp_path / "o.csv", index=False)
    succeeded("live", "outcomes", "loans.db", "o.csv", "--confirm-times", cwd=tmp_path)
    assert own.status()["until"] == at(90)[:10]
    assert own.outcomes(given)["corrected"] == len(given)
    own.decide(people(100, 1, 21))
    untimed = given.drop(columns="time")
    assert own.outcomes(untimed)["known"] == len(given)  # without a time none is corrected
    own.outcomes(untimed.assign(repaid="no"))  # of the latest time in the ledger
    assert own.status()["until"] == at(21)[:10]
    assert own.learn()["people"] == 0


def test_times_of_today_need_no_confirmation_and_tomorrow_blocks_nothing(ledger: Make) -> None:
    own, today = ledger(), pd.Timestamp.now("UTC").tz_localize(None)
    own.decide(people(0, 10))  # years ago
    for k in (20, -20):
        own.decide(people(30 + k, 1).assign(time=str(today + pd.Timedelta(hours=k))))
    with refusing("fairall live withdraw leaves that one out"):
        own.decide(people(60, 10, 1))
    for person in ("L0051", "L0011"):
        own.withdraw(person)
    assert own.decide(people(60, 10, 1))["new"].all()
    with refusing("was withdrawn already"):
        own.withdraw("L0011")
    own.forget("L0011")


def test_rows_that_cannot_be_decided_on_are_left_out(ledger: Make, tmp_path: Path) -> None:
    own, table = ledger(), people(0, 60)
    own.decide(table[:8])
    own.forget("L0003")
    own.withdraw("L0004")
    table.loc[9, "purpose"], table.loc[10, "sex"], table.loc[13, "id"] = "yacht", "x", "L0013"
    wrong = {2: "id", 3: "id", 9: "purpose", 10: "sex", 12: "id", 13: "id"}
    with refusing(r"is in several rows; .*; --skip \(skip=True\) decides on the others"):
        own.decide(table)
    with refusing("'yacht' is not known"):  # nobody is left
        own.decide(table[9:10], skip=True)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = "live decide loans.db t.csv -o d.csv --skip --json --reasons 2".split()
    told = json.loads(succeeded(*words, cwd=tmp_path).stdout)
    decided, left_out = (pd.read_csv(tmp_path / name).fillna("") for name in ("d.csv", "d_left_out.csv"))
    assert decided["id"].tolist() == table["id"].drop([*wrong]).tolist()
    accepted = decided["decision"].sum(), decided["decision"][6:].sum()
    assert [told[name] for name in ("people", "new", "accepted", "new_accepted")] == [54, 48, *accepted]
    assert left_out["left_out"].tolist() == told["left_out"]
    places = {f"column '{name}', row {row + 1}" for row, name in wrong.items()}
    assert {why.split(":")[0] for why in told["left_out"]} == places
    assert {*left_out["id"]} == {"", *table["id"][[*wrong][2:]]}  # nothing of those who are gone
    named = decided.groupby("decision")["reasons"].agg("; ".join).str.split("; ").map(set)
    assert named[1] == {""}
    assert named[0] < {"", *NAMES[1:]}
    assert len(named[0]) > 3


def test_decisions_keep_their_version_reasons_and_propensities(
    ledger: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, learn, given = ledger("live.held_out=0"), Process.learn, list[Decided]()
    first = own.decide(people(0, 100), most_reasons=2, capacity=0.4)
    assert first["decision"].sum() == 40
    assert first["propensity"].sum() == pytest.approx(40, abs=0.5)
    assert 1 < (first["reasons"] == PLACES).sum() < 50
    own.outcomes(repaid(first, 1, share=0.5))
    own.promote(own.learn()["version"])
    again = own.decide(people(0, 100)[::-1], most_reasons=2)[::-1]
    pd.testing.assert_frame_equal(again, first.assign(new=False))
    second = own.decide(people(100, 100, 2))
    own.outcomes(repaid(pd.concat([first, second]), 3))

    def watched(self: Process, due: Any) -> None:
        given.extend(due)
        learn(self, given)

    monkeypatch.setattr(Process, "learn", watched)
    own.learn()
    late = pd.concat([first[first["decision"] == 1][20:], second])["propensity"].astype(np.float32)
    np.testing.assert_array_equal(torch.cat([one.propensity[0] for one in given]), late)


def test_a_table_waits_for_all_its_outcomes_and_small_ones_are_joined(ledger: Make) -> None:
    own = ledger("live.horizon=null", "live.held_out=0")
    tables = [own.decide(people(20 * k, 20, k)) for k in range(8)]
    for share, learnt in ((0.9, (0, None)), (1, (160, 2))):  # in updates of 80
        for decided in tables:
            own.outcomes(repaid(decided, 9, share))
        told = own.learn()
        assert (told["people"], told.get("updates")) == learnt


@pytest.mark.parametrize(
    "words", [MEMORY, COPIES, ["model=parity_stacked"]], ids=["rows", "copies", "scores"]
)
def test_nothing_of_a_forgotten_person_is_in_the_file_or_comes_back(words: list[str], tmp_path: Path) -> None:
    short = ["schedule.time_steps=2", "evaluation.window=[1,2]", f"outputs_dir={tmp_path}"]
    done, place = run(compose_config(*SMALL, *words, *short)), tmp_path / "loans.db"
    own, table = Ledger.start(place, str(done.path), "live.held_out=0"), people(0, 100).set_index("id")
    decided = own.decide(people(0, 100))
    own.outcomes(repaid(decided, 1))
    own.learn()
    someone = decided.loc[decided["decision"] == 1, "id"].iloc[0]
    x, s = load_policy(done.path).encoded(table.loc[[someone]])
    ((features, salt),) = rows(place, "select features, salt from applications where person = ?", someone)
    parts = [features.encode(), salt, x.numpy().tobytes()]
    parts += [int(hashes(x, s)[0] + seed).to_bytes(8, "little", signed=True) for seed in range(2)]
    assert own.forget(someone) == [2]
    assert [part for part in parts if part in place.read_bytes()] == []
    with own.store.reading() as connection:
        state = own.version(connection, 2, whole=True).training["parts"]
    scores = [part["columns"] for part in state.values() if "log_odds" in part.get("columns", {})]
    assert len(scores) == (words == ["model=parity_stacked"])
    for columns in scores:
        nobody = (columns["x"] == 0).all(-1) & (columns["propensity"] == 0)
        assert (nobody.any(), columns["log_odds"][nobody].any()) == (True, False)
    assert [one["can_be_made_again"] for one in own.status()["versions"]] == [True, False]
    with refusing("forgotten already"):
        own.forget(someone)
    with edited(place) as connection:
        back = "update applications set features = ?, salt = ? where person = ?"
        connection.execute(back, [features, salt, someone])
    assert "of somebody who was forgotten" in noticed(place)
