import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairall.errors import FairAllError
from fairall.results.runs import load_result, load_results, run_folder
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import read_stored
from tests.made_up import lay_down


def _cut(name: str) -> Callable[[Path], object]:
    return lambda path: os.truncate(path / name, (path / name).stat().st_size // 2)


def _of_four_seeds(path: Path) -> None:
    RunFolder(path).write_config(replace(read_stored(path / "config.yaml"), seeds=4))


@pytest.mark.parametrize(
    ("damage", "summed", "reason"),
    [
        (lambda path: (path / "DONE").unlink(), False, "unfinished"),
        (_cut("metrics.csv"), False, "metrics.csv is damaged or missing; the same command makes it again"),
        (
            lambda path: (path / "config.yaml").unlink(),
            True,
            "config.yaml is missing, damaged or of an earlier version of fairall",
        ),
        (_cut("metrics.csv"), True, "not of one run"),
        (_of_four_seeds, True, "config.yaml, metrics.csv and summary.json are not of one run"),
    ],
)
def test_a_partial_or_corrupt_run_is_named_and_left_out(
    damage: Callable[[Path], None], summed: bool, reason: str, tmp_path: Path
) -> None:
    whole, broken = lay_down(tmp_path), lay_down(tmp_path, number=1)
    damage(broken)
    if summed:
        RunFolder(broken).finish()  # as if it had been written so: its sums would tell any damage
    collection = load_results(tmp_path / "outputs" / "runs")
    assert [run.path for run in collection.results] == [whole]
    ((path, line),) = collection.left_out
    assert path == broken
    assert reason in line
    assert "\n" not in line
    with pytest.raises(FairAllError, match=reason):
        load_result(broken)
    assert load_results(tmp_path / "nowhere") == ([], [])


@pytest.mark.parametrize(
    ("word", "reason"),
    [("", "'': no such run"), ("1", "2 runs have ids that begin so"), ("x/", "no such run")],
)
def test_a_run_is_found_by_its_folder_or_the_beginning_of_its_id(
    word: str, reason: str, tmp_path: Path
) -> None:
    paths = [lay_down(tmp_path, number=number) for number in (0x100000000000, 0x110000000000)]
    runs = tmp_path / "outputs" / "runs"
    assert run_folder("11", runs) == run_folder(str(paths[1]), runs) == paths[1]
    with pytest.raises(FairAllError, match=reason):
        run_folder(word, runs)
