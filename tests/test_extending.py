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
from tests.test_docs import DOCS, code, files, lines, written

PAGE = (DOCS / "extending.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
COMMANDS = {
    door: [line for line in lines(text) if line.startswith("python -m fairall")]
    for door, text in SECTIONS.items()
}
SHORT = " tracking.enabled=false schedule.warm_up_epochs=2"


def done(command: str, folder: Path) -> str:
    ended = typed_line(command if "fairall data" in command else command + SHORT, folder)
    assert (ended.stderr, ended.returncode) == ("", 0)
    return str(ended.stdout)


def test_every_code_block_belongs_to_a_file_and_every_door_has_commands() -> None:
    assert [one for text in SECTIONS.values() for _, one in files(text)] == code(PAGE)
    assert {door: len(typed) for door, typed in COMMANDS.items()} == {
        "A method": 2,
        "A data set": 2,
        "An initial policy": 1,
        "A measure": 1,
        "A protocol switch": 1,
    }


@pytest.mark.whole
def test_an_own_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(one.count("\n") for _, one in files(SECTIONS["A method"])) < 60
    written(SECTIONS["A method"], tmp_path)
    for command in COMMANDS["A method"]:
        assert "no hyperparameters are selected for logistic_ips on credit" in done(command, tmp_path)
    words = "model=logistic_ips dataset=credit seeds=3 schedule.time_steps=50 evaluation.window=[25,50]"
    said = typed_line(f"python -m fairall -cd conf {words}", tmp_path).stdout
    folder = tmp_path / said.split("Results: ")[1].split("\n")[0]
    summary = json.loads((folder / "summary.json").read_text())
    # Deciding by coin gives 0.09.
    assert summary["aggregate"]["mean_utility"]["mean"] > 0.14
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(FairAllError, match="--trust logistic_ips"):
        Policy.load(folder / "policy")
    assert Policy.load(folder / "policy", modules=["logistic_ips"])
    del sys.modules["logistic_ips"]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("door", "told", "wrong", "why"),
    [
        ("A data set", "fairlog on students, random initial policy", "dataset.rows=9", "at least 100"),
        (
            "An initial policy",
            "fairlog on credit, threshold initial policy",
            "initial_policy.mistakes=0.5",
            "",
        ),
    ],
)
def test_an_own_data_set_or_initial_policy(
    door: str, told: str, wrong: str, why: str, tmp_path: Path
) -> None:
    written(SECTIONS[door], tmp_path)
    run, *described = (done(command, tmp_path) for command in COMMANDS[door])
    assert told in run
    assert all(said.startswith("students: 1000 people with 3 features") for said in described)
    ended = typed_line(f"{COMMANDS[door][0]} {wrong}", tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert re.search(f"{re.escape(wrong)} is not possible.*{why}", ended.stderr)
    listed = typed_line("python -m fairall list datasets -cd conf", tmp_path).stdout
    assert re.search(r"│ students +│ Students drawn.*│ read by", listed) or door != "A data set"


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
        assert re.search(r"dependants +│ real", described)
        counts.append(int(re.findall(r"loans: (\d+) people", described)[0]))
    assert 200 < counts[1] < counts[0] == 400
    done("python -m fairall -cd conf model=fairlog dataset=loans preset=quick", tmp_path)


@pytest.mark.whole
def test_a_protocol_switch(tmp_path: Path) -> None:
    for name in ("fairall", "conf", "sweeps"):
        shutil.copytree(CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, diff in files(SECTIONS["A protocol switch"]):
        old, new = (
            "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in signs)
            for signs in (" -", " +")
        )
        text = (tmp_path / name).read_text()
        assert text.count(old) == 1, f"{name} has no place for\n{diff}"
        (tmp_path / name).write_text(text.replace(old, new))
    (command,) = COMMANDS["A protocol switch"]

    def run(choices: str) -> Ended:
        words = shlex.split(command.replace("=accepted", f"={choices}") + SHORT)[1:]
        return own_process(*words, "--multirun", cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})

    both = run("accepted,applicants")
    told = [line for line in both.stderr.splitlines() if "fairall: compiling" not in line]
    assert (told, both.returncode) == ([], 0)
    tables = [path.read_text() for path in tmp_path.glob("outputs/runs/*/*/*/metrics.csv")]
    assert len(tables) == len(set(tables)) == 2
    assert "protocol.fairlog_people: Invalid value 'nobody', expected one of [" in run("nobody").stderr
