"""Stored files that are cut, emptied or changed in one bit: each is refused in one line, or is as it was."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fairall.config.compose import typed_config
from fairall.errors import FairAllError
from fairall.storage.checkpoint import Cache, Checkpoint, load_tensors, save_tensors
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import read_json
from tests.conftest import examples
from tests.made_up import lay_down

WEIGHTS = {"weights": [1.0, 2.0, 3.0], "steps": 3}


def state() -> dict[str, Any]:
    return WEIGHTS | {"weights": torch.tensor(WEIGHTS["weights"])}


def plain(read: dict[str, Any] | None) -> dict[str, Any] | None:
    return read and read | {"weights": read["weights"].tolist()}


@dataclass
class Case:
    """A stored file.

    Attributes:
        write: writes it to a folder and returns its path.
        read: reads it out of the folder; its second argument takes warnings.
        otherwise: what `read` may return of a damaged file, beside what it returns of a whole one.
    """

    write: Callable[[Path], Path]
    read: Callable[[Path, list[str]], Any]
    otherwise: Any = None


def of_run(name: str) -> Case:
    """A file of a finished run; damage is told by the name of the file."""
    return Case(
        lambda folder: lay_down(folder) / name,
        lambda folder, _: RunFolder(next(folder.rglob("metrics.csv")).parent).damage(),
        f"{name} is damaged or missing",
    )


def written(path: Path, write: Callable[[Path], object]) -> Path:
    write(path)
    return path


def checkpoint(folder: Path, said: list[str]) -> Checkpoint:
    return Checkpoint(folder / "checkpoint.pt", "me", seconds=0.0, log=said.append)


def cached(folder: Path, said: list[str]) -> Any:
    """The cached result, which is `WEIGHTS`, or is made again and then has no steps."""
    return plain(Cache(folder, 0.0, said.append).result("key", lambda _: state() | {"steps": len(said)}))


CASES = {
    "tensors": Case(
        lambda folder: written(folder / "a.pt", lambda path: save_tensors(state(), path)),
        lambda folder, _: plain(load_tensors(folder / "a.pt")),
    ),
    "checkpoint": Case(
        lambda folder: written(folder / "checkpoint.pt", lambda _: checkpoint(folder, []).save(state)),
        lambda folder, said: plain(checkpoint(folder, said).load()),
    ),
    "cache": Case(
        lambda folder: written(folder / "key.pt", lambda _: cached(folder, ["", "", ""])),
        cached,
        WEIGHTS | {"steps": 1},
    ),
    "JSON": Case(
        lambda folder: written(
            folder / "a.json", lambda path: path.write_text(json.dumps(WEIGHTS["weights"]))
        ),
        lambda folder, _: {type(value) for value in read_json(folder / "a.json", list[float])},
        set(),
    ),
    "configuration": Case(
        lambda folder: written(
            folder / "config.yaml", lambda _: RunFolder(folder).write_config(typed_config("model=fairlog"))
        ),
        lambda folder, _: RunFolder(folder).read_config(),
    ),
    **{name: of_run(name) for name in ("DONE", "config.yaml", "metrics.csv", "summary.json")},
}


thorough = settings(
    derandomize=True, deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow]
)


def cut(content: bytes, place: float, bit: int) -> bytes:
    return content[: int(place * len(content))]


def flipped(content: bytes, place: float, bit: int) -> bytes:
    at = int(place * len(content))
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_is_refused_in_one_line_or_is_as_it_was(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, case = tmp_path_factory.mktemp("stored"), CASES[name]
    path, said = case.write(folder), list[str]()
    intact, content = case.read(folder, said), path.read_bytes()
    refused = []

    @settings(thorough)
    @example(damage=cut, place=0.0, bit=0)
    @given(
        damage=st.sampled_from([cut, flipped]), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7)
    )
    def holds(damage: Callable[[bytes, float, int], bytes], place: float, bit: int) -> None:
        path.write_bytes(damage(content, place, bit))
        said.clear()
        try:
            read = case.read(folder, said)
        except FairAllError as error:
            said.append(str(error))
            read = case.otherwise
        refused.append(read != intact)
        assert read == case.otherwise if refused[-1] else not said
        assert [str(path) in line and "\n" not in line for line in said] in ([], [True])

    holds()
    assert sum(refused) > 10
