from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import compare
from benchmarks.__main__ import main
from benchmarks.errors import RunFailed
from benchmarks.revisions import ROOT, checkout, current

in_git = pytest.mark.skipif(current() == "unknown", reason="this is no checkout of git")


@in_git
def test_two_revisions_run_in_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[tuple[list[str], Path]] = []
    seconds = iter([10.0, 5.0, 20.0, 12.0, 30.0, 30.0])

    def run_alone(command: Sequence[str], tree: Path) -> tuple[float, float]:
        assert (tree / "fairall" / "experiment.py").exists()
        ran.append((list(command[1:]), tree))
        return next(seconds), 0.0

    monkeypatch.setattr(compare, "run_alone", run_alone)
    assert main(["compare", "HEAD", ".", "--repeats", "3", "--", "preset=quick"]) == 0
    (a, b), trees = ran[0][1:] + ran[1][1:], [tree for _, tree in ran]
    assert trees == 3 * [a, b]
    assert b == ROOT != a
    assert not a.exists()
    assert all(words == ["-m", "fairall", "preset=quick"] for words, _ in ran)
    said = capsys.readouterr().out
    assert "1 of 3: A 10.00 s, B 5.00 s, B/A 0.500\n" in said
    assert "A, HEAD: median of 20.00 CPU seconds\nB, .: median of 12.00 CPU seconds\n" in said
    assert said.endswith("B/A: median 0.600, from 0.500 to 1.000\n")


def test_a_run_that_fails_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_alone(command: Sequence[str], tree: Path) -> tuple[float, float]:
        raise RunFailed("modle: no such key")

    monkeypatch.setattr(compare, "run_alone", run_alone)
    assert main(["compare", ".", ".", "--", "modle=x"]) == 1
    assert capsys.readouterr().err == "benchmarks: .: modle: no such key\n"


@in_git
def test_a_revision_is_taken_as_it_was_committed() -> None:
    with checkout("HEAD") as tree:
        assert (tree / "conf" / "config.yaml").exists()
        assert not (tree / ".git").exists()
