"""Runs whose small files have been changed in any way: one line, or a result that can be shown."""

import contextlib
import copy
import io
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from fairall.errors import FairAllError
from fairall.results.card import model_card
from fairall.results.runs import load, outlines
from fairall.results.terminal import print_result
from fairall.storage.files import sha256_of_text
from fairall.storage.run_folder import HEADING, Origin, RunFolder
from fairall.storage.stored import strict
from tests.conftest import examples
from tests.made_up import lay_down

VALUES: list[Any] = [
    None, True, 0, -1, 0.5, 1e308, 10**400, "", "a", "x" * 300, [], [1], [[]], [None], {}, {"a": 1},
]  # fmt: skip


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value in nested containers."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from places(value, (*at, key))


def changed(chance: random.Random, plain: Any, at: tuple[Any, ...]) -> Any:
    """A copy in which the value at a place is another one, or gone."""
    copied = copy.deepcopy(plain)
    node = copied
    for key in at[:-1]:
        node = node[key]
    if chance.random() < 0.2:
        del node[at[-1]]
    else:
        node[at[-1]] = chance.choice(VALUES)
    return copied


def shown_or_told(path: Path) -> bool:
    """Whether the result in a folder is told to be damaged, in one line; otherwise everything shows it."""
    (outline,) = outlines(path.parents[2])
    assert "\n" not in outline.reason
    said = ""
    try:
        result = load(path)
    except FairAllError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 1000
    if said:
        return True
    with contextlib.redirect_stdout(io.StringIO()):
        print_result(result)
    model_card(result, "id")
    json.dumps(strict(result.to_plain() | {"config": result.config.to_plain()}), allow_nan=False)
    return False


def test_any_value_of_summary_json(tmp_path: Path) -> None:
    path, chance = lay_down(tmp_path), random.Random(0)
    file = path / "summary.json"
    whole = json.loads(file.read_text())
    assert not shown_or_told(path)
    everywhere = [*places(whole)]
    # Those near the top, which are few, and some of the others.
    near = [at for at in everywhere if len(at) <= 2 and at[0] not in ("measures", "aggregate")]
    told = 0
    for at in near + chance.choices(everywhere, k=examples(60)):
        file.write_text(json.dumps(changed(chance, whole, at)))
        RunFolder(path).finish()  # as if it had been written so
        told += shown_or_told(path)
    assert told > len(near) / 2


@pytest.mark.whole
def test_any_value_of_config_yaml(tmp_path: Path) -> None:
    path, chance = lay_down(tmp_path), random.Random(1)
    run = RunFolder(path)
    whole = OmegaConf.to_container(OmegaConf.load(path / "config.yaml"))
    for at in chance.choices([*places(whole)], k=examples(60)):
        plain = changed(chance, whole, at)
        if "0" * 300 in repr(plain):
            continue  # YAML has no such number
        content = OmegaConf.to_yaml(OmegaConf.create(plain))
        (path / "config.yaml").write_text(f"{HEADING}{sha256_of_text(content)}\n{content}")
        run.finish()
        shown_or_told(path)


def write(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.unlink()
        make(path)

    return put


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": write(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "no UTF-8": lambda path: path.write_bytes(b"\xff\xfe" + path.read_bytes()),
    "NaN": lambda path: path.write_bytes(path.read_bytes().replace(b"0.", b"NaN", 3)),
    "infinite": lambda path: path.write_bytes(path.read_bytes().replace(b"0.", b"1e999", 3)),
    "nested": write(b"[" * 100_000),
    "words": write(b"just words"),
    "NUL": write(b"\0" * 1000),
    "device": instead(lambda path: path.symlink_to("/dev/zero")),
    "pipe": instead(os.mkfifo),
    "folder": instead(Path.mkdir),
    "circle": instead(lambda path: path.symlink_to(path)),
    "missing": Path.unlink,
    "huge": lambda path: os.truncate(path, 1 << 40),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("signed", [False, True])
def test_any_file_in_any_state(damage: str, signed: bool, tmp_path: Path) -> None:
    for number, name in enumerate(("summary.json", "config.yaml", "metrics.csv", "DONE")):
        path = lay_down(tmp_path / name, number=number)
        DAMAGES[damage](path / name)
        if signed and name != "DONE":
            with contextlib.suppress(FairAllError):
                RunFolder(path).finish()
        told = shown_or_told(path)
        assert told or damage in ("NaN", "infinite"), name  # which may have changed nothing


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_of_the_origin_is_empty(damage: str, tmp_path: Path) -> None:
    Origin(command="python -m fairall", cpu_seconds=0.5).write(tmp_path)
    DAMAGES[damage](tmp_path / "tracking.json")
    assert Origin.read(tmp_path) == Origin()
    Path(tmp_path / "tracking.json").unlink(missing_ok=True) if damage != "folder" else None


def test_records_of_other_types(tmp_path: Path) -> None:
    value: Any
    for value in (
        {"command": 5},
        {"began": "yes"},
        {"source": {"a": 1}},
        {"cpu_seconds": "1"},
        [],
    ):
        (tmp_path / "tracking.json").write_text(json.dumps(value))
        assert Origin.read(tmp_path) == Origin()


def test_the_record_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    more = {"parent": "0a1b", "experiment": "1", "result": True}
    (tmp_path / "tracking.json").write_text(json.dumps({"command": "fairall", "cpu_seconds": 2.5} | more))
    assert Origin.read(tmp_path) == Origin("fairall", cpu_seconds=2.5)
