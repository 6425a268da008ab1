import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.runtime import process
from fairall.runtime.process import available_memory, prepare_processor
from tests.conftest import own_process

PROGRAM = """\
import gc, json, logging, os, signal, sys
from fairall.runtime.process import prepare_process
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
for _ in range(2):
    prepare_process()
print(json.dumps({
    "environment": [os.environ["OMP_NUM_THREADS"], os.environ["HYDRA_FULL_ERROR"]],
    "times_in_path": sys.path.count(os.getcwd()),
    "handled": all(callable(signal.getsignal(number)) for number in SIGNALS),
    "errors": sys.stdout.errors,
    "garbage": gc.get_threshold()[0],
    "alembic": logging.getLogger("alembic").level,
    "heavy": [name for name in ("torch", "numpy", "rich", "hydra", "omegaconf") if name in sys.modules],
}))
"""


def prepared(folder: Path, **environment: str) -> dict[str, Any]:
    root = str(Path(__file__).parents[2])
    ended = own_process(
        "-c", PROGRAM, cwd=folder, check=True, env={"PYTHONPATH": root, "PYTHONSAFEPATH": "1"} | environment
    )
    return json.loads(ended.stdout)


def test_a_process_is_set_up_without_heavy_imports(tmp_path: Path) -> None:
    assert prepared(tmp_path) == {
        "environment": ["1", "1"],
        "times_in_path": 0,
        "handled": True,
        "errors": "fairall.replace",
        "garbage": 100_000,
        "alembic": 30,
        "heavy": [],
    }


def test_a_number_of_threads_that_is_set_stays(tmp_path: Path) -> None:
    assert prepared(tmp_path, OMP_NUM_THREADS="3")["environment"][0] == "3"


@pytest.mark.whole
@pytest.mark.parametrize("words", [["list"], ["list", "runs"], ["tune", "report"], ["list", "datasets"]])
def test_an_output_that_nobody_reads_ends_a_command_silently(words: list[str], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "fairall", *words],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_another_broken_pipe_is_an_error(tmp_path: Path) -> None:
    program = """
from fairall.runtime.process import run_command
def command(words): raise BrokenPipeError("of a server")
run_command(command)
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"BrokenPipeError: of a server" in ended.stderr


def test_torch_has_one_thread_and_numbers_next_to_zero_are_zero() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        prepare_processor()
        assert torch.get_num_threads() == 1
        assert (torch.full((100,), 1e-30) * 1e-10 == 0.0).all()
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)
    assert (torch.full((100,), 1e-30) * 1e-10 > 0.0).all()


@pytest.mark.parametrize(("limit", "available"), [("max\n", 8 << 20), ("4096\n", 4096), (None, 8 << 20)])
def test_available_memory_is_that_of_the_machine_and_the_container(
    limit: str | None, available: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"MEMINFO": "MemTotal: 16384 kB\nMemAvailable:    8192 kB\n", "CONTAINER_LIMIT": limit}
    for name, text in told.items():
        monkeypatch.setattr(process, name, tmp_path / name)
        if text is not None:
            (tmp_path / name).write_text(text)
    assert available_memory() == available
    (tmp_path / "MEMINFO").unlink()
    assert available_memory() is None


@pytest.mark.parametrize("words", [["model=reject_all"], ["show", "x"], ["tune", "report", "x"]])
def test_too_little_memory_for_the_libraries_is_one_line(words: list[str], tmp_path: Path) -> None:
    limit = 700_000 * 1024  # bytes, as of `ulimit -v 700000`
    ended = own_process(
        "-m",
        "fairall",
        *words,
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith("fairall: there is not enough memory to load what this command needs")
    assert "ulimit -v" in ended.stderr
    assert not [*tmp_path.iterdir()]


LACKING = [
    MemoryError(),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    RuntimeError("can't start new thread"),
]


@pytest.mark.parametrize("error", LACKING, ids=repr)
@pytest.mark.parametrize("chained", [False, True])
def test_errors_for_want_of_memory_are_known(
    error: Exception, chained: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(words: list[str]) -> int:
        if not chained:
            raise error
        try:
            raise error
        except Exception as cause:
            raise ImportError("numpy: please read this advice\nof many lines") from cause

    assert process.run_command(command, []) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_another_error_keeps_its_traceback() -> None:
    def command(words: list[str]) -> int:
        raise ImportError("no module named x")

    with pytest.raises(ImportError, match="no module named x"):
        process.run_command(command, [])


def test_a_console_script_runs_no_file_of_the_current_folder_but_what_is_named(tmp_path: Path) -> None:
    script, place = tmp_path / "bin" / "fairall", tmp_path / "place"
    script.parent.mkdir()
    place.mkdir()
    for name in ("bottleneck", "socket", "hydra_plugins", "sitecustomize"):
        (place / f"{name}.py").write_text(f"open('RAN_{name}', 'w').close()\n")
    (place / "mine.py").write_text("from helper import VALUE\n")
    (place / "helper.py").write_text("VALUE = 3\n")
    script.write_text(
        "import subprocess, sys\nfrom fairall.runtime.process import import_own, prepare_process\n"
        "prepare_process()\nimport pandas\n"
        "subprocess.run([sys.executable, '-c', 'import socket'], check=True)\n"
        "print(import_own('mine').VALUE)\n"
    )
    ended = own_process(script, cwd=place, check=True, env={"PYTHONPATH": str(Path(__file__).parents[2])})
    assert ended.stdout == "3\n"
    assert sorted(path.name for path in place.glob("RAN_*")) == []
