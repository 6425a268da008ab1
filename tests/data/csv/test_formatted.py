"""Numbers formatted for readers are told from plain ones and from other text."""

import pytest

from fairall.data.csv.formatted import is_formatted, point_groups_thousands

NOT_FORMATTED = [
    "", "12", "-12", "+5", "1.5", "1e5", "$", "%", "-", "5 kg", "10-20", "2020-01-01", "1.2.3", "1,2,3",
    "--5", "A1", "(5", "$0-$100", "1.234,567.8", "ABC 5", "(" + " " * 50_000 + "1",
]  # fmt: skip


@pytest.mark.parametrize(
    "cell",
    [
        "$2,546.20",
        "1.234,56 €",
        "-$5",
        "R$ 10",
        "EUR 1,234",
        "1.234 €",
        "0.125 €",
        "12 %",
        "1 234",
        "1\u202f234,5",
        "1'234.50",
        "1.234.567",
        "1,23,456.78",
        "1,234",
        "0,123",
        "3,5",
        "(1,234.00)",
        "−5",
        "5-",
    ],
)
def test_a_formatted_number(cell: str) -> None:
    assert is_formatted(cell)


@pytest.mark.parametrize("cell", NOT_FORMATTED)
def test_what_is_no_formatted_number(cell: str) -> None:
    assert not is_formatted(cell)


@pytest.mark.parametrize(
    ("cells", "grouped"),
    [
        (["1.250", "900"], True),
        (["1.25", "900"], False),
        (["1.250", "900.000"], False),
        (["1.251", "900"], False),
        (["0.250", "900"], False),
        (["1.250", "1000"], False),
        (["1.250", "2.500"], False),
    ],
)
def test_a_point_that_groups_thousands(cells: list[str], grouped: bool) -> None:
    assert point_groups_thousands(cells) == grouped
