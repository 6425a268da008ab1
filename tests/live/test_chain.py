"""A ledger notices whatever was done to its file: edits and damage in all tables, triggers, missing rows."""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sql

from fairall import FairAllError, Ledger
from fairall.live import chain, store
from fairall.live.record import record
from tests.conftest import refused, succeeded
from tests.live.conftest import Make
from tests.live.test_ledger import COPIES, METHOD, people, repaid

# A column that nothing depends on: the number of the only row.
OF_NO_EFFECT = {("generator", "id")}


@pytest.fixture(scope="module")
def used(kept: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with rows in all tables."""
    words = [*COPIES, "live.explore=0.5"]
    own = Ledger(shutil.copy(kept(*words), tmp_path_factory.mktemp("used") / "loans.db"))
    for step in range(2):
        decided = own.decide(people(60 * step, 60, step))
        own.outcomes(repaid(decided, step))
        own.learn()
    own.promote(2)
    accepted = decided.loc[decided["decision"] == 1, "id"].tolist()
    for person in accepted[:10]:  # some of them are remembered
        own.forget(person)
    own.withdraw(accepted[-1])
    own.decide(people(120, 20, 4))
    with own.store.reading() as connection:
        assert all(connection.execute(sql.select(table)).first() for table in store.META.tables.values())
    assert own.store.path is not None
    return own.store.path


@contextmanager
def edited(place: Path) -> Iterator[sqlite3.Connection]:
    """A connection that finds no triggers, which are there again afterwards."""
    connection = sqlite3.connect(place)
    connection.execute("pragma synchronous = off")
    triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"drop trigger {name}")
    yield connection
    for _, statement in triggers:
        connection.execute(statement)
    connection.commit()
    connection.close()


def noticed(place: Path) -> bool:
    """Whether `live status` refuses a ledger when it checks all rows."""
    own = Ledger(place)
    try:
        own.about  # noqa: B018
        with own.store.reading() as connection:
            record(connection)
    except FairAllError:
        return True
    return False


def others(value: Any) -> list[Any]:
    """Values that a damaged or edited cell might have."""
    if isinstance(value, int | float):
        return [value + 1, value + 0.5, "x", None]
    if isinstance(value, str):
        return [f"{value} ", value.swapcase() + "x", b"\xff", None]
    return [b"", (value or b"") + b"x", None] if value else [b"x"]


@pytest.mark.whole
@pytest.mark.parametrize("table", store.META.tables.values(), ids=str)
def test_every_edit_is_noticed(table: sql.Table, used: Path, tmp_path: Path) -> None:
    with sqlite3.connect(used) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(f"select * from {table.name}").fetchall()
    keys = " and ".join(f"{column.name} = :key_{column.name}" for column in table.primary_key)
    columns = [column.name for column in table.c]
    insert = f"({', '.join(columns)}) values ({', '.join(f':{name}' for name in columns)})"
    changes: list[tuple[str, dict[str, Any]]] = []
    for row in (rows[len(rows) // 2], rows[-1]):
        values = dict(row)
        key = {f"key_{column.name}": row[column.name] for column in table.primary_key}
        changes.append((f"delete from {table.name} where {keys}", key))
        for name in columns:
            if (table.name, name) in OF_NO_EFFECT:
                continue
            news = others(row[name])
            changes += [
                (f"update {table.name} set {name} = :new where {keys}", {**key, "new": new}) for new in news
            ]
            if table.name != "generator":
                changes.append((f"insert or replace into {table.name} {insert}", {**values, name: news[0]}))
    place = tmp_path / "loans.db"
    for query, given in changes:
        shutil.copy(used, place)
        with edited(place) as connection:
            try:
                connection.execute(query, given)
            except sqlite3.IntegrityError:
                continue
            changed = connection.total_changes
        assert noticed(place) or not changed, (query, given)


@pytest.mark.whole
def test_damage_anywhere_is_noticed_or_without_effect(used: Path, tmp_path: Path) -> None:
    content, chance, place = used.read_bytes(), random.Random(0), tmp_path / "loans.db"

    def decided() -> str:
        place.write_bytes(damaged)
        return str(Ledger(place).decide(people(140, 20, 5)).to_csv())

    damaged = bytearray(content)
    expected = decided()
    found = 0
    for _ in range(100):
        damaged, at = bytearray(content), chance.randrange(100, len(content))
        kind = chance.choice(["flip", "zero", "swap"])
        if kind == "flip":
            damaged[at] ^= 1 << chance.randrange(8)
        elif kind == "zero":
            damaged[at : at + 64] = bytes(len(damaged[at : at + 64]))
        else:
            first, second = (4096 * chance.randrange(1, len(content) // 4096) for _ in range(2))
            pages = damaged[first : first + 4096], damaged[second : second + 4096]
            damaged[first : first + 4096], damaged[second : second + 4096] = reversed(pages)
        place.write_bytes(damaged)
        if noticed(place):
            found += 1
        else:
            assert decided() == expected
            continue
        with suppress(FairAllError):
            assert decided() == expected
    assert found > 60


@pytest.mark.parametrize(
    "what",
    [
        "insert into duty values (2, 1, 0, 'mine', 999)",
        "update applications set accepted = 1 where batch = 1",
        "select raise(ignore)",
    ],
)
def test_what_a_foreign_trigger_does_is_noticed(what: str, ledger: Make) -> None:
    own = ledger(*METHOD)
    assert own.store.path is not None
    with sqlite3.connect(own.store.path) as connection:
        event = "before" if "raise" in what else "after"
        connection.executescript(
            f"drop trigger applications_update;"
            f"create trigger mine {event} insert on applications when new.id = 9 begin {what}; end"
        )
    with suppress(FairAllError):
        own.decide(people())
    assert noticed(own.store.path)


def test_a_command_checks_what_it_reads(ledger: Make) -> None:
    own = ledger(*METHOD, "live.explore=0.5")
    decided = own.decide(people())
    assert own.store.path is not None
    for query in ("update applications set accepted = 1 - accepted where id = 3", "delete from duty"):
        own.store.path.write_bytes(content := own.store.path.read_bytes())
        with edited(own.store.path) as connection:
            connection.execute(query)
        with pytest.raises(FairAllError, match="is damaged, was changed"):
            Ledger(own.store.path).decide(people(0, 5))
        own.store.path.write_bytes(content)
    assert own.outcomes(repaid(decided, 1))["new"] == decided["decision"].sum()


def test_who_was_forgotten_does_not_come_back(ledger: Make) -> None:
    own = ledger(*METHOD)
    own.decide(people())
    query = "select person, features, salt from applications where id = 1"
    assert own.store.path is not None
    with closing(sqlite3.connect(own.store.path)) as connection:
        person, features, salt = connection.execute(query).fetchone()
    own.forget(person)
    with edited(own.store.path) as connection:
        connection.execute("update applications set features = ?, salt = ? where id = 1", [features, salt])
    assert noticed(own.store.path)


def recomputed(place: Path) -> None:
    """Give the rows that are there a chain of hashes."""
    own = store.Store(place)
    with own.writing(own=False) as connection:
        connection.exec_driver_sql("drop trigger chain_update")
        connection.exec_driver_sql("drop trigger chain_delete")
        rows = {
            row.entry: (table, row)
            for table in store.CHAINED
            for row in connection.execute(sql.select(*chain.small(table)))
        }
        link = b""
        for entry in sorted(rows):
            link = chain._link(link, *rows[entry])
            connection.execute(sql.update(store.CHAIN).where(store.CHAIN.c.id == entry).values(hash=link))
        connection.execute(sql.delete(store.CHAIN).where(store.CHAIN.c.id > len(rows)))


def test_removed_and_recomputed_rows_are_noticed_by_an_earlier_head(ledger: Make, tmp_path: Path) -> None:
    own = ledger(*METHOD, "live.explore=0.5")
    place = own.store.path
    assert place is not None
    decided = own.decide(people())
    own.outcomes(repaid(decided, 1))
    head = own.status()["head"]
    own.decide(people(50, 10, 2))
    assert own.status(head)["head"] != head  # more rows are no fault
    assert "Checked: " in succeeded("live", "status", "loans.db", "--head", head, cwd=tmp_path).stdout
    content = place.read_bytes()
    for query in (
        "update outcomes set label = 1 - label where id = 1",
        "delete from outcomes where id = (select max(id) from outcomes)",
    ):
        place.write_bytes(content)
        with edited(place) as connection:
            connection.execute(query)
            connection.execute("update outcomes set entry = entry")
        if query.startswith("delete"):  # the entries after it move up
            with edited(place) as connection:
                gone = connection.execute("select min(entry) - 1 from batches where id = 2").fetchone()[0]
                for table in ("batches", "applications"):
                    connection.execute(f"update {table} set entry = entry - 1 where entry > {gone}")
        recomputed(place)
        assert not noticed(place)
        assert "does not go on from the head" in refused(
            "live", "status", "loans.db", "--head", head, cwd=tmp_path
        )


def test_a_cycle_of_versions_ends(ledger: Make) -> None:
    own = ledger(*METHOD, "live.held_out=0")
    own.outcomes(repaid(own.decide(people()), 1))
    own.learn()
    assert own.store.path is not None
    with edited(own.store.path) as connection:
        connection.execute("update versions set parent = 2 where id = 1")
    recomputed(own.store.path)
    assert own.promote(2)


def test_rows_of_the_chain_aresmall(ledger: Make) -> None:
    own = ledger(*METHOD)
    place = own.store.path
    assert place is not None
    everybody = people(0, 500)
    own.decide(pd.concat([everybody.assign(id=everybody["id"] + suffix) for suffix in "abcdefgh"]))
    sizes = []
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        for statements in (
            ["drop trigger applications_update"],
            ["drop table chain", "update applications set entry = 0, salt = null"],
        ):
            for statement in (*statements, "vacuum"):
                connection.execute(statement)
            sizes.append(place.stat().st_size)
    assert 40 < (sizes[0] - sizes[1]) / 4000 < 80


def test_a_single_decision_takes_few_bytes(ledger: Make) -> None:
    own = ledger(*METHOD)
    assert own.store.path is not None
    before = own.store.path.stat().st_size
    for k in range(100):
        own.decide(people(k, 1))
    assert (own.store.path.stat().st_size - before) / 100 < 600


def test_a_forgotten_person_leaves_no_hash_that_could_be_guessed(ledger: Make) -> None:
    own = ledger(*METHOD, "live.held_out=0")
    own.decide(people(0, 10))
    with own.store.reading() as connection:
        features, salt = connection.execute(
            sql.select(store.APPLICATIONS.c.features, store.APPLICATIONS.c.salt).where(
                store.APPLICATIONS.c.person == "L0003"
            )
        ).one()
    own.forget("L0003")
    assert own.store.path is not None
    content = own.store.path.read_bytes()
    assert salt not in content
    assert features.encode() not in content
    assert chain.digest(salt, features.encode()).encode() in content
    assert not noticed(own.store.path)
