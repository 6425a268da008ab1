"""Ledgers of small learners, made once and copied, people and outcomes for them, and raw SQL."""

import functools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from fairall import Ledger
from fairall.errors import FairAllError
from tests.conftest import LOANS, MEANING

CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())
LOG = "dataset.decision=decision dataset.accepted=granted dataset.propensity=propensity dataset.drop=[id]"
DATA = ["dataset=csv", f"dataset.path={LOANS}", *MEANING, *LOG.split()]
SMALL = ["preset=quick", "tracking.enabled=false", "seeds=1", *DATA]
METHOD = ["model=fairlog", "schedule.warm_up_epochs=4"]
# Three kinds of memory: rows of people, copies of them, and hashes of those who are known.
MEMORY = ["model=ensemble", "schedule.warm_up_epochs=2"]
COPIES = ["model=explore_exploit", "schedule.warm_up_epochs=2"]
KNOWN = ["model=stacked"]
NAMES = ["id", "sex", "age", "income", "dependants", "purpose", "home_owner", "job"]
STEP = 86400  # seconds between two time steps
BEGIN = 1_700_000_000 // STEP * STEP

Make = Callable[..., Ledger]


def at(step: float) -> str:
    """The time of a time step."""
    return str(pd.Timestamp(int(BEGIN + STEP * step), unit="s"))


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


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Ledgers after the warm-up, by their words, made once."""

    @functools.cache
    def made(*words: str) -> Path:
        place = tmp_path_factory.mktemp("ledger") / "loans.db"
        Ledger.start(place, *SMALL, f"outputs_dir={place.parent}", *words)
        return place

    return made


@pytest.fixture
def ledger(kept: Callable[..., Path], tmp_path: Path) -> Make:
    """A ledger of its own, of `METHOD` where no model is named: `loans.db` in the folder of the test."""

    def made(*words: str, name: str = "loans.db") -> Ledger:
        method = [] if words[:1] and words[0].startswith("model=") else METHOD
        return Ledger(shutil.copy(kept(*method, *words), tmp_path / name))

    return made


def refusing(why: str) -> Any:
    """Expect an error that says so."""
    return pytest.raises(FairAllError, match=why)


def rows(place: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """What a query on the file gives; what it changes is kept."""
    with closing(sqlite3.connect(place)) as connection, connection:
        return connection.execute(query, values).fetchall()


@contextmanager
def edited(place: Path) -> Iterator[sqlite3.Connection]:
    """A connection that finds no triggers."""
    triggers = rows(place, "select name from sqlite_master where type = 'trigger'")
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("pragma synchronous = off")  # nobody waits for the disk
        for (name,) in triggers:
            connection.execute(f"drop trigger {name}")
        yield connection


def noticed(place: Path) -> str:
    """The one line by which a ledger that is read whole is refused; "" where it is not."""
    try:
        Ledger(place).summary()
    except FairAllError as error:
        return str(error)
    return ""
