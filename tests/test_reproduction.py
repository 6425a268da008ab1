"""Whole runs at the paper's settings: minutes each, by hand with `pytest -m slow`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_fairall_on_credit_is_near_the_papers_figures(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "fairall",
        "model=fairall_I_II",
        "dataset=credit",
        "tracking.enabled=false",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    (path,) = tmp_path.glob("outputs/runs/*/*/*/summary.json")
    mean = {
        name: figures["mean"]
        for name, figures in json.loads(path.read_text())["aggregate"].items()
        if figures is not None
    }
    # Paper, ×100: 20.3 (0.5), 18.8 (1.3), 5.0 (5.0).
    assert 0.193 <= mean["effective_utility"] <= 0.22
    assert mean["mean_utility"] >= 0.17
    assert mean["mean_dpu"] <= 0.08
