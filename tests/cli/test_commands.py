"""The grammar of the command line: verbs, options, and exit codes."""

import shlex
from pathlib import Path

import pytest

from fairall import __version__
from fairall.cli.parser import COMMANDS, COMMON, read
from fairall.config.choices import VERBS
from tests.conftest import imported, succeeded, typed

HEAVY = ("hydra", "omegaconf", "torch", "pandas", "numpy", "matplotlib", "optuna", "mlflow", "sqlalchemy")


def test_first_words_of_commands_are_the_verbs() -> None:
    assert {name.split()[0] for name in COMMANDS} | {"run"} == {*VERBS}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "tune NAME"])
def test_every_command_describes_itself(name: str, tmp_path: Path) -> None:
    said = succeeded(*name.split(), "--help", cwd=tmp_path).stdout
    assert said.startswith(f"usage: python -m fairall {name} ")
    assert all(option.split()[0] in said for option in (*COMMANDS[name].options, *COMMON))


def test_help_has_every_verb_and_key(tmp_path: Path) -> None:
    said = succeeded("preset=quick", "--help", cwd=tmp_path).stdout
    assert {f"  {name:<16}{command.does}" for name, command in COMMANDS.items()} <= {*said.splitlines()}
    assert "\n  time_steps: 200 " in said
    assert "\nhydra:" not in said
    assert succeeded("--version", cwd=tmp_path).stdout == f"fairall {__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["decide", "--help"], ["list", "models", "--json"], ["list"]])
def test_help_and_lists_import_nothing_heavy(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where there are no runs, whose measures a list reads by pandas
    code = f"sys.argv[1:] = {words}\nfrom fairall.__main__ import main\ntry: main()\nexcept SystemExit: pass"
    assert imported(code, *HEAVY)[1] == []


def test_words_and_options_stand_in_any_order() -> None:
    words = ["a", "outputs_dir=x", "b", "-o", "place", "tracking.uri=u", "c"]
    assert read("compare", words) == {
        "json": False,
        "names": ["a", "b", "c"],
        "words": ["outputs_dir=x", "tracking.uri=u"],
        "out": Path("place"),
        "trust": [],
        "typed": shlex.join(["python", "-m", "fairall", "compare", *words]),
    }


def test_places_are_a_number_or_a_share() -> None:
    words = ["RUN", "people.csv", "-o", "out.csv", "--capacity"]
    places = [read("decide", [*words, word])["capacity"] for word in ("20%", "100%", "1")]
    assert repr(places) == "[0.2, 1.0, 1]"


@pytest.mark.parametrize(
    ("words", "run"),
    [
        ("tune fairlog seeds=2 -cd mine", "--multirun sweeps=fairlog seeds=2 -cd mine"),
        ("run model=greedy", "model=greedy"),
        ("", ""),
    ],
)
def test_words_of_runs(words: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[str] = []

    def recorded(words: list[str]) -> int:
        received.extend(words)
        return 0

    monkeypatch.setattr("fairall.cli.run.run", recorded)
    assert typed(*words.split(), cwd=tmp_path).returncode == 0
    assert received == run.split()


def test_options_of_a_run_stand_anywhere(tmp_path: Path) -> None:
    ended = succeeded("seeds=3", "--cfg", "job", "model=fairlog", "--package", "model", cwd=tmp_path)
    assert "fairall.models.fairlog.FairLog" in ended.stdout
