"""Numbers formatted for readers are told from plain ones and from other text."""

import pytest

from fairall.tables.formatted import is_formatted, point_groups_thousands

FORMATTED = (
    "$2,546.20|1.234,56 €|-$5|R$ 10|EUR 1,234|1.234 €|0.125 €|12 %|1 234|1\u202f234,5|1'234.50|1.234.567|"
    "1,23,456.78|1,234|0,123|3,5|(1,234.00)|−5|5-"
).split("|")
NOT_FORMATTED = (
    "|12|-12|+5|1.5|1e5|$|%|-|5 kg|10-20|2020-01-01|1.2.3|1,2,3|--5|A1|(5|$0-$100|1.234,567.8|ABC 5|("
).split("|")


@pytest.mark.parametrize("cell", [*FORMATTED, *NOT_FORMATTED, "(" + " " * 50_000 + "1"], ids=range(41))
def test_a_formatted_number(cell: str) -> None:
    assert is_formatted(cell) == (cell in FORMATTED)


@pytest.mark.parametrize(
    "cells",
    ["1.250 900", "1.25 900", "1.250 900.000", "1.251 900", "0.250 900", "1.250 1000", "1.250 2.500"],
)
def test_a_point_that_groups_thousands(cells: str) -> None:
    assert point_groups_thousands(cells.split()) == (cells == "1.250 900")
