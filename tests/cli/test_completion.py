"""What a shell offers at TAB, from the shells themselves."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairall.cli.completion import completions
from fairall.config.choices import choices
from tests.conftest import CHECKOUT, imported


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A `fairall` on the path, and a folder with a run."""
    command = tmp_path / "bin" / "fairall"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fairall "$@"\n')
    command.chmod(0o755)
    run = tmp_path / "outputs" / "runs" / "greedy" / "credit" / "0a1b2c3d4e5f"
    run.mkdir(parents=True)
    (run / "config.yaml").touch()
    (run.parent / "no_run").mkdir()
    (tmp_path / "loans.csv").touch()
    return {"PATH": f"{command.parent}:/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT), "HOME": str(tmp_path)}


LINES = {
    "fairall mod": ["model="],
    "fairall model=fairl": ["fairlab_I_II", "fairlog"],
    "fairall model=greedy sched": ["schedule."],
    "fairall schedule.time": ["schedule.time_steps="],
    "fairall model=adopt model.adaptation_u": ["model.adaptation_updates="],
    "fairall show ": ["0a1b2c3d4e5f", "outputs_dir="],
    "fairall list st": ["studies"],
    "fairall tune export": ["export"],
    "fairall data describe cred": ["credit"],
    "fairall evaluate loans.csv --pol": ["--policy"],
    "fairall --multir": ["--multirun"],
    "fairall --cfg h": ["hydra"],
    "fairall completion z": ["zsh"],
}


def test_completion_in_bash(environment: dict[str, str], tmp_path: Path) -> None:
    asked = "".join(
        f"COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_WORDS=(fairall) COMPREPLY=()\n"
        '_fairall; echo "${COMPREPLY[*]}"\n'
        for line in LINES
    )
    ended = subprocess.run(
        ["bash", "--norc", "-c", f'eval "$(fairall completion bash)"; complete -p fairall\n{asked}'],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stderr == ""
    registered, *found = ended.stdout.splitlines()
    assert registered == "complete -o default -F _fairall fairall"
    assert dict(zip(LINES, map(str.split, found), strict=True)) == LINES


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_completion_in_zsh(environment: dict[str, str], tmp_path: Path) -> None:
    # compadd as zsh calls it is the only thing replaced: it prints what it is given.
    asked = "".join(
        f"words=({shlex.join(line.split(' '))}) CURRENT=$#words PREFIX=$words[-1]; _fairall; echo\n"
        for line in LINES
    )
    code = (
        "compdef() { echo $* }\ncompset() { }\n_files() { echo -n files }\n"
        'compadd() { shift ${@[(i)--]}; (( $# )) && echo -n "$* " }\n'
        f'eval "$(fairall completion zsh)"\n{asked}'
        "words=(fairall dataset.path=lo) CURRENT=2 PREFIX=dataset.path=lo; _fairall\n"
    )
    ended = subprocess.run(
        ["zsh", "-f", "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ended.stderr == ""
    registered, *found, files = ended.stdout.splitlines()
    assert (registered, files) == ("_fairall fairall", "files")
    # Unlike bash, zsh replaces the whole word.
    expected = {
        line: [f"model={name}" for name in offered] if line.endswith("=fairl") else sorted(offered)
        for line, offered in LINES.items()
    }
    assert {line: sorted(offered.split()) for line, offered in zip(LINES, found, strict=True)} == expected


def test_values_of_all_groups_and_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "mine.yaml").write_text("defaults: [fairlog, _self_]\nextra: 1\n")
    monkeypatch.chdir(tmp_path)
    own = ["-cd", "conf"]
    assert completions([*own, "model=mi"]) == ["model=mine"]
    assert completions([*own, "model=mine", "model.e"]) == ["model.extra="]
    assert completions(["--config-dir", ""]) == []
    assert completions(["--multirun", "model=greedy,pl"]) == ["model=greedy,plot"]
    for group in ("dataset", "sweeps", "world"):
        assert completions([f"{group}="]) == [f"{group}={name}" for name in choices()[group]]
    for words in (["dataset.path="], ["show", "outputs_dir="]):  # files
        assert completions(words) == []


def test_asking_imports_no_hydra() -> None:
    code = (
        "sys.argv += ['completion', 'words', '--', 'mod']\n"
        "from fairall.__main__ import main; assert main() == 0"
    )
    assert imported(code, "hydra", "omegaconf", "torch", "numpy", "rich") == ("model=\n", [])
