import sys
from pathlib import Path

import pytest

from benchmarks.errors import RunFailed
from benchmarks.machine import describe
from benchmarks.process import run_alone
from benchmarks.revisions import ROOT


def python(code: str, tree: Path = ROOT) -> tuple[float, float]:
    return run_alone([sys.executable, "-S", "-c", code], tree)


def test_a_command_has_a_folder_of_its_own_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cpu, wall = python("import os; assert not os.listdir() and os.environ['OMP_NUM_THREADS'] == '1'")
    assert cpu > 0
    assert wall > 0


def test_openblas_chooses_its_kernels_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "1048576")
    python("import os; assert not [name for name in os.environ if name.startswith('OPENBLAS')]")
    assert describe()["unset"] == "OPENBLAS_CORETYPE=Haswell, OPENBLAS_L2_SIZE=1048576"


def test_python_finds_the_packages_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "fairall.py").touch()
    python(f"import fairall; assert fairall.__file__.startswith({str(tmp_path)!r})", tmp_path)


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(RunFailed, match=r"^no such key$"):
        python("import sys; print('Note', file=sys.stderr); sys.exit('fairall: no such key')")
    with pytest.raises(RunFailed, match="ended with code 3 and said nothing"):
        python("import os; os._exit(3)")
