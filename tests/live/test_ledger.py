"""What a ledger does with people, outcomes and versions: once, in order, and by what it may know."""

import sqlite3
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import FairAllError, Ledger
from fairall.data.people import Decided
from fairall.live.state import memories, unpacked
from fairall.models.known import Known
from fairall.online.process import Process
from tests.conftest import LOANS, succeeded
from tests.live.conftest import AS_IN_A_RUN, Make, at

METHOD = ["model=fairlog", "schedule.warm_up_epochs=4"]
MEMORY = ["model=ensemble", "schedule.warm_up_epochs=2"]
COPIES = ["model=explore_exploit", "schedule.warm_up_epochs=2"]
NAMES = ["id", "sex", "age", "income", "dependants", "purpose", "home_owner", "job"]


def people(first: int = 0, n: int = 50, step: float = 0) -> pd.DataFrame:
    """Applicants as a CSV file has them."""
    table = pd.read_csv(LOANS, dtype=str, keep_default_na=False)[NAMES].iloc[first : first + n]
    return table.assign(time=at(step)).reset_index(drop=True)


def repaid(decided: pd.DataFrame, step: float, share: float = 1.0) -> pd.DataFrame:
    """Outcomes of the first `share` of the accepted."""
    ids = decided.loc[decided["decision"] == 1, "id"]
    ids = ids.iloc[: round(share * len(ids))]
    words = np.where(ids.str[-1].astype(int) % 3, "yes", "no")
    return pd.DataFrame({"id": ids, "repaid": words, "time": at(step)})


def rows(ledger: Ledger, query: str) -> list[tuple[object, ...]]:
    assert ledger.store.path is not None
    with sqlite3.connect(ledger.store.path) as connection:
        return connection.execute(query).fetchall()


def content(ledger: Ledger) -> list[tuple[object, ...]]:
    """All that depends on what was given, and not on when."""
    return [
        *rows(ledger, "select * from applications"),
        *rows(ledger, "select id, application, label, time from outcomes"),
        *rows(ledger, "select id, parent, weights, state, memory from versions"),
        *rows(ledger, "select * from learnt"),
        *rows(ledger, "select version from duty"),
    ]


def test_a_table_that_is_sent_twice_changes_nothing(ledger: Make) -> None:
    own = ledger(*METHOD)
    first = own.decide(people())
    assert first["new"].all()
    before = content(own)
    again = own.decide(people())
    assert not again["new"].any()
    pd.testing.assert_frame_equal(first.drop(columns="new"), again.drop(columns="new"))
    spelt = people().assign(age=lambda own: own["age"].astype(float), sex=lambda own: own["sex"].str.upper())
    assert not own.decide(spelt)["new"].any()
    assert content(own) == before
    assert own.outcomes(repaid(first, 2))["new"] == first["decision"].sum()
    again = own.outcomes(repaid(first, 2))
    assert again == {"new": 0, "corrected": 0, "known": first["decision"].sum(), "left_out": 0}


def test_people_who_are_there_already_take_no_random_numbers(ledger: Make) -> None:
    one, other = ledger(*METHOD, name="a.db"), ledger(*METHOD, name="b.db")
    one.decide(people(0, 30))
    other.decide(people(0, 30))
    one.decide(people(30, 20))
    other.decide(pd.concat([people(10, 20), people(30, 20)]))  # as after a kill
    assert content(one) == content(other)


def test_the_same_ledger_learns_to_the_same_bytes(ledger: Make) -> None:
    made = []
    for name in ("a.db", "b.db"):
        own = ledger(*MEMORY, name=name)
        for step in range(3):
            decided = own.decide(people(60 * step, 60, step))
            own.outcomes(repaid(decided, step))
            own.learn()
        made.append(content(own))
    assert made[0] == made[1]


def test_a_dry_run_writes_nothing(ledger: Make) -> None:
    own = ledger(*METHOD)
    own.outcomes(repaid(own.decide(people()), 1))
    before = content(own)
    told = own.learn(dry_run=True)
    assert told["version"] is None
    assert content(own) == before
    made = own.learn()
    assert {**made, "version": None} == told
    assert made["changed"] > 0


def test_nobody_held_out_is_learnt_from(ledger: Make) -> None:
    own = ledger(*METHOD, "live.held_out=0.5")
    own.outcomes(repaid(own.decide(people(0, 200)), 1))
    told = own.learn()
    held = {row[0] for row in rows(own, "select id from applications where held")}
    learnt = {row[0] for row in rows(own, "select application from learnt")}
    assert 60 < len(held) < 140
    assert learnt == set(range(1, 201)) - held
    assert told["people"] == len(learnt)


def test_decisions_have_their_own_propensities(ledger: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ledger(*METHOD, "live.held_out=0", "live.explore=0.1")
    first = own.decide(people(0, 100))
    own.outcomes(repaid(first, 1, share=0.5))
    own.promote(int(own.learn()["version"]))
    second = own.decide(people(100, 100, 2))
    own.outcomes(pd.concat([repaid(first, 3), repaid(second, 3)]))
    given: list[Decided] = []
    learn = Process.learn

    def kept(self: Process, due: Iterable[Decided]) -> None:
        given.extend(due)
        learn(self, given)

    monkeypatch.setattr(Process, "learn", kept)
    own.learn()
    propensity = torch.cat([one.propensity[0] for one in given])
    late = first["decision"].to_numpy() == 1
    late[np.flatnonzero(late)[: round(0.5 * late.sum())]] = False
    expected = np.concatenate([first["propensity"][late], second["propensity"]])
    np.testing.assert_array_equal(propensity.numpy(), expected.astype(np.float32))
    assert (propensity >= 0.1).all()
    assert set(second["version"]) == {2}


def test_outcomes_that_come_before_the_horizon_wait(ledger: Make) -> None:
    own = ledger(*METHOD, "live.horizon=30d", "live.held_out=0")
    decided = own.decide(people(0, 100))
    own.outcomes(repaid(decided, 5, share=0.5))
    assert own.learn()["people"] == 0
    own.decide(people(100, 10, 29))
    assert own.learn()["people"] == 0
    own.decide(people(110, 10, 30))
    told = own.learn()
    known = len(repaid(decided, 5, share=0.5))
    rejected = (decided["decision"] == 0).sum()
    assert (told["people"], told["labels"]) == (known + rejected, known)
    assert told["waiting"] > 0


def test_without_a_horizon_a_batch_waits_for_all_its_outcomes(ledger: Make) -> None:
    own = ledger(*METHOD, *AS_IN_A_RUN)
    decided = own.decide(people(0, 64))
    own.outcomes(repaid(decided, 1, share=0.9))
    assert own.learn()["people"] == 0
    own.outcomes(repaid(decided, 2))
    assert own.learn()["people"] == 64


def test_a_correction_counts_from_then_on(ledger: Make) -> None:
    own = ledger(*METHOD, "live.held_out=0")
    decided = own.decide(people(0, 64))
    given = repaid(decided, 1)
    own.outcomes(given)
    spoilt = int(own.learn()["version"])
    own.promote(spoilt)
    turned = given.assign(repaid=np.where(given["repaid"] == "yes", "no", "yes"), time=at(2))
    assert own.outcomes(turned)["corrected"] == len(given)
    assert own.learn()["people"] == 0  # the version on duty has learnt from them
    own.promote(1)
    told = own.learn()
    assert (told["parent"], told["people"]) == (1, 64)
    weights = {row[0] for row in rows(own, "select weights from versions where id > 1")}
    assert len(weights) == 2


def test_versions_are_promoted_and_put_back(ledger: Make) -> None:
    own = ledger(*METHOD)
    own.outcomes(repaid(own.decide(people(0, 64)), 1))
    own.learn()
    assert set(own.decide(people(64, 10, 1))["version"]) == {1}
    assert own.promote(2)
    assert not own.promote(2)
    assert set(own.decide(people(74, 10, 2))["version"]) == {2}
    own.promote(1)
    assert set(own.decide(people(84, 10, 3))["version"]) == {1}
    with pytest.raises(FairAllError, match="version 9: no such version; there are 1 to 2"):
        own.promote(9)


def test_places_are_drawn_with_exact_propensities(ledger: Make) -> None:
    own = ledger(*METHOD, "live.explore=0.3")
    decided = own.decide(people(0, 100), capacity=0.2)
    assert decided["decision"].sum() == 20
    assert decided["propensity"].sum() == pytest.approx(20, abs=0.5)
    assert (decided["propensity"] > 0).all()


def test_several_seeds_decide_together(ledger: Make) -> None:
    own = ledger(*METHOD, "seeds=3", "live.explore=0", "live.held_out=0")
    decided = own.decide(people(0, 64))
    shares = set(decided["propensity"].round(3))
    assert len(shares) > 5
    own.outcomes(repaid(decided, 1))
    assert own.learn()["version"] == 2


def test_a_memory_refers_to_the_people_of_the_ledger(ledger: Make) -> None:
    own = ledger(*MEMORY)
    for step in range(3):
        own.outcomes(repaid(own.decide(people(100 * step, 100, step)), step))
        own.learn()
    for (memory,) in rows(own, "select memory from versions where id > 1"):
        (part,) = (part for part in unpacked(memory) if part["columns"])  # type: ignore[arg-type]
        referred = {name for name, of in part["columns"].items() if "rows" in of}
        assert referred == {"x", "s", "propensity", "accepted", "label"}


def known_people(own: Ledger) -> list[int]:
    """How many people each version that learnt knows by a hash."""
    found: list[int] = []
    for (state,) in rows(own, "select state from versions where id > 1 order by id"):
        found += [len(known["hashes"]) for known in memories(unpacked(state), Known.kept)]  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("words", [MEMORY, COPIES, ["model=stacked"]], ids=["rows", "copies", "known"])
def test_a_person_is_forgotten(ledger: Make, words: list[str]) -> None:
    own = ledger(*words, "live.held_out=0")
    decided = own.decide(people(0, 100))
    own.outcomes(repaid(decided, 1))
    own.learn()
    own.outcomes(repaid(own.decide(people(100, 100, 2)), 2))
    own.learn()
    someone = str(decided.loc[decided["decision"] == 1, "id"].iloc[0])
    (row,) = rows(own, f"select features from applications where person = '{someone}'")
    counts = rows(own, "select count(*), sum(accepted) from applications")
    before = known_people(own)
    assert own.forget(someone) == [2, 3]  # the third was made from the second
    assert known_people(own) == [n - (n > 1) for n in before]
    assert own.store.path is not None
    assert str(row[0]).encode() not in own.store.path.read_bytes()
    assert rows(own, "select count(*), sum(accepted) from applications") == counts
    own.store.engine.dispose()
    stands = {one["version"]: one["can_be_made_again"] for one in own.status()["versions"]}
    assert stands == {1: True, 2: False, 3: False}
    own.promote(3)
    own.outcomes(repaid(own.decide(people(200, 100, 3)), 4))
    assert own.learn()["version"] == 4
    with pytest.raises(FairAllError, match="forgotten already"):
        own.forget(someone)
    again = own.decide(people(0, 100))
    assert set(decided["id"]) - set(again["id"]) == {someone}
    assert own.outcomes(repaid(decided, 4))["left_out"] == 1


def test_the_file_is_its_owners_alone_and_append_only(ledger: Make, kept: Callable[..., Path]) -> None:
    assert stat.S_IMODE(kept(*METHOD).stat().st_mode) == 0o600
    own = ledger(*METHOD)
    own.decide(people(0, 10))
    for query in ("delete from applications", "update applications set held=1", "update duty set at=1"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            rows(own, query)


def test_reasons_for_the_rejected(ledger: Make, tmp_path: Path) -> None:
    ledger(*METHOD)
    people(0, 80).to_csv(tmp_path / "people.csv", index=False)
    words = ("live", "decide", "loans.db", "people.csv", "-o", "decided.csv", "--reasons", "2")
    succeeded(*words, cwd=tmp_path)
    decided = pd.read_csv(tmp_path / "decided.csv", keep_default_na=False)
    rejected = decided["decision"] == 0
    assert (decided.loc[~rejected, "reasons"] == "").all()
    named = {name for cell in decided.loc[rejected, "reasons"] for name in cell.split("; ") if name}
    assert named <= {*NAMES[1:]}
    assert len(named) > 1
    assert decided["reasons"].str.count(";").max() == 1
