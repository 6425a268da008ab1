"""Files that are no longer what a run has written."""

import os
import socket
from pathlib import Path

import pytest

from fairall.storage.checkpoint import load_tensors
from fairall.storage.files import damaged
from fairall.storage.stored import MOST_BYTES_OF_OTHERS, DamagedFileError, read_text


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)  # the names of sockets are short


def a_huge_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


INSTEAD = {
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "a socket": a_socket,
    "a circle of links": lambda path: path.symlink_to(path),
    "a huge file": a_huge_file,
}


@pytest.mark.parametrize("what", INSTEAD)
def test_what_is_no_file_of_a_run_is_refused_at_once(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("metrics.csv")
    INSTEAD[what](path)
    for reading in (read_text, load_tensors):
        with pytest.raises(DamagedFileError, match=r"^metrics\.csv is damaged"):
            reading(path)
    assert damaged(path) == [path.name]


def test_files_links_and_missing_ones(tmp_path: Path) -> None:
    path, link = tmp_path / "tracking.json", tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(FileNotFoundError):
        read_text(link)
    path.write_text("é")
    assert read_text(link) == "é"
    os.truncate(path, MOST_BYTES_OF_OTHERS + 1)
    with pytest.raises(DamagedFileError, match="67108865 bytes, of at most 67108864"):
        read_text(path)
