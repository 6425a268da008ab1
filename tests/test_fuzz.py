"""Nonsense in command lines, YAML and CSV: each is an answer or one line, and nothing is written by it.

`make test` tries some; docs/reliability.md says how to try tens of thousands.
"""

import random
from pathlib import Path

import pytest

from benchmarks.in_process import Ended, fault, typed, untrained
from benchmarks.nonsense import command_line, yaml_text
from tests.conftest import examples


def check(words: list[str], folder: Path) -> None:
    with untrained():
        wrong = fault(typed(*words, cwd=folder), folder, frozenset())
    assert wrong is None, (words, wrong)


def test_nonsense_on_the_command_line_is_one_line(tmp_path: Path) -> None:
    for number in range(examples(15)):
        check(command_line(random.Random(f"words {number}")), tmp_path)


def test_nonsense_in_a_file_of_ones_own_is_one_line(tmp_path: Path) -> None:
    own = tmp_path.parent / f"{tmp_path.name} conf"
    for number in range(examples(15)):
        chance = random.Random(f"file {number}")
        group = chance.choice(["preset", "model", "dataset", "protocol"])
        (own / group).mkdir(parents=True, exist_ok=True)
        (own / group / "own.yaml").write_text(yaml_text(chance), encoding="utf-8")
        check([f"{group}=own", "-cd", str(own)], tmp_path)


@pytest.mark.parametrize(
    ("code", "said", "wrong"),
    [
        (0, "", None),
        (1, "fairall: no\n", None),
        (2, "", "exit code 2"),
        (1, "", "0 lines of error"),
        (1, "a\nb\n", "2 lines of error"),
        (1, "Traceback\n", "a traceback"),
        (0, "oh\n", "exit code 0 with an error"),
    ],
)
def test_what_counts_as_a_fault(code: int, said: str, wrong: str | None, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    ended = Ended(["fairall"], code, "", said)
    assert fault(ended, tmp_path, frozenset()) == wrong
    (tmp_path / "left").touch()
    assert fault(ended, tmp_path, frozenset()) == (wrong or "left left")
    assert fault(ended, tmp_path, frozenset({"left"})) == wrong
