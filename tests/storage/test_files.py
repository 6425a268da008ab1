"""Files that are replaced whole."""

import subprocess
from pathlib import Path

import pytest

from fairall.storage.files import atomic, damaged, held, locked, write_sums


def half_written(path: Path) -> None:
    with atomic(path) as temporary:
        temporary.write_text("half")
        raise ValueError("failed")


def test_a_file_stays_as_it_was_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="failed"):
        half_written(path)
    assert path.read_text() == "old"
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [*tmp_path.iterdir()] == [path]


def test_damage_of_some_files_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    write_sums(tmp_path / "SUMS", ["a", "b"])
    (tmp_path / "b").write_text("other")
    assert damaged(tmp_path / "SUMS") == ["b"]
    assert damaged(tmp_path / "SUMS", among=["a"]) == []
    (tmp_path / "b").unlink()
    assert damaged(tmp_path / "SUMS", among=["a"]) == ["b"]


def test_a_list_of_sums_is_known_to_be_whole(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    for name in names:
        (tmp_path / name).write_text(name)
    listing = tmp_path / "SUMS"
    write_sums(listing, names)
    assert damaged(listing) == []
    checked = subprocess.run(["sha256sum", "--strict", "-c", "SUMS"], cwd=tmp_path, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, b"")
    whole = listing.read_text()
    assert whole.splitlines()[-1].startswith("# 3 files; SHA-256 of the lines above: ")
    for at in range(len(whole)):
        listing.write_text(whole[:at])
        assert damaged(listing) == ["SUMS"]
    lines = whole.splitlines(keepends=True)
    for missing in range(len(lines)):  # a list of an earlier version has no last line
        listing.write_text("".join(lines[:missing] + lines[missing + 1 :]))
        assert damaged(listing) == damaged(listing, among=["a"]) == ["SUMS"]


def test_a_list_must_have_the_names_that_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    write_sums(tmp_path / "SUMS", ["a"])
    assert damaged(tmp_path / "SUMS", among=["a", "b"]) == ["SUMS"]


def test_a_lock_is_held_in_the_block_alone(tmp_path: Path) -> None:
    folder, lock = tmp_path / "folder", tmp_path / "folder.lock"
    assert not held(lock)
    assert not lock.exists()
    with locked(folder, lock):
        whose = lock.read_text()
        assert held(lock)
        assert lock.read_text() == whose
    assert not held(lock)
