"""Tables of data sets, and what their features and cells mean."""

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
    ("codes", "told"), [((1.0, 3.0, 2.0), "has codes that do not ascend"), ((1.0,), "cannot have 1 code")]
)
def test_a_category_has_several_codes_that_ascend(codes: tuple[float, ...], told: str) -> None:
    with pytest.raises(FairAllError, match=told):
        Feature("size", Kind.CATEGORICAL, codes)
