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
    assert one.overrides == [*scaling.BASE, f"dataset.path={tmp_path}/16.csv", "seeds=1", "model.beta=1"]
    campaign.refuse_mistyped([scaling.cases([axis], tmp_path, [])[-1] for axis in scaling.AXES])


def test_nothing_stands_in_the_way_of_made_up_tables(tmp_path: Path) -> None:
    own_table.write_table(tmp_path / "4.csv", 4)
    assert data_command(["check", str(tmp_path / "4.csv"), *own_table.OVERRIDES]) == 0


def test_exponents_are_those_of_the_cost() -> None:
    index = pd.MultiIndex.from_product([["seeds", "features"], [1, 10, 100]], names=scaling.LABELS)
    cpu = pd.DataFrame(
        {"Phase I": [1.0, 10, 100, 3, 300, 30000], "Exit": 3 * [2.0] + 3 * [float("nan")]}, index
    )
    fitted = scaling.exponents(cpu)
    assert fitted["Phase I"].to_dict() == pytest.approx({"seeds": 1, "features": 2})
    assert fitted["Exit"].to_dict() == pytest.approx({"seeds": 0, "features": float("nan")}, nan_ok=True)


def test_a_report_and_a_figure_per_axis(
    monkeypatch: pytest.MonkeyPatch, measured: Callable[[float], Measured], tmp_path: Path
) -> None:
    def measure(overrides: Sequence[str]) -> Measured:
        (seeds,) = (word for word in overrides if word.startswith("seeds="))
        return measured(float(seeds.removeprefix("seeds=")))

    monkeypatch.setattr(campaign, "measure", measure)
    assert main(["scaling", "--axes", "seeds", "--out", str(tmp_path), "--repeats", "1"]) == 0
    assert (tmp_path / "seeds.png").exists()
    (exponents,) = [
        line for line in (tmp_path / "report.md").read_text().splitlines() if "| seeds |" in line
    ][:1]
    start_up, phase_2, *_ = exponents.strip("| ").split(" | ")[1:]
    assert (float(start_up), float(phase_2)) == (0, 1)
