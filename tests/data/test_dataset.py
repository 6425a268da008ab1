"""Tables of data sets, and what their features and cells mean."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairall.data.dataset import TableConfig, TableDataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.splits import ROLES, Splits
from fairall.data.table import Table
from fairall.errors import FairAllError


class Drawn(TableDataset):
    """Rows drawn when loaded, with splits of their own."""

    loaded = 0

    def load(self) -> Table:
        self.loaded += 1
        grade, s = np.arange(40.0), np.tile([-1, 1], 20)
        schema = Schema([Feature("grade", Kind.REAL)])
        table = Table.fully_labelled(schema, pd.DataFrame({"grade": grade}), s, (grade > 20).astype(int))
        rows = np.arange(40)
        splits = Splits(train=rows[:20], validation=rows[20:30], test=rows[30:], pool=rows[10:20])
        return replace(table, splits=splits, notes=("a note",), warnings=("a warning",))


def test_a_table_is_loaded_once_and_may_bring_its_splits_notes_and_warnings() -> None:
    source = Drawn(TableConfig("x.Drawn", "drawn", 0.5))
    data = source.prepare()
    assert source.table() is source.table()
    assert source.loaded == 1
    assert [len(getattr(data, role)) for role in ROLES] == [20, 10, 10, 10]
    np.testing.assert_array_equal(data.pool_table.x["grade"], np.arange(10, 20))
    assert (data.notes, data.warnings) == (("a note",), ("a warning",))
    assert data.pool_table.splits is None
    assert data.schema.mean == (9.5,)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: Feature("size", Kind.CATEGORICAL, (1.0, 3.0, 2.0)), "has codes that do not ascend"),
        (lambda: Feature("size", Kind.BINARY, (1.0, 2.0), ("a", "a")), "needs a text for each code, or none"),
        (lambda: Feature("size", Kind.BINARY, (1.0, 2.0), (), 3.0), "has a fill that is none of its codes"),
        (lambda: Feature("size", Kind.CATEGORICAL, (1.0,)), "cannot have 1 code"),
        (lambda: Schema([Feature("size", Kind.REAL)] * 2), "more than one is named 'size'"),
        (lambda: Schema([Feature("s", Kind.REAL)]), "column 's' cannot be a feature"),
    ],
)
def test_a_feature_or_a_schema_that_cannot_be_is_refused(made: Callable[[], object], told: str) -> None:
    with pytest.raises(FairAllError, match=told):
        made()


def test_cells_mean_the_same_in_a_training_file_and_of_people_to_decide_on() -> None:
    size = Feature.discrete("size", ["10", "Large", "(missing)"], fill=1.0, missing=("NA",))
    cells = pd.Series(["10", " Large ", "NA", None, 10, 10.0, "10.0", "large", "na", "Paris"], name="size")
    values, unknown, _ = size.encode(cells)
    assert values.tolist() == [1, 2, 3, 3, 1, 1, 1, 2, 1, 1]
    assert np.flatnonzero(unknown).tolist() == [8, 9]
    income = Feature("income", Kind.REAL, fill=5.0, missing=("-99",))
    numbers = pd.Series(["1e3", " 2 ", "-99", None, 7, "-99.0"], name="income", dtype=object)
    assert income.encode(numbers)[0].tolist() == [1000, 2, 5, 5, 7, 5]
    assert income.read(pd.Series([np.inf, -99.0, 1.0]))[1].tolist() == [True, False, False]
