"""A ledger notices whatever was done to its file: edits and damage in all tables, triggers, missing rows."""

import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pandas as pd
import pytest

from fairall import Ledger
from tests.conftest import refused, succeeded
from tests.live.conftest import CASES, COPIES, Make, edited, noticed, people, refusing, repaid, rows, tables

GIVEN = {
    "decide": [pd.concat([people(0, 7), people(140, 5, 4)])],
    "outcomes": [pd.DataFrame({"id": ["L0007"], "repaid": "no"})],
    "promote": [1],
    "withdraw": ["L0007"],
}


@pytest.fixture(scope="module")
def used(kept: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with rows in all tables: three versions, people who left, outcomes to learn from."""
    place = Path(shutil.copy(kept(*COPIES, "live.explore=0.5"), tmp_path_factory.mktemp("used") / "used.db"))
    own = Ledger(place)
    for step in range(2):
        decided = own.decide(people(60 * step, 60, step))
        for person in decided.loc[decided["decision"] == 0, "id"].iloc[:2]:
            own.override(person, True, by="Berg", why="a new job")
        own.outcomes(repaid(decided, step, share=0.9))
        own.learn()
    own.promote(2)
    accepted = decided.loc[decided["decision"] == 1, "id"]
    for person in accepted[:10]:  # some of them are remembered
        own.forget(person)
    own.forget(decided.loc[decided["decision"] == 0, "id"].iloc[0])
    own.withdraw(accepted.iloc[-1])
    own.decide(people(120, 20, 4))
    assert min(map(len, tables(place).values())) > 0
    return place


@pytest.mark.parametrize("query", CASES["damages"])
def test_what_was_done_is_named(query: str, used: Path, tmp_path: Path) -> None:
    place, (verb, why) = Path(shutil.copy(used, tmp_path)), CASES["damages"][query]
    with edited(place) if query[:2] in ("up", "de") else closing(sqlite3.connect(place)) as connection:
        connection.executescript(query)
    before = place.read_bytes()
    why = f"is damaged, was changed, or is no ledger .*{re.escape(why)}"
    with refusing(why) as caught:
        getattr(Ledger(place), verb)(*GIVEN.get(verb, []))
    assert ("\n" in str(caught.value), place.read_bytes() == before) == (False, True)


@pytest.mark.whole
def test_every_edit_is_noticed(used: Path, tmp_path: Path) -> None:
    for table, frame in tables(used).items():
        frame = frame.astype(object).where(frame.notna(), None)
        row, last = frame.iloc[len(frame) // 2].tolist(), frame.iloc[-1].tolist()
        marks = ", ".join("?" * len(row))
        chosen = f"where ({', '.join(frame)}) is ({marks})"
        changes = [(f"delete from {table} {chosen}", one) for one in (row, last)]
        changes.append((f"insert into {table} values ({marks})", [last[0] + 1, *row[1:]]))
        for name, value in zip(frame, row, strict=True):
            news = b"x", None, 7, "x"
            changes += [
                (f"update {table} set {name} = ? {chosen}", [new, *row]) for new in news if new != value
            ]
        for query, values in changes:
            place = Path(shutil.copy(used, tmp_path))
            with suppress(sqlite3.IntegrityError):
                with edited(place) as connection:
                    changed = connection.execute(query, values).rowcount
                assert (changed, bool(noticed(place))) == (1, True), (query, values)


@pytest.mark.whole
def test_damage_anywhere_is_noticed_or_without_effect(used: Path, tmp_path: Path) -> None:
    chance, place = random.Random(0), tmp_path / "loans.db"
    expected = Ledger(shutil.copy(used, place)).decide(people(140, 20, 5))
    for n in (1, 64) * 20:
        damaged = bytearray(used.read_bytes())
        start = chance.randrange(100, len(damaged) - n)
        damaged[start : start + n] = chance.randbytes(n)
        place.write_bytes(damaged)
        if not noticed(place):
            pd.testing.assert_frame_equal(Ledger(place).decide(people(140, 20, 5)), expected)


def test_rows_are_neither_changed_nor_removed(used: Path) -> None:
    for table, frame in tables(used).items():
        for query in (f"update {table} set {frame.columns[0]} = 1", f"delete from {table}"):
            with pytest.raises(sqlite3.IntegrityError, match=f"{table} is append-only"):
                rows(used, query)


def test_a_head_tells_removed_and_rewritten_rows(ledger: Make, tmp_path: Path) -> None:
    own, place = ledger(), tmp_path / "loans.db"
    given = repaid(own.decide(people()), 1)
    earlier = place.read_bytes()
    own.outcomes(given)
    head = own.status()["head"]
    own.decide(people(50, 10, 2))
    said = succeeded("live", "status", "loans.db", "--head", head.upper(), cwd=tmp_path).stdout
    assert f"head {own.status(head)['head']}\n" in said  # more rows are no fault
    place.write_bytes(earlier)  # as if the last rows were removed, and others written then
    for change in (own.status, lambda: own.outcomes(given.assign(repaid="no"))):
        change()
        assert "does not go on from" in refused("live", "status", "loans.db", "--head", head, cwd=tmp_path)


def test_rows_are_small(ledger: Make, tmp_path: Path) -> None:
    own, sizes = ledger(), list[int]()
    for table in (people(0, 350), *(people(k, 1) for k in range(350, 390))):
        own.decide(table)
        sizes.append((tmp_path / "loans.db").stat().st_size)
    assert (sizes[-1] - sizes[0]) / 40 < 600
