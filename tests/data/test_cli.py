"""`python -m fairall data` as a user types it."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairall.config.choices import configuration_root
from tests.conftest import LOANS, Ended, imported, typed

FairAllData = Callable[..., Ended]
MEANING = ["dataset.label=repaid", "dataset.positive=yes", "dataset.sensitive=sex", "dataset.advantaged=male"]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRALL_DATA", raising=False)
    return tmp_path


@pytest.fixture
def fairall_data(data: Path) -> FairAllData:
    """The command `python -m fairall data`."""
    return functools.partial(typed, "data", cwd=data)


def test_the_table_names_every_data_set_and_where_it_is(data: Path) -> None:
    said = typed("list", "datasets", cwd=data)
    assert said.returncode == 0, said.stderr
    for words in (
        "in this package",
        "generated when needed",
        "dataset.path=FILE",
        "fairall data fetch compas",
    ):
        assert words in said.stdout.replace("│\n│", "")
    found = data / "fairall" / "compas" / "compas-scores-two-years.csv"
    found.parent.mkdir(parents=True)
    found.touch()
    assert "not here: python -m fairall data fetch compas" not in typed("list", "datasets", cwd=data).stdout


def test_describe_counts_rows_kinds_groups_and_acceptance(data: Path, fairall_data: FairAllData) -> None:
    said = fairall_data("describe", "credit").stdout
    assert "credit: 1000 rows, 19 features" in said
    assert "5 real, 2 count, 2 binary, 10 categorical" in said
    for cells in (["S = −1", "109", "201", "0.6484"], ["harsh", "0.1776", "0.2123", "0.1091"]):
        assert any(all(cell in line for cell in cells) for line in said.splitlines()), cells
    assert "train 700, validation 150, test 150, pool 490" in said


def test_describe_shows_the_initial_policy_one_has_chosen(data: Path, fairall_data: FairAllData) -> None:
    words = ["initial_policy=random", "initial_policy.acceptance_rate=1"]
    lines = fairall_data("describe", "credit", *words).stdout.splitlines()
    assert any("random" in line and line.count("1.0000") == 3 for line in lines)
    assert any("harsh" in line and "0.1776" in line for line in lines)


def test_describe_takes_the_keys_of_a_run(data: Path, fairall_data: FairAllData) -> None:
    said = fairall_data("describe", "csv", f"dataset.path={LOANS}", *MEANING, "dataset.drop=[id,decision]")
    assert said.returncode == 0, said.stderr
    assert "csv: 400 rows, 163 of them without a label" in said.stdout
    assert any("income" in line and "14 (3.5%)" in line for line in said.stdout.splitlines())


def test_check_says_what_stands_in_the_way(data: Path, fairall_data: FairAllData) -> None:
    first = fairall_data("describe", str(LOANS))
    assert first.returncode == 1
    assert "To fix: column 'id', row 1: 'L0001'" in first.stdout
    assert "say what the columns mean: dataset.label=... dataset.positive=..." in first.stdout
    mended = fairall_data("describe", str(LOANS), *MEANING, "dataset.drop=[id]")
    assert mended.returncode == 0
    assert mended.stdout.endswith("Ready to run; first see the warnings above.\n")


def test_check_tells_of_an_initial_policy_that_cannot_be(data: Path, fairall_data: FairAllData) -> None:
    said = fairall_data("describe", str(LOANS), *MEANING, "dataset.drop=[id]", "initial_policy=harsh")
    assert said.returncode == 1
    assert "To fix: initial_policy=harsh needs a score" in said.stdout


def test_check_tells_of_all_columns_at_once(data: Path, fairall_data: FairAllData) -> None:
    lines = LOANS.read_text().splitlines()
    lines[3] = lines[3].replace(",21,", ",old,")
    lines[5] = lines[5].replace(lines[5].split(",")[3], "inf")
    (data / "bad.csv").write_text("\n".join(lines))
    said = fairall_data("describe", str(data / "bad.csv"), *MEANING, "dataset.drop=[id]")
    assert said.returncode == 1
    problems = [line for line in said.stdout.splitlines() if line.startswith("To fix")]
    assert len(problems) == 2
    assert "column 'age', row 3: 'old' is not a finite number" in problems[0]
    assert "column 'income', row 5: 'inf' is not a finite number" in problems[1]


def test_a_data_set_that_records_no_decisions_has_no_logged_policy(fairall_data: FairAllData) -> None:
    ended = fairall_data("describe", "credit", "initial_policy=logged")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "the data set records no decisions" in ended.stderr


def test_a_run_refuses_a_cost_as_check_does(data: Path) -> None:
    words = ["dataset=csv", f"dataset.path={LOANS}", *MEANING, "dataset.drop=[id]", "dataset.cost=1.6"]
    ended = typed(*words, cwd=data)
    assert ended.returncode == 1
    assert (
        ended.stderr
        == "fairall: dataset.cost=1.6 is not possible: it must be between 0 and 1, both excluded\n"
    )


def test_a_copy_of_the_label_is_refused_by_check_and_by_a_run(data: Path, fairall_data: FairAllData) -> None:
    header, *rows = LOANS.read_text().splitlines()
    good = {"yes": "1", "no": "0", "": ""}
    rows = [f"{row},{good[row.rpartition(',')[2]]}" for row in rows]
    (data / "copied.csv").write_text("\n".join([f"{header},outcome", *rows]))
    words = [*MEANING, "dataset.drop=[id,decision,propensity]"]
    said = fairall_data("describe", "copied.csv", *words)
    assert said.returncode == 1
    assert "Ready to run" not in said.stdout
    told = "column 'outcome' encodes the label 'repaid' ('1' for 'yes', else '0')"
    assert f"To fix: {told}" in said.stdout
    ended = typed("dataset=csv", "dataset.path=copied.csv", *words, cwd=data)
    assert ended.returncode == 1
    assert told in ended.stderr


MINE = f"""\
# Loans of ours.
defaults: [csv, _self_]
name: mine
path: {LOANS}
label: repaid
positive: "yes"
sensitive: sex
advantaged: male
drop: [id, decision, propensity]
"""


@pytest.fixture
def own_folder(data: Path) -> Path:
    """A folder with a data set of one's own, in a place whose name is awkward to type."""
    folder = data / "it's [mine], too"
    (folder / "dataset").mkdir(parents=True)
    (folder / "dataset" / "mine.yaml").write_text(MINE)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "describe mine -cd FOLDER",
        "describe mine dataset.cost=0.4 --config-dir=FOLDER dataset.split.pool=0.5",
    ],
)
def test_describe_takes_a_folder_of_ones_own(words: str, own_folder: Path, fairall_data: FairAllData) -> None:
    ended = fairall_data(*[word.replace("FOLDER", str(own_folder)) for word in words.split()])
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("mine: 400 rows, 163 of them without a label, 6 features")


def test_check_and_fetch_take_a_folder_of_ones_own(own_folder: Path, fairall_data: FairAllData) -> None:
    ended = fairall_data("describe", str(LOANS), "dataset=mine", "-cd", str(own_folder))
    assert ended.stdout.endswith("Ready to run; first see the warnings above.\n")
    assert "mine needs no raw file" in fairall_data("fetch", "mine", "-cd", str(own_folder)).stderr
    assert "did you mean mine?" in fairall_data("describe", "mime", "-cd", str(own_folder)).stderr


def test_own_initial_policies_are_shown(own_folder: Path, fairall_data: FairAllData) -> None:
    (own_folder / "initial_policy").mkdir()
    policy = (configuration_root() / "conf" / "initial_policy" / "random.yaml").read_text()
    text = policy.replace("name: random", "name: often").replace("0.5", "1.0")
    (own_folder / "initial_policy" / "often.yaml").write_text(text)
    lines = fairall_data("describe", "credit", "-cd", str(own_folder)).stdout.splitlines()
    assert any("often" in line and line.count("1.0000") == 3 for line in lines)


@pytest.mark.whole
def test_own_data_sets_are_listed_and_fairalls_win(
    own_folder: Path, fairall_data: FairAllData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(own_folder)
    dataset = own_folder / "dataset"
    (dataset / "credit.yaml").write_text(MINE)
    (dataset / "broken.yaml").write_text("name: [")
    (dataset / "_base.yaml").write_text(MINE)
    (dataset / "other.yaml").write_text("_target_: others.Data\nname: other\n")
    (dataset / "gone.yaml").write_text("_target_: nowhere.Data\nname: gone\n")
    (own_folder / "others.py").write_text(
        "from fairall.data.dataset import TableDataset\nclass Data(TableDataset):\n    def load(self): ...\n"
    )
    ended = typed("list", "datasets", "-cd", str(own_folder), cwd=own_folder)
    assert ended.returncode == 0, ended.stderr
    rows = [[cell.strip() for cell in line.split("│")] for line in ended.stdout.splitlines() if "│" in line]
    shown = {row[1]: row[2:4] for row in rows if row[1]}
    assert sorted(shown) == "adult broken compas credit csv fico gone law meps mine other synthetic".split()
    assert shown["mine"][0] == "Loans of ours."
    assert shown["other"][1] == "read by others.Data"
    assert shown["gone"][1].startswith("to fix: dataset: no such key, or dataset._target_=nowhere.Data names")
    assert shown["broken"][1].startswith("to fix:")
    assert shown["credit"][1] == "in this package"
    assert "credit.yaml is not used: dataset=credit is a data set of fairall" in ended.stdout
    assert fairall_data("describe", "credit", "-cd", str(own_folder)).stdout.startswith("credit: 1000 rows")
    broken = fairall_data("describe", "broken", "-cd", str(own_folder)).stderr
    assert 'broken.yaml", line 1' in broken
    assert len(broken.splitlines()) == 1


def test_a_folder_without_data_sets_is_noted(data: Path) -> None:
    listed = typed("list", "datasets", "-cd", str(data), cwd=data)
    assert f"Note: there is no data set in {data}" in listed.stdout


def test_check_takes_any_path(data: Path, fairall_data: FairAllData) -> None:
    path = data / "a${b}, it's.csv"
    path.write_bytes(LOANS.read_bytes())
    assert fairall_data("describe", str(path), *MEANING, "dataset.drop=[id]").returncode == 0


def test_a_pipe_is_refused_and_not_waited_for(data: Path, fairall_data: FairAllData) -> None:
    os.mkfifo(data / "pipe")
    for words in (["describe", "compas", "dataset.raw_file=pipe"], ["describe", "./pipe"]):
        assert "is a pipe, not a file; give the path of a" in fairall_data(*words).stderr


def test_help_answers_without_heavy_imports() -> None:
    code = "from fairall.cli.main import main\ntry: main(['data', '--help'])\nexcept SystemExit: pass"
    said, heavy = imported(code, "torch", "pandas", "hydra")
    assert heavy == []
    assert "describe" in said
