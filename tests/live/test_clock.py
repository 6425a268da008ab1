"""Ids, times and rows of a ledger that are wrong, and how they are put right."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairall import FairAllError, Ledger
from fairall.live.record import clock
from tests.conftest import refused, succeeded
from tests.live.conftest import BEGIN, STEP, Make, at
from tests.live.test_ledger import METHOD, content, people, repaid, rows

HORIZON = [*METHOD, "live.horizon=85d", "live.held_out=0"]


def now(ledger: Ledger) -> float:
    """The clock of a ledger, in days since the first time step."""
    with ledger.store.reading() as connection:
        return (clock(connection) - BEGIN) / STEP


def outcome(person: str, step: float, word: str = "yes") -> pd.DataFrame:
    return pd.DataFrame({"id": [person], "repaid": word, "time": at(step)})


@pytest.mark.parametrize(
    "spelt",
    [
        lambda ids: ids.astype(float),
        lambda ids: ids.astype("float32"),
        lambda ids: ids.astype(float).astype(str),
        lambda ids: ids.astype(float).astype(object),
        lambda ids: ids.astype(float).astype(str).astype("category"),
    ],
    ids=["floats", "float32", "texts", "objects", "categories"],
)
def test_ids_that_became_floats_are_the_ids_that_they_were(
    spelt: Callable[[pd.Series], pd.Series], ledger: Make
) -> None:
    own = ledger(*METHOD)
    table = people(0, 20).assign(id=1_000_000 + np.arange(20))
    decided = own.decide(table)
    assert decided["id"].tolist() == [str(k) for k in range(1_000_000, 1_000_020)]
    again = own.decide(table.assign(id=spelt(table["id"])))
    assert not again["new"].any()
    assert again["id"].tolist() == decided["id"].tolist()
    accepted = table.loc[decided["decision"] == 1, "id"]
    given = pd.DataFrame({"id": spelt(accepted), "repaid": "yes", "time": at(1)})
    assert own.outcomes(given)["new"] == len(accepted)
    own.forget(1_000_001.0)  # type: ignore[arg-type]
    own.withdraw("1000002.0")


def test_a_time_is_corrected_and_moves_nothing(ledger: Make) -> None:
    own = ledger(*HORIZON)
    decided = own.decide(people(0, 100))
    given = repaid(decided, 20)
    own.outcomes(given)
    wrong = given.iloc[:1].assign(time=at(90))
    with pytest.raises(FairAllError, match=r"row 1: .* is far after all other times, .* --confirm-times"):
        own.outcomes(wrong)
    assert own.learn()["people"] == 0
    assert own.outcomes(wrong, confirm_times=True)["corrected"] == 1
    assert now(own) == 90
    assert own.outcomes(given.iloc[:1]) == {"new": 0, "corrected": 1, "known": 0, "left_out": 0}
    assert now(own) == 20
    assert own.learn()["people"] == 0
    assert own.outcomes(given.drop(columns="time"))["known"] == len(given)  # without a time none is corrected


def test_times_of_today_need_no_confirmation_and_tomorrow_blocks_nothing(ledger: Make) -> None:
    own, today = ledger(*METHOD), pd.Timestamp.now("UTC").tz_localize(None)
    own.decide(people(0, 10))  # years ago
    own.decide(people(10, 1).assign(time=str(today + pd.Timedelta(hours=20))))
    own.decide(people(11, 10).assign(time=str(today.normalize())))
    with pytest.raises(FairAllError, match="fairall live withdraw leaves that one out"):
        own.decide(people(21, 10, 1))
    for person in rows(own, "select person from applications where id > 10"):
        own.withdraw(str(person[0]))
    assert own.decide(people(21, 10, 1))["new"].all()


@pytest.mark.parametrize(("hour", "possible"), [(0, True), (9, False), (17, True)])
def test_an_outcome_of_the_day_of_its_application(hour: int, possible: bool, ledger: Make) -> None:
    own = ledger(*METHOD)
    decided = own.decide(people(0, 10, 16 / 24))
    given = repaid(decided, hour / 24)
    if possible:
        assert own.outcomes(given)["new"] == len(given)
    else:
        with pytest.raises(FairAllError, match="is before the application"):
            own.outcomes(given)


def test_a_withdrawn_application_counts_nowhere(ledger: Make) -> None:
    own = ledger(*METHOD, "live.horizon=30d", "live.held_out=0.5")
    decided = own.decide(people(0, 100))
    wrong = own.decide(people(100, 30, 29))
    given = repaid(pd.concat([decided, wrong]), 29.5)
    own.outcomes(given)
    left = [*wrong["id"], decided["id"].iloc[0]]
    for person in left:
        assert own.withdraw(person) == []
    with pytest.raises(FairAllError, match="was withdrawn already"):
        own.withdraw(left[0])
    assert now(own) == 29.5
    found = own.status()
    counts = [found[name] for name in ("people", "withdrawn", "outcomes")]
    known = ~given["id"].isin(left)
    assert counts == [99, 31, known.sum()]
    assert sum(group["people"] for group in found["groups"]) == own.summary()["people"].sum() == 99
    assert not own.to_frame()["id"].isin(left).any()
    again = own.decide(people(0, 100))
    assert again.attrs["left_out"] == {0: f"column 'id', row 1: {left[-1]!r} was forgotten or withdrawn"}
    with pytest.raises(FairAllError, match="was forgotten or withdrawn"):
        own.decide(people(0, 1))
    assert own.outcomes(given) == {"new": 0, "corrected": 0, "known": known.sum(), "left_out": (~known).sum()}
    own.decide(people(130, 10, 31))
    assert own.learn()["people"] > 0
    learnt = {row[0] for row in rows(own, "select application from learnt")}
    assert learnt
    assert 1 not in learnt
    own.forget(left[0])  # features of a withdrawn person can be erased


def test_rows_that_cannot_be_decided_on_are_left_out(ledger: Make) -> None:
    own, other = ledger(*METHOD, name="a.db"), ledger(*METHOD, name="b.db")
    table = people(0, 12)
    table.loc[1, "sex"], table.loc[3, "purpose"], table.loc[4, "age"] = "x", "yacht", "old"
    table.loc[5, "id"], table.loc[7, "id"], table.loc[9, "time"] = "", table.loc[6, "id"], at(400)
    wrong = [1, 3, 4, 5, 6, 7, 9]
    with pytest.raises(FairAllError, match=r"--skip \(skip=True\) decides on the others"):
        own.decide(table)
    decided = own.decide(table, skip=True)
    reasons = decided.attrs["left_out"]
    assert sorted(reasons) == wrong
    assert all(reason.startswith("column ") and f"row {k + 1}: " in reason for k, reason in reasons.items())
    pd.testing.assert_frame_equal(decided, other.decide(table.drop(index=wrong)))
    assert content(own) == content(other)
    with pytest.raises(FairAllError, match="'yacht' is not known"):  # nobody is left
        own.decide(table.iloc[[3]], skip=True)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_commands_name_what_they_leave_out(ending: str, ledger: Make, tmp_path: Path) -> None:
    own = ledger(*METHOD)
    first = own.decide(people(0, 8))
    own.forget(first["id"].iloc[2])
    table = people(0, 12, 0)
    table.loc[9, "purpose"] = "yacht"
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    words = ("live", "decide", "loans.db", f"t.{ending}", "-o", f"d.{ending}")
    assert "'yacht' is not known" in refused(*words, cwd=tmp_path)
    told = json.loads(succeeded(*words, "--skip", "--json", cwd=tmp_path).stdout)
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    decided = read(tmp_path / f"d.{ending}")
    assert decided["id"].tolist() == [person for k, person in enumerate(table["id"]) if k not in (2, 9)]
    assert decided["decision"].tolist()[:7] == first["decision"].drop(2).tolist()
    assert (told["people"], told["accepted"], told["new"]) == (10, decided["decision"].sum(), 3)
    left_out = pd.read_csv(tmp_path / told["left_out_file"])
    assert left_out["purpose"].isna().tolist() == [True, False]
    assert left_out["left_out"].tolist() == told["left_out"]
    again = json.loads(succeeded(*words, "--skip", "--json", cwd=tmp_path).stdout)
    assert (again["accepted"], again["new"], again["new_accepted"]) == (told["accepted"], 0, 0)


def test_the_commands_confirm_and_withdraw(ledger: Make, tmp_path: Path) -> None:
    decided = ledger(*METHOD).decide(people(0, 10))
    repaid(decided, 100).to_csv(tmp_path / "o.csv", index=False)
    assert "--confirm-times" in refused("live", "outcomes", "loans.db", "o.csv", cwd=tmp_path)
    succeeded("live", "outcomes", "loans.db", "o.csv", "--confirm-times", cwd=tmp_path)
    said = succeeded("live", "withdraw", "loans.db", decided["id"].iloc[0], cwd=tmp_path).stdout
    assert "note: the application no longer counts" in said
