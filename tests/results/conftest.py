from functools import partial
from pathlib import Path

import pytest

from tests.report.conftest import MakeRun, lay_down


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """`lay_down` in the test's folder."""
    return partial(lay_down, tmp_path)
