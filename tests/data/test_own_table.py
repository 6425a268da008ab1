"""What a run does with a table of the user: what it refuses, splits, imputes and leaves out."""

import numpy as np
import pandas as pd
import pytest

from fairall.data.features import Feature, Kind
from fairall.data.load import load_dataset
from fairall.data.own_table import PREFIX, OwnTable
from fairall.errors import FairAllError
from fairall.tables.features import OTHER_LEVEL

pytestmark = pytest.mark.usefixtures("in_empty_folder")
PARTS, ROW = np.repeat(["train", "validation", "test"], [60, 20, 20]), np.arange(100)
BY_COLUMN, IN_TEST = "split.column=part", PARTS == "test"


def people(n: int = 100, /, **columns: object) -> pd.DataFrame:
    """So many people with a feature of each kind, groups and labels balanced; other columns as given."""
    draw, row = np.random.default_rng(0), np.arange(n)
    table = pd.DataFrame(
        {
            "age": draw.normal(40, 10, n).round(2).astype(str),
            "children": draw.integers(4, size=n).astype(str),
            "town": draw.choice(["Leeds", "York", "Hull"], n),
            "sex": np.array(["f", "m"])[row % 2],
            "repaid": np.array(["no", "yes"])[row // 2 % 2],
        }
    )
    return table.assign(**columns)


LABELS = people()["repaid"]


def with_cell(name: str, row: int, value: str, table: pd.DataFrame) -> pd.DataFrame:
    """The people, now with another value in a row, from 0."""
    table.loc[row, name] = value
    return table


def own(table: pd.DataFrame, *words: str, **options: str) -> OwnTable:
    """The data set of a file of these people, and words about it."""
    table.to_csv("people.csv", index=False, **options)
    meaning = "path=people.csv label=repaid positive=yes sensitive=sex advantaged=m".split()
    dataset = load_dataset("csv", *(f"dataset.{word}" for word in (*meaning, *words)))
    assert isinstance(dataset, OwnTable)
    return dataset


def feature(data: OwnTable, name: str) -> Feature:
    return data.schema[data.schema.names.index(name)]


def test_100_people_work() -> None:
    data = own(people()).prepare()
    assert [f.kind for f in data.schema] == [Kind.REAL, Kind.COUNT, Kind.CATEGORICAL]
    assert [len(part) for part in (data.train, data.validation, data.test, data.pool)] == [70, 15, 15, 49]
    assert data.notes == ()


def test_words_on_the_file_are_those_of_its_reader() -> None:
    other = own(people(), "separator=';'", "text_encoding=utf-16", sep=";", encoding="utf-16")
    assert other.prepare().fingerprint() == own(people()).prepare().fingerprint()


@pytest.mark.parametrize(
    ("table", "words", "told"),
    [
        (
            people(repaid=LABELS.mask((ROW < 98) & (LABELS == "no"))),
            "",
            "the training rows all have the same label",
        ),
        (people(repaid=LABELS.mask(ROW >= 39)), "", "'repaid': 39 rows have a label"),
        (people(), "advantaged=male", "advantaged=male"),
        (people(sex=np.where(ROW < 2, "f", "m")), "", "row is one of the disadvantaged group"),
        (people()[["sex", "repaid"]], "", "no column is left as a feature"),
        (people(label=LABELS), "", "column 'label' cannot be a feature"),
        (with_cell("part", 99, "tset", people(part=PARTS)), BY_COLUMN, "'part', row 100: 'tset' is none of"),
        (
            people(part=PARTS, repaid=LABELS.mask(IN_TEST)),
            BY_COLUMN,
            "no test row is one with a label that can",
        ),
        (
            people(part=PARTS, sex=np.where(IN_TEST | (ROW % 2 > 0), "m", "f")),
            BY_COLUMN,
            "no test row is one of the",
        ),
        (
            people(part=PARTS, granted=np.where(PARTS == "train", 1, ROW % 2)),
            f"{BY_COLUMN} decision=granted",
            "column 'granted': the training rows all have the same decision",
        ),
        (people(), "kinds={town:binary}", "'town' has 3 values (Hull, Leeds, York)"),
        (with_cell("children", 8, "16777217", people()), "kinds={children:count}", "'children', row 9: "),
        (people(), "split.held_out=0.005", "dataset.split.held_out=0.005: 100 rows cannot be cut"),
        (people(), "split.pool=0.001", "dataset.split.pool=0.001 selects none of 70 training rows"),
    ],
)
def test_a_bad_table_is_told_in_a_line_and_how_keys_are_given(
    table: pd.DataFrame, words: str, told: str
) -> None:
    with pytest.raises(FairAllError) as caught:
        own(table, *words.split()).prepare()
    message, last = str(caught.value).splitlines()
    assert told in message
    assert len(message) < 400
    assert last == PREFIX


@pytest.mark.parametrize("rare", ["", "0.3", "5"])
def test_a_column_that_says_nothing_in_training_rows_is_left_out(rare: str) -> None:
    extra = np.where(ROW == 60, rare, np.where(ROW < 60, "0.1", "0.2"))
    data = own(people(part=PARTS, extra=extra), BY_COLUMN).prepare()
    assert data.schema.names == ["age", "children", "town"]
    (note,) = data.notes
    assert note.startswith("column 'extra' is left out: ")


def test_a_category_may_have_the_name_of_that_of_the_rare_ones() -> None:
    code = np.where(ROW < 50, OTHER_LEVEL, [f"k{row}" for row in ROW])
    assert feature(own(people(code=code), "max_categories=5"), "code").levels.count(OTHER_LEVEL) == 1


def test_missing_and_unknown_values_are_imputed_from_training_rows() -> None:
    columns = people(part=PARTS)
    for name, row, value in (("age", 49, "NA"), ("town", 98, ""), ("town", 99, "Bath")):
        with_cell(name, row, value, columns)
    data, train = own(columns, BY_COLUMN), columns[:60]
    table, town = data.table(), feature(data, "town")
    assert table.x["age"][49] == pytest.approx(train["age"].drop(49).astype(float).median())
    assert table.missing == {"age": 1, "town": 1}
    assert town.levels == ("Hull", "Leeds", "York")
    assert (table.x["town"][98:] == town.levels.index(train["town"].mode()[0])).all()


def test_rows_of_a_split_column_keep_their_part() -> None:
    dataset = own(people(part=PARTS, repaid=LABELS.mask(np.isin(ROW, [0, 99]))), BY_COLUMN)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(dataset.splits, part), np.flatnonzero(part == PARTS))
    assert {*dataset.splits.pool} < {*dataset.splits.train}
    with pytest.raises(FairAllError, match="gives the only split"):
        dataset.resplit(1)


def test_another_split_has_the_features_of_the_first() -> None:
    dataset = own(people())
    other = dataset.resplit(1)
    assert other.schema is dataset.schema
    assert {*other.splits.test} != {*dataset.splits.test}
    for part in (other.splits.test, dataset.splits.test):  # as many of each group and label
        assert np.bincount(2 * dataset.table().label[part] + (dataset.table().s[part] > 0)).min() >= 3


def test_rejected_people_need_no_propensity() -> None:
    columns = people(granted=ROW // 3 % 2, chance="0.4")
    logged = own(with_cell("chance", 0, "", columns), "decision=granted", "propensity=chance").table().logged
    assert logged
    np.testing.assert_array_equal(logged.propensity, np.where(ROW, 0.4, 0.0))
