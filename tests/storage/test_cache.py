"""What runs share: made once, kept whole, and made again where it is not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.storage.cache import Cache
from fairall.storage.checkpoint import Checkpoint, save_tensors


def made_in(folder: Path, value: float, said: list[str]) -> tuple[dict[str, Any], bool]:
    """The result of a key, and whether it was made now."""
    calls = []

    def make(checkpoint: Checkpoint) -> dict[str, Any]:
        calls.append(checkpoint)
        return {"weights": torch.full((3,), value)}

    return Cache(folder, 0.0, said.append).result("key", make), bool(calls)


def test_a_result_is_made_once(tmp_path: Path) -> None:
    said: list[str] = []
    (first, made), (second, again) = made_in(tmp_path, 1.0, said), made_in(tmp_path, 2.0, said)
    assert (made, again, said) == (True, False, [])
    assert torch.equal(first["weights"], second["weights"])


def test_parts_do_not_share_keys(tmp_path: Path) -> None:
    for value, name in enumerate("ab"):
        assert made_in(tmp_path / name, float(value), [])[1]
    for value, name in enumerate("ab"):
        part = Cache(tmp_path, 0.0).part(name)
        assert part.result("key", lambda checkpoint: {})["weights"].tolist() == [value] * 3


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "swapped", "a checkpoint", "text"])
def test_a_damaged_result_is_made_again(damage: str, tmp_path: Path) -> None:
    said: list[str] = []
    made_in(tmp_path, 1.0, said)
    path = tmp_path / "key.pt"
    whole = path.read_bytes()
    at = whole.index(torch.full((3,), 1.0).numpy().tobytes())
    if damage == "swapped":
        save_tensors({"of": "result another", "result": {"weights": torch.zeros(3)}}, path)
    elif damage == "a checkpoint":
        save_tensors({"of": "key", "state": {"weights": torch.zeros(3)}}, path)
    else:
        path.write_bytes(
            {
                "truncated": whole[: len(whole) // 2],
                "empty": b"",
                "flipped": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
                "text": b"not a tensor",
            }[damage]
        )
    result, again = made_in(tmp_path, 2.0, said)
    assert again
    assert result["weights"].tolist() == [2.0] * 3
    (warning,) = said
    assert "it is computed again" in warning


def test_leftovers_of_killed_processes_are_swept(tmp_path: Path) -> None:
    (tmp_path / ".key.pt.abc.pt").write_text("half")
    (tmp_path / ".other.pt.abc.pt").write_text("somebody else is at work on it")
    made_in(tmp_path, 1.0, [])
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"key.pt", "key.lock", ".other.pt.abc.pt"}
