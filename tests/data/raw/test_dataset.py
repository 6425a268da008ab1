"""Readers of raw files, recipes of Adult and law, the choice of groups, and bad files."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fairall.data.load import load_dataset
from fairall.data.raw.dataset import read_columns
from fairall.errors import FairAllError

TRANSPORT = Path(__file__).parent / "h181.ssp"  # 40 rows of three columns, of version 5
EDITED = yaml.safe_load(Path(__file__).with_name("edited.yaml").read_text())
COLUMNS = ["PCS42", "PANEL", "AGE53X"]
MEPS, COMPAS = "meps/h181_reconstructed.csv", "compas/compas-scores-two-years.csv"


def line_of(name: str, *words: str) -> str:
    with pytest.raises(FairAllError, match=r"^[^\n]+$") as raised:
        load_dataset(name, *words).table()
    return str(raised.value)


def test_all_forms_of_a_raw_file_hold_the_same(tmp_path: Path) -> None:
    expected = pd.DataFrame([[39.15, 20.0, -1.0], [23.61, 19.0, 0.0]] * 20, columns=COLUMNS)
    expected.to_csv(tmp_path / "h181.csv", index=False)
    with zipfile.ZipFile(tmp_path / "h181ssp.zip", "w") as archive:
        archive.write(TRANSPORT, "h181.ssp")
    for path in (TRANSPORT, tmp_path / "h181ssp.zip", tmp_path / "h181.csv"):
        pd.testing.assert_frame_equal(read_columns(path, COLUMNS)[COLUMNS].astype(float), expected)


def test_a_transport_file_cut_anywhere_is_one_line(tmp_path: Path) -> None:
    content, cut = TRANSPORT.read_bytes(), tmp_path / "cut.ssp"
    for length in range(0, len(content) - 80, 97):
        cut.write_bytes(content[:length])
        with pytest.raises(FairAllError, match=r"^[^\n]+$"):
            read_columns(cut, COLUMNS)


def test_meps_of_floats_as_transport_files_have_them_is_that_of_whole_numbers(
    raw_data: Path, tmp_path: Path
) -> None:
    raw, path, tables = pd.read_csv(raw_data / MEPS, nrows=400), tmp_path / "some.csv", []
    for frame in (raw, raw.astype(float)):
        frame.to_csv(path, index=False)
        words = f"dataset.raw_file={path}", "dataset.rows=null", "dataset.sensitive=race+sex"
        tables.append(load_dataset("meps", *words).table())
    pd.testing.assert_frame_equal(*(people.to_frame() for people in tables))
    assert tables[0].sensitive == tables[1].sensitive


def test_a_truncated_raw_file_is_one_line(raw_data: Path, tmp_path: Path) -> None:
    cut = tmp_path / "compas.csv"
    cut.write_bytes((raw_data / COMPAS).read_bytes()[:1_000_000])
    words = [f"dataset.raw_file={cut}"]
    for said, key in (
        ("is not the published file (sha256", "dataset.download.sha256=null"),
        ("rows instead of 5278: truncated, edited or", "dataset.rows=null"),
    ):
        assert said in line_of("compas", *words)
        words.append(key)
    assert 2000 < len(load_dataset("compas", *words).table()) < 5278


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("h181.csv", b"PANEL,SEX\n20,1\n", "column 'RACEV2X' is missing: is it another file"),
        ("h181.csv", b"", "(No columns to parse from file)"),
        ("h181.csv", b"\xff\xfe\x00", "cannot be read"),
        ("h181.ssp", b"HEADER RECORD", "cannot be read"),
        ("h181ssp.zip", b"PK\x03\x04 and no more", "(File is not a zip file)"),
        ("h181.xlsx", b"", "cannot be read as .csv, or as SAS transport"),
    ],
)
def test_a_bad_raw_file_is_one_line(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert said in line_of("meps", f"dataset.raw_file={tmp_path / name}")


@pytest.mark.parametrize(("file", "column", "value", "said"), EDITED)
def test_an_edited_cell_is_told_with_its_row(
    file: str, column: str, value: str, said: str, raw_data: Path, tmp_path: Path
) -> None:
    raw = pd.read_csv(raw_data / file, dtype=str, keep_default_na=False, nrows=300)
    row = 0 if file == MEPS else 1 + int((raw["race"][1:] == "Caucasian").argmax())
    raw.loc[row, column] = value
    raw.to_csv(tmp_path / "edited.csv", index=False)
    words = [f"dataset.raw_file={tmp_path / 'edited.csv'}", "dataset.download.sha256=null"]
    assert f"column {said.format(row=row + 1)}" in line_of(
        Path(file).parent.name, *words, "dataset.rows=null"
    )


def test_the_two_groups_of_an_attribute_can_be_of_several_words_or_a_stored_pair(raw_data: Path) -> None:
    pair = "dataset.two_groups.race.disadvantaged=[Hispanic,Mexican,Puertorican]"
    others = load_dataset("law", pair).table()
    assert others.sensitive is not None
    assert others.sensitive.disadvantaged == ("Hispanic", "Mexican", "Puertorican")
    stored = "dataset.groups={race: {advantaged: [White], disadvantaged: [Asian]}}"
    asians = load_dataset("law", stored, "dataset.two_groups=null").table()
    assert [(people.s < 0).sum() for people in (others, asians)] == [987, 845]
    women = load_dataset("compas", "dataset.sensitive=sex", "dataset.rows=null").table()
    assert np.bincount(women.s + 1).tolist() == [1175, 0, 4997]


def test_adult_is_read_from_its_archive_and_both_files_are_verified(raw_data: Path, tmp_path: Path) -> None:
    archive, one_file = tmp_path / "adult.zip", tmp_path / "adult.data"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("Index", "of other files")
        for name in ("adult.data", "adult.test"):
            made.write(raw_data / "adult" / name, name)
    packed = load_dataset("adult", f"dataset.raw_file={archive}").table()
    assert packed.x.equals(load_dataset("adult").table().x)
    shutil.copy(raw_data / "adult" / "adult.data", one_file)
    words = f"dataset.raw_file={one_file}"
    assert "adult.test cannot be read" in line_of("adult", words)
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n")
    assert "adult.test is not the published file" in line_of("adult", words)
    accepted = load_dataset("adult", words, "dataset.members.test=null").table()
    assert len(accepted) == 30162  # people of the training file without missing values
