import re

from fairall.data.credit import raw_applicants
from fairall.data.load import load_dataset
from tests.conftest import CHECKOUT


def test_categories_are_coded_in_string_order_and_the_page_of_data_has_those_of_sex() -> None:
    table, raw = load_dataset("credit").table(), raw_applicants()
    # The first applicant is A11 ... A34 A43 ...; A410 comes before A42 as a string.
    assert table.x.iloc[0][["status", "credit_history", "purpose"]].tolist() == [1, 5, 5]
    people = table.x.assign(code=raw["personal_status"], s=table.s, good=raw["credit"] == 1)
    page = (CHECKOUT / "docs" / "data.md").read_text()
    for (code, s), good in people.groupby(["code", "s"])["good"]:
        row = rf"^\| {code} \| {len(good)} \| {100 * good.mean():.0f} \|.*\| {'[+]1' if s > 0 else '−1'} \|$"
        assert re.search(row, page, re.MULTILINE), code
    assert "92 single women among its 690 people" in page
