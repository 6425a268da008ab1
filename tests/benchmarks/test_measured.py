"""The benchmarks of commands on large tables."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.machine import Usage
from tests.conftest import succeeded


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "rows", "figures"),
    [
        ("evaluate", ["300 x 40"], ["cpu_seconds", "wall_seconds", "peak_mib"]),
        ("tables", ["csv", "parquet"], ["cpu_seconds", "peak_gigabytes", "frame_gigabytes"]),
        ("live", ["decide", "live decide", "live outcomes", "live learn", "live status"], ["300 x 40"]),
    ],
)
def test_commands_are_measured(
    name: str, rows: list[str], figures: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_here(command: Sequence[str]) -> Usage:
        succeeded(*command[3:], cwd=tmp_path)
        return Usage(1.0, 1.0, 1000.0)

    module = import_module(f"benchmarks.{name}")
    monkeypatch.setattr(module, "run_alone", run_here)
    table = module.measured(300, 40)
    assert ({*rows} <= {*table.index}, [*table]) == (True, figures)
    assert (table > 0).all(axis=None)
