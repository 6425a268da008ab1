"""Commands as they are typed (commands.yaml): how they end, what they say, and that nothing is left."""

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
COMMANDS = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())


@pytest.mark.parametrize(
    ("how", "command", "said"), [(how, *pair) for how, some in COMMANDS.items() for pair in some.items()]
)
def test_a_command_says_what_it_should_and_leaves_nothing(
    how: str,
    command: str,
    said: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, code, *raw = how.split()
    data = str(request.getfixturevalue("raw_data")) if raw else ""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FAIRALL_DATA", data)
    for name, meant in MEANT.items():
        command, said = command.replace(name, meant), said.replace(name, meant)
    ended = typed(*shlex.split(command), cwd=place, module=module)
    told, silent = (ended.stderr, ended.stdout)[:: 1 if int(code) else -1]
    assert (ended.returncode, silent) == (int(code), ""), ended.stderr
    assert [part for part in said.split(" ... ") if part not in told] == []
    assert int(code) == 0 or (told.count("\n"), told.startswith(f"{module}: ")) == (1, True)
    assert not [*place.iterdir()]
