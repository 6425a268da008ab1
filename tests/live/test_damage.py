"""A ledger notices whatever was done to its file: edits and damage in all tables, triggers, missing rows."""

import random
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.kills import day, tables
from fairall import Ledger
from tests.conftest import refused, succeeded
from tests.live.conftest import CASES, Make, edited, noticed, people, refusing, repaid, rows

DAY = 64  # one at whose end the second version is on duty, from which a person was erased


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with rows in all tables, and beside it people.csv, the last people on whom it has decided."""
    folder = tmp_path_factory.mktemp("used")
    for words in day("loans.db", folder, random.Random(DAY)):
        succeeded(*words, cwd=folder)
    return folder / "loans.db"


@pytest.fixture
def given(used: Path) -> dict[str, Any]:
    """What is given to verbs that take something."""
    last = pd.read_csv(used.with_name("people.csv"))
    both = pd.concat([last, last.assign(id=range(len(last)))])
    outcome = pd.DataFrame({"id": ["296"], "repaid": "bad"})
    return {"decide": both, "outcomes": outcome, "promote": 1, "withdraw": "296"}


@pytest.mark.parametrize("query", CASES["damages"])
def test_what_was_done_is_named(query: str, used: Path, given: dict[str, Any], tmp_path: Path) -> None:
    place, (verb, why) = Path(shutil.copy(used, tmp_path)), CASES["damages"][query]
    with edited(place) if query[:2] in ("up", "de") else closing(sqlite3.connect(place)) as connection:
        connection.executescript(query)
    before = place.read_bytes()
    why = f"is damaged, was changed, or is no ledger .*{re.escape(why)}"
    with refusing(why) as caught:
        getattr(Ledger(place), verb)(*([given[verb]] if verb in given else []))
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
def test_damage_anywhere_is_noticed_or_without_effect(
    used: Path, given: dict[str, Any], tmp_path: Path
) -> None:
    chance, place, new = random.Random(0), tmp_path / "loans.db", given["decide"][60:]
    expected = Ledger(shutil.copy(used, place)).decide(new)
    for n in (1, 64) * 20:
        damaged = bytearray(used.read_bytes())
        start = chance.randrange(100, len(damaged) - n)
        damaged[start : start + n] = chance.randbytes(n)
        place.write_bytes(damaged)
        if not noticed(place):
            pd.testing.assert_frame_equal(Ledger(place).decide(new), expected)


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
