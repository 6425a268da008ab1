"""Tables of measurements; the commands themselves take made-up times."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import run
from benchmarks.__main__ import main
from benchmarks.errors import RunFailed
from benchmarks.machine import ROOT, WORKING_TREE, Usage, name_of
from fairall.cli.main import main as command

pytestmark = pytest.mark.whole


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """Commands take 1, 2, 4, ... seconds, but for those on meps, which fail; what was run."""
    commands: list[tuple[str, Path]] = []

    def run_alone(command: Sequence[str], tree: Path) -> Usage:
        commands.append((" ".join(command[3:]), tree))
        if "dataset=meps" in command:
            raise RunFailed("dataset.raw_file: there is no such file")
        seconds = 2.0 ** (len(commands) - 1)
        return Usage(seconds, seconds + 0.5, 400.0)

    monkeypatch.setattr(run, "run_alone", run_alone)
    monkeypatch.setattr(run, "compile_code", lambda tree: None)
    return commands


def test_commas_between_values_make_commands() -> None:
    words = ["model=a,b", "evaluation.window=[1,2]", "seeds=1,2"]
    assert [*run.combinations(words)] == [
        f"model={model} evaluation.window=[1,2] seeds={seeds}" for model in "ab" for seeds in (1, 2)
    ]
    assert len(run.combinations(run.METHODS)) == 20


def test_an_axis_changes_one_size(tmp_path: Path) -> None:
    lines = run.along(["seeds", "features", "threads"], ["model.beta=1"], tmp_path)
    run.refuse_mistyped(lines.values())
    assert lines["seeds=3"] == [*run.BASE, f"dataset.path={tmp_path}/1000_20.csv", "seeds=3", "model.beta=1"]
    assert lines["threads=2"][-3:] == ["seeds=100", "threads=2", "model.beta=1"]
    assert f"dataset.path={tmp_path}/1000_80.csv" in lines["features=80"]
    header, *people = (tmp_path / "1000_80.csv").read_text().splitlines()
    assert (header.count("x"), len(people)) == (80, 1000)
    columns = [word for word in run.BASE if word.startswith("dataset")]
    assert command(["data", "describe", str(tmp_path / "1000_5.csv"), *columns]) == 0


def test_medians_of_repeats_in_the_order_asked_for(
    ran: list[tuple[str, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["model=unfairlog,fairlog", "dataset=credit", "--repeats", "3", "--out", str(tmp_path)]
    assert main(["run", *words]) == 0
    assert [command.split()[0] for command, _ in ran] == 3 * ["model=unfairlog", "model=fairlog"]
    table = run.medians(pd.read_csv(tmp_path / "measurements.csv"))
    assert table.index.tolist() == ["model=unfairlog dataset=credit", "model=fairlog dataset=credit"]
    assert table.to_numpy().tolist() == [[4, 4.5, 400], [8, 8.5, 400]]
    report = (tmp_path / "report.md").read_text()
    assert report in capsys.readouterr().out
    assert main(["run", *words]) == 1
    assert "has measurements already" in capsys.readouterr().err


@pytest.mark.skipif(name_of(WORKING_TREE) == "unknown", reason="this is no checkout of git")
def test_two_revisions_run_in_turn(ran: list[tuple[str, Path]], tmp_path: Path) -> None:
    words = ["HEAD", ".", "model=fairlog,greedy", "--repeats", "2", "--out", str(tmp_path)]
    assert main(["compare", *words]) == 0
    commands, trees = zip(*ran, strict=True)
    assert [*commands] == 2 * ["model=fairlog", "model=fairlog", "model=greedy", "model=greedy"]
    assert ([*trees] == 4 * [*trees[:2]], trees[1] == ROOT != trees[0]) == (True, True)
    table = run.ratios(pd.read_csv(tmp_path / "measurements.csv")).loc["model=fairlog"]
    # A takes 1 and 16 seconds, B 2 and 32.
    assert table.loc["cpu_seconds", ["A", "B", "B/A", "least", "most"]].tolist() == [8.5, 17, 2, 2, 2]
    assert table.loc["wall_seconds", "least"] == pytest.approx(2.5 / 1.5)
    assert f"- A: {name_of('HEAD')}\n- B: {name_of(WORKING_TREE)}\n" in (tmp_path / "report.md").read_text()


def test_a_command_that_fails_is_reported_and_left_out(
    ran: list[tuple[str, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dataset=meps,credit", "--repeats", "2", "--out", str(tmp_path)]
    assert main(["run", *words]) == 0
    left_out = "left out: dataset=meps: dataset.raw_file: there is no such file\n"
    assert capsys.readouterr().err == left_out
    assert len(ran) == 3  # not tried again
    assert run.medians(pd.read_csv(tmp_path / "measurements.csv")).index.tolist() == ["dataset=credit"]
    assert main(["run", "dataset=meps", "--out", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == left_out + "benchmarks: nothing could be measured\n"
