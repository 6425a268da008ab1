"""Adult and law: recipes, counts, the choice of the sensitive attribute, and bad files."""

import shutil
import zipfile
from pathlib import Path

import pytest

from fairall.data.features import Kind
from fairall.data.load import load_dataset
from fairall.data.table import Table
from fairall.errors import FairAllError

FILES = {"adult": "adult.data", "law": "law_data.csv"}


def table(raw_data: Path, name: str, *words: str) -> Table:
    return load_dataset(name, f"dataset.raw_file={raw_data / name / FILES[name]}", *words).table()


# Counts of (S, label): −1 and 0, −1 and 1, +1 and 0, +1 and 1.
@pytest.mark.parametrize(
    ("name", "sensitive", "counts", "kinds"),
    [
        ("adult", "sex", [13026, 1669, 20988, 9539], [5, 0, 0, 6]),
        ("adult", "race", [3694, 534, 28696, 10207], [5, 0, 1, 5]),
        ("law", "race", [490, 792, 1458, 16827], [2, 0, 1, 0]),
        ("law", "sex", [1180, 8357, 1251, 11003], [2, 0, 0, 1]),
    ],
)
def test_counts_and_features(
    raw_data: Path, name: str, sensitive: str, counts: list[int], kinds: list[int]
) -> None:
    people = table(raw_data, name, f"dataset.sensitive={sensitive}")
    found = [int(((people.s == s) & (people.label == y)).sum()) for s in (-1, 1) for y in (0, 1)]
    assert found == counts
    assert [len(people.schema.columns(kind)) for kind in Kind] == kinds
    assert sensitive not in people.schema.names
    assert people.sensitive is not None
    assert people.sensitive.column == sensitive


def test_groups_of_ones_own(raw_data: Path) -> None:
    others = table(raw_data, "law", "dataset.groups.race.disadvantaged=[Hispanic,Mexican,Puertorican]")
    assert others.sensitive is not None
    assert others.sensitive.disadvantaged == ("Hispanic", "Mexican", "Puertorican")
    assert (others.s < 0).sum() == 987
    with pytest.raises(FairAllError, match=r"groups.race.advantaged: no row has 'Whit'; there are 8 values"):
        table(raw_data, "law", "dataset.groups.race.advantaged=[Whit]")
    with pytest.raises(FairAllError, match=r"must be race or sex"):
        table(raw_data, "law", "dataset.sensitive=age")
    with pytest.raises(FairAllError, match=r"values that are not advantaged"):
        table(raw_data, "law", "dataset.groups.race.disadvantaged=[White]")
    with pytest.raises(FairAllError, match=r"at least one value"):
        table(raw_data, "law", "dataset.groups.race.disadvantaged=[]")


def test_adult_is_read_from_its_archive(raw_data: Path, tmp_path: Path) -> None:
    archive = tmp_path / "adult.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("Index", "of other files")
        for name in ("adult.data", "adult.test"):
            made.write(raw_data / "adult" / name, name)
    packed = load_dataset("adult", f"dataset.raw_file={archive}").table()
    assert packed.x.equals(table(raw_data, "adult").x)


def test_adult_lacks_or_edits_a_file(raw_data: Path, tmp_path: Path) -> None:
    shutil.copy(raw_data / "adult" / "adult.data", tmp_path)
    path = tmp_path / "adult.data"
    with pytest.raises(FairAllError, match=r"adult.test cannot be read"):
        load_dataset("adult", f"dataset.raw_file={path}").table()
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n")
    with pytest.raises(FairAllError, match=r"adult.test is not the published file"):
        load_dataset("adult", f"dataset.raw_file={path}").table()
    accepted = load_dataset("adult", f"dataset.raw_file={path}", "dataset.members.test=null").table()
    assert len(accepted) == 30162  # people of the training file without missing values


def test_law_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRALL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(FairAllError, match=r"law_data.csv: not found in .* dataset.raw_file=FILE"):
        load_dataset("law").table()
