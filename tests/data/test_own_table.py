"""What a run does with a table of the user: what it refuses, splits, imputes and leaves out."""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.config.compose import checked_node, compose_config
from fairall.data.features import Feature, Kind
from fairall.data.own_table import PREFIX, OwnTable, OwnTableConfig
from fairall.data.table import Table
from fairall.errors import FairAllError
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL

Own = Callable[..., OwnTable]

MEANING = {"label": "repaid", "positive": "yes", "sensitive": "sex", "advantaged": "m"}
TOWNS = ("Leeds", "York", "Hull")
N = 100


def people(n: int = N, /, **columns: object) -> pd.DataFrame:
    """N people with a feature of each kind, groups and labels balanced; further or other columns as given."""
    draw, row = np.random.default_rng(0), np.arange(n)
    table = pd.DataFrame(
        {
            "age": draw.normal(40, 10, n).round(2).astype(str),
            "children": draw.integers(4, size=n).astype(str),
            "town": draw.choice(TOWNS, n),
            "sex": np.array(["f", "m"])[row % 2],
            "repaid": np.array(["no", "yes"])[row // 2 % 2],
        }
    )
    return table.assign(**columns)


def with_cell(name: str, row: int, value: str, table: pd.DataFrame) -> pd.DataFrame:
    """The people with another value in a row, from 0."""
    return table.assign(**{name: table[name].where(np.arange(len(table)) != row, value)})


@pytest.fixture
def own(tmp_path: Path) -> Own:
    """The data set of a file of these people, and words about it."""

    def made(table: pd.DataFrame, *words: str, **options: str) -> OwnTable:
        path = tmp_path / "people.csv"
        table.to_csv(path, index=False, **options)
        return OwnTable(replace(checked_config(*words), path=str(path)))

    return made


@functools.cache
def checked_config(*words: str) -> OwnTableConfig:
    """As of a command line; the same words are composed once."""
    keys = [f"{key}={value}" for key, value in (MEANING | {"path": "x"}).items()]
    composed = compose_config("dataset=csv", *(f"dataset.{word}" for word in (*keys, *words)))
    config: OwnTableConfig = checked_node(composed, "dataset")
    return config


def feature(table: Table, name: str) -> Feature:
    return table.schema[table.schema.names.index(name)]


def test_100_people_work(own: Own) -> None:
    data = own(people()).prepare()
    assert [f.kind for f in data.schema] == [Kind.REAL, Kind.COUNT, Kind.CATEGORICAL]
    assert [len(part) for part in (data.train, data.validation, data.test, data.pool)] == [70, 15, 15, 49]
    assert data.notes == ()


def test_words_on_the_file_are_those_of_its_reader(own: Own) -> None:
    other = own(people(), "separator=';'", "text_encoding=utf-16", sep=";", encoding="utf-16")
    assert other.prepare().fingerprint() == own(people()).prepare().fingerprint()


PARTS = np.repeat(["train", "validation", "test"], [60, 20, 20])
BY_COLUMN = ("split.column=part",)
IN_TEST, ROW = PARTS == "test", np.arange(N)
DECIDED = {"granted": (ROW // 3 % 2).astype(str), "chance": "0.4"}
LOGGED = ("decision=granted", "propensity=chance")
LABELS = people()["repaid"]
BAD_TABLES: list[tuple[pd.DataFrame, tuple[str, ...], str]] = [
    (
        people(repaid=LABELS.mask((ROW < 98) & (LABELS == "no"))),
        (),
        "the training rows all have the same label",
    ),
    (people(repaid=LABELS.mask(ROW >= 39)), (), "'repaid': 39 rows have a label"),
    (people(), ("label=''",), "label=COLUMN"),
    (people(), ("sensitive=''", "advantaged=null"), "sensitive=COLUMN"),
    (people(), ("advantaged=male",), "advantaged=male"),
    (people(sex=np.where(ROW < 2, "f", "m")), (), "row is one of the disadvantaged group"),
    (people()[["sex", "repaid"]], (), "no column is left as a feature"),
    (people(label=people()["children"]), (), "column 'label' cannot be a feature"),
    (with_cell("part", 99, "tset", people(part=PARTS)), BY_COLUMN, "'part', row 100: 'tset' is none of"),
    (people(part=PARTS, repaid=LABELS.mask(IN_TEST)), BY_COLUMN, "no test row is one with a label that can"),
    (people(part=PARTS, sex=np.where(IN_TEST, "m", people()["sex"])), BY_COLUMN, "no test row is one of the"),
    (
        people(part=PARTS, granted=np.where(PARTS == "train", 1, ROW % 2)),
        (*BY_COLUMN, "decision=granted"),
        "column 'granted': the training rows all have the same decision",
    ),
    (people(), ("kinds={town: binary}",), "'town' has 3 values (Hull, Leeds, York)"),
    (with_cell("children", 8, "16777217", people()), ("kinds={children: count}",), "'children', row 9: "),
    (people(), ("split.held_out=0.005",), "dataset.split.held_out=0.005: 100 rows cannot be cut"),
    (people(), ("split.pool=0.001",), "dataset.split.pool=0.001 selects none of 70 training rows"),
]


@pytest.mark.parametrize(("table", "words", "told"), BAD_TABLES, ids=range(len(BAD_TABLES)))
def test_a_bad_table_is_told_in_a_line_and_how_keys_are_given(
    table: pd.DataFrame, words: tuple[str, ...], told: str, own: Own
) -> None:
    with pytest.raises(FairAllError) as caught:
        own(table, *words).prepare()
    message, last = str(caught.value).splitlines()
    assert told in message
    assert len(message) < 400
    assert last == PREFIX


@pytest.mark.parametrize("rare", ["", "0.3", "5"])
def test_a_column_that_says_nothing_in_training_rows_is_left_out(rare: str, own: Own) -> None:
    data = own(
        people(part=PARTS, extra=np.where(ROW == 60, rare, np.where(ROW < 60, "0.1", "0.2"))), *BY_COLUMN
    )
    assert data.prepare().schema.names == ["age", "children", "town"]
    (note,) = data.prepare().notes
    assert note.startswith("column 'extra' is left out: ")


def test_words_that_mean_no_value_are_those_that_are_declared(own: Own) -> None:
    towns = people(town=people()["town"].replace("York", "NA"))
    for words, last in ((), MISSING_LEVEL), (("missing_by_default=[nan]",), "NA"):
        assert feature(own(towns, *words).table(), "town").levels == ("Hull", "Leeds", last)
    with pytest.raises(FairAllError, match="must be a list of words"):
        own(people(), "missing=[[a]]")


def test_rare_categories_become_one(own: Own) -> None:
    values = np.array([f"k{i}" for i in [*range(5000), *np.arange(1000) % 40]])
    data = own(people(6000, code=values), "max_categories=30")
    table, code = data.table(), feature(data.table(), "code")
    assert len(code.levels) == len({*code.levels}) == 30
    assert (code.levels[-1], code.fill) == (OTHER_LEVEL, code.codes[-1])
    merged = (~np.isin(values, code.levels)).sum()
    assert (table.x["code"] == code.fill).sum() == merged
    assert "the 4971 rarest of its 5000 values are merged into (other)" in str(data.prepare().notes)
    # A category of the same name as the one of the rare is another.
    code = feature(
        own(people(code=np.where(ROW < 50, OTHER_LEVEL, values[:N])), "max_categories=5").table(), "code"
    )
    assert len({*code.levels}) == len(code.levels) == len(code.codes)


def test_missing_and_unknown_values_are_imputed_from_training_rows(own: Own) -> None:
    columns = people(part=PARTS)
    for name, row, value in (("age", 49, "NA"), ("town", 98, ""), ("town", 99, "Bath")):
        columns = with_cell(name, row, value, columns)
    table, train = own(columns, *BY_COLUMN).table(), columns[:60]
    assert table.x["age"][49] == pytest.approx(pd.to_numeric(train["age"], errors="coerce").median())
    assert table.missing == {"age": 1, "town": 1}
    town = feature(table, "town")
    assert town.levels == ("Hull", "Leeds", "York")
    assert (table.x["town"][98:] == town.levels.index(train["town"].mode()[0])).all()


def test_rows_of_a_split_column_keep_their_part(own: Own) -> None:
    dataset = own(people(part=PARTS, repaid=LABELS.mask(np.isin(ROW, [0, 99]))), *BY_COLUMN)
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(dataset.splits, part), np.flatnonzero(part == PARTS))
    assert {*dataset.splits.pool} < {*dataset.splits.train}
    with pytest.raises(FairAllError, match="gives the only split"):
        dataset.resplit(1)


def test_another_split_has_the_features_of_the_first(own: Own) -> None:
    dataset = own(people())
    other = dataset.resplit(1)
    assert other.schema is dataset.schema
    assert {*other.splits.test} != {*dataset.splits.test}
    for part in (other.splits.test, dataset.splits.test):  # as many of each group and label
        assert np.bincount(2 * dataset.table().label[part] + (dataset.table().s[part] > 0)).min() >= 3


def test_rejected_people_need_no_propensity(own: Own) -> None:
    logged = own(with_cell("chance", 0, "", people(**DECIDED)), *LOGGED).table().logged
    assert logged is not None
    np.testing.assert_array_equal(logged.accepted, ROW // 3 % 2)
    assert (logged.propensity[0], logged.estimated, logged.reveals) == (0, False, False)
    assert np.isfinite(logged.propensity).all()


@pytest.mark.parametrize("part", ["validation", "test"])
def test_only_training_rows_shape_the_features(own: Own, part: str) -> None:
    before = own(people())
    row = getattr(before.splits, part)[0]
    changed = with_cell("age", row, "-5000", with_cell("town", row, "Bath", people()))
    data, other = before.prepare(), own(changed).prepare()
    assert list(data.schema) == list(other.schema)
    for name in ("mean", "scale"):
        np.testing.assert_array_equal(getattr(data.scaler, name), getattr(other.scaler, name))
    assert torch.equal(data.train.x, other.train.x)
    assert not torch.equal(getattr(data, part).x, getattr(other, part).x)


def test_people_read_by_pandas_are_understood(own: Own, tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    columns = people(ward=draw.choice(["1", "2", "10", ""], N), member=draw.choice(["True", "False"], N))
    table = own(with_cell("age", 2, "?", columns), "kinds={ward: categorical}").table()
    assert feature(table, "ward").levels == ("1", "2", "10", MISSING_LEVEL)
    read = pd.read_csv(tmp_path / "people.csv", na_values="?")
    assert [str(read[name].dtype) for name in ("ward", "member")] == ["float64", "bool"]
    as_categories = read.astype({"town": "category", "ward": "category"})
    for other in (read, read.convert_dtypes(), as_categories):
        np.testing.assert_array_equal(table.schema.encode(other), table.features)
