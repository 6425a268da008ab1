"""The soak test finds what is wrong, and nothing where nothing is."""

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import nonsense, soak
from benchmarks.__main__ import main
from benchmarks.in_process import Ended
from benchmarks.soak import INPUTS, again
from fairall import experiment

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def soaked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code and output of the command."""

    def run(*words: str) -> tuple[int, str]:
        code = main(["soak", "--out", str(tmp_path), *words])
        return code, capsys.readouterr().out

    return run


def test_a_few_inputs_of_all_kinds(soaked: Run, tmp_path: Path) -> None:
    code, said = soaked("--kills", "0", "--inputs", str(2 * len(INPUTS)), "--seed", "1")
    rows = {words[0]: words[1:] for words in map(str.split, said.splitlines()) if words[0] in INPUTS}
    assert {kind: counts[0] for kind, counts in rows.items()} == dict.fromkeys(INPUTS, "2")
    assert code == int(any(counts[-1] != "0" for counts in rows.values()))


def test_a_planted_fault_is_found_with_what_reproduces_it(
    soaked: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        Path("left behind").touch()
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(soak, "command_line", lambda chance: ["model=fairlog"])
    monkeypatch.setattr(experiment, "job", broken)
    monkeypatch.setattr(soak, "INPUTS", {"overrides": INPUTS["overrides"]})
    monkeypatch.setattr(soak, "_policy", contextlib.nullcontext)  # not needed for overrides
    code, said = soaked("--kills", "0", "--inputs", "2")
    assert code == 1
    assert said.count("ZeroDivisionError: planted") == 2
    assert "again: python -m benchmarks soak --seed 0 --only overrides:1" in said
    assert (tmp_path / "overrides-1" / "left behind").exists()
    code, said = soaked("--only", "overrides:1")
    assert (code, said.count("ZeroDivisionError: planted")) == (1, 1)
    monkeypatch.undo()
    assert not again("overrides:1", 0, tmp_path).failures


def test_a_signal_to_a_command_ends_the_soak(soaked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_policy", contextlib.nullcontext)
    monkeypatch.setattr(soak, "INPUTS", {"overrides": lambda *_: Ended(["fairall"], 143, "", "")})
    assert soaked("--kills", "0", "--inputs", "5")[0] == 130


def test_a_run_is_killed_and_ends_as_if_it_had_not_been(soaked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "MODELS", ["fairlog"])
    monkeypatch.setattr(soak, "WORLDS", [""])
    code, said = soaked("--kills", "1", "--inputs", "0")
    assert (code, said.splitlines()[-1].split()) == (0, ["kills", "1", "1", "0", "0"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("metrics.csv", "metrics.csv is not that of the run that was not killed"),
        ("decisions.csv", "decisions.csv is not that of the run that was not killed"),
        ("summary.json", "summary.json is not that of the run that was not killed"),
        (".metrics.csv.x1", "left outputs/runs/m/d/1/.metrics.csv.x1"),
        ("../../../../../core", "left core"),
    ],
)
def test_what_a_killed_run_has_made_is_compared_byte_for_byte(name: str, said: str, tmp_path: Path) -> None:
    calm, hunted = tmp_path / "calm", tmp_path / "hunted"
    for place in (calm, hunted):
        run = place / "outputs" / "runs" / "m" / "d" / "1"
        run.mkdir(parents=True)
        for file in ("DONE", *soak.COMPARED):
            (run / file).write_bytes(b"1")
    soak._compare(calm, hunted)
    (run / name).write_bytes(b"2")
    with pytest.raises(soak.FaultError) as fault:
        soak._compare(calm, hunted)
    assert str(fault.value) == said


def test_the_same_seed_gives_the_same_inputs() -> None:
    for make in (nonsense.command_line, nonsense.yaml_text, lambda chance: nonsense.damaged(chance, b"a,b")):
        one, other = ([make(random.Random(f"0 {n}")) for n in range(20)] for _ in range(2))
        assert one == other
        assert len({str(made) for made in one}) > 5


@pytest.mark.parametrize("word", ["overrides", "nope:1", "kills:x"])
def test_a_case_is_a_kind_and_a_number(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["soak", "--only", word]) == 1
    assert "it must be KIND:NUMBER, KIND one of kills, overrides" in capsys.readouterr().err
