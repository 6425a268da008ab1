import struct
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from fairall.data.load import load_dataset
from fairall.data.raw.dataset import read_columns
from fairall.errors import FairAllError


def ibm_float(value: float) -> bytes:
    """Eight bytes of a number as SAS transport files hold it: base 16, excess 64."""
    if value == 0:
        return bytes(8)
    sign, value, exponent = (128, -value, 64) if value < 0 else (0, value, 64)
    while value >= 1:
        value, exponent = value / 16, exponent + 1
    while value < 1 / 16:
        value, exponent = value * 16, exponent - 1
    return bytes([sign | exponent]) + int(value * 2**56).to_bytes(7, "big")


def write_sas_transport(path: Path, table: pd.DataFrame) -> None:
    """A version 5 transport file of numbers, as the specification TS-140 lays it out."""

    def padded(content: bytes) -> bytes:
        return content + b" " * (-len(content) % 80)

    def header(kind: str, numbers: str) -> bytes:
        return f"HEADER RECORD*******{kind:<8}HEADER RECORD!!!!!!!{numbers}".ljust(80).encode()

    zeros = "0" * 30
    stamp = b"01JAN20:00:00:00"
    parts = [
        header("LIBRARY", zeros),
        padded(b"SAS     SAS     SASLIB  9.4     LINUX   " + b" " * 24 + stamp),
        padded(stamp),
        header("MEMBER", "000000000000000001600000000140"),
        header("DSCRPTR", zeros),
        padded(b"SAS     H181    SASDATA 9.4     LINUX   " + b" " * 24 + stamp),
        padded(stamp),
        header("NAMESTR", f"000000{len(table.columns):04d}00000000000000000000"),
    ]
    names = b""
    for i, name in enumerate(table.columns):
        names += struct.pack(">hhhh8s40s8shhh2s8shhl52s", 1, 0, 8, i + 1, name.ljust(8).encode(), b" " * 40,
                             b" " * 8, 0, 0, 0, b"", b" " * 8, 0, 0, 8 * i, b"")  # fmt: skip
    parts += [padded(names), header("OBS", zeros)]
    parts.append(padded(b"".join(ibm_float(value) for row in table.to_numpy() for value in row)))
    path.write_bytes(b"".join(parts))


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame({"PANEL": [20.0, 19.0], "AGE53X": [-1.0, 65.0], "PCS42": [39.15, 23.61]})


@pytest.mark.parametrize("form", ["h181.ssp", "h181.csv", "h181ssp.zip"])
def test_all_forms_of_a_raw_file_hold_the_same(form: str, table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / form
    if form.endswith(".csv"):
        table.to_csv(path, index=False)
    else:
        write_sas_transport(tmp_path / "h181.ssp", table)
    if form.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(tmp_path / "h181.ssp", "h181.ssp")
    read = read_columns(path, ["PCS42", "PANEL", "AGE53X"])
    pd.testing.assert_frame_equal(read.astype(float), table[["PCS42", "PANEL", "AGE53X"]])


def test_meps_from_sas_transport_is_meps_from_csv(raw_data: Path, tmp_path: Path) -> None:
    (file,) = (raw_data / "meps").glob("*.csv")
    raw = pd.read_csv(file).head(400)
    raw.to_csv(tmp_path / "h181.csv", index=False)
    write_sas_transport(tmp_path / "h181.ssp", raw)
    tables = [
        load_dataset("meps", f"dataset.raw_file={tmp_path / name}", "dataset.rows=null").table()
        for name in ("h181.csv", "h181.ssp")
    ]
    pd.testing.assert_frame_equal(tables[0].x, tables[1].x)
    assert (tables[0].s == tables[1].s).all()
    assert (tables[0].label == tables[1].label).all()


def line_of(name: str, *words: str) -> str:
    with pytest.raises(FairAllError) as raised:
        load_dataset(name, *words).table()
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_truncated_raw_file_is_one_line(raw_data: Path, tmp_path: Path) -> None:
    whole = (raw_data / "compas" / "compas-scores-two-years.csv").read_bytes()
    cut = tmp_path / "compas-scores-two-years.csv"
    cut.write_bytes(whole[: len(whole) // 2])
    words = f"dataset.raw_file={cut}"
    assert "is not the published file (sha256" in line_of("compas", words)
    unchecked = line_of("compas", words, "dataset.download.sha256=null")
    assert "rows instead of 5278: truncated or edited?" in unchecked
    anyway = load_dataset("compas", words, "dataset.download.sha256=null", "dataset.rows=null").table()
    assert 2000 < len(anyway) < 5278


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("h181.csv", b"PANEL,SEX\n20,1\n", "column 'RACEV2X' is missing: is it another file"),
        ("h181.csv", b"", "cannot be read (No columns to parse from file)"),
        ("h181.csv", b"\xff\xfe\x00", "cannot be read"),
        ("h181.ssp", b"HEADER RECORD", "cannot be read"),
        ("h181ssp.zip", b"PK\x03\x04 and no more", "cannot be read (File is not a zip file)"),
        ("h181.xlsx", b"", "of unknown kind '.xlsx'"),
    ],
)
def test_a_bad_raw_file_is_one_line(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert said in line_of("meps", f"dataset.raw_file={path}")


@pytest.mark.parametrize(
    ("name", "column", "value", "said"),
    [
        ("compas", "age_cat", "Under 25", "column 'age_cat', row {row}: 'Under 25' is not possible"),
        ("compas", "two_year_recid", "", "column 'two_year_recid', row {row}: an empty cell is not possible"),
        ("compas", "priors_count", "many", "column 'priors_count', row {row}: 'many' is no number"),
        ("compas", "days_b_screening_arrest", "x", "column 'days_b_screening_arrest', row {row}: 'x' is no"),
        ("meps", "PCS42", "", "column 'PCS42', row {row}: an empty cell is not possible"),
        ("meps", "RTHLTH53", "7", "column 'RTHLTH', row {row}: 7 is not possible"),
        ("meps", "AGE53X", "old", "column 'AGE53X', row {row}: 'old' is no number"),
        ("meps", "OBTOTV15", "", "column 'UTILIZATION', row {row}: an empty cell is not possible"),
    ],
)
def test_an_edited_cell_is_told_with_its_row(
    name: str, column: str, value: str, said: str, raw_data: Path, tmp_path: Path
) -> None:
    (file,) = (raw_data / name).glob("*.csv")
    raw = pd.read_csv(file, dtype=str, keep_default_na=False, nrows=300)
    row = 0 if name == "meps" else 1 + int((raw["race"][1:] == "Caucasian").argmax())
    raw.loc[row, column] = value
    raw.to_csv(tmp_path / "edited.csv", index=False)
    words = [f"dataset.raw_file={tmp_path / 'edited.csv'}", "dataset.download.sha256=null"]
    assert said.format(row=row + 1) in line_of(name, *words, "dataset.rows=null")


def test_a_transport_file_cut_anywhere_is_one_line(table: pd.DataFrame, tmp_path: Path) -> None:
    whole = tmp_path / "whole.ssp"
    write_sas_transport(whole, pd.concat([table] * 40))
    content = whole.read_bytes()
    for length in range(0, len(content) - 80, 97):
        cut = tmp_path / "cut.ssp"
        cut.write_bytes(content[:length])
        with pytest.raises(FairAllError) as raised:
            read_columns(cut, ["PANEL", "PCS42"])
        assert "\n" not in str(raised.value)
