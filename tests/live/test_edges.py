"""What somebody who looks for gaps in a ledger would try."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall import FairAllError, Ledger
from fairall.decide.reasons import PLACES
from fairall.live.guard import compared
from tests.conftest import refused
from tests.live.conftest import Make, begun
from tests.live.test_ledger import METHOD, content, people, repaid


def test_the_ledger_is_no_place_for_decisions(ledger: Make, tmp_path: Path) -> None:
    own = ledger(*METHOD)
    people(0, 10).to_csv(tmp_path / "people.csv", index=False)
    before = content(own)
    told = refused("live", "decide", "loans.db", "people.csv", "-o", "loans.db", cwd=tmp_path)
    assert "is read by this command" in told
    assert content(own) == before


def test_places_of_any_number_type(ledger: Make) -> None:
    numbers: list[Any] = [10, np.array(10.0)]
    taken = [ledger(*METHOD).decide(people(), capacity=places)["decision"] for places in numbers]
    assert taken[0].sum() == 10
    pd.testing.assert_series_equal(*taken)
    assert ledger(*METHOD).decide(people(), capacity=10**20)["decision"].sum() > 10


@pytest.mark.parametrize("places", [0, -1, 1.5, 0.0, np.nan, np.inf, True, "50"])
def test_a_refused_table_takes_no_random_numbers(ledger: Make, places: float) -> None:
    own, other = ledger(*METHOD, name="a.db"), ledger(*METHOD, name="b.db")
    with pytest.raises(FairAllError, match="capacity"):
        own.decide(people(), capacity=places)
    pd.testing.assert_frame_equal(own.decide(people()), other.decide(people()))


@pytest.mark.parametrize("leave", [Ledger.forget, Ledger.withdraw])
def test_who_is_forgotten_meanwhile_is_not_learnt_from(
    leave: Callable[..., object], ledger: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ledger(*METHOD, "live.held_out=0")
    decided = own.decide(people())
    own.outcomes(repaid(decided, 1))

    def forgetful(*given: Any) -> dict[str, Any]:
        leave(Ledger(str(own.store.path)), decided["id"].iloc[0])
        return compared(*given)

    monkeypatch.setattr("fairall.live.ledger.compared", forgetful)
    with pytest.raises(FairAllError, match="has changed it meanwhile"):
        own.learn()
    monkeypatch.undo()
    assert own.learn()["people"] == len(decided) - 1


def test_values_and_outcomes_wait_for_the_horizon(ledger: Make) -> None:
    own = ledger(*METHOD, "live.horizon=30d", "live.held_out=0")
    early = repaid(own.decide(people()), 1, share=0.3).drop(columns="time")
    own.outcomes(early.assign(repaid="no"))  # of no time, so that it is the latest in the ledger
    assert own.learn()["people"] == 0
    assert [group["value"] for group in own.status()["groups"]] == [None, None]
    own.decide(people(50, 5, 30))
    assert own.learn()["labels"] == len(early)
    assert any(group["value"] for group in own.status()["groups"])


def test_times_in_all_tables_or_in_none(ledger: Make) -> None:
    own, other = ledger(*METHOD, name="a.db"), ledger(*METHOD, name="b.db")
    own.decide(people(0, 10))
    with pytest.raises(FairAllError, match="either all tables of a ledger have times or none"):
        own.decide(people(10, 10).drop(columns="time"))
    other.decide(people(0, 10).drop(columns="time"))
    with pytest.raises(FairAllError, match="column 'time': this table is unlike those before"):
        other.decide(people(10, 10))


@pytest.mark.parametrize(
    ("cell", "why"), [("1e31", "is beyond 1e\\+30"), ("2000." + "0" * 20_000, "is longer than 10000")]
)
def test_cells_that_nothing_could_read_later(ledger: Make, cell: str, why: str) -> None:
    own = ledger(*METHOD)
    with pytest.raises(FairAllError, match=why):
        own.decide(people(0, 10).assign(income=cell))


@pytest.mark.parametrize("word", ["live.id=income", "live.time=sex", "live.label=purpose"])
def test_columns_that_decisions_depend_on_have_no_other_meaning(word: str, tmp_path: Path) -> None:
    with pytest.raises(FairAllError, match=f"{word}: the policy decides by this column"):
        begun(tmp_path / "loans.db", *METHOD, word)
    assert not (tmp_path / "loans.db").exists()


def test_what_a_killed_start_leaves_is_no_obstacle(tmp_path: Path) -> None:
    place = tmp_path / "loans.db"
    place.touch()
    begun(place, *METHOD)
    assert place.stat().st_mode & 0o777 == 0o600
    for number, made in enumerate(("a table", "x" * 5000)):
        other = tmp_path / f"{number}.db"
        if number:
            other.write_text(made)
        else:
            with sqlite3.connect(other) as connection:
                connection.execute("create table loans(id)")
        with pytest.raises(FairAllError, match="is there already"):
            begun(other, *METHOD)


def test_everybody_is_forgotten(ledger: Make) -> None:
    own = ledger(*METHOD)
    for person in own.decide(people(0, 12))["id"]:
        own.forget(f" {person} ")
    found = own.status()
    assert found["drift"] == []
    assert found["people"] == 12


def test_reasons_are_of_the_version_that_decided(ledger: Make) -> None:
    own = ledger(*METHOD)
    first = own.decide(people(), most_reasons=2)
    own.outcomes(repaid(first, 1))
    for wrong in (1.5, "1", True):
        with pytest.raises(FairAllError, match="is not possible: it must be a whole number"):
            own.promote(wrong)  # type: ignore[arg-type]
    own.promote(own.learn()["version"])
    again = own.decide(people().iloc[::-1], most_reasons=2).iloc[::-1]
    pd.testing.assert_series_equal(first["reasons"], again["reasons"], check_index=False)
    assert (first.loc[first["decision"] == 0, "reasons"] != "").any()
    assert (first.loc[first["decision"] == 1, "reasons"] == "").all()


def test_who_found_no_place_is_told_so(ledger: Make) -> None:
    own, other = ledger(*METHOD, name="a.db"), ledger(*METHOD, name="b.db")
    with pytest.raises(FairAllError, match="most_reasons=0 is not possible: it must be a whole number"):
        own.decide(people(), most_reasons=0)
    few = own.decide(people(), capacity=5, most_reasons=2)
    wanted = other.decide(people())["decision"] == 1
    assert ((few["reasons"] == PLACES) == (wanted & (few["decision"] == 0))).all()
    assert (few["reasons"] == PLACES).sum() == wanted.sum() - 5
