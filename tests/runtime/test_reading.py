"""Files that are no longer what a run has written."""

import os
from pathlib import Path

import pytest

from fairall.runtime.reading import MOST_BYTES, DamagedFileError, read_bytes, read_text
from fairall.storage.checkpoint import load_tensors
from fairall.storage.files import damaged, write_sums


def a_socket(path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def a_huge_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


INSTEAD = {
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": a_socket,
    "a circle of links": lambda path: path.symlink_to(path),
    "a huge file": a_huge_file,
    "a file of the system without a size": lambda path: path.symlink_to("/proc/kallsyms"),
}


@pytest.mark.parametrize("what", INSTEAD)
def test_what_is_no_file_of_a_run_is_refused_at_once(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    for name in ("summary.json", "metrics.csv", "tracking.json", "checkpoint.pt", "SUMS"):
        path = Path(name)
        INSTEAD[what](path)
        reading = load_tensors if path.suffix == ".pt" else read_bytes
        with pytest.raises(DamagedFileError, match=f"^{name} is damaged"):
            reading(path)
        assert damaged(path) == [name]
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_files_links_and_missing_ones(tmp_path: Path) -> None:
    path, link = tmp_path / "tracking.json", tmp_path / "link"
    path.write_text("é")
    link.symlink_to(path)
    assert (read_text(path), read_bytes(link)) == ("é", "é".encode())
    path.write_bytes(b"\xe9")
    with pytest.raises(DamagedFileError, match="no UTF-8"):
        read_text(path)
    path.write_bytes(b" " * (MOST_BYTES["tracking.json"] + 1))
    with pytest.raises(DamagedFileError, match="1048577 bytes, of at most 1048576"):
        read_bytes(path)
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "nothing")


def test_a_listed_file_that_has_become_something_else_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a")
    (tmp_path / "b.csv").write_text("b")
    write_sums(tmp_path / "SUMS", ["a.csv", "b.csv"])
    (tmp_path / "b.csv").unlink()
    os.mkfifo(tmp_path / "b.csv")
    assert damaged(tmp_path / "SUMS") == damaged(tmp_path / "SUMS", among=["a.csv"]) == ["b.csv"]
