"""The examples of docs/extending.md, written into an empty folder and run as a user would."""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from fairall.errors import FairAllError
from fairall.policy import Policy
from tests.conftest import CHECKOUT, Ended, own_process, typed_line

PAGE = (CHECKOUT / "docs" / "extending.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
BLOCK = re.compile(
    r"`([\w./]+\.(?:py|yaml))`[^`\n]*:\n\n((?:```(?:python|yaml|diff)\n.*?```\n\n)+)", re.DOTALL
)
CODE = re.compile(r"```(?:python|yaml|diff)\n(.*?)```", re.DOTALL)


def files(section: str) -> list[tuple[str, str]]:
    """Each file that a section names, with a code block after it."""
    return [
        (name, code) for name, blocks in BLOCK.findall(SECTIONS[section]) for code in CODE.findall(blocks)
    ]


def commands(section: str) -> list[str]:
    return re.findall(r"^    (python -m fairall.*)", SECTIONS[section], re.MULTILINE)


def written(section: str, folder: Path) -> Path:
    for name, code in files(section):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return folder


SHORT = " tracking.enabled=false schedule.warm_up_epochs=2"


def ended(command: str, folder: Path) -> Ended:
    return typed_line(command if "fairall data" in command else command + SHORT, folder)


def done(command: str, folder: Path) -> Ended:
    run = ended(command, folder)
    assert (run.stderr, run.returncode) == ("", 0)
    return run


def refused(command: str, folder: Path, told: str) -> None:
    run = ended(command, folder)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1), run.stderr
    assert told in run.stderr


def test_every_code_block_belongs_to_a_file_and_every_door_has_commands() -> None:
    found = [code for section in SECTIONS for _, code in files(section)]
    assert found == CODE.findall(PAGE)
    doors = ["A method", "A data set", "An initial policy", "A measure", "A protocol switch"]
    assert list(SECTIONS) == doors
    assert [len(commands(door)) for door in doors] == [2, 2, 1, 1, 1]


@pytest.fixture(scope="module")
def own_method(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the class and the file of the method, and nothing of this checkout."""
    assert sum(code.count("\n") for _, code in files("A method")) < 60
    return written("A method", tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize("command", commands("A method"))
def test_commands_of_an_own_method(command: str, own_method: Path) -> None:
    run = done(command, own_method)
    assert "no hyperparameters are selected for logistic_ips on credit" in run.stdout


@pytest.mark.whole
def test_an_own_method_learns_and_saves_its_policy(own_method: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "model=logistic_ips dataset=credit seeds=3 schedule.time_steps=50 evaluation.window=[25,50]"
    run = ended(f"python -m fairall -cd conf {words}", own_method)
    assert run.returncode == 0, run.stderr
    folder = own_method / run.stdout.split("Results: ")[1].split("\n")[0]
    summary = json.loads((folder / "summary.json").read_text())
    # Deciding by coin gives 0.09.
    assert summary["aggregate"]["mean_utility"]["mean"] > 0.14
    monkeypatch.syspath_prepend(own_method)
    with pytest.raises(FairAllError, match="--trust logistic_ips"):
        Policy.load(folder / "policy")
    assert Policy.load(folder / "policy", modules=["logistic_ips"])
    del sys.modules["logistic_ips"]


@pytest.mark.whole
def test_an_own_data_set(tmp_path: Path) -> None:
    run, described = (done(command, written("A data set", tmp_path)) for command in commands("A data set"))
    assert "fairlog on students" in run.stdout
    assert described.stdout.startswith("students: 1000 people with 3 features")
    listed = typed_line("python -m fairall list datasets -cd conf", tmp_path).stdout
    assert re.search(r"│ students +│ Students drawn.*│ read by", listed)
    command = "python -m fairall -cd conf model=fairlog dataset=students preset=quick"
    refused(f"{command} dataset.rows=9", tmp_path, "dataset.rows=9 is not possible: it must be at least 100")
    assert "random initial policy" in run.stdout
    harsh = f"{command} initial_policy=harsh"
    ended(f"{harsh} 'dataset.initial_policies.score={{grade: 1}}' dataset.rows=600", tmp_path)


@pytest.mark.whole
def test_an_own_initial_policy(tmp_path: Path) -> None:
    (command,) = commands("An initial policy")
    run = done(command, written("An initial policy", tmp_path))
    assert "fairlog on credit, threshold initial policy" in run.stdout
    refused(f"{command} initial_policy.mistakes=0.5", tmp_path, "initial_policy.mistakes=0.5 is not possible")


GROWN_UP = """\
from dataclasses import dataclass
from functools import cached_property

from omegaconf import MISSING

from fairall.data.own_table import OwnTable, OwnTableConfig


@dataclass
class GrownUpConfig(OwnTableConfig):
    min_age: int = MISSING


class GrownUp(OwnTable):
    config_type = GrownUpConfig

    @cached_property
    def cells(self):
        whole = super().cells
        return whole.rows(whole.frame["age"].astype(float).to_numpy() >= self.config.min_age)
"""


@pytest.mark.whole
def test_a_class_and_a_file_may_derive_from_ours_and_add_keys(tmp_path: Path) -> None:
    (tmp_path / "grown_up.py").write_text(GROWN_UP)
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "loans.yaml").write_text(
        "defaults: [csv, _self_]\n_target_: grown_up.GrownUp\nname: loans\nmin_age: 30\ndrop: [id]\n"
        f"path: {CHECKOUT / 'tests' / 'data' / 'loans.csv'}\n"
        'label: repaid\npositive: "yes"\nsensitive: sex\nadvantaged: male\n'
        "decision: decision\naccepted: granted\npropensity: propensity\n"
    )
    counts = []
    for age in (0, 30):
        command = f"python -m fairall data describe loans -cd conf dataset.min_age={age}"
        described = done(f"{command} dataset.kinds.dependants=real", tmp_path)
        assert re.search(r"dependants +│ real", described.stdout)
        counts.append(int(re.findall(r"loans: (\d+) people", described.stdout)[0]))
    assert 200 < counts[1] < counts[0] == 400
    done("python -m fairall -cd conf model=fairlog dataset=loans preset=quick", tmp_path)


@pytest.mark.whole
def test_a_protocol_switch(tmp_path: Path) -> None:
    for name in ("fairall", "conf", "sweeps"):
        shutil.copytree(CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, diff in files("A protocol switch"):
        lines = diff.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        text = (tmp_path / name).read_text()
        assert text.count(old) == 1, f"{name} has no place for\n{diff}"
        (tmp_path / name).write_text(text.replace(old, new))
    (command,) = commands("A protocol switch")

    def run(choices: str) -> Ended:
        words = shlex.split(command.replace("=accepted", f"={choices}") + SHORT)[1:]
        return own_process(*words, "--multirun", cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})

    both = run("accepted,applicants")
    told = [line for line in both.stderr.splitlines() if "fairall: compiling" not in line]
    assert (told, both.returncode) == ([], 0)
    tables = [path.read_text() for path in tmp_path.glob("outputs/runs/*/*/*/metrics.csv")]
    assert len(tables) == len(set(tables)) == 2
    assert "protocol.fairlog_people: Invalid value 'nobody', expected one of [" in run("nobody").stderr
