"""The same ledger in a PostgreSQL database: `$FAIRALL_POSTGRESQL` is the URL of an empty one."""

import os
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sql

from fairall import FairAllError, Ledger
from fairall.live import store
from fairall.live.status import status
from tests.live.conftest import SMALL
from tests.live.test_ledger import MEMORY, people, repaid

URL = os.environ.get("FAIRALL_POSTGRESQL", "")
pytestmark = pytest.mark.skipif(not URL, reason="set FAIRALL_POSTGRESQL to the URL of an empty database")


@pytest.fixture
def emptied() -> Iterator[str]:
    def empty() -> None:
        with sql.create_engine(URL, poolclass=sql.NullPool).begin() as connection:
            connection.execute(sql.text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))

    empty()
    yield URL
    empty()


def test_a_ledger_in_a_server(emptied: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*SMALL, *MEMORY, f"outputs_dir={tmp_path}"]
    there, here = Ledger.start(emptied, *words), Ledger.start(f"{tmp_path}/loans.db", *words)
    for step in range(3):
        both = [own.decide(people(60 * step, 60, step)) for own in (there, here)]
        pd.testing.assert_frame_equal(*both)
        for own, decided in zip((there, here), both, strict=True):
            own.outcomes(repaid(decided, step))
            own.promote(own.learn()["version"])
    columns = []
    for own in (there, here):
        with own.store.reading() as connection:
            columns.append(connection.execute(sql.select(store.VERSIONS.c.sum)).all())
    assert columns[0] == columns[1]
    assert there.forget("L0001") == here.forget("L0001")
    one, other = status(there), status(here)
    assert one["groups"] == other["groups"]
    assert np.isclose(one["gap"]["low"], other["gap"]["low"])
    with pytest.raises(FairAllError, match="a ledger is there already"):
        Ledger.start(emptied, *words)
    with pytest.raises(FairAllError, match="append-only"), there.store.writing() as connection:
        connection.execute(sql.delete(store.OUTCOMES))
    monkeypatch.setattr(store, "WAIT", 1)
    with there.store.writing(), pytest.raises(FairAllError, match="another process has been writing"):
        Ledger(emptied).decide(people(200, 10, 9))
