"""Files that are replaced whole."""

from pathlib import Path

import pytest

from fairall.storage.files import atomic


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
