import hashlib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from fairall.data.features import Kind
from fairall.data.load import load_dataset
from fairall.data.prepared import PreparedData
from fairall.data.splits import SplitConfig, split
from fairall.data.table import Table


@pytest.fixture(scope="module")
def table() -> Table:
    return load_dataset("credit").table()


def test_embedded_file_is_the_published_one() -> None:
    content = files("fairall.data").joinpath("german.data").read_bytes()
    assert (
        hashlib.sha256(content).hexdigest()
        == "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
    )


def test_embedded_file_is_the_raw_one(raw_data: Path) -> None:
    embedded = files("fairall.data").joinpath("german.data").read_bytes()
    assert embedded == (raw_data / "credit" / "german.data").read_bytes()


def test_categories_are_coded_in_string_order(table: Table) -> None:
    # The first applicant is A11 ... A34 A43 ...; A410 comes before A42 as a string.
    first = table.x.iloc[0]
    assert (first["status"], first["credit_history"], first["purpose"]) == (1, 5, 5)


def test_split_sizes_and_pool_order(table: Table) -> None:
    splits = split(len(table), SplitConfig(0.3, 0.7, 1234))
    assert [len(part) for part in (splits.train, splits.validation, splits.test, splits.pool)] == [
        700,
        150,
        150,
        490,
    ]
    train, _ = train_test_split(table.x, test_size=0.3, random_state=1234)
    np.testing.assert_array_equal(splits.pool, train.sample(frac=0.7, random_state=1234).index)
    assert set(splits.pool) <= set(splits.train)
    assert not set(splits.train) & set(splits.validation) | set(splits.validation) & set(splits.test)


def test_scaler_is_fitted_on_training_rows_only(credit: PreparedData) -> None:
    real = credit.schema.columns(Kind.REAL)
    np.testing.assert_allclose(credit.train.x[:, real].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(credit.train.x[:, real].std(0, correction=0), 1, atol=1e-5)
    assert credit.test.x[:, real].mean(0).abs().max() > 1e-3
    others = [i for i in range(len(credit.schema)) if i not in real]
    assert (credit.train.x[:, others] == credit.train.x[:, others].round()).all()
