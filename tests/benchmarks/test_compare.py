from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import campaign, compare, measure
from benchmarks.__main__ import main
from benchmarks.errors import RunFailed
from benchmarks.parts import TOTAL
from benchmarks.revisions import ROOT, WORKING_TREE, checkout, name_of
from tests.benchmarks.conftest import Measured

in_git = pytest.mark.skipif(name_of(WORKING_TREE) == "unknown", reason="this is no checkout of git")
ONE = ["--models", "fairlog", "--datasets", "credit", "--seeds", "1"]


@in_git
def test_two_revisions_run_in_turn(
    monkeypatch: pytest.MonkeyPatch, measured: Callable[[float], Measured], tmp_path: Path
) -> None:
    ran: list[tuple[list[str], Path]] = []
    seconds = iter([10.0, 5.0, 20.0, 12.0, 30.0, 30.0])

    def measure(overrides: Sequence[str], tree: Path) -> Measured:
        assert (tree / "fairall").is_dir()
        ran.append((list(overrides), tree))
        return measured(next(seconds))

    monkeypatch.setattr(campaign, "measure", measure)
    words = ["HEAD", ".", "--repeats", "3", "--out", str(tmp_path), *ONE]
    assert main(["compare", *words, "--", "preset=quick"]) == 0
    trees = [tree for _, tree in ran]
    assert trees == 3 * trees[:2]
    assert trees[1] == ROOT != trees[0]
    assert not trees[0].exists()
    command = ["model=fairlog", "dataset=credit", "seeds=1", "preset=quick"]
    assert all(overrides == command for overrides, _ in ran)

    table = compare.ratios(pd.read_csv(tmp_path / "measurements.csv"), "cpu_seconds")["Phase II"]
    assert table.to_dict() == pytest.approx(
        {
            ("fairlog", "credit", 1, row): value
            for row, value in {"A": 20, "B": 12, "B/A": 0.6, "least": 0.5, "most": 1}.items()
        }
    )
    report = (tmp_path / "report.md").read_text()
    assert f"- A: {name_of('HEAD')}\n- B: {name_of(WORKING_TREE)}\n" in report
    assert "## Seconds on the clock" in report


def test_a_revision_that_fails_leaves_the_other(
    monkeypatch: pytest.MonkeyPatch,
    measured: Callable[[float], Measured],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    results = iter([measured(1.0)])

    def measure(overrides: Sequence[str], tree: Path) -> Measured:
        for result in results:
            return result
        raise RunFailed("preset: no such key")

    monkeypatch.setattr(campaign, "measure", measure)
    assert main(["compare", ".", ".", "--repeats", "1", "--out", str(tmp_path), *ONE]) == 0
    said = capsys.readouterr()
    assert said.err == "left out: model=fairlog dataset=credit seeds=1 revision=B: preset: no such key\n"
    assert "| B " not in said.out


def test_a_revision_without_a_probe_tells_its_total(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run_alone(command: Sequence[str], tree: Path) -> tuple[float, float]:
        assert command[1:] == ["-m", "fairall", "seeds=1"]
        assert tree == tmp_path
        return 2.0, 3.0

    monkeypatch.setattr(measure, "run_alone", run_alone)
    parts = measure.measure(["seeds=1"], tmp_path)
    assert set(parts) == {TOTAL}
    assert (parts[TOTAL].cpu_seconds, parts[TOTAL].wall_seconds) == (2, 3)


@in_git
def test_a_revision_is_taken_as_it_was_committed() -> None:
    with checkout("HEAD") as tree:
        assert (tree / "conf" / "config.yaml").exists()
        assert not (tree / ".git").exists()
