"""Warnings that reach the terminal: not those of libraries, unless Python's option says so."""

import os
from pathlib import Path

import pytest

from tests.conftest import own_process

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
def test_warnings_of_libraries_are_not_shown_unless_pythons_option_says_so(options: list[str]) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    said = own_process(*options, "-c", LIBRARIES, check=True, env=environment).stderr
    all_shown = bool(options)
    assert said.count("UserWarning: for you") == 2
    assert said.count("RuntimeWarning: divide by zero") == 1 + all_shown
    assert ("ConvergenceWarning" in said) == all_shown
