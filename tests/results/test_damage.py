"""Runs whose small files have been changed in any way: one line, or a result that can be shown."""

import contextlib
import copy
import io
import json
import random
from collections.abc import Iterator
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
    assert "\n" not in outline["reason"]
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


@pytest.mark.parametrize("name", ["summary.json", pytest.param("config.yaml", marks=pytest.mark.whole)])
def test_any_value(name: str, tmp_path: Path) -> None:
    path, chance = lay_down(tmp_path), random.Random(0)
    whole: Any = OmegaConf.to_container(OmegaConf.load(path / name))
    assert not shown_or_told(path)
    everywhere = sorted(places(whole), key=len)
    told = 0
    # Those near the top, which are few, and some of the others.
    for at in everywhere[:60] + chance.choices(everywhere, k=examples(60)):
        plain = changed(chance, whole, at)
        content = json.dumps(plain)
        if name == "config.yaml":
            content = OmegaConf.to_yaml(OmegaConf.create(plain if "0" * 300 not in content else whole))
            content = f"{HEADING}{sha256_of_text(content)}\n{content}"
        (path / name).write_text(content)
        RunFolder(path).finish()  # as if it had been written so
        told += shown_or_told(path)
    assert told > 30


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
