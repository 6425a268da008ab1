"""Stored files that are cut, or changed in a bit or a value: told in one line, or as good as before."""

import contextlib
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.inputs import VALUES, changed
from fairall.config.compose import typed_config
from fairall.errors import FairAllError
from fairall.results.card import model_card
from fairall.results.runs import load, outlines
from fairall.results.terminal import print_result
from fairall.storage.checkpoint import Cache, Checkpoint
from fairall.storage.files import sha256_of_text
from fairall.storage.run_folder import HEADING, Origin, RunFolder
from fairall.storage.stored import read_json, strict
from tests.conftest import examples
from tests.made_up import lay_down


def checkpoint(folder: Path, said: list[str]) -> Checkpoint:
    return Checkpoint(folder / "checkpoint.pt", "me", seconds=0.0, log=said.append)


def loaded(folder: Path, said: list[str]) -> Any:
    state = checkpoint(folder, said).load()
    return state and state["weights"].tolist()


def cached(folder: Path, said: list[str]) -> Any:
    """The cached numbers, zeros; None where they are made again, after a warning."""
    cache = Cache(folder, 0.0, said.append)
    made = cache.result("key", lambda _: {"weights": torch.full((3,), float(len(said)))})
    return None if made["weights"].any() else made["weights"].tolist()


def of_run(name: str) -> tuple[str, Callable[[Path], Any], Callable[[Path, list[str]], Any]]:
    """A file of a finished run; damage is told by the name of the file."""
    told = {None: "whole", f"{name} is damaged or missing": None}
    return name, lay_down, lambda folder, _: told[RunFolder(next(folder.rglob(name)).parent).damage()]


# The name of a file, what writes it to a folder, and what reads it there: that takes a list for warnings, and
# returns None, or raises an error, where the file is damaged.
CASES = [
    (
        "checkpoint.pt",
        lambda folder: checkpoint(folder, []).save(lambda: {"weights": torch.ones(3)}),
        loaded,
    ),
    ("key.pt", lambda folder: cached(folder, []), cached),
    (
        "a.json",
        lambda folder: (folder / "a.json").write_text("[1.0, 2.0, 3.0]"),
        lambda folder, _: {type(value) for value in read_json(folder / "a.json", list[float])},
    ),
    (
        "config.yaml",
        lambda folder: RunFolder(folder).write_config(typed_config("model=fairlog")),
        lambda folder, _: RunFolder(folder).read_config(),
    ),
    *map(of_run, ("DONE", "config.yaml", "metrics.csv", "summary.json")),
]


def cut(content: bytes, at: int, bit: int) -> bytes:
    return content[:at]


def flipped(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


@pytest.mark.parametrize(("name", "write", "read"), CASES)
def test_a_damaged_file_is_refused_in_one_line_or_is_as_it_was(
    name: str, write: Callable[[Path], Any], read: Callable[[Path, list[str]], Any], tmp_path: Path
) -> None:
    write(tmp_path)
    (path,) = tmp_path.rglob(name)
    intact, content, refused = read(tmp_path, []), path.read_bytes(), []

    @settings(
        derandomize=True,
        deadline=None,
        max_examples=examples(40),
        suppress_health_check=[HealthCheck.too_slow],
    )
    @example(damage=cut, place=0.0, bit=0)
    @given(
        damage=st.sampled_from([cut, flipped]), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7)
    )
    def holds(damage: Callable[[bytes, int, int], bytes], place: float, bit: int) -> None:
        path.write_bytes(damage(content, int(place * len(content)), bit))
        said: list[str] = []
        try:
            value = read(tmp_path, said)
        except FairAllError as error:
            said.append(str(error))
            value = None
        refused.append(value is None)
        assert refused[-1] or (value == intact and not said)
        assert [str(path) in line and "\n" not in line for line in said] in ([], [True])

    holds()
    assert sum(refused) > 10


def shown_or_told(path: Path) -> str:
    """The line that tells that a result is damaged; empty where everything shows it."""
    (outline,) = outlines(path.parents[2])
    assert "\n" not in outline["reason"]
    try:
        result = load(path)
    except FairAllError as error:
        return str(error)
    with contextlib.redirect_stdout(io.StringIO()):
        print_result(result)
    model_card(result, "id")
    json.dumps(strict(result.to_plain() | {"config": result.config.to_plain()}), allow_nan=False)
    return ""


@pytest.mark.parametrize("name", ["summary.json", pytest.param("config.yaml", marks=pytest.mark.whole)])
def test_a_run_with_any_other_value_is_told_in_a_line_or_can_be_shown(name: str, tmp_path: Path) -> None:
    path = lay_down(tmp_path)
    assert not shown_or_told(path)
    whole, told = yaml.safe_load((path / name).read_text()), []
    for number in range(examples(50)):
        chance = random.Random(number)
        # One of its parts, which are few, or a value anywhere.
        plain = (
            whole | {chance.choice([*whole]): chance.choice(VALUES)} if number % 2 else changed(chance, whole)
        )
        content = json.dumps(plain)
        if name == "config.yaml":
            content = f"{HEADING}{sha256_of_text(content)}\n{content}"
        (path / name).write_text(content)
        RunFolder(path).finish()  # as if it had been written so
        told.append(shown_or_told(path))
    assert all("\n" not in line and len(line) < 1000 for line in told)
    assert sum(map(bool, told)) > 15


@pytest.mark.parametrize(
    ("record", "known"),
    [
        (b"\xff", Origin()),
        (b'{"command": 5}', Origin()),
        # Of an earlier version.
        (b'{"command": "fairall", "cpu_seconds": 2.5, "parent": "0a1b"}', Origin("fairall", cpu_seconds=2.5)),
    ],
)
def test_records_of_other_types_and_versions(record: bytes, known: Origin, tmp_path: Path) -> None:
    (tmp_path / "tracking.json").write_bytes(record)
    assert Origin.read(tmp_path) == known
