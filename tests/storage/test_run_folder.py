"""What the folder of a run says after an interruption."""

import shutil
import signal
from pathlib import Path

import pytest

from fairall.errors import FairAllError
from fairall.runtime.signals import Stopped
from fairall.storage.run_folder import RunFolder


def finished(path: Path) -> RunFolder:
    folder = RunFolder(path)
    path.mkdir(parents=True)
    for name in ("config.yaml", "metrics.csv", "summary.json"):
        folder.write_text(name, "old")
    folder.finish()
    return folder


def interrupted_writing(folder: RunFolder) -> None:
    folder.write_text("metrics.csv", "new")
    raise Stopped(signal.SIGTERM)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize(("anew", "then"), [(False, "goes on from what was saved"), (True, "starts anew")])
def test_an_interruption_says_what_the_same_command_does_next(
    anew: bool, then: str, complete: bool, tmp_path: Path
) -> None:
    folder = finished(tmp_path / "id")
    if not complete:
        folder.reopen()
    said: list[str] = []
    with pytest.raises(Stopped) as stopped, folder.recording(anew=anew, log=said.append) as made:
        interrupted_writing(made)
    assert stopped.value.then == then
    kept = anew and complete
    assert (folder.path / "metrics.csv").read_text() == ("old" if kept else "new")
    assert said == ([f"The result from before is unchanged: {folder.path}"] if kept else [])
    assert not (folder.path / "anew").exists()


@pytest.mark.parametrize("name", ["config.yaml", "metrics.csv"])
def test_a_result_is_not_complete_without_what_was_written(name: str, tmp_path: Path) -> None:
    folder = finished(tmp_path / "id")
    folder.reopen()
    shutil.rmtree(folder.path)  # by the user, while the run is at work
    for kept in {"config.yaml", "metrics.csv"} - {name}:
        folder.write_text(kept, "new")
    folder.write_text("summary.json", "new")
    with pytest.raises(FairAllError, match=f"{name} is missing: it was deleted during the run; the same com"):
        folder.finish()
    assert not folder.done
    folder.write_text(name, "new")
    folder.finish()
    assert folder.intact()


def test_a_complete_new_result_replaces_the_old_one(tmp_path: Path) -> None:
    folder = finished(tmp_path / "id")
    with folder.recording(anew=True) as made:
        made.write_text("metrics.csv", "new")
        assert (folder.path / "metrics.csv").read_text() == "old"
        made.finish()
    assert (folder.path / "metrics.csv").read_text() == "new"
    assert folder.damage() is None
