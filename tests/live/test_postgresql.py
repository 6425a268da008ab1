"""The same ledger in a PostgreSQL database, by Python and by the commands of docs/live.md."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sql

from fairall import FairAllError, Ledger
from fairall.live import store
from tests.conftest import CHECKOUT, Put, own_process, refused, succeeded, typed_line
from tests.live.conftest import SMALL
from tests.live.test_ledger import MEMORY, METHOD, people, repaid
from tests.test_docs import commands

pytestmark = pytest.mark.whole
USER, PASSWORD = "lender", "s3cr3t"
PROGRAMS = [*map(Path, os.environ["PATH"].split(":")), *Path("/usr/lib/postgresql").glob("*/bin")]


@dataclass
class Server:
    """A server on this machine.

    Attributes:
        folder: with its socket.
        port: also the last part of the socket's name.
        root: URL of a superuser, who needs no password by the socket.
    """

    folder: Path
    port: int
    root: str

    @property
    def place(self) -> str:
        """Host and database, as in a URL."""
        return f"127.0.0.1:{self.port}/loans"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of the PostgreSQL that is installed, by an account of its own where root runs the tests."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install -e '.[postgresql]'")
    installed = [folder for folder in PROGRAMS if (folder / "initdb").exists()]
    if not installed:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    programs = (installed[-1] / "initdb").resolve().parent
    # PostgreSQL refuses to be run by root, and no other account can enter the folder of the tests.
    owner = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="fairall-pg-"))
    if owner:
        shutil.chown(folder, **owner)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    rules = "local all root trust\nlocal all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n"
    data, quiet = folder / "data", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    initdb = [programs / "initdb", "-D", data, "-U", "root", "--auth=trust", "--no-sync"]
    subprocess.run(initdb, check=True, **quiet, **owner)  # type: ignore[call-overload]
    (data / "pg_hba.conf").write_text(rules)
    options = ["-k", folder, "-p", str(port), "-h", "127.0.0.1", "-c", "fsync=off"]
    command = [programs / "postgres", "-D", data, *options]
    with subprocess.Popen(command, **quiet, **owner) as process:  # type: ignore[call-overload]
        try:
            end = time.monotonic() + 300
            while not (folder / f".s.PGSQL.{port}").exists():
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.1)
            yield Server(folder, port, f"postgresql+psycopg://root@/postgres?host={folder}&port={port}")
        finally:
            process.terminate()
    shutil.rmtree(folder)


@pytest.fixture
def database(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server with an empty database `loans` of USER; no password is in the environment."""
    for name in (name for name in [*os.environ] if name.startswith("PG")):
        monkeypatch.delenv(name)
    engine = sql.create_engine(server.root, isolation_level="AUTOCOMMIT", poolclass=sql.NullPool)
    with engine.connect() as connection:
        made = f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'", f"CREATE DATABASE loans OWNER {USER}"
        for statement in (*made, "DROP DATABASE loans WITH (FORCE)", f"DROP ROLE {USER}"):
            if statement.startswith("DROP DATABASE"):
                yield server
            connection.execute(sql.text(statement))


def test_a_ledger_in_a_server(database: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"postgresql://{USER}:{PASSWORD}@{database.place}"
    words = [*SMALL, *MEMORY, f"outputs_dir={tmp_path}"]
    there, here = Ledger.start(url, *words), Ledger.start(f"{tmp_path}/loans.db", *words)
    for step in range(3):
        both = [own.decide(people(60 * step, 60, step)) for own in (there, here)]
        pd.testing.assert_frame_equal(*both)
        for own, decided in zip((there, here), both, strict=True):
            own.outcomes(repaid(decided, step))
            own.promote(own.learn()["version"])
    columns = []
    for own in (there, here):
        with own.store.reading() as connection:
            columns.append(connection.execute(sql.select(store.SUMS.c.sum)).all())
    assert columns[0] == columns[1]
    assert there.forget("L0001") == here.forget("L0001")
    one, other = there.status(), here.status()
    assert one["groups"] == other["groups"]
    assert np.isclose(one["gap"]["low"], other["gap"]["low"])
    with pytest.raises(FairAllError, match="a ledger is there already"):
        Ledger.start(url, *words)
    with pytest.raises(FairAllError, match="append-only"), there.store.writing() as connection:
        connection.execute(sql.delete(store.OUTCOMES))
    monkeypatch.setattr(store, "WAIT", 1)
    with there.store.writing(), pytest.raises(FairAllError, match="another process has been writing"):
        Ledger(url).decide(people(200, 10, 9))


def test_the_commands_of_the_page_as_they_are_typed(
    database: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = f"postgresql://{USER}@{database.place}"
    script = CHECKOUT / "examples" / "loans.py"
    own_process(script, "year", "--year", cwd=tmp_path, check=True)
    page = [line for line in commands(CHECKOUT / "docs" / "live.md") if "month" not in line]
    verbs = ("start", "decide", "outcomes", "learn", "promote", "status", "evaluate", "forget")
    lines = [next(line for line in page if re.search(f"{verb} loans.db", line)) for verb in verbs]
    lines.insert(2, lines[1].replace("01", "02"))
    said = ""
    for line in lines:
        if "outcomes" in line:
            own_process(script, "year", "--repaid", "2025-05-01", cwd=tmp_path, check=True)
        ended = typed_line(line.replace("loans.db", url), tmp_path)
        assert (ended.returncode, ended.stderr) == (0, ""), line
        said += ended.stdout
    assert "version: 1\n" in said
    assert said.count("people: 1000\n") == 2
    assert "version: 2\nparent: 1\n" in said
    assert f"Ledger postgresql://{database.place}: 2000 people" in said
    assert "note: features are erased" in said


def forms(server: Server) -> dict[str, str]:
    """URLs of the database, and what of them is shown."""
    socket = f"host={server.folder}&port={server.port}"
    return {
        f"postgresql://{USER}:{PASSWORD}@{server.place}": f"postgresql://{server.place}",
        f"postgresql+psycopg://{server.place}?user={USER}&password={PASSWORD}": f"psycopg://{server.place} ",
        f"postgres://{USER}:{PASSWORD}@/loans?{socket}": f"postgres:///loans?{socket} ",
        f"postgresql:///loans?user={USER}&{socket}&password={PASSWORD}": f"postgresql:///loans?{socket} ",
    }


def test_no_password_is_shown_or_stored(database: Server, tmp_path: Path, empty_store: Put) -> None:
    url, *others = forms(database)
    empty_store(tmp_path / "outputs")
    words = [*(word for word in SMALL if not word.startswith("tracking.")), *METHOD]
    said = [succeeded("live", "start", url, *words, "tracking.register=loans", cwd=tmp_path).stdout]
    assert "version 1 is models:/loans@champion" in said[0]
    people(0, 100).to_csv(tmp_path / "people.csv", index=False)
    said.append(succeeded("live", "decide", url, "people.csv", "-o", "decided.csv", cwd=tmp_path).stdout)
    repaid(pd.read_csv(tmp_path / "decided.csv"), 1).to_csv(tmp_path / "repaid.csv", index=False)
    said.append(succeeded("live", "outcomes", url, "repaid.csv", cwd=tmp_path).stdout)
    for other, shown in forms(database).items():
        said.append(succeeded("live", "status", other, "--html", "page", cwd=tmp_path).stdout)
        assert f"{shown.strip()}: 100 people" in said[-1]
        said.append(succeeded("live", "status", other, "--json", cwd=tmp_path).stdout)
    said.append(succeeded("evaluate", others[1], cwd=tmp_path).stdout)
    said.append(refused("live", "promote", f"{others[0]}x", "1", cwd=tmp_path))
    said.append(refused("live", "start", others[0], *words, cwd=tmp_path))
    said.append(
        refused("live", "decide", f"{others[0]}&sslmode=x", "people.csv", "-o", "x.csv", cwd=tmp_path)
    )
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"index.html", "mlflow.db", "decided.csv"}
    texts = [*(text.encode() for text in said), *(path.read_bytes() for path in files)]
    assert not [text for text in texts if PASSWORD.encode() in text]


def test_a_password_may_be_in_the_files_and_variables_of_postgresql(
    database: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Ledger.start(next(iter(forms(database))), *SMALL, *METHOD, f"outputs_dir={tmp_path}")
    urls = [
        f"postgresql://{USER}@{database.place}",
        f"postgresql://{USER}@/loans?host={database.folder}&port={database.port}",
    ]
    for url in urls:
        assert "no password supplied" in refused("live", "status", url, cwd=tmp_path)
        with monkeypatch.context() as patched:
            patched.setenv("PGPASSWORD", PASSWORD)
            succeeded("live", "status", url, cwd=tmp_path)
    (tmp_path / ".pgpass").write_text(f"*:{database.port}:loans:{USER}:{PASSWORD}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    for url in urls:
        succeeded("live", "status", url, cwd=tmp_path)
