"""Wrong tables, words, places and commands: one line says what is wrong, and nothing is written."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from fairall import Ledger
from tests.conftest import files_of, refused
from tests.live.conftest import CASES, METHOD, SMALL, Make, edited, people, refusing, repaid

MEANT = {"LONG": "2" * 10_001, "METHOD": " ".join([*SMALL, *METHOD])}
CELLS = [(kind, *row) for kind, some in CASES["cells"].items() for row in some]


@pytest.fixture(scope="module")
def place(kept: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger that has decided on fifty people, which no test changes."""
    copy = shutil.copy(kept(*METHOD), tmp_path_factory.mktemp("decided") / "loans.db")
    Ledger(copy).decide(people())
    return Path(copy)


def refuses(place: Path, verb: str, given: object, why: str) -> None:
    """Check that a call is refused in one line and writes nothing."""
    before = place.read_bytes()
    with refusing(re.escape(why)) as caught:
        getattr(Ledger(place), verb)(given)
    assert ("\n" in str(caught.value), place.read_bytes() == before) == (False, True)


@pytest.mark.parametrize(("kind", "column", "cell", "why"), CELLS)
def test_a_wrong_cell(kind: str, column: str, cell: object, why: str, place: Path) -> None:
    table = people(100 if kind == "new" else 0, 20)
    if kind == "outcomes":
        table = repaid(Ledger(place).decide(people()), 1).reset_index(drop=True)
    first = MEANT.get(str(cell), cell)
    table[column] = pd.Series([first, *table.get(column, table["id"])[1:]], dtype=object)
    table = table.drop(columns=[column] * (cell == "NO COLUMN"))
    refuses(place, "outcomes" if kind == "outcomes" else "decide", table, why)


@pytest.mark.parametrize(
    ("verb", "given", "why"),
    [
        *CASES["calls"],
        ("decide", people().iloc[:0], "has no row"),
        ("decide", people()[["id", "id"]], "more than one column 'id'"),
    ],
)
def test_a_wrong_call(verb: str, given: object, why: str, place: Path) -> None:
    refuses(place, verb, given, why)


@pytest.mark.parametrize(("words", "why"), CASES["starts"].items())
def test_what_cannot_be_started(words: str, why: str, tmp_path: Path) -> None:
    given = words.replace("METHOD", MEANT["METHOD"]).split()
    with refusing(re.escape(why)):
        Ledger.start(tmp_path / "a.db", *given, f"outputs_dir={tmp_path}")
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(("command", "why"), CASES["commands"].items())
def test_a_wrong_command(command: str, why: str, place: Path, tmp_path: Path) -> None:
    shutil.copy(place, tmp_path)
    people().to_csv(tmp_path / "people.csv", index=False)
    repaid(Ledger(place).decide(people()), 100).to_csv(tmp_path / "far.csv", index=False)
    before = files_of(tmp_path)
    assert why in refused(*command.split(), cwd=tmp_path)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(("name", "why"), CASES["files"].items())
def test_what_is_no_ledger(name: str, why: str, ledger: Make, tmp_path: Path) -> None:
    ledger(name="old.db")
    with edited(tmp_path / "old.db") as connection:
        connection.execute("update ledger set value = '1' where key = 'format'")
    (tmp_path / "half.db").write_bytes((tmp_path / "old.db").read_bytes()[:30_000])
    (tmp_path / "text.db").write_text("id,age\n" * 1000)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("create table loans(id)")
    before, own = files_of(tmp_path), Ledger(tmp_path / name)
    for call in (own.status, own.learn, lambda: own.decide(people())):
        with refusing(re.escape(why)):
            call()
    if name in before:
        with refusing("is there already"):
            Ledger.start(tmp_path / name, *METHOD)
    assert files_of(tmp_path) == before
