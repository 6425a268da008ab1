"""The soak test finds faults; random inputs end well or in one line (`$FAIRALL_FUZZ` tries more)."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import soak
from benchmarks.__main__ import main
from benchmarks.in_process import Ended
from benchmarks.inputs import ATTACKS, CHANGES
from benchmarks.soak import INPUTS, Soak, fault, saved_policy
from fairall import experiment
from fairall.errors import FairAllError
from fairall.policy import SUMS, Policy
from fairall.storage.files import write_sums
from tests.conftest import examples
from tests.decide.conftest import made

pytestmark = pytest.mark.whole
NONE = ["--verbs", "0", "--inputs", "0"]

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def soaked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code and output of the command."""

    def run(*words: str) -> tuple[int, str]:
        code = main(["soak", "--out", str(tmp_path), *NONE, *words])
        return code, capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def policy() -> Iterator[Path]:
    with saved_policy() as saved:
        yield saved


@pytest.mark.parametrize("kind", INPUTS)
def test_random_inputs_end_well_or_in_one_line(
    kind: str, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tries = Soak(0, tmp_path)
    for number in range(examples(30 if kind in ("overrides", "files") else 10)):
        tries.try_input(kind, number, policy)
    assert (kind, "failed") not in tries.ended, capsys.readouterr().out


def test_a_planted_fault_is_found_with_what_reproduces_it(
    soaked: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        Path("left behind").touch()
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(soak, "command_line", lambda chance: ["model=fairlog"])
    monkeypatch.setattr(experiment, "job", broken)
    monkeypatch.setattr(soak, "INPUTS", {"overrides": INPUTS["overrides"]})
    monkeypatch.setattr(soak, "saved_policy", contextlib.nullcontext)  # not needed for overrides
    code, said = soaked("--inputs", "2")
    assert code == 1
    assert said.count("ZeroDivisionError: planted") == 2
    assert "again: python -m benchmarks soak --seed 0 --only overrides:1" in said
    assert (tmp_path / "overrides-1" / "left behind").exists()
    code, said = soaked("--only", "overrides:1")
    assert (code, said.count("ZeroDivisionError: planted")) == (1, 1)
    monkeypatch.setattr(experiment, "job", lambda *_: pytest.fail("not called"))
    monkeypatch.setattr(soak, "command_line", lambda chance: ["--version"])
    assert soaked("--only", "overrides:1")[0] == 0


def test_commands_of_a_ledger_are_killed(soaked: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = soaked("--verbs", "10")
    assert (code, said.splitlines()[-1].split()) == (0, ["verbs", "10", "0", "0"]), said
    monkeypatch.setattr("benchmarks.kills.OF_CHANCE", [])  # so that no two ledgers are alike
    code, said = soaked("--only", "verbs:0")
    assert (code, "--only verbs:0" in said) == (1, True)


@pytest.mark.parametrize(
    ("code", "error", "wrong"),
    [
        (0, "", None),
        (1, "fairall: no\n", None),
        (3, "", "exit code 3"),
        (2, "", "0 lines of error"),
        (1, "a\nb\n", "2 lines of error"),
        (1, "Traceback\n", "a traceback"),
        (0, "oh\n", "exit code 0 with an error"),
    ],
)
def test_what_counts_as_a_fault(code: int, error: str, wrong: str | None, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    ended = Ended(["fairall"], code, "", error)
    assert fault(ended, tmp_path, set()) == wrong
    (tmp_path / "left").touch()
    assert fault(ended, tmp_path, set()) == (wrong or "left left")
    assert fault(ended, tmp_path, {"left"}) == wrong


@pytest.mark.filterwarnings("ignore::UserWarning")  # of values that were replaced
@pytest.mark.parametrize("model", ["fairlog", "fairall_I_II"])
def test_a_hostile_policy_gives_probabilities_or_one_line(model: str, tmp_path: Path) -> None:
    made(tmp_path, f"model={model}")
    other, said = tmp_path / "other", list[str]()
    other.mkdir()
    whole = {name: (tmp_path / "policy" / name).read_bytes() for name in CHANGES}
    for attack in ATTACKS:
        for name, content in attack(whole).items():
            (other / name).write_bytes(content)
        try:
            write_sums(other / SUMS, [*CHANGES])  # refuses files that are larger than their kind
            policy = Policy.load(other)
            policy.combined(policy.propensity(policy.reader.example()))
        except FairAllError as error:
            said.append(str(error))
    assert len(ATTACKS) - len(said) <= 2  # each method lacks keys of the other
    assert all("\n" not in line and len(line) < 1000 for line in said)
