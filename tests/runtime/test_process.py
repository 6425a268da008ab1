"""The process of a command: its settings, memory, output and warnings."""

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
from tests.conftest import CHECKOUT, own_process

PROGRAM = """\
import gc, json, logging, os, signal, sys
from fairall.runtime.process import prepare_process
for _ in range(2):
    prepare_process()
print(json.dumps([
    [os.environ["OMP_NUM_THREADS"], os.environ["HYDRA_FULL_ERROR"]],
    sys.path.count(os.getcwd()),
    all(callable(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)),
    sys.stdout.errors,
    gc.get_threshold()[0],
    logging.getLogger("alembic").level,
    [name for name in ("torch", "numpy", "rich", "hydra", "omegaconf") if name in sys.modules],
]))
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
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    said = json.loads(own_process("-c", PROGRAM, cwd=tmp_path, check=True).stdout)
    assert said == [[threads or "1", "1"], 0, True, "backslashreplace", 100_000, 30, []]


@pytest.mark.whole
def test_an_output_that_nobody_reads_ends_a_command_silently(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    errors = {"capture_output": False, "stdout": writing, "stderr": subprocess.PIPE}
    ended = own_process("-m", "fairall", "list", "runs", cwd=tmp_path, **errors)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_another_error_keeps_its_traceback() -> None:
    def command(words: list[str]) -> int:
        raise BrokenPipeError("of a server")

    with pytest.raises(BrokenPipeError, match="of a server"):
        process.run_command(command, [])


def test_torch_has_one_thread_and_numbers_next_to_zero_are_zero() -> None:
    small = torch.full((100,), 1e-30)
    torch.set_flush_denormal(False)
    assert (small * 1e-10 > 0.0).all()
    torch.set_num_threads(2)
    prepare_processor()
    assert torch.get_num_threads() == 1
    assert (small * 1e-10 == 0.0).all()


def test_available_memory_is_that_of_the_machine_and_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo, container = tmp_path / "meminfo", tmp_path / "memory.max"
    monkeypatch.setattr(process, "MEMINFO", meminfo)
    monkeypatch.setattr(process, "CONTAINER_LIMIT", container)
    assert available_memory() is None
    meminfo.write_text("MemTotal: 16384 kB\nMemAvailable:    8192 kB\n")
    assert available_memory() == 8 << 20
    for limit, available in (("max\n", 8 << 20), ("4096\n", 4096)):
        container.write_text(limit)
        assert available_memory() == available


@pytest.mark.parametrize("words", ["model=reject_all", "show x", "tune report x"])
def test_too_little_memory_for_the_libraries_is_one_line(words: str, tmp_path: Path) -> None:
    start = f"ulimit -v 700000; exec {sys.executable} -m fairall {words}"
    ended = subprocess.run(["sh", "-c", start], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "fairall: there is not enough memory to load what this command needs: 1536 MiB, "
        "and the limit is 683 MiB (ulimit -v)\n"
    )
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
    ids=repr,
)
def test_errors_for_want_of_memory_are_known(error: Exception) -> None:
    advice = ImportError("numpy: please read this advice\nof many lines")
    assert not process.out_of_memory(advice)
    advice.__cause__ = error
    assert process.out_of_memory(error)
    assert process.out_of_memory(advice)


def test_a_console_script_runs_no_file_of_the_current_folder_but_what_is_named(tmp_path: Path) -> None:
    script, place = tmp_path / "fairall", tmp_path / "place"
    place.mkdir()
    for name in ("bottleneck", "socket", "hydra_plugins", "sitecustomize"):
        (place / f"{name}.py").write_text("open('RAN', 'w').close()\n")
    (place / "mine.py").write_text("from helper import VALUE\n")
    (place / "helper.py").write_text("VALUE = 3\n")
    script.write_text(
        "import subprocess, sys\nfrom fairall.runtime.process import import_own, prepare_process\n"
        "prepare_process()\nimport pandas\n"
        "subprocess.run([sys.executable, '-c', 'import socket'], check=True)\n"
        "print(import_own('mine').VALUE)\n"
    )
    ended = own_process(script, cwd=place, check=True, env={"PYTHONPATH": str(CHECKOUT)})
    assert ended.stdout == "3\n"
    assert not (place / "RAN").exists()


LIBRARIES = """
from fairall.runtime.process import prepare_output
prepare_output()
from sklearn.linear_model import LogisticRegression
import numpy as np, warnings
x = np.random.default_rng(0).normal(size=(50, 3))
LogisticRegression(max_iter=1).fit(x, x[:, 0] > 0)
def warned(module):
    code = "np.log(np.zeros(1)); warnings.warn('for you')"
    exec(code, {"__name__": module, "np": np, "warnings": warnings})
warned("fairall.models.some")
warned("mine")
"""


@pytest.mark.parametrize("options", [[], ["-W", "default"]])
def test_warnings_of_libraries_are_not_shown_unless_pythons_option_says_so(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    said = own_process(*options, "-c", LIBRARIES, check=True).stderr
    all_shown = bool(options)
    assert said.count("UserWarning: for you") == 2
    assert said.count("RuntimeWarning: divide by zero") == 1 + all_shown
    assert ("ConvergenceWarning" in said) == all_shown
