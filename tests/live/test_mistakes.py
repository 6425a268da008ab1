"""Wrong tables, ledgers and words: one line says what is wrong, and nothing is written."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairall import FairAllError, Ledger
from fairall.live.settings import Settings
from tests.conftest import refused, succeeded
from tests.live.conftest import at
from tests.live.test_ledger import METHOD, people, repaid

Change = Callable[[pd.DataFrame], pd.DataFrame]
PEOPLE: dict[str, tuple[Change, str]] = {
    "no id": (lambda t: t.drop(columns="id"), "lacks the column 'id'"),
    "an empty id": (lambda t: t.assign(id=["", *t["id"][1:]]), "column 'id', row 1: '' is no id"),
    "an id twice": (lambda t: t.assign(id=[t["id"][1], *t["id"][1:]]), "row 1: .* is in several rows"),
    "an id without end": (lambda t: t.assign(id=["x" * 201, *t["id"][1:]]), "at most 200 characters"),
    "no feature": (lambda t: t.drop(columns="income"), "lacks columns that the policy reads: income"),
    "no group": (lambda t: t.drop(columns="sex"), "lacks columns .* s or sex"),
    "a new column": (lambda t: t.assign(officer="Abel"), "column 'officer' is new to the policy"),
    "a column twice": (lambda t: pd.concat([t, t[["age"]]], axis=1), "more than one column 'age'"),
    "a new category": (lambda t: t.assign(purpose="yacht"), "row 1: 'yacht' is not known"),
    "a new category once": (lambda t: t.assign(purpose=["yacht", *t["purpose"][1:]]), "'yacht'"),
    "a third group": (lambda t: t.assign(sex=["x", *t["sex"][1:]]), "it is the sensitive attribute"),
    "text among numbers": (lambda t: t.assign(income=["much", *t["income"][1:]]), "column 'income'.*'much'"),
    "infinity": (lambda t: t.assign(income=["inf", *t["income"][1:]]), "column 'income'"),
    "a negative count": (lambda t: t.assign(dependants=["-1", *t["dependants"][1:]]), "it must be a count"),
    "a rounded id": (lambda t: t.assign(id=2.0**53 + np.arange(20)), "row 1: .* is a rounded number"),
    "an id with a fraction": (lambda t: t.assign(id=np.arange(20) + 0.5), "row 1: 0.5 has a fraction"),
    "a gap": (lambda t: t.assign(time=[*t["time"][:-1], at(40)]), "row 20: .* is far after all other times"),
    "no time": (lambda t: t.assign(time=["soon", *t["time"][1:]]), "'soon' is no time"),
    "the future": (lambda t: t.assign(time="2999-01-01"), "is in the future"),
    "time backwards": (lambda t: t.assign(time=at(-2.1)), "times may not run backwards"),
    "nobody": (lambda t: t.iloc[:0], "has no row"),
    "known, with other features": (lambda t: people(0, 5).assign(age="77"), "with other features"),
    "known, of another group": (
        lambda t: people(0, 1).assign(sex=lambda own: own["sex"].map({"male": "female", "female": "male"})),
        "with other features",
    ),
    "known, at another time": (lambda t: people(0, 5, 1), "at another time"),
}
OUTCOMES: dict[str, tuple[Change, str]] = {
    "unknown person": (lambda t: t.assign(id=["nobody", *t["id"][1:]]), "'nobody' has not been decided on"),
    "a word": (lambda t: t.assign(repaid=["maybe", *t["repaid"][1:]]), "row 1: 'maybe' is no outcome"),
    "no word": (lambda t: t.assign(repaid=[None, *t["repaid"][1:]]), "an empty cell is no outcome"),
    "no label": (lambda t: t.drop(columns="repaid"), "lacks the column 'repaid'"),
    "a new column": (lambda t: t.assign(by="Abel"), "has a column 'by'"),
    "before the application": (lambda t: t.assign(time=at(-1)), "is before the application"),
    "twice": (lambda t: pd.concat([t, t]), "is in several rows"),
    "the future": (lambda t: t.assign(time="2999-01-01"), "is in the future"),
    "a gap": (
        lambda t: t.assign(time=[at(300), *t["time"][1:]]),
        "row 1: .* with --confirm-times",
    ),
}


@pytest.fixture(scope="module")
def decided(kept: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A ledger that has decided on fifty people, which no test changes."""
    place = Path(shutil.copy(kept(*METHOD), tmp_path_factory.mktemp("decided") / "loans.db"))
    return place, Ledger(place).decide(people())


@pytest.mark.parametrize("name", PEOPLE)
def test_wrong_people(name: str, decided: tuple[Path, pd.DataFrame]) -> None:
    place, _ = decided
    before = place.read_bytes()
    change, why = PEOPLE[name]
    with pytest.raises(FairAllError, match=why) as caught:
        Ledger(place).decide(change(people(100, 20)))
    assert "\n" not in str(caught.value)
    assert place.read_bytes() == before


@pytest.mark.parametrize("name", OUTCOMES)
def test_wrong_outcomes(name: str, decided: tuple[Path, pd.DataFrame]) -> None:
    place, known = decided
    before = place.read_bytes()
    change, why = OUTCOMES[name]
    with pytest.raises(FairAllError, match=why) as caught:
        Ledger(place).outcomes(change(repaid(known, 1).reset_index(drop=True)))
    assert "\n" not in str(caught.value)
    assert place.read_bytes() == before


def test_an_outcome_of_somebody_who_was_rejected(decided: tuple[Path, pd.DataFrame]) -> None:
    place, known = decided
    table = pd.DataFrame({"id": known.loc[known["decision"] == 0, "id"], "repaid": "no", "time": at(1)})
    with pytest.raises(FairAllError, match="was rejected: an outcome needs an acceptance"):
        Ledger(place).outcomes(table)


def test_values_never_become_sql(kept: Callable[..., Path], tmp_path: Path) -> None:
    own = Ledger(shutil.copy(kept(*METHOD), tmp_path / "loans.db"))
    evil = "x'); DROP TABLE applications; --"
    table = people(0, 30).assign(id=lambda t: [evil, *t["id"][1:]])
    assert own.decide(table)["id"].iloc[0] == evil
    assert not own.decide(table)["new"].any()
    with pytest.raises(FairAllError, match="has not been decided on"):
        own.forget("' OR 1=1; --")
    assert own.forget(evil) == []


def test_no_ledger_or_another_one(tmp_path: Path, kept: Callable[..., Path]) -> None:
    with pytest.raises(FairAllError, match="no ledger there; fairall live start"):
        Ledger(tmp_path / "no.db").learn()
    assert not (tmp_path / "no.db").exists()
    text = tmp_path / "text.db"
    text.write_text("id,age\n" * 1000)
    with pytest.raises(FairAllError, match=r"is no ledger .file is not a database"):
        Ledger(text).learn()
    sqlite3.connect(tmp_path / "empty.db").execute("create table a (b)").connection.close()
    with pytest.raises(FairAllError, match="is no ledger of fairall"):
        Ledger(tmp_path / "empty.db").promote(1)
    with pytest.raises(FairAllError, match="cannot be used as a database"):
        Ledger("nonsense://here")
    other = shutil.copy(kept(*METHOD), tmp_path / "other.db")
    with sqlite3.connect(other) as connection:
        connection.executescript("drop trigger ledger_update; update ledger set value='1' where key='format'")
    with pytest.raises(
        FairAllError, match=r"a ledger of format 1, and this .* reads format 5: go on with fairall 0"
    ):
        Ledger(other).decide(people())
    with pytest.raises(FairAllError, match="is there already"):
        Ledger.start(other, "model=fairlog")


def test_half_a_ledger(tmp_path: Path, kept: Callable[..., Path]) -> None:
    half = tmp_path / "half.db"
    half.write_bytes(kept(*METHOD).read_bytes()[:30_000])
    with pytest.raises(FairAllError, match="is damaged"):
        Ledger(half).decide(people())


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("live.horizon=soon", "it must be as 90d, 12h, 0 or null"),
        ("live.held_out=1", "a number from 0, below 1"),
        ("live.held_out=0.99999999999999999999", "below 1"),
        ("live.explore=-0.1", "a number from 0, below 1"),
        ("live.promote=always", "by_hand or if_better"),
        ("live.horzon=1d", "did you mean"),
        ("live.time=id", "give 3 different words"),
        ("live.positive=0", "give 2 different words"),
    ],
)
def test_wrong_settings(word: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(FairAllError, match=why):
        Settings.read([word])
    with pytest.raises(FairAllError, match=why):
        Ledger.start(tmp_path / "loans.db", "model=fairlog", word)
    assert not (tmp_path / "loans.db").exists()


def test_what_cannot_be_started(tmp_path: Path) -> None:
    for words, why in ((["model=accept_all"], "learns nothing"), (["world=delay"], "the world of a ledger")):
        with pytest.raises(FairAllError, match=why):
            Ledger.start(tmp_path / "loans.db", *words, "preset=quick", f"outputs_dir={tmp_path}")
    with pytest.raises(FairAllError, match="no such run"):
        Ledger.start(tmp_path / "loans.db", "0123456789ab", f"outputs_dir={tmp_path}")
    assert not (tmp_path / "loans.db").exists()


def test_the_commands_say_it_in_one_line(tmp_path: Path, kept: Callable[..., Path]) -> None:
    shutil.copy(kept(*METHOD), tmp_path / "loans.db")
    people().to_csv(tmp_path / "people.csv", index=False)
    assert "no ledger there" in refused("live", "status", "no.db", cwd=tmp_path)
    decide = ("live", "decide", "loans.db", "people.csv", "-o")
    assert "is read by this command" in refused(*decide, "people.csv", cwd=tmp_path)
    assert "there is no folder" in refused(*decide, "nowhere/d.csv", cwd=tmp_path)
    assert "people: 50\n" in succeeded(*decide, "d.csv", cwd=tmp_path).stdout
    assert "not possible here" in refused("live", "learn", "loans.db", "live.explore=0", cwd=tmp_path)
    assert "has not been decided on" in refused("live", "forget", "loans.db", "nobody", cwd=tmp_path)
