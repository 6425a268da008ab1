"""What the folder of a run says after an interruption."""

import shutil
import signal
from pathlib import Path

import pytest

from fairall.runtime.signals import Stopped
from fairall.storage.run_folder import RunFolder
from tests.kills import survives

NAMES = ("config.yaml", "metrics.csv", "summary.json", "figures/learning.png")


def finished(path: Path, content: str = "old") -> RunFolder:
    folder = RunFolder(path)
    for name in NAMES:
        folder.write_text(name, content)
    folder.finish()
    return folder


@pytest.mark.parametrize(("anew", "then"), [(False, "goes on from what was saved"), (True, "starts anew")])
def test_an_interruption_says_what_the_same_command_does_next(anew: bool, then: str, tmp_path: Path) -> None:
    with pytest.raises(Stopped) as stopped, RunFolder(tmp_path / "id").recording(anew=anew):
        raise Stopped(signal.SIGTERM)
    assert stopped.value.then == then


def test_a_new_result_replaces_the_old_one_when_it_is_complete_wherever_it_is_killed(tmp_path: Path) -> None:
    (tmp_path / "begin" / "id").mkdir(parents=True)
    (finished(tmp_path / "begin" / "id").path / "checkpoint.pt").write_text("old")

    def made_anew(place: Path) -> None:
        folder = RunFolder(place / "id")
        with folder.locked(), folder.recording(anew=True) as made:
            assert folder.intact()
            assert made.path != folder.path
            (made.path / "figures").mkdir(parents=True)
            (made.path / "checkpoint.pt").write_text("new")
            finished(made.path, "new")
        assert folder.intact()

    assert survives(made_anew, tmp_path / "begin", tmp_path, compared=("id/*", "id/figures/*")) > 20
    shutil.rmtree(tmp_path / "begin")
