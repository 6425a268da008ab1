import sys
from pathlib import Path

import pytest

from benchmarks.errors import RunFailed
from benchmarks.machine import ROOT, WORKING_TREE, Usage, checkout, describe, name_of, run_alone


def python(code: str, tree: Path = ROOT) -> Usage:
    return run_alone([sys.executable, "-S", "-c", code], tree)


def test_a_command_has_a_folder_of_its_own_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    used = python("import os; assert not os.listdir() and os.environ['OMP_NUM_THREADS'] == '1'")
    assert used.cpu_seconds > 0
    assert used.wall_seconds > 0


@pytest.mark.whole
def test_peak_memory_is_in_mib() -> None:
    # Linux counts what the parent had when it started the process, too.
    assert python("b'x' * (3000 * 2**20)").peak_mib == pytest.approx(3000, rel=0.1)


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
    with pytest.raises(RunFailed, match=r"^exit code 3$"):
        python("import os; os._exit(3)")


@pytest.mark.skipif(name_of(WORKING_TREE) == "unknown", reason="this is no checkout of git")
def test_a_revision_is_taken_as_it_was_committed() -> None:
    with checkout("HEAD") as tree:
        assert (tree / "conf" / "config.yaml").exists()
        assert not (tree / ".git").exists()
    assert not tree.exists()
    with checkout(WORKING_TREE) as tree:
        assert tree == ROOT
