"""What a run does with a file of the user: what it refuses, splits, imputes and leaves out."""

import csv
import functools
import gzip
import io
import json
import os
import random
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.config.compose import checked_node, compose_config
from fairall.data.features import Feature, Kind
from fairall.data.load import load_dataset
from fairall.data.own_table import PREFIX, OwnTable, OwnTableConfig
from fairall.data.table import Table
from fairall.errors import FairAllError
from fairall.policy import schema_of
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL
from fairall.tables.people import from_plain, to_plain

Columns = dict[str, list[str]]
Own = Callable[..., OwnTable]

MEANING = {"label": "repaid", "positive": "yes", "sensitive": "sex", "advantaged": "m"}
TOWNS = ("Leeds", "York", "Hull")


def people(n: int = 100, /, **columns: list[str]) -> Columns:
    """N people with a feature of each kind, groups and labels balanced; further or other columns as given."""
    draw = random.Random(0)
    return {
        "age": [f"{draw.gauss(40, 10):.2f}" for _ in range(n)],
        "children": [str(draw.randrange(4)) for _ in range(n)],
        "town": [draw.choice(TOWNS) for _ in range(n)],
        "sex": ["fm"[i % 2] for i in range(n)],
        "repaid": [("no", "yes")[i // 2 % 2] for i in range(n)],
    } | columns


def with_cell(name: str, row: int, value: str, columns: Columns | None = None) -> Columns:
    """The people with another value in a row; row 1 is the first."""
    columns = columns or people()
    return columns | {name: [*columns[name][: row - 1], value, *columns[name][row:]]}


def written(columns: Columns, **dialect: str) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, **dialect)  # type: ignore[arg-type]
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()


@pytest.fixture
def own(tmp_path: Path) -> Own:
    """The data set of a file with this content, and words about the table."""

    def made(content: Columns | str | bytes, *words: str) -> OwnTable:
        path = tmp_path / "people.csv"
        text = written(content) if isinstance(content, dict) else content
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return OwnTable(replace(checked_config(*words), path=str(path)))

    return made


@functools.cache
def checked_config(*words: str) -> OwnTableConfig:
    """As of a command line; the same words are composed once."""
    meaning = (f"dataset.{key}={value}" for key, value in (MEANING | {"path": "x"}).items())
    config = checked_node(
        compose_config("dataset=csv", *meaning, *(f"dataset.{word}" for word in words)), "dataset"
    )
    assert isinstance(config, OwnTableConfig)
    return config


def complaint(dataset: OwnTable) -> str:
    """The one fault of a table, which the line about keys follows."""
    with pytest.raises(FairAllError) as caught:
        dataset.prepare()
    message, last = str(caught.value).splitlines()
    assert last == PREFIX
    assert len(message) < 400
    return message


def feature(table: Table, name: str) -> Feature:
    return table.schema[table.schema.names.index(name)]


def test_100_people_work(own: Own) -> None:
    data = own(people()).prepare()
    assert [f.kind for f in data.schema] == [Kind.REAL, Kind.COUNT, Kind.CATEGORICAL]
    assert [len(part) for part in (data.train, data.validation, data.test, data.pool)] == [70, 15, 15, 49]
    assert data.notes == ()


PARTS = ["train"] * 60 + ["validation"] * 20 + ["test"] * 20
BY_COLUMN = ("split.column=part",)
DECIDED = {"granted": [str(i // 3 % 2) for i in range(100)], "chance": ["0.4"] * 100}
LOGGED = ("decision=granted", "propensity=chance")
UNLABELLED = [label if i % 3 else "" for i, label in enumerate(people()["repaid"])]
BAD_TABLES: list[tuple[Columns, tuple[str, ...], str]] = [
    (people(repaid=["yes"] * 100), (), "'repaid': the training rows all have the same label"),
    (people(repaid=["yes", "no"] * 19 + ["yes"] + [""] * 61), (), "'repaid': 39 rows have a label"),
    (people(repaid=[""] * 100), (), "column 'repaid': no row has a label"),
    (people(), ("label=''",), "label=COLUMN"),
    (people(), ("sensitive=''", "advantaged=null"), "sensitive=COLUMN"),
    (people(), ("sensitive=gender",), "sensitive=gender"),
    (people(), ("drop=[towm]",), "drop=towm"),
    (people(), ("advantaged=male",), "advantaged=male"),
    (people(sex=["f"] * 2 + ["m"] * 98), (), "row is one of the disadvantaged group"),
    ({key: people()[key] for key in ("sex", "repaid")}, (), "no column is left as a feature"),
    (people(s=people()["children"]), (), "column 's' cannot be a feature"),
    (people(label=people()["children"]), (), "column 'label' cannot be a feature"),
    (people(part=[*PARTS[:-1], "tset"]), BY_COLUMN, "column 'part', row 100: 'tset' is none of train,"),
    (people(part=["", *PARTS[1:]]), BY_COLUMN, "column 'part', row 1: an empty cell"),
    (people(part=["train"] * 60 + ["validation"] * 40), BY_COLUMN, "no test row is one"),
    (
        people(part=PARTS, repaid=["yes", "no"] * 40 + [""] * 20),
        BY_COLUMN,
        "no test row is one with a label that can be used: give more rows",
    ),
    (
        people(part=PARTS, sex=["f", "m"] * 40 + ["m"] * 20),
        BY_COLUMN,
        "no test row is one of the disadvantaged",
    ),
    (
        people(part=PARTS, granted=["1"] * 60 + ["0", "1"] * 20),
        (*BY_COLUMN, "decision=granted"),
        "column 'granted': all decisions on training rows are the same",
    ),
    (people(granted=["1"] * 99 + [""]), ("decision=granted",), "column 'granted', row 100: an empty cell"),
    (people(**DECIDED), ("propensity=chance",), "decision=COLUMN"),
    *((with_cell("chance", 4, p, people(**DECIDED)), LOGGED, "'chance', row 4: ") for p in ("0", "", "1.2")),
    (with_cell("age", 5, "inf"), (), "column 'age', row 5: 'inf'"),
    (with_cell("age", 5, "-1e300"), (), "column 'age', row 5: '-1e300'"),
    (with_cell("children", 9, "16777217"), ("kinds={children: count}",), "column 'children', row 9: "),
    (people(), ("kinds={town: binary}",), "'town' has 3 values (Hull, Leeds, York)"),
    *((people(), (f"text_encoding={name}",), f"text_encoding={name}") for name in ("klingon", "hex", "idna")),
    (
        people(repaid=UNLABELLED, outcome=["granted" if label else "refused" for label in UNLABELLED]),
        ("decision=outcome", "accepted=refused"),
        "accepted=granted",
    ),
    (people(), ("split.held_out=0.005",), "dataset.split.held_out=0.005: 100 rows cannot be cut"),
    (people(), ("split.pool=0.001",), "dataset.split.pool=0.001 selects none of 70 training rows"),
]


@pytest.mark.parametrize(("columns", "words", "told"), BAD_TABLES, ids=range(len(BAD_TABLES)))
def test_a_bad_table_is_told_in_a_line(columns: Columns, words: tuple[str, ...], told: str, own: Own) -> None:
    assert told in complaint(own(columns, *words))


TEXT = written(people())
LINES = TEXT.splitlines()
BAD_FILES: list[tuple[str | bytes, str]] = [
    ("", "empty"),
    ("\n \n\r\n,,\n", "empty"),
    (LINES[0], "row"),
    (TEXT.replace("children", "age"), "'age'"),
    ("\n".join([*LINES[:-1], LINES[-1][:8]]), "row 100"),
    ("\n".join([*LINES[:3], LINES[3] + ",x", *LINES[4:]]), "row 3"),
    ("\n".join([*LINES[:8], '1,2,"York,f,yes', *LINES[9:]]), "9"),
    (written(people(), delimiter=";"), "separator"),
    ("id\n1\n2\n", "'id'"),
    (TEXT.replace("Hull", "Düren").encode("latin-1"), "encoding=cp1252"),
    (b"\r\n".join([*map(str.encode, LINES[:41]), b"1,2,\xfc,f,yes"]), "line 42"),
    (TEXT.encode("utf-16"), "encoding=utf-16"),
    (TEXT.replace("York", "Yo\0rk"), "NUL"),
    (TEXT.replace("yes", '"ja\nwohl"'), "ja wohl, no"),
    (TEXT.replace("repaid", '"re\npaid"'), "re paid"),
    (TEXT.replace("40", "4\u20280" * 999), "column 'age', row "),
    (gzip.compress(b"a,b", mtime=0), "gzip"),
    (b"PK\x03\x04\0", "Excel"),
    (b"\xd0\xcf\x11\xe0\0", "Excel"),
]


@pytest.mark.parametrize(("content", "told"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_file_is_told_in_a_line(content: str | bytes, told: str, own: Own) -> None:
    assert told in complaint(own(content))


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (Path.mkdir, "is a folder"),
        (lambda path: None, "no such file"),
        (os.mkfifo, "is a pipe"),
        (bound, "is a socket"),
        (lambda path: path.symlink_to("/dev/null"), "is a device"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
)
def test_what_is_no_file_is_not_read(make: Callable[[Path], object], told: str, tmp_path: Path) -> None:
    make(path := tmp_path / "here")
    with pytest.raises(FairAllError, match=told):
        OwnTable(replace(checked_config(), path=str(path))).table()
    with pytest.raises(FairAllError, match=told):
        load_dataset("compas", f"dataset.raw_file={path}").table()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TEXT.encode("utf-8-sig"), ()),
        (TEXT.encode("utf-16"), ("text_encoding=utf-16",)),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), ("text_encoding=utf-16-le",)),
        (TEXT.replace("\r\n", "\n"), ()),
        (TEXT.replace("\r\n", "\r"), ()),
        (TEXT.rstrip(), ()),
        ("\n" + TEXT.replace("\r\n", "\r\n\r\n") + ",,,,\r\n", ()),
        (TEXT.replace(",", " , ").replace("\r\n", "\t\r\n"), ()),
        (written(people(), delimiter=";"), ('separator=";"',)),
        (written(people(), delimiter="\t"), ('separator="\t"',)),
        (written(people(), delimiter=" "), ("separator=' '",)),
        ('"' + TEXT[:-2].replace(",", '","').replace("\r\n", '"\r\n"') + '"', ()),
    ],
)
def test_the_same_people_written_otherwise(content: str | bytes, words: tuple[str, ...], own: Own) -> None:
    assert own(content, *words).prepare().fingerprint() == own(people()).prepare().fingerprint()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["UK"] * 100, ()),
        ([""] * 100, ()),
        ([str(i) for i in range(100)], ()),
        ([f"{i}e-310" for i in range(1, 101)], ()),
        *((["0.1"] * 60 + [rare, "0.2"] * 20, BY_COLUMN) for rare in ("", "0.3", "5")),
    ],
)
def test_a_column_that_says_nothing_in_training_rows_is_left_out(
    values: list[str], words: tuple[str, ...], own: Own
) -> None:
    data = own(people(extra=values, **({"part": PARTS} if words else {})), *words).prepare()
    assert data.schema.names == ["age", "children", "town"]
    (note,) = data.notes
    assert note.startswith("column 'extra' is left out: ")


def test_words_that_mean_no_value_are_those_that_are_declared(own: Own) -> None:
    towns = people(town=[town.replace("York", "NA") for town in people()["town"]])
    for words, last in ((), MISSING_LEVEL), (("missing_by_default=[nan]",), "NA"):
        assert feature(own(towns, *words).table(), "town").levels == ("Hull", "Leeds", last)
    with pytest.raises(FairAllError, match="must be a list of words"):
        own(people(), "missing=[[a]]")


@pytest.mark.parametrize(("wrong", "told"), [(2, True), (20, False)])
def test_a_column_that_tells_the_label_is_a_warning(wrong: int, told: bool, own: Own) -> None:
    labels = people(200)["repaid"]
    cells = ["ab"[(label == "yes") ^ (i < wrong)] for i, label in enumerate(labels)]
    warnings = own(people(200, extra=cells)).prepare().warnings
    assert any("'extra' predicts the label" in warning for warning in warnings) == told


def test_rare_categories_become_one(own: Own) -> None:
    values = [f"k{i}" for i in range(5000)] + [f"k{i % 40}" for i in range(1000)]
    data = own(people(6000, code=values), "max_categories=30")
    code = feature(data.table(), "code")
    assert len(code.levels) == len({*code.levels}) == 30
    assert (code.levels[-1], code.fill) == (OTHER_LEVEL, code.codes[-1])
    merged = sum(value not in code.levels for value in values)
    assert (data.table().x["code"] == code.fill).sum() == merged
    (note,) = data.prepare().notes
    assert "the 4971 rarest of its 5000 values are merged into (other)" in note
    # A category of the same name as the one of the rare is another.
    values = [OTHER_LEVEL] * 50 + [f"k{i % 10}" for i in range(50)]
    code = feature(own(people(code=values), "max_categories=5").table(), "code")
    assert len({*code.levels}) == len(code.levels) == len(code.codes)


def test_missing_and_unknown_values_are_imputed_from_training_rows(own: Own) -> None:
    columns = with_cell("age", 50, "NA", with_cell("town", 99, "", with_cell("town", 100, "Bath")))
    table = own(columns | {"part": PARTS}, *BY_COLUMN).table()
    assert table.x["age"][49] == pytest.approx(
        np.median([float(age) for age in columns["age"][:60] if age != "NA"])
    )
    assert table.missing == {"age": 1, "town": 1}
    town = feature(table, "town")
    assert town.levels == ("Hull", "Leeds", "York")
    most = town.levels.index(max(TOWNS, key=columns["town"][:60].count))
    assert table.x["town"][98:].tolist() == [most, most]


def test_people_without_a_label_are_in_every_part_and_have_none(own: Own) -> None:
    dataset = own(people(repaid=UNLABELLED))
    unlabelled, splits = set(range(0, 100, 3)), dataset.splits
    assert set(np.flatnonzero(~dataset.table().labelled)) == unlabelled
    for part in (splits.train, splits.validation, splits.test, splits.pool):
        assert len(unlabelled & set(part)) == pytest.approx(len(part) / 3, abs=6)
    data = dataset.prepare()
    for role in (data.train, data.validation, data.test, data.pool):
        assert not role.label[~role.labelled].any()


def test_rows_of_a_split_column_keep_their_part(own: Own) -> None:
    labels = people()["repaid"]
    labels[0] = labels[-1] = ""
    dataset = own(people(part=PARTS, repaid=labels), *BY_COLUMN)
    splits = dataset.splits
    assert list(splits.train) == list(range(60))
    assert list(splits.test) == list(range(80, 100))
    assert set(splits.pool) < set(splits.train)
    with pytest.raises(FairAllError, match="gives the only split"):
        dataset.resplit(1)


def test_another_split_has_the_features_of_the_first(own: Own) -> None:
    dataset = own(people())
    other = dataset.resplit(1)
    assert other.schema is dataset.schema
    assert set(other.splits.test) != set(dataset.splits.test)
    for part in (other.splits.test, dataset.splits.test):  # as many of each group and label
        assert np.bincount(2 * dataset.table().label[part] + (dataset.table().s[part] > 0)).min() >= 3


def test_rejected_people_need_no_propensity(own: Own) -> None:
    logged = own(with_cell("chance", 1, "", people(**DECIDED)), *LOGGED).table().logged
    assert logged is not None
    assert logged.accepted.sum() == DECIDED["granted"].count("1")
    assert (logged.propensity[0], logged.estimated, logged.reveals) == (0, False, False)
    assert np.isfinite(logged.propensity).all()


@pytest.mark.parametrize("part", ["validation", "test"])
def test_only_training_rows_shape_the_features(own: Own, part: str) -> None:
    before = own(people())
    row = getattr(before.splits, part)[0] + 1
    changed = with_cell("age", row, "-5000", with_cell("town", row, "Bath"))
    one, other = before.prepare(), own(changed).prepare()
    assert list(one.schema) == list(other.schema)
    for name in ("mean", "scale"):
        np.testing.assert_array_equal(getattr(one.scaler, name), getattr(other.scaler, name))
    assert torch.equal(one.train.x, other.train.x)
    assert not torch.equal(getattr(one, part).x, getattr(other, part).x)


def test_people_read_by_pandas_are_understood(own: Own, tmp_path: Path) -> None:
    draw = random.Random(1)
    columns = people(
        ward=[draw.choice(["1", "2", "10", ""]) for _ in range(100)],
        member=[draw.choice(["True", "False"]) for _ in range(100)],
    )
    table = own(with_cell("age", 3, "?", columns), "kinds={ward: categorical}").table()
    assert feature(table, "ward").levels == ("1", "2", "10", MISSING_LEVEL)
    read = pd.read_csv(tmp_path / "people.csv", na_values="?")
    assert [str(read[name].dtype) for name in ("ward", "member")] == ["float64", "bool"]
    as_categories = read.astype({"town": "category", "ward": "category"})
    for other in (read, read.convert_dtypes(), as_categories):
        np.testing.assert_array_equal(table.schema.encode(other), table.features)


def test_people_to_decide_on_are_cleaned_as_those_learnt_from(own: Own) -> None:
    dataset = own(with_cell("age", 3, "k.A."), "missing=[k.A.]")
    table, plain = dataset.table(), json.dumps(to_plain(dataset.prepare().reader))
    stored = schema_of(from_plain(json.loads(plain)))
    read = pd.DataFrame({"age": ["k.A.", "", "NA", " k.A. "], "children": "1", "town": "York"}, dtype=object)
    assert (stored.encode(read)["age"] == table.x["age"][2]).all()
