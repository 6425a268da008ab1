"""New people by the features of earlier ones: each type that a column can have means the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairall.errors import FairAllError
from fairall.tables.declared import Declared
from fairall.tables.features import Feature, Kind
from fairall.tables.files import File
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
TEXTS = pd.ArrowDtype(pa.string())


def people(**columns: Any) -> pd.DataFrame:
    usual = {
        "income": 30.0,
        "children": 2,
        "owner": False,
        "rooms": 1,
        "town": "Bath",
        "sex": ["m", "f", "m"],
    }
    return pd.DataFrame(usual | columns)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("income", [10, 20, 30], [10, 20, 30]),
        ("income", pd.array([10, None, -9], dtype="Int64"), [10, 30, 30]),
        ("income", pd.array([1.5, None, -9.0], dtype="Float64"), [1.5, 30, 30]),
        ("income", ["1.5", 20, " 50 "], [1.5, 20, 50]),
        ("income", pd.Categorical(["1.5", "NA", "50"]), [1.5, 30, 50]),
        ("income", pd.Series([1.5, None, 2], dtype="double[pyarrow]"), [1.5, 30, 2]),
        ("children", [0.0, np.nan, 5.0], [0, 1, 5]),
        ("children", np.array([0, 1, 2], dtype="uint8"), [0, 1, 2]),
        ("children", pd.array([0, None, 5], dtype="Int8"), [0, 1, 5]),
        ("owner", [1, 0, 1], [1, 0, 1]),
        ("owner", [1.0, 0.0, np.nan], [1, 0, 0]),
        ("owner", pd.array([True, None, False], dtype="boolean"), [1, 0, 0]),
        ("owner", ["TRUE", "false", " True "], [1, 0, 1]),
        ("owner", pd.Series([np.True_, False, None], dtype=object), [1, 0, 0]),
        ("owner", pd.Series(["True", "False", "NA"], dtype=TEXTS), [1, 0, 0]),
        ("rooms", [1.0, np.nan, 3.0], [0, 3, 2]),
        ("rooms", pd.array([1, None, 3], dtype="Int16"), [0, 3, 2]),
        ("rooms", pd.Categorical([1, 2, 3]), [0, 1, 2]),
        ("rooms", ["1.0", "2", "3 "], [0, 1, 2]),
        ("rooms", [-9, 2, 3], [3, 1, 2]),
        ("town", ["BATH", "hull", " Bath "], [0, 1, 0]),
        ("town", ["Bath", None, "NA"], [0, 2, 2]),
        ("town", pd.Series(["Bath", "Hull", None], dtype=TEXTS), [0, 1, 2]),
        ("town", pd.Categorical(["Hull"] * 3, categories=["Bath", "Hull", "York"]), [1, 1, 1]),
        ("town", [1, 2, 3], [2, 2, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore:column 'town'. 3 of 3 rows hold '1'")
def test_values_of_each_type(name: str, values: Any, expected: list[float], tmp_path: Path) -> None:
    table = people(**{name: values})
    place = READER.names.index(name)
    x, s = READER.read(table)
    assert x[:, place].tolist() == expected
    assert s.tolist() == [1.0, -1.0, 1.0]
    others = READER.read(people())[0]
    np.testing.assert_array_equal(np.delete(x, place, axis=1), np.delete(others, place, axis=1))
    if not any(isinstance(one, bool | int | float) for one in values) or table[name].dtype != object:
        table.to_parquet(tmp_path / "people.parquet")
        (part,) = File(tmp_path / "people.parquet", Declared.of()).parts()
        assert READER.read(part.frame)[0][:, place].tolist() == expected


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("income", pd.date_range("2020-01-01", periods=3), "'income', row 1: .* must be a finite number"),
        ("income", ["1e400", "1", "2"], "'income', row 1: '1e400' is not possible"),
        ("income", [1.0, np.inf, 2.0], "'income', row 2: inf is not possible"),
        ("children", [0.5, 1, 2], "'children', row 1: 0.5 is not possible; it must be a count"),
        ("children", [1, 2, -1], "'children', row 3: -1"),
        ("owner", ["yes", "no", "yes"], "'owner': 3 of 3 rows hold 'no', 'yes', not known"),
        ("town", [["Bath"], ["Hull"], ["Bath"]], "'town' must hold numbers or texts"),
        ("sex", ["m", None, "f"], "'sex': 1 of 3 rows hold 'no value'"),
    ],
)
def test_values_that_cannot_be(name: str, values: Any, told: str) -> None:
    with pytest.raises(FairAllError, match=told):
        READER.read(people(**{name: values}))
