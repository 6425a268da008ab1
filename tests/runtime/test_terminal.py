"""Warnings that reach the terminal: what the user can mend, not what libraries cause in each other."""

import os
from pathlib import Path

from tests.conftest import own_process

MINE = """
import warnings
import numpy as np
def own():
    warnings.warn("mine")
    np.log(np.zeros(1))
def through():
    fit()
def fit():
    from sklearn.linear_model import LogisticRegression
    x = np.random.default_rng(0).normal(size=(50, 3))
    LogisticRegression(max_iter=1).fit(x, x[:, 0] > 0)
"""
LIBRARIES = """
from sklearn.linear_model import LogisticRegression
import numpy as np, scipy.linalg
x = np.random.default_rng(0).normal(size=(50, 3))
LogisticRegression(max_iter=1).fit(x, x[:, 0] > 0)
scipy.linalg.solve(np.array([[1.0, 1.0], [1.0, 1.0 + 3e-16]]), np.ones(2))
"""


def said(work: str, folder: Path, *options: str) -> str:
    """Standard error of some work of a command of the package."""
    (folder / "mine.py").write_text(MINE)
    program = f"from fairall.runtime import terminal\nterminal.prepare()\n{work}"
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    ended = own_process(*options, "-c", program, check=True, env=os.environ | {"PYTHONPATH": path})
    return ended.stderr


def test_warnings_of_ones_own_code_are_shown(tmp_path: Path) -> None:
    shown = said("import mine\nmine.own()", tmp_path)
    assert "UserWarning: mine" in shown
    assert "RuntimeWarning: divide by zero" in shown


def test_what_ones_own_code_causes_in_a_library_is_shown(tmp_path: Path) -> None:
    assert "ConvergenceWarning" in said("import mine\nmine.through()", tmp_path)


def test_what_libraries_cause_in_each_other_is_not(tmp_path: Path) -> None:
    assert "Warning" not in said(LIBRARIES, tmp_path)


def test_all_are_shown_that_pythons_option_says(tmp_path: Path) -> None:
    assert "ConvergenceWarning" in said(LIBRARIES, tmp_path, "-W", "always")


def test_a_warning_of_this_package_is_shown(tmp_path: Path) -> None:
    work = """
from fairall.runtime import terminal
import warnings
ours = compile("import warnings\\nwarnings.warn('of ours')", terminal.PACKAGE + "/models/some.py", "exec")
exec(ours)
"""
    assert "UserWarning: of ours" in said(work, tmp_path)
