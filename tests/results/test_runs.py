from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairall.errors import FairAllError
from fairall.results.runs import load, load_results
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import read_stored
from tests.made_up import lay_down


def _cut(name: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = (path / name).read_bytes()
        (path / name).write_bytes(content[: len(content) // 2])

    return damage


def _replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        (path / name).write_text((path / name).read_text().replace(old, new))

    return damage


def _of_the_earlier_format(path: Path) -> None:
    """Whose first line had the sum alone."""
    heading, _, content = (path / "config.yaml").read_text().partition("\n")
    (path / "config.yaml").write_text(f"# sha256 of what follows: {heading.split()[-1]}\n{content}")


def _of_four_seeds(path: Path) -> None:
    run = RunFolder(path)
    run.write_config(replace(read_stored(path / "config.yaml"), seeds=4))


def _of_another(path: Path) -> None:
    lines = (path / "metrics.csv").read_text().splitlines()
    cells = lines[-1].split(",")
    cells[lines[0].split(",").index("effective_utility")] = "0.9"
    (path / "metrics.csv").write_text("\n".join([*lines[:-1], ",".join(cells)]))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: (path / "DONE").unlink(), "unfinished"),
        (lambda path: (path / "metrics.csv").unlink(), "metrics.csv is missing"),
        (lambda path: (path / "summary.json").unlink(), "summary.json is missing"),
        (lambda path: (path / "config.yaml").unlink(), "config.yaml is missing"),
        (lambda path: (path / "metrics.csv").write_text(""), "metrics.csv is damaged"),
        (lambda path: (path / "config.yaml").write_text("just words"), "damaged or of an earlier version"),
        (_of_the_earlier_format, "config.yaml is missing, damaged or of an earlier version of fairall"),
        (_cut("summary.json"), "summary.json is damaged"),
        (_cut("config.yaml"), "damaged or of an earlier version"),
        (_cut("metrics.csv"), "metrics.csv has"),
        (_replaced("metrics.csv", "effective_dpu,", "effective_other,"), "lacks the column effective_dpu"),
        (_of_four_seeds, "summary.json has 3 seeds, config.yaml 4"),
        (_of_another, "of different results"),
    ],
)
def test_a_partial_or_corrupt_run_is_named_and_left_out(
    damage: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    whole, broken = lay_down(tmp_path), lay_down(tmp_path, number=1)
    damage(broken)
    if (broken / "DONE").exists():
        RunFolder(broken).finish()  # as if it had been written so: its sums would tell any damage
    collection = load_results(tmp_path / "outputs" / "runs")
    assert [run.path for run in collection.results] == [whole]
    ((path, reason),) = collection.left_out
    assert path == broken
    assert said in reason
    assert "\n" not in reason
    with pytest.raises(FairAllError, match=said):
        load(broken)


def test_money_has_seven_digits_too(tmp_path: Path) -> None:
    path = lay_down(tmp_path, shift=-2234.5)
    assert [run.path for run in load_results(tmp_path / "outputs" / "runs").results] == [path]


def test_a_run_whose_files_are_not_what_they_were_is_left_out(tmp_path: Path) -> None:
    path = lay_down(tmp_path)
    (path / "metrics.csv").write_text((path / "metrics.csv").read_text().replace("1", "2", 1))
    ((_, reason),) = load_results(tmp_path / "outputs" / "runs").left_out
    assert reason == "metrics.csv is damaged or missing; the same command makes it again"


def test_nothing_to_load_results(tmp_path: Path) -> None:
    collection = load_results(tmp_path / "nowhere")
    assert (collection.results, collection.left_out) == ([], [])
