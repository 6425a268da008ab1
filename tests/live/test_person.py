"""One person: from the shell as JSON, referred to a person, and decided on in few steps."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sql

from tests.conftest import refused, succeeded
from tests.live.conftest import CASES, Make, people

DECIDE = "live decide loans.db".split()


def as_json(**cells: Any) -> str:
    """The first person of the table, with other cells."""
    return json.dumps(people(0, 1).iloc[0].to_dict() | cells)


@pytest.mark.parametrize(("given", "why"), CASES["persons"])
def test_a_wrong_person(given: str | dict[str, Any], why: str, ledger: Make, tmp_path: Path) -> None:
    ledger()
    before = (tmp_path / "loans.db").read_bytes()
    text = given if isinstance(given, str) else as_json(**given)
    assert why in refused(*DECIDE, "--person", text, cwd=tmp_path)
    assert (tmp_path / "loans.db").read_bytes() == before


def test_a_person_is_decided_on_as_a_table_of_one(ledger: Make, tmp_path: Path) -> None:
    own, table = ledger(), people(0, 1)
    shutil.copy(tmp_path / "loans.db", tmp_path / "other.db")
    typed = as_json(age=int(table["age"].item()), income=float(table["income"].item()))
    told = json.loads(succeeded(*DECIDE, "--person", typed, "--json", "--reasons", "2", cwd=tmp_path).stdout)
    assert told.pop("notes") == []
    other = type(own)(tmp_path / "other.db").decide(table, most_reasons=2).drop(columns="referred")
    assert told == other.iloc[0].to_dict()
    word = "accept" if told["decision"] else "reject"
    said = succeeded(*DECIDE, "--person", typed, cwd=tmp_path).stdout
    assert said.startswith(f"id: {told['id']}\ndecision: {word}\n")
    assert "\nnew: false\n" in said


def test_a_person_is_referred_and_decided_on(ledger: Make, tmp_path: Path) -> None:
    own, one = ledger(), ["--person", as_json(), "--json"]
    referred = json.loads(succeeded(*DECIDE, *one, "--refer", "1", cwd=tmp_path).stdout)
    assert (referred["decision"], referred["propensity"], referred["new"]) == (None, None, True)
    assert "decision: refer" in succeeded(*DECIDE, *one[:2], cwd=tmp_path).stdout
    own.override(referred["id"], False, by="Berg", why="no proof of income")
    stands = json.loads(succeeded(*DECIDE, *one, cwd=tmp_path).stdout)
    assert (stands["decision"], stands["propensity"]) == (0, None)


def test_a_table_says_who_is_referred(ledger: Make, tmp_path: Path) -> None:
    ledger()
    for first, words, referred in ((0, [], 0), (20, ["--refer", "10%"], 2), (20, [], 2)):
        people(first, 20).to_csv(tmp_path / "t.csv", index=False)
        told = succeeded(*DECIDE, "t.csv", "-o", "d.csv", *words, "--json", cwd=tmp_path).stdout
        decided = pd.read_csv(tmp_path / "d.csv")
        assert json.loads(told)["referred"] == decided["decision"].isna().sum() == referred
        assert ("referred" in decided) == (referred > 0)


def test_a_person_takes_few_statements(ledger: Make) -> None:
    own, statements = ledger(), list[str]()
    own.decide(people(0, 1))
    sql.event.listen(own.store.engine, "before_cursor_execute", lambda *told: statements.append(told[2]))
    own.decide(people(1, 1))
    assert len(statements) <= 16
