"""New people by the features of earlier ones: each type that a column can have means the same.

What is refused, and what is told of values unlike those of training, is in tests/test_policy.py.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.tables.features import Feature, Kind
from fairall.tables.groups import Sensitive
from fairall.tables.people import LearntFeature, PeopleReader

MISSING = ("", "NA", "None", "-9")
DISCRETE: dict[str, Any] = {"first_code": 0, "missing": MISSING, "mean": 1.0, "scale": 1.0}
FEATURES = (
    LearntFeature(
        "income", Kind.REAL, (), (), 30.0, MISSING, mean=30.0, scale=1.0, lowest=0.0, highest=100.0
    ),
    LearntFeature("children", Kind.COUNT, (), (), 1.0, MISSING, mean=1.0, scale=1.0, lowest=0.0, highest=5.0),
    LearntFeature.discrete("owner", ["False", "True"], fill=0.0, **DISCRETE),
    LearntFeature.discrete("rooms", ["1", "2", "3", "(missing)"], fill=0.0, **DISCRETE),
    LearntFeature.discrete("town", ["Bath", "Hull", "(other)"], fill=2.0, **DISCRETE),
)
READER = PeopleReader(FEATURES, Sensitive("sex", ("m",), ("f",)))
PEOPLE = pd.DataFrame(
    {
        "income": [10.0, 30.0, 50.0],
        "children": [0, 2, 5],
        "owner": [True, False, True],
        "rooms": [1, 2, 3],
        "town": ["Hull", "Bath", "Bath"],
        "sex": ["m", "f", "m"],
    }
)
X = [[10, 30, 50], [0, 2, 5], [1, 0, 1], [0, 1, 2], [1, 0, 0]]
NUMBERS = "int64 float64 Int64 Float64 double[pyarrow] str object category string[pyarrow]".split()
TYPES = {
    "income": NUMBERS,
    "children": [*NUMBERS, "uint8"],
    "owner": ["bool", "boolean", "bool[pyarrow]", *NUMBERS],
    "rooms": NUMBERS,
    "town": ["str", "object", "category", "string[pyarrow]"],
}


def read(name: str, values: Any) -> tuple[list[float], list[float], list[str]]:
    """What is read of people of whom one column is another, with the others as they are."""
    x, s, warnings = READER.read(PEOPLE.assign(**{name: values}))
    place = READER.names.index(name)
    assert np.delete(x.T, place, axis=0).tolist() == np.delete(X, place, axis=0).tolist()
    return x[:, place].tolist(), s.tolist(), warnings


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in TYPES for dtype in TYPES[name]])
def test_values_of_each_type(name: str, dtype: str) -> None:
    place, column = READER.names.index(name), PEOPLE[name].astype(dtype)
    assert read(name, column) == (X[place], [1.0, -1.0, 1.0], [])
    lacking = column.mask([True, False, False])
    expected = [READER.features[place].of_missing, *X[place][1:]]
    assert read(name, lacking) == (expected, [1.0, -1.0, 1.0], [])


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("income", ["1.5", -9, " 50 "], [1.5, 30, 50]),
        ("income", [-9.0, 1.0, 50.0], [30, 1, 50]),
        ("children", ["NA", "2.0", -9.0], [1, 2, 1]),
        ("owner", pd.Series([np.True_, "0", None], dtype=object), [1, 0, 0]),
        ("rooms", [-9, "2.0", "3 "], [3, 1, 2]),
        ("town", ["BATH", " hull", "NA"], [0, 1, 2]),
        ("town", pd.Categorical(["Hull"] * 3, categories=["Bath", "Hull", "York"]), [1, 1, 1]),
    ],
)
def test_other_spellings(name: str, values: Any, expected: list[float]) -> None:
    assert read(name, values)[::2] == (expected, [])


def test_a_word_that_means_no_value_has_one_spelling() -> None:
    (warning,) = read("town", ["na", "Hull", "Bath"])[2]
    assert "1 of 3 rows hold 'na', not known from training" in warning


@pytest.mark.parametrize("levels", [("False", "True"), ("0.0", "1.0"), ("0", "1")])
@pytest.mark.parametrize("cells", [[1, 0], [True, False], [" 1.0", "0.0 "], ["TRUE", "false"]])
def test_truth_values_mean_the_same_however_those_of_training_are_spelt(
    levels: tuple[str, str], cells: list[Any]
) -> None:
    owner = Feature.discrete("owner", levels, first_code=0)
    assert owner.read(pd.Series(cells))[0].tolist() == [1, 0]
