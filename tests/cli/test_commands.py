"""The grammar of the command line: verbs, options of all, and exit codes."""

import json
import shutil
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.utils import get_args_parser

from fairall.cli.parser import COMMANDS, Parser, in_words
from fairall.cli.run import _parser
from fairall.config.choices import VERBS, VERBS_ALSO_CALLED
from tests.conftest import imported, run_folder, succeeded, typed

QUICK = ["model=fairlog", "preset=quick", "seeds=1", "schedule.warm_up_epochs=1", "tracking.enabled=false"]
HEAVY = ("hydra", "omegaconf", "torch", "pandas", "numpy", "matplotlib", "optuna", "mlflow")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, made with the verb of runs and an option of all verbs."""
    folder = tmp_path_factory.mktemp("made")
    succeeded("run", *QUICK, "--outputs", "our runs", cwd=folder)
    assert run_folder(folder / "our runs").exists()
    return folder


def test_other_names_of_verbs_are_no_verbs() -> None:
    assert {*VERBS_ALSO_CALLED} <= {*VERBS}
    names = " ".join(VERBS_ALSO_CALLED.values()).split()
    assert len({*names, *VERBS}) == len(names) + len(VERBS)


def test_every_command_is_a_verb_and_describes_itself(tmp_path: Path) -> None:
    assert {name.split()[0] for name in COMMANDS} | {"run"} == {*VERBS}
    for name in COMMANDS:
        ended = succeeded(*name.split(), "--help", cwd=tmp_path)
        assert ended.stdout.startswith(f"usage: python -m fairall {name} ")
        assert "Exit codes: 0 done" in ended.stdout
    helped = typed("--help", cwd=tmp_path).stdout
    assert all(f"  {name} " in helped for name in COMMANDS)
    assert "Exit codes: 0 done" in helped


@pytest.mark.parametrize("verb", ["tune", "data", "mlflow"])
def test_help_of_a_verb_of_several_lists_them(verb: str, tmp_path: Path) -> None:
    ended = typed(verb, "--help", cwd=tmp_path)
    assert ended.returncode == 0
    assert [line.split()[4] for line in ended.stdout.splitlines()] == [
        name.split()[1] for name in COMMANDS if name.startswith(f"{verb} ")
    ]


def test_help_and_lists_import_nothing_heavy(tmp_path: Path) -> None:
    for words in (["decide", "--help"], ["list", "models", "--json"]):
        code = (
            f"sys.argv[1:] = {words}\nfrom fairall.cli.main import main\ntry: main()\nexcept SystemExit: pass"
        )
        assert imported(code, *HEAVY)[1] == []
    code = f"sys.argv[1:] = ['list', 'outputs_dir={tmp_path}']\nfrom fairall.cli.main import main; main()"
    assert set(imported(code, *HEAVY)[1]) <= {"omegaconf"}


def test_options_are_words(tmp_path: Path) -> None:
    words = ["show", "--outputs", "a b", "--tracking-uri=http://host:1/x", "--json", "model=x"]
    expected = ['outputs_dir="a b"', 'tracking.uri="http://host:1/x"', "--json", "model=x"]
    assert in_words(words)[1:] == expected
    assert Parser("list").read(["--outputs", "runs/of_mine", "models"]).words == ["outputs_dir=runs/of_mine"]


def document(*words: str, cwd: Path) -> object:
    ended = succeeded(*words, "--json", cwd=cwd)
    return json.loads(ended.stdout)


def test_documents(made: Path) -> None:
    run = run_folder(made / "our runs")
    listed = document("list", "--outputs", "our runs", cwd=made)
    assert isinstance(listed, dict)
    assert listed["models"]["fairlog"]
    ((one,),) = [listed["runs"]]
    assert (one["id"], one["state"], one["reason"]) == (run.name, "quick", "")
    shown = document("show", run.name[:5], "--outputs=our runs", cwd=made)
    assert isinstance(shown, dict)
    summary = json.loads((run / "summary.json").read_text())
    assert {name: shown[name] for name in summary} == summary
    assert shown["config"]["model"]["name"] == "fairlog"
    assert shown["state"] == "finished"
    mean = summary["aggregate"]["mean_utility"]["mean"]
    assert one["measures"]["mean_utility"][0] == mean


def test_decisions_as_a_document(made: Path) -> None:
    from fairall import load_policy

    run = run_folder(made / "our runs")
    load_policy(run).reader.example().to_csv(made / "people.csv", index=False)
    plain = document("decide", str(run), "people.csv", "-o", "out.csv", cwd=made)
    assert isinstance(plain, dict)
    assert plain["groups"]["all"]["people"] == (made / "out.csv").read_text().count("\n") - 1
    assert (plain["method"], plain["mean_spread"], plain["decisions"]) == ("fairlog", None, "out.csv")


def test_show_of_an_unfinished_run_as_a_document(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "our runs", tmp_path / "outputs")
    run = run_folder(tmp_path / "outputs")
    (run / "DONE").unlink()
    shown = document("show", run.name, cwd=tmp_path)
    assert isinstance(shown, dict)
    assert (shown["state"], shown["time_steps"]) == ("interrupted", 8)


def test_files_of_people(tmp_path: Path) -> None:
    for name in ("people.txt", "credit"):
        (tmp_path / name).write_text("age,sex\n")
    ended = typed("data", "describe", "people.txt", cwd=tmp_path)
    assert ended.stderr == "fairall: people.txt is a file: python -m fairall data check people.txt\n"
    assert typed("data", "fetch", "credit", cwd=tmp_path).stderr == "fairall: credit needs no raw file\n"
    ended = typed("decide", "RUN", "people.txt", "sep=;", "-o", "out.csv", cwd=tmp_path)
    assert "no such key, did you mean separator?" in ended.stderr


@pytest.mark.parametrize(
    ("words", "run"),
    [
        ("tune fairlog seeds=2 -cd mine", "--multirun sweeps=fairlog seeds=2 -cd mine"),
        ("run model=greedy", "model=greedy"),
        ("--outputs there model=greedy --tracking-uri=u", "outputs_dir=there model=greedy tracking.uri=u"),
        ("", ""),
    ],
)
def test_words_of_runs(words: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def kept(words: list[str]) -> int:
        given.extend(words)
        return 0

    monkeypatch.setattr("fairall.cli.run.run", kept)
    assert typed(*words.split(), cwd=tmp_path).returncode == 0
    assert given == run.split()


def test_options_of_a_run_are_those_of_hydra() -> None:
    """Hydra has no public list of them."""

    def options(parser: ArgumentParser) -> dict[tuple[str, ...], tuple[Any, Any]]:
        return {tuple(sorted(one.option_strings)): (one.nargs, one.choices) for one in parser._actions}

    theirs = options(get_args_parser())
    assert {
        name: (nargs, choices and [*choices]) for name, (nargs, choices) in options(_parser()).items()
    } == theirs
