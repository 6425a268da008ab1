"""New people by the features of earlier ones: each type that a column can have means the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.tables.declared import Declared
from fairall.tables.features import Feature, Kind
from fairall.tables.files import read_cells
from fairall.tables.groups import Sensitive
from fairall.tables.people import PeopleReader

MISSING = ("", "NA", "None", "-9")
FEATURES = (
    Feature("income", Kind.REAL, fill=30.0, missing=MISSING),
    Feature("children", Kind.COUNT, fill=1.0, missing=MISSING),
    Feature.discrete("owner", ["False", "True"], first_code=0, fill=0.0, missing=MISSING),
    Feature.discrete("rooms", ["1", "2", "3", "(missing)"], first_code=0, fill=0.0, missing=MISSING),
    Feature.discrete("town", ["Bath", "Hull", "(other)"], first_code=0, fill=2.0, missing=MISSING),
)
LOWEST, HIGHEST = np.array([0, 0, *[np.nan] * 3]), np.array([100, 5, *[np.nan] * 3])
READER = PeopleReader(
    FEATURES, np.array([30.0, 1, 0.5, 1, 1]), np.ones(5), LOWEST, HIGHEST, Sensitive("sex", ("m",), ("f",))
)
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
def test_values_of_each_type(name: str, dtype: str, tmp_path: Path) -> None:
    place, column = READER.names.index(name), PEOPLE[name].astype(dtype)
    assert read(name, column) == (X[place], [1.0, -1.0, 1.0], [])
    lacking = column.mask([True, False, False])
    expected = [READER.features[place].of_missing, *X[place][1:]]
    assert read(name, lacking) == (expected, [1.0, -1.0, 1.0], [])
    PEOPLE.assign(**{name: lacking}).to_parquet(tmp_path / "people.parquet")
    stored = read_cells(tmp_path / "people.parquet", Declared.of()).frame
    assert READER.read(stored)[0][:, place].tolist() == expected


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("income", ["1.5", -9, " 50 "], [1.5, 30, 50]),
        ("children", ["NA", "2.0", -9.0], [1, 2, 1]),
        ("owner", ["TRUE", "false", " 1.0 "], [1, 0, 1]),
        ("owner", pd.Series([np.True_, "0", None], dtype=object), [1, 0, 0]),
        ("rooms", [-9, "2.0", "3 "], [3, 1, 2]),
        ("town", ["BATH", " hull", "NA"], [0, 1, 2]),
        ("town", pd.Categorical(["Hull"] * 3, categories=["Bath", "Hull", "York"]), [1, 1, 1]),
    ],
)
def test_other_spellings(name: str, values: Any, expected: list[float]) -> None:
    assert read(name, values)[::2] == (expected, [])


@pytest.mark.parametrize(
    ("name", "values", "warning"),
    [
        ("town", [1, 2, 1], "3 of 3 rows hold '1', '2', not known from training and taken as '(other)'"),
        ("income", [-101, 201, 5], "2 of 3 rows hold '-101', '201', far outside the training range 0 to 100"),
        ("children", None, "has no value in any row"),
        ("town", pd.Series(list(map(str, range(10**5, 10**5 + 3)))), "'100000', '100001', '100002'"),
    ],
)
def test_values_unlike_those_of_training(name: str, values: Any, warning: str) -> None:
    assert warning in read(name, values)[2][0]


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("income", pd.date_range("2020-01-01", periods=3), "'income', row 1: .* must be a finite number"),
        ("income", ["1e400", "1", "2"], "'income', row 1: '1e400' is not possible"),
        ("income", [1.0, np.inf, 2.0], "'income', row 2: inf is not possible"),
        ("children", [0.5, 1, 2], "'children', row 1: 0.5 is not possible; it must be a count"),
        ("children", [1, 2, -1], "'children', row 3: -1"),
        ("owner", [1, "no", 0], "'owner', row 2: 'no' is not known from training; it must be one of False"),
        ("town", [["Bath"], ["Hull"], ["Bath"]], "'town' must hold numbers or texts"),
        ("sex", ["m", None, "f"], "'sex', row 2: an empty cell is no group"),
    ],
)
def test_values_that_cannot_be(name: str, values: Any, told: str) -> None:
    with pytest.raises(FairAllError, match=told):
        READER.read(PEOPLE.assign(**{name: values}))
