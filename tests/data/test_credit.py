import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from fairall.data.credit import raw_applicants
from fairall.data.load import load_dataset
from fairall.data.table import Table


@pytest.fixture(scope="module")
def table() -> Table:
    return load_dataset("credit").table()


def test_embedded_file_is_the_published_one(raw_data: Path) -> None:
    embedded = files("fairall.data").joinpath("german.data").read_bytes()
    assert hashlib.sha256(embedded).hexdigest().startswith("b21f3d81db8071257d5ff1deaeba1fd4303b62712e6f")
    assert embedded == (raw_data / "credit" / "german.data").read_bytes()


def test_categories_are_coded_in_string_order(table: Table) -> None:
    # The first applicant is A11 ... A34 A43 ...; A410 comes before A42 as a string.
    first = table.x.iloc[0]
    assert (first["status"], first["credit_history"], first["purpose"]) == (1, 5, 5)


def test_the_page_of_data_has_the_codes_of_sex_as_they_are_in_the_file(table: Table) -> None:
    raw = raw_applicants()
    by_code = (raw["credit"] == 1).groupby(raw["personal_status"]).agg(["size", "mean"])
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    for code, (people, good) in by_code.iterrows():
        (row,) = (line.split(" | ") for line in page.splitlines() if line.startswith(f"| {code} |"))
        assert row[1:3] == [f"{people:.0f}", f"{100 * good:.0f}"]
        assert row[-1].rstrip(" |") == ("−1" if code == "A92" else "+1")
        assert (table.s[raw["personal_status"] == code] == (-1 if code == "A92" else 1)).all()
    assert "92 single women among its 690 people" in page
    assert (by_code.loc["A94", "size"], (table.s > 0).sum()) == (92, 690)
