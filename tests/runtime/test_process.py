import errno
import json
import os
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("threads", [None, "3"])
def test_a_process_is_set_up_without_heavy_imports(
    threads: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number of threads that is set stays."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if threads:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert json.loads(own_process("-c", PROGRAM, cwd=tmp_path, check=True).stdout) == {
        "environment": [threads or "1", "1"],
        "times_in_path": 0,
        "handled": True,
        "errors": "backslashreplace",
        "garbage": 100_000,
        "alembic": 30,
        "heavy": [],
    }


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


@pytest.mark.parametrize("error", [BrokenPipeError("of a server"), ImportError("no module named x")])
def test_another_error_keeps_its_traceback(error: Exception) -> None:
    def command(words: list[str]) -> int:
        raise error

    with pytest.raises(type(error), match=str(error)):
        process.run_command(command, [])


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
    meminfo, container = tmp_path / "meminfo", tmp_path / "memory.max"
    monkeypatch.setattr(process, "MEMINFO", meminfo)
    monkeypatch.setattr(process, "CONTAINER_LIMIT", container)
    assert available_memory() is None
    meminfo.write_text("MemTotal: 16384 kB\nMemAvailable:    8192 kB\n")
    if limit is not None:
        container.write_text(limit)
    assert available_memory() == available


@pytest.mark.parametrize("words", [["model=reject_all"], ["show", "x"], ["tune", "report", "x"]])
def test_too_little_memory_for_the_libraries_is_one_line(words: list[str], tmp_path: Path) -> None:
    start = 'ulimit -v 700000; exec "$0" -m fairall "$@"'
    ended = subprocess.run(
        ["sh", "-c", start, sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "fairall: there is not enough memory to load what this command needs: 1536 MiB, "
        "and the limit is 683 MiB (ulimit -v)\n"
    )
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("error", "lacks_memory"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), True),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), True),
        (RuntimeError("can't start new thread"), True),
        (ImportError("no module named x"), False),
    ],
    ids=repr,
)
def test_errors_for_want_of_memory_are_known(error: Exception, lacks_memory: bool) -> None:
    advice = ImportError("numpy: please read this advice\nof many lines")
    advice.__cause__ = error
    assert process.out_of_memory(error) == process.out_of_memory(advice) == lacks_memory


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
