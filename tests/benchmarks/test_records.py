from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.records import Records
from tests.benchmarks.conftest import Measured

LABELS = ("model", "seeds")
SETTING = {"benchmark": "phases", "overrides": ["preset=quick"], "revision": "abc"}
CASE = {"model": "fairlog", "seeds": 10}


def test_records_are_gone_on_with(measured: Callable[[float], Measured], tmp_path: Path) -> None:
    Records(tmp_path, LABELS, SETTING).append(CASE, 1, measured(5.0))
    again = Records(tmp_path, LABELS, SETTING)
    assert again.has(CASE, 1)
    assert not again.has(CASE, 2)
    assert not again.has(CASE | {"seeds": 1}, 1)
    again.append(CASE, 2, measured(6.0))
    lines = (tmp_path / "measurements.csv").read_text().splitlines()
    assert lines[0] == "model,seeds,repeat,part,cpu_seconds,wall_seconds,peak_mib,multiply_adds,bound_seconds"
    assert "fairlog,10,2,Phase II,6,6.5,400,nan,nan" in lines
    assert len(lines) == 1 + 2 * 4


def test_other_settings_do_not_mix(tmp_path: Path) -> None:
    Records(tmp_path, LABELS, SETTING)
    with pytest.raises(BenchmarkError, match=r"measurements with another overrides, revision$"):
        Records(tmp_path, LABELS, SETTING | {"overrides": [], "revision": "def"})
