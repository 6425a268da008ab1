from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import campaign, phases
from benchmarks.__main__ import main
from benchmarks.errors import RunFailed
from benchmarks.parts import PARTS, TOTAL
from tests.benchmarks.conftest import Measured

SMALL = [
    "preset=quick", "schedule.phase1_epochs=1", "schedule.warm_up_epochs=1", "schedule.time_steps=2",
    "evaluation.window=[1,2]",
]  # fmt: skip


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, empty_store: Callable[[Path], str]) -> Path:
    """The folder of one small measurement."""
    folder, store = tmp_path_factory.mktemp("phases"), empty_store(tmp_path_factory.mktemp("store"))
    words = ["--models", "fairall_I_II", "--datasets", "credit", "--seeds", "1", "--repeats", "1"]
    assert main(["phases", *words, "--out", str(folder), "--", *SMALL, f"tracking.uri={store}"]) == 0
    return folder


def test_the_parts_of_a_run_add_up_to_the_process(real: Path) -> None:
    measured = pd.read_csv(real / "measurements.csv").set_index("part")
    assert set(measured.index) == set(PARTS)
    seconds = measured[["cpu_seconds", "wall_seconds"]]
    # What the probe saw is no more than what was seen from outside.
    assert seconds.to_numpy(dtype=float).min() > 0
    assert seconds.drop(TOTAL).sum().to_numpy() == pytest.approx(seconds.loc[TOTAL].to_numpy(), rel=1e-3)
    assert measured["peak_mib"].max() == measured["peak_mib"][TOTAL]


def test_products_are_counted_where_nets_are_trained(real: Path) -> None:
    parts = pd.read_csv(real / "measurements.csv").set_index("part")
    assert parts["multiply_adds"]["Start-up"] == 0
    beside = phases.beside_bound(pd.read_csv(real / "medians.csv"))
    assert beside.index.get_level_values("part").tolist() == list(phases.WITH_NETS)
    assert (beside["bound"] > 0).all()
    assert (beside["ratio"] > 1).all(), "one core does not do more than its products"
    whole = parts.drop(TOTAL)["multiply_adds"].sum()
    assert whole == pytest.approx(parts["multiply_adds"][TOTAL], rel=1e-3)


def test_what_a_benchmark_leaves(real: Path) -> None:
    assert {path.name for path in real.iterdir()} == {
        "measurements.csv", "medians.csv", "report.md", "setting.json", "cpu_credit.png",
    }  # fmt: skip
    report = (real / "report.md").read_text()
    for words in (
        "- torch: ",
        "- revision: ",
        "`preset=quick ",
        "## CPU seconds",
        "10⁹ multiply-adds",
        "| fairall_I_II | credit ",
    ):
        assert words in report


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, measured: Callable[[float], Measured]) -> list[str]:
    """Runs that take 1, 2, 4, 8, ... seconds, but for those on meps; what was run."""
    commands: list[str] = []

    def measure(overrides: Sequence[str], tree: Path) -> Measured:
        commands.append(" ".join(overrides))
        if "dataset=meps" in overrides:
            raise RunFailed("dataset.raw_file: there is no such file")
        return measured(2.0 ** (len(commands) - 1))

    monkeypatch.setattr(campaign, "measure", measure)
    return commands


def run(folder: Path, *words: str, models: Sequence[str] = ("fairlog",)) -> int:
    return main(["phases", "--models", *models, "--seeds", "1", "--out", str(folder), *words])


def test_figures_are_medians_of_repeats(fake: list[str], tmp_path: Path) -> None:
    assert run(tmp_path, "--datasets", "credit", "--repeats", "3") == 0
    medians = pd.read_csv(tmp_path / "medians.csv").set_index("part")
    assert medians.loc["Phase II", ["repeats", "cpu_seconds", "wall_seconds"]].tolist() == [3, 2, 2.5]
    assert medians.loc["Total", "cpu_seconds"] == 5
    assert main(["render", str(tmp_path)]) == 0


def test_every_case_comes_before_any_again(fake: list[str], tmp_path: Path) -> None:
    both = ["unfairlog", "fairlog"]
    assert run(tmp_path, "--datasets", "credit", "--repeats", "2", models=both) == 0
    assert [command.split()[0] for command in fake] == 2 * ["model=unfairlog", "model=fairlog"]
    rows = [line for line in (tmp_path / "report.md").read_text().splitlines() if "| credit " in line]
    assert ["unfairlog" in row for row in rows] == 3 * [True, False]


def test_what_was_measured_is_not_measured_again(fake: list[str], tmp_path: Path) -> None:
    assert run(tmp_path, "--datasets", "credit", "--repeats", "1") == 0
    assert run(tmp_path, "--datasets", "credit", "synthetic", "--repeats", "1") == 0
    assert len(fake) == 2
    assert (tmp_path / "cpu_synthetic.png").exists()


def test_a_run_that_fails_is_told_and_left_out(
    fake: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--datasets", "meps", "credit", "--repeats", "2") == 0
    said = capsys.readouterr()
    left_out = "left out: model=fairlog dataset=meps seeds=1: dataset.raw_file: there is no such file\n"
    assert said.err == left_out
    assert len(fake) == 3  # not tried again
    assert "| meps" not in said.out
    assert run(tmp_path / "none", "--datasets", "meps") == 1
    assert capsys.readouterr().err == left_out + "benchmarks: nothing could be measured\n"
