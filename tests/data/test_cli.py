"""`python -m fairall data` and `list datasets` as a user types them."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fairall.data.own_table import PREFIX
from tests.conftest import LOANS, MEANING, Ended, typed

FairAllData = Callable[[str], Ended]
DESCRIBED = yaml.safe_load(Path(__file__).with_name("described.yaml").read_text())
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
OTHERS = """\
from fairall.data.dataset import TableDataset
class Data(TableDataset):
    def load(self): ...
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRALL_DATA", raising=False)
    return tmp_path


@pytest.fixture
def own_folder(data: Path) -> Path:
    """A folder with a data set of one's own, in a place whose name is awkward to type."""
    folder = data / "it's [mine], too"
    (folder / "dataset").mkdir(parents=True)
    (folder / "dataset" / "mine.yaml").write_text(MINE)
    return folder


@pytest.fixture
def fairall_data(data: Path, own_folder: Path) -> FairAllData:
    """The command `python -m fairall data` in a folder with some files of people, and -cd FOLDER."""
    (data / "a${b}, it's.csv").write_bytes(LOANS.read_bytes())
    names = {"ODD": "a${b}, it's.csv", "LOANS": str(LOANS), "FOLDER": str(own_folder)}

    def command(words: str) -> Ended:
        typed_words = words.replace("MEANING", " ".join(MEANING)).split()
        for name, path in names.items():
            typed_words = [word.replace(name, path) for word in typed_words]
        return typed("data", *typed_words, cwd=data)

    return command


@pytest.mark.parametrize(("words", "patterns"), DESCRIBED.items())
def test_describe_shows_columns_groups_splits_and_acceptance(
    words: str, patterns: list[str], fairall_data: FairAllData
) -> None:
    ended = fairall_data(words)
    assert (ended.returncode, ended.stderr) == (0, "")
    for pattern in patterns:
        assert re.search(pattern, ended.stdout), pattern


def test_describe_of_a_file_tells_what_prevents_a_run(fairall_data: FairAllData) -> None:
    ended = fairall_data("describe LOANS")
    assert (ended.returncode, ended.stderr) == (1, "")
    table, _, told = ended.stdout.partition("To fix: ")
    assert "home_owner │ binary      │ yes, no" in table
    *lines, last = told.splitlines()
    assert last == f"In all of this, {PREFIX}."
    faults = "give label=COLUMN", "give sensitive=COLUMN", "column 'id', row 1: 'L0001'"
    assert [fault in line for line, fault in zip(lines, faults, strict=True)] == [True] * 3


def test_own_initial_policies_are_shown(own_folder: Path, fairall_data: FairAllData) -> None:
    """Also one that inherits, beside one that cannot be read."""
    (own_folder / "initial_policy").mkdir()
    base, often = "defaults: [random, _self_]\nacceptance_rate: 1.0", "defaults: [_base, _self_]\nname: often"
    for name, text in {"_base": base, "often": often, "broken": "name: ["}.items():
        (own_folder / "initial_policy" / f"{name}.yaml").write_text(text)
    assert re.search(r"often( +│ +1\.0){3} +│", fairall_data("describe credit -cd FOLDER").stdout)


def test_the_table_names_every_data_set_and_where_it_is(data: Path) -> None:
    found = data / "fairall" / "compas" / "compas-scores-two-years.csv"
    for is_there in (False, True):
        said = typed("list", "datasets", cwd=data)
        assert said.returncode == 0, said.stderr
        assert ("not here: python -m fairall data fetch compas" in said.stdout) != is_there
        found.parent.mkdir(parents=True, exist_ok=True)
        found.touch()
    for words in ("in this package", "generated when needed", "dataset.path=FILE"):
        assert words in said.stdout


@pytest.mark.whole
def test_own_data_sets_are_listed_and_fairalls_win(
    own_folder: Path, fairall_data: FairAllData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(own_folder)
    (own_folder / "others.py").write_text(OTHERS)
    files = {
        "credit": MINE,
        "broken": "name: [",
        "_base": MINE,
        "other": "_target_: others.Data\nname: other\n",
        "gone": "_target_: nowhere.Data\nname: gone\n",
    }
    for name, text in files.items():
        (own_folder / "dataset" / f"{name}.yaml").write_text(text)
    ended = typed("list", "datasets", "-cd", str(own_folder), cwd=own_folder)
    assert ended.returncode == 0, ended.stderr
    rows = [[cell.strip() for cell in line.split("│")] for line in ended.stdout.splitlines() if "│" in line]
    shown = {row[1]: row[2:4] for row in rows if row[1]}
    assert sorted(shown) == "adult broken compas credit csv fico gone law meps mine other synthetic".split()
    assert shown["mine"][0] == "Loans of ours."
    for name, place in {
        "other": "read by others.Data",
        "gone": "to fix: dataset: no such key, or dataset._target_=nowhere.Data names",
        "broken": "to fix:",
        "credit": "in this package",
    }.items():
        assert shown[name][1].startswith(place)
    assert "credit.yaml is not used: dataset=credit is a data set of fairall" in ended.stdout
    assert fairall_data("describe credit -cd FOLDER").stdout.startswith("credit: 1000 people")
    assert 'broken.yaml", line 1' in fairall_data("describe broken -cd FOLDER").stderr
