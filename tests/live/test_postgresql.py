"""The same ledger in a PostgreSQL database, by commands that show no password."""

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from benchmarks.kills import killed_day
from fairall import Ledger
from tests.conftest import refused, succeeded
from tests.live.conftest import refusing

PASSWORD = "s3cr3t"
PROGRAMS = os.pathsep.join([os.environ["PATH"], *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])
RULES = "local all root trust\nlocal all all scram-sha-256\n"


def engine(url: str, **options: Any) -> sql.Engine:
    """An engine that keeps no connections."""
    return sql.create_engine(url.replace("://", "+psycopg://"), poolclass=sql.NullPool, **options)


def execute(url: str, *statements: str) -> None:
    """Execute statements, each in a transaction of its own."""
    with engine(url, isolation_level="AUTOCOMMIT").connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.fixture
def url() -> Iterator[str]:
    """URL of an empty database of a server, which has an account of its own where root runs the tests."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install -e '.[postgresql]'")
    if (initdb := shutil.which("initdb", path=PROGRAMS)) is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="fairall-pg-"))  # which that account can enter
    owner = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if owner:
        shutil.chown(folder, **owner)

    def do(program: str, *words: str) -> None:
        command = [Path(initdb).resolve().with_name(program), "-D", "data", *words]
        with (folder / "log").open("a") as log:
            subprocess.run(command, check=True, cwd=folder, stdout=log, stderr=log, **owner)  # type: ignore[call-overload]

    do("initdb", "-U", "root", "--auth=trust", "--no-sync")
    (folder / "data" / "pg_hba.conf").write_text(RULES)
    do("pg_ctl", "-w", "-o", f"-k {folder} -h '' -c fsync=off", "start")
    made = f"CREATE ROLE lender LOGIN PASSWORD '{PASSWORD}'", "CREATE DATABASE loans OWNER lender"
    execute(f"postgresql://root@/postgres?host={folder}", *made)
    yield f"postgresql://lender:{PASSWORD}@/loans?host={folder}"
    do("pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.mark.whole
def test_a_ledger_in_a_server_is_that_in_a_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day of all verbs is typed on both; in the server commands are killed, too."""
    assert len([*killed_day(["loans.db", url], tmp_path, random.Random(1), step=9)]) > 10
    own = Ledger(url)
    for statement in ("DELETE FROM outcomes", "UPDATE duty SET why = ''"):
        with pytest.raises(DBAPIError, match="append-only"):
            execute(url, statement)
    monkeypatch.setattr("fairall.live.store.WAIT", 1)
    with engine(url).begin() as connection:
        connection.exec_driver_sql("LOCK TABLE chain IN EXCLUSIVE MODE")
        with refusing("another process has been writing for 1 seconds"):
            own.withdraw("249")
    withheld = url.replace(f":{PASSWORD}", "")
    said = [refused("live", "promote", withheld, "1", cwd=tmp_path)]
    assert "no password supplied" in said[0]
    (tmp_path / "pass").write_text(f"*:*:loans:lender:{PASSWORD}\n")
    (tmp_path / "pass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pass"))
    said.append(succeeded("live", "status", withheld, "--html", "page", cwd=tmp_path).stdout)
    assert f"Ledger {url.replace(f'lender:{PASSWORD}@', '')}: {own.status()['people']} people" in said[1]
    said.append(succeeded("evaluate", url, cwd=tmp_path).stdout)
    (tmp_path / "pass").unlink()
    execute(url, "ALTER TABLE outcomes DISABLE TRIGGER outcomes_update")
    execute(url, "UPDATE outcomes SET label = 1 - label WHERE id = 1")
    said.append(refused("live", "status", url, cwd=tmp_path))
    assert "row 1 of the table outcomes is not as it was written" in said[-1]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert [text for text in [*map(str.encode, said), *files] if PASSWORD.encode() in text] == []
