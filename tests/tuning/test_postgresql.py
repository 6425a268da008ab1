"""A study on a PostgreSQL server, which needs the server's programs and the driver psycopg2."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairall.tuning.space import key_of
from fairall.tuning.study import SharedStudy
from tests.conftest import typed
from tests.tuning.test_cli import FOUR, command

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that ends with the test."""
    pytest.importorskip("psycopg2")
    found = [*Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")]
    if not found:
        pytest.skip("PostgreSQL is not installed")
    # The server refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp())
    if user:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    control = [*user, str(found[0]), "-D", str(folder / "data"), "-w"]
    subprocess.run(
        [*control, "-o", "-A trust -U postgres", "init"], check=True, cwd=folder, capture_output=True
    )
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    log = str(folder / "log")
    subprocess.run([*control, "-o", options, "-l", log, "start"], check=True, cwd=folder)
    yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    subprocess.run([*control, "-m", "fast", "stop"], check=True, cwd=folder, capture_output=True)
    shutil.rmtree(folder)


def test_killed_and_shared_on_a_server_every_point_is_done_once(server: str, tmp_path: Path) -> None:
    words = [*FOUR, f"hydra.sweeper.storage={server}"]
    with (tmp_path / "killed.txt").open("w") as output:
        killed = subprocess.Popen(command(*words), cwd=tmp_path, stdout=output, stderr=output)
        while (tmp_path / "killed.txt").read_text().count(" of 4  trial ") < 1:
            assert killed.poll() is None, (tmp_path / "killed.txt").read_text()
            time.sleep(0.05)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    both = [subprocess.Popen(command(*words), cwd=tmp_path, stderr=subprocess.PIPE) for _ in range(2)]
    ended = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    trials = SharedStudy.load(server, "unfairlog_credit").trials()
    assert Counter(trial.state for trial in trials) == {"complete": 4}
    assert len({key_of(trial.point) for trial in trials}) == 4
    listed = typed("list", f"hydra.sweeper.storage={server}", cwd=tmp_path, module="fairall.tuning")
    assert "unfairlog_credit: 4 points, 4 finished, 0 to do" in listed.stdout
    assert not (tmp_path / "outputs" / "sweeps" / "studies.db").exists()
