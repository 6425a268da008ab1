"""Files that are replaced whole."""

import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairall.decide.load import load_policy
from fairall.storage.files import atomic, damaged, tidied, unnamed, write_sums
from tests.conftest import run_folder, succeeded, typed


def test_a_file_stays_as_it_was_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic(path) as temporary:
        temporary.write_text(f"half {1 / 0}")
    assert [*tmp_path.iterdir()] == [path]
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.fixture
def private() -> Iterator[None]:
    """A umask that leaves nothing to anybody else."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("private")
def test_new_files_have_the_mode_of_the_umask_and_others_keep_theirs(tmp_path: Path) -> None:
    os.umask(0o002)
    new, known = tmp_path / "folder" / "new.txt", tmp_path / "known.txt"
    known.touch(0o444)
    for path, before, after in ((new, 0o664, 0o664), (known, 0o600, 0o444)):
        with atomic(path) as temporary:
            assert mode(temporary) == before
        assert mode(path) == after
    assert mode(new.parent) == 0o775


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv" / "b.txt"
    path.parent.touch()
    with pytest.raises(OSError, match=re.escape(f"{path}")), atomic(path):
        pass


@pytest.mark.whole
@pytest.mark.usefixtures("private")
def test_nothing_that_commands_write_is_for_others(tmp_path: Path) -> None:
    small = ["model=fairlog", "dataset=synthetic", "preset=quick", "seeds=2", "evaluation.decisions=true"]
    assert typed(*small, cwd=tmp_path, drawn=True).returncode == 0
    run = run_folder(tmp_path / "outputs")
    load_policy(run).reader.example().to_csv(tmp_path / "people.csv", index=False)
    succeeded("decide", str(run), "people.csv", "-o", "decided.csv", cwd=tmp_path)
    written = {path.name: mode(path) & 0o077 for path in tmp_path.rglob("*")}
    assert {"mlflow.db", "decided.csv", "weights.safetensors", "learning.png"} <= written.keys()
    assert not any(written.values())
    private = [run / "metrics.csv", run / "policy" / "weights.safetensors"]
    os.umask(0o022)
    assert typed(*small, "force=true", cwd=tmp_path).returncode == 0
    assert [mode(path) for path in private] == [0o600, 0o600]  # of a result made anew, those of the old one


def test_damage_is_told_by_name(tmp_path: Path) -> None:
    listing, a, b = (tmp_path / name for name in ("SUMS", "a", "b"))
    for path in (a, b):
        path.write_text(path.name)
    write_sums(listing, ["a", "b"])
    subprocess.run(["sha256sum", "--strict", "-c", "SUMS"], cwd=tmp_path, check=True)
    b.write_text("other")
    assert damaged(listing) == ["b"]
    assert damaged(listing, among=["a"]) == []
    assert damaged(listing, among=["a", "c"]) == ["SUMS"]
    b.unlink()
    assert damaged(listing, among=["a"]) == ["b"]
    os.mkfifo(b)
    assert damaged(listing) == damaged(listing, among=["a"]) == ["b"]
    *lines, _ = listing.read_text().splitlines(keepends=True)
    listing.write_text("".join(lines))  # as that of an earlier version
    assert damaged(listing) == ["SUMS"]


def test_leftovers_of_a_kill_are_deleted_unless_a_process_is_at_work(tmp_path: Path) -> None:
    foreign = [".out[1].csv.swp", ".~abcdefgh~other.csv", ".~abcdefgh~out1.csv", "out[1].csv"]
    for name in foreign:
        (tmp_path / name).touch()
    left, path = tmp_path / ".~12345678~out[1].csv", tmp_path / "out[1].csv"
    with tidied(tmp_path, "out[[]1].csv"):
        left.touch()
        with tidied(tmp_path, "out[[]1].csv"):
            assert left.exists()
    assert left.exists()
    with unnamed(path) as file:
        file.write(b"new")
        assert sorted(path.name for path in tmp_path.iterdir()) == foreign
        assert path.read_text() == ""
    assert path.read_text() == "new"
