"""Mistakes in commands: each is told in one line, and leaves nothing behind."""

import shlex
from pathlib import Path

import pytest
import yaml

from tests.conftest import LOANS, MEANING, typed

NEEDED = ("path", "label", "positive", "sensitive", "advantaged")
MEANT = {
    "TABLE": f"dataset=csv dataset.path=LOANS {' '.join(MEANING)} dataset.drop=[id] dataset.decision=decision"
    " dataset.accepted=granted dataset.propensity=propensity initial_policy=logged",
    "MEANING": " ".join(f"dataset.{key}=x" for key in NEEDED),
    "LOANS": shlex.quote(str(LOANS)),
}
MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())


@pytest.mark.parametrize(
    ("code", "command", "said"), [(code, *pair) for code, some in MISTAKES.items() for pair in some.items()]
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    code: int, command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRALL_DATA", raising=False)
    for name, meant in MEANT.items():
        command, said = command.replace(name, meant), said.replace(name, meant)
    ended = typed(*shlex.split(command), cwd=place)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (code, "", 1), ended.stderr
    assert ended.stderr.startswith("fairall: ")
    for part in said.split(" ... "):
        assert part in ended.stderr
    assert not [*place.iterdir()]
