from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import campaign, own_table, scaling
from benchmarks.__main__ import main
from fairall.data.__main__ import main as data_command
from tests.benchmarks.conftest import Measured


def test_an_axis_changes_one_thing(tmp_path: Path) -> None:
    one, *_ = scaling.cases(["seeds"], tmp_path, ["model.beta=1"])
    assert one.overrides == [*scaling.BASE, f"dataset.path={tmp_path}/1000_20.csv", "seeds=1", "model.beta=1"]
    campaign.refuse_mistyped([scaling.cases([axis], tmp_path, [])[-1] for axis in scaling.AXES])


def test_nothing_stands_in_the_way_of_made_up_tables(tmp_path: Path) -> None:
    own_table.write_table(tmp_path / "small.csv", 1000, 4)
    assert data_command(["check", str(tmp_path / "small.csv"), *own_table.OVERRIDES]) == 0


def test_the_tables_of_an_axis_are_written(tmp_path: Path) -> None:
    scaling.write_tables(tmp_path, ["features"])
    read = {word for case in scaling.cases(["features"], tmp_path, []) for word in case.overrides}
    assert {f"dataset.path={path}" for path in tmp_path.iterdir()} <= read
    header, *people = (tmp_path / "1000_80.csv").read_text().splitlines()
    assert header.count("x") == 80
    assert len(people) == 1000


def test_exponents_are_those_of_the_cost() -> None:
    index = pd.MultiIndex.from_product([["seeds", "features"], [1, 10, 100]], names=scaling.LABELS)
    cpu = pd.DataFrame(
        {"Phase I": [1.0, 10, 100, 3, 300, 30000], "Exit": 3 * [2.0] + 3 * [float("nan")]}, index
    )
    fitted = scaling.exponents(cpu)
    assert fitted["Phase I"].to_dict() == pytest.approx({"seeds": 1, "features": 2})
    assert fitted["Exit"].to_dict() == pytest.approx({"seeds": 0, "features": float("nan")}, nan_ok=True)


def test_a_report_and_a_figure_per_axis_that_grows(
    monkeypatch: pytest.MonkeyPatch, measured: Callable[[float], Measured], tmp_path: Path
) -> None:
    def measure(overrides: Sequence[str], tree: Path) -> Measured:
        return measured(float(overrides[-1].rpartition("=")[2]))

    monkeypatch.setattr(campaign, "measure", measure)
    axes = ["seeds", "threads"]
    assert main(["scaling", "--axes", *axes, "--out", str(tmp_path), "--repeats", "1"]) == 0
    assert [path.name for path in tmp_path.glob("*.png")] == ["seeds.png"]
    assert "## Seconds on the clock" in (tmp_path / "report.md").read_text()
    (exponents,) = [
        line for line in (tmp_path / "report.md").read_text().splitlines() if "| seeds |" in line
    ][:1]
    start_up, phase_2, *_ = exponents.strip("| ").split(" | ")[1:]
    assert (float(start_up), float(phase_2)) == (0, 1)
