import csv
import functools
import gzip
import io
import json
import os
import random
import re
import shlex
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
from fairall.data.own_table import OwnTable, OwnTableConfig
from fairall.data.stored_reader import from_plain, to_plain
from fairall.data.table import Table
from fairall.errors import FairAllError
from fairall.policy import schema_of
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL

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
    """The data set of a file with this content."""

    def made(content: Columns | str | bytes, *overrides: str, **meaning: str) -> OwnTable:
        path = tmp_path / "people.csv"
        text = written(content) if isinstance(content, dict) else content
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        words = (f"dataset.{key}={value}" for key, value in (MEANING | {"path": "x"} | meaning).items())
        config = checked_config(*words, *overrides)
        return OwnTable(replace(config, path=meaning.get("path", str(path))))

    return made


@functools.cache
def checked_config(*words: str) -> OwnTableConfig:
    """As of a command line; the same words are composed once."""
    config = checked_node(compose_config("dataset=csv", *words), "dataset")
    assert isinstance(config, OwnTableConfig)
    return config


def complaint(dataset: OwnTable) -> str:
    with pytest.raises(FairAllError) as caught:
        dataset.prepare()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def feature(table: Table, name: str) -> Feature:
    return table.schema[table.schema.names.index(name)]


def test_100_people_work(own: Own) -> None:
    data = own(people()).prepare()
    assert [f.kind for f in data.schema] == [Kind.REAL, Kind.COUNT, Kind.CATEGORICAL]
    assert [len(part) for part in (data.train, data.validation, data.test, data.pool)] == [70, 15, 15, 49]
    assert data.notes == ()


PARTS = ["train"] * 60 + ["validation"] * 20 + ["test"] * 20
DECIDED = {"granted": [str(i // 3 % 2) for i in range(100)], "chance": ["0.4"] * 100}
LOGGED = ("dataset.decision=granted", "dataset.propensity=chance")


BAD_TABLES = [
    (people(), {"label": "repayed"}, "did you mean repaid?"),
    (people(), {"sensitive": "gender"}, "dataset.sensitive=gender"),
    (with_cell("repaid", 3, "maybe"), {}, "'repaid' has 3 values (maybe, no, yes)"),
    (people(repaid=["yes"] * 100), {}, "'repaid': the training rows all have the same label"),
    (people(repaid=[""] * 100), {}, "column 'repaid': no row has a label"),
    (people(), {"positive": "good"}, "dataset.positive=good"),
    (people(sex=["m"] * 100), {}, "'sex' has 1 value (m)"),
    (with_cell("sex", 2, "x"), {}, "'sex' has 3 values (f, m, x)"),
    (
        with_cell("sex", 7, "NA"),
        {},
        "column 'sex', row 7: 'NA', which means no value (leave it out of missing_by_default=",
    ),
    (people(), {"advantaged": "male"}, "dataset.advantaged=male"),
    (people(), {"label": "sex"}, "'sex' cannot be both dataset.label and dataset.sensitive"),
    (people(), {"drop": "[sex]"}, "'sex' cannot be both dataset.sensitive and dataset.drop"),
    (people(), {"drop": "[towm]"}, "did you mean town?"),
    (people(), {"kinds": "{agee: real}"}, "did you mean age?"),
    (with_cell("age", 5, "old"), {}, "kinds={age: KIND}"),
    (with_cell("age", 5, "inf"), {}, "column 'age', row 5: 'inf' is not a finite number"),
    (with_cell("age", 5, "-1e300"), {}, "column 'age', row 5: '-1e300' is not a finite number up to 1e+30"),
    (with_cell("children", 9, "-1"), {"kinds": "{children: count}"}, "kinds={children: KIND}"),
    (with_cell("children", 9, "1.5"), {"kinds": "{children: count}"}, "column 'children', row 9: '1.5'"),
    (with_cell("children", 9, "16777217"), {"kinds": "{children: count}"}, "from 0 to 16777216"),
    (people(), {"kinds": "{town: binary}"}, "'town' has 3 values (Hull, Leeds, York)"),
    (people(), {"kinds": "{town: real}"}, "column 'town', row 1: "),
    (people(name=[f"n{i}" for i in range(100)]), {}, "drop=name leaves it out"),
    (
        people(born=["", *(f"19{i}-01-31" for i in range(11, 99)), *["3/4/1999"] * 11]),
        {},
        "column 'born', row 2: '1911-01-31'",
    ),
    ({key: people()[key] for key in ("sex", "repaid")}, {}, "no column is left as a feature"),
    (people(repaid=["yes", "no"] * 19 + ["yes"] + [""] * 61), {}, "'repaid': 39 rows have a label"),
    (people(sex=["f"] * 2 + ["m"] * 98), {}, "row is of the disadvantaged group"),
    (people(part=[*PARTS[:-1], "tset"]), {"split.column": "part"}, "column 'part', row 100: 'tset'"),
    (people(part=["", *PARTS[1:]]), {"split.column": "part"}, "column 'part', row 1: an empty cell"),
    (people(part=["train"] * 60 + ["validation"] * 40), {"split.column": "part"}, "no test row is of the"),
    (
        people(part=PARTS, repaid=["yes"] * 60 + ["no"] * 40),
        {"split.column": "part"},
        "'repaid': the training",
    ),
    (people(), {"split.column": "part"}, "dataset.split.column=part"),
    (people(), {"decision": "granted"}, "dataset.decision=granted"),
    (people(granted=["1"] * 99 + [""]), {"decision": "granted"}, "column 'granted', row 100: an empty cell"),
    (people(granted=["1"] * 100), {"decision": "granted"}, "'granted' is always '1': nobody was rejected"),
    (people(**DECIDED), {"decision": "granted", "accepted": "yes"}, "dataset.accepted=yes"),
    (people(**DECIDED), {"propensity": "chance"}, "give dataset.decision=COLUMN"),
]


@pytest.mark.parametrize(("columns", "overrides", "told"), BAD_TABLES, ids=[told for *_, told in BAD_TABLES])
def test_a_bad_table_is_told_in_a_line(
    own: Own, columns: Columns, overrides: dict[str, str], told: str
) -> None:
    assert told in complaint(own(columns, **overrides))


@pytest.mark.parametrize("chance", ["0", "likely", "", "1.2", "-0.1", "inf"])
def test_accepted_people_need_a_propensity_and_rejected_people_none(own: Own, chance: str) -> None:
    message = complaint(own(with_cell("chance", 4, chance, people(**DECIDED)), *LOGGED))
    assert "column 'chance', row 4: " in message
    logged = own(with_cell("chance", 1, "", people(**DECIDED)), *LOGGED).table().logged
    assert logged is not None
    assert logged.propensity is not None
    assert logged.accepted.sum() == DECIDED["granted"].count("1")
    assert logged.propensity[0] == 0
    assert np.isfinite(logged.propensity).all()


TEXT = written(people())
LINES = TEXT.splitlines()


BAD_FILES: list[tuple[str | bytes, str]] = [
    ("", "empty file"),
    ("\n \n\r\n,,\n", "Expected 1 column"),
    (LINES[0], "Empty CSV file"),
    (TEXT.replace("children", "age"), "2 columns are named 'age'"),
    ("\n".join([*LINES[:-1], LINES[-1][:8]]), "Row #101: Expected 5 columns, got 3"),
    ("\n".join([*LINES[:3], LINES[3] + ",x", *LINES[4:]]), "Row #4: Expected 5 columns, got 6"),
    ("\n".join([*LINES[:8], '1,2,"York,f,yes', *LINES[9:]]), "row that begins at line 9"),
    ("\n".join([*LINES[:8], '1,2,"York" b,f,yes', *LINES[9:]]), "row that begins at line 9"),
    (written(people(), delimiter=";"), "give another separator="),
    ("id\n1\n2\n", "there is 1 column, 'id'"),
    (TEXT.replace("Hull", "Düren").encode("latin-1"), "text_encoding=cp1252"),
    (TEXT.encode("utf-16"), "text_encoding=utf-16"),
    (TEXT.encode("utf-16-le"), "text_encoding=utf-16"),
    (TEXT.replace("York", "Yo\0rk"), "holds a NUL byte"),
    (TEXT.replace("yes", '"ma\ny"', 1), "3 values (ma y, no, yes)"),
    (TEXT.replace("yes", '"ja\nwohl"'), "dataset.positive=yes"),
    (TEXT.replace("repaid", '"re\npaid"'), "did you mean re paid?"),
    (TEXT.replace("40", "4\u20280" * 999), "column 'age', row "),
    (gzip.compress(b"a,b", mtime=0), "workbooks, archives"),
    (b"PK\x03\x04\0", "workbooks, archives"),
    (b"\xd0\xcf\x11\xe0\0", "cannot be read"),
]


@pytest.mark.parametrize(("content", "told"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_file_is_told_in_a_line(own: Own, content: str | bytes, told: str) -> None:
    message = complaint(own(content))
    assert len(message) < 400
    assert told in message


def test_undecodable_bytes_are_told_with_their_line(own: Own) -> None:
    lines = [line.encode() for line in LINES]
    lines[41] = lines[41].replace(b"yes", b"\xfc").replace(b"no", b"\xfc")
    assert "cannot be read (" in complaint(own(b"\r\n".join(lines)))


@pytest.mark.parametrize("kind", ["folder", "nothing", "long", "pipe", "socket", "device", "loop"])
def test_what_is_no_file_is_not_read(kind: str, own: Own, tmp_path: Path) -> None:
    path = tmp_path / ("n" * 999 if kind == "long" else "here")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind in ("device", "loop"):
        path.symlink_to("/dev/null" if kind == "device" else path)
    odd = {"nothing": ".*no such file", "long": "cannot be read", "loop": "cannot be read"}
    told = odd.get(kind, f"is a {kind}")
    assert re.match(f"{path}: {told}", complaint(own("", path=str(path))))
    with pytest.raises(FairAllError, match=f"dataset.raw_file={path}: {told}"):
        load_dataset("compas", f"dataset.raw_file={path}").table()


@pytest.mark.parametrize(
    "word",
    [
        "separator='\"'",
        *(f"text_encoding={name}" for name in "klingon hex rot13 base64 undefined".split()),
    ],
)
def test_a_separator_or_an_encoding_that_cannot_be(own: Own, word: str) -> None:
    assert word.split("=")[0] in complaint(own(people(), f"dataset.{word}"))


@pytest.mark.parametrize(
    ("content", "overrides"),
    [
        (TEXT.encode("utf-8-sig"), ()),
        (TEXT.encode("utf-16"), ("dataset.text_encoding=utf-16",)),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), ("dataset.text_encoding=utf-16-le",)),
        (TEXT.replace("\r\n", "\n"), ()),
        (TEXT.replace("\r\n", "\r"), ()),
        (TEXT.rstrip(), ()),
        ("\n" + TEXT.replace("\r\n", "\r\n\r\n") + ",,,,\r\n", ()),
        (TEXT.replace(",", " , ").replace("\r\n", "\t\r\n"), ()),
        (written(people(), delimiter=";"), ('dataset.separator=";"',)),
        (written(people(), delimiter="\t"), ('dataset.separator="\t"',)),
        (written(people(), delimiter=" "), ("dataset.separator=' '",)),
        ('"' + TEXT[:-2].replace(",", '","').replace("\r\n", '"\r\n"') + '"', ()),
    ],
)
def test_the_same_people_written_otherwise(
    own: Own, content: str | bytes, overrides: tuple[str, ...]
) -> None:
    assert own(content, *overrides).prepare().fingerprint() == own(people()).prepare().fingerprint()


def test_text_in_another_encoding_quoted_cells_and_columns_without_a_name(own: Own) -> None:
    content = TEXT.replace("Hull", "Düren").encode("latin-1")
    table = own(content, text_encoding="latin-1").table()
    assert feature(table, "town").levels == ("Düren", "Leeds", "York")
    towns = {"Leeds": "Leeds, UK", "York": 'the "old"\nYork', "Hull": "Hull"}
    table = own(people(town=[towns[town] for town in people()["town"]])).table()
    assert feature(table, "town").levels == ("Hull", "Leeds, UK", 'the "old"\nYork')
    columns = {(name if name != "town" else ""): values for name, values in people().items()}
    assert own(columns).table().schema.names == ["age", "children", "column 3"]


@pytest.mark.parametrize(
    ("values", "positive"),
    [(("0.0", "1.0"), "1"), (("0", "1"), "1.0"), (("False", "True"), "true"), (("no", "YES"), "yes")],
)
def test_the_positive_value_may_be_spelt_otherwise(own: Own, values: tuple[str, str], positive: str) -> None:
    labels = [values[label == "yes"] for label in people()["repaid"]]
    table = own(people(repaid=labels), positive=positive).table()
    np.testing.assert_array_equal(table.label, own(people()).table().label)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["UK"] * 100, "it is always 'UK'"),
        ([""] * 100, "it is empty"),
        ([str(i) for i in range(100)], "it numbers the rows; kinds={extra: real} keeps it"),
        ([f"{i}.0" for i in range(1, 101)], "it numbers the rows; kinds={extra: real} keeps it"),
        ([f"{i}e-310" for i in range(1, 101)], "it does not vary in the training rows"),
    ],
)
def test_a_column_that_says_nothing_is_left_out(own: Own, values: list[str], reason: str) -> None:
    data = own(people(extra=values)).prepare()
    assert data.schema.names == ["age", "children", "town"]
    assert data.notes == (f"column 'extra' is left out: {reason}",)


@pytest.mark.parametrize("rare", ["", "0.3", "5"])
def test_a_column_that_varies_only_outside_training_is_left_out(own: Own, rare: str) -> None:
    columns = people(part=PARTS, extra=["0.1"] * 60 + [rare, "0.2"] * 20)
    data = own(columns, "dataset.split.column=part").prepare()
    assert "extra" not in data.schema.names
    assert "training" in data.notes[0]


def test_rare_categories_become_one(own: Own) -> None:
    values = [f"k{i}" for i in range(5000)] + [f"k{i % 40}" for i in range(1000)]
    table = own(people(6000, code=values), "dataset.max_categories=30").table()
    code = feature(table, "code")
    assert len(code.levels) == len(set(code.levels)) == 30
    assert code.levels[-1] == OTHER_LEVEL
    assert code.fill == code.codes[-1]
    assert (table.x["code"] == code.fill).sum() > 4500
    # A category of the same name as the one of the rare is another.
    values = [OTHER_LEVEL] * 50 + [f"k{i % 10}" for i in range(50)]
    code = feature(own(people(code=values), "dataset.max_categories=5").table(), "code")
    assert len(set(code.levels)) == len(code.levels) == len(code.codes)


def test_notes_are_of_the_file_and_not_repeated(own: Own) -> None:
    labels = ["no" if i % 2 == 0 else label for i, label in enumerate(people()["repaid"])]
    (note,) = own(people(repaid=labels)).prepare().notes
    assert "disadvantaged group has a positive label" in note
    dataset = own(people(extra=[""] * 100))
    dataset.table()
    assert dataset.prepare().notes == dataset.prepare().notes == ("column 'extra' is left out: it is empty",)


def test_whole_numbers_from_0_up_to_max_count_are_counts_unless_declared(own: Own) -> None:
    children = feature(own(people(), "dataset.kinds={children: categorical}").table(), "children")
    assert children.kind is Kind.CATEGORICAL
    assert children.levels == ("0", "1", "2", "3")
    assert feature(own(people(), "dataset.max_count=2").table(), "children").kind is Kind.REAL
    assert feature(own(with_cell("children", 1, "-1")).table(), "children").kind is Kind.REAL
    message = complaint(own(people(extra=["0", "inf", "inf", *(str(i) for i in range(97))])))
    assert "column 'extra', row 2: 'inf' is not a finite number" in message




def test_a_usual_word_can_be_a_value(own: Own) -> None:
    towns = [town.replace("York", "NA") for town in people()["town"]]
    assert feature(own(people(town=towns)).table(), "town").levels == ("Hull", "Leeds", MISSING_LEVEL)
    table = own(people(town=towns), "dataset.missing_by_default=[nan]").table()
    assert feature(table, "town").levels == ("Hull", "Leeds", "NA")


@pytest.mark.parametrize("words", ["[[a]]", "[{a: b}]"])
def test_missing_words_are_words(words: str, own: Own) -> None:
    with pytest.raises(FairAllError, match="must be a list of words"):
        own(people(), f"dataset.missing={words}")


MONEY = [f"${1000 + i:,}.50" for i in range(100)]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (MONEY, "row 1: '$1,000.50'"),
        (["unknown", *MONEY[1:]], "row 2: '$1,001.50'"),
        ([cell[:1] + cell[4:] if i % 3 else "7" for i, cell in enumerate(MONEY)], "row 2: '$01.50'"),
        ([f"{i % 7} %" for i in range(100)], "row 1: '0 %'"),
        ([f"{i},5" for i in range(100)], "row 1: '0,5'"),
    ],
)
def test_formatted_numbers_are_named(cells: list[str], told: str, own: Own) -> None:
    columns = people(income=cells)
    message = complaint(own(columns))
    assert f"column 'income', {told} is a formatted number" in message
    assert "kinds={income: categorical} takes it" in message
    table = own(columns, "dataset.kinds={income: categorical}").table()
    assert feature(table, "income").kind is Kind.CATEGORICAL


def test_thousands_grouped_by_a_point_are_not_read_as_decimals(own: Own) -> None:
    incomes = [f"{200 * i:,}".replace(",", ".") for i in range(1, 101)]
    message = complaint(own(people(income=incomes)))
    assert "if the point of numbers such as 1.250 groups thousands, remove it" in message
    hint = f"dataset.{message[message.index('kinds=') :]}"
    assert feature(own(people(income=incomes), hint).table(), "income").kind is Kind.REAL


def test_a_missing_number_is_the_training_median(own: Own) -> None:
    columns = with_cell("age", 50, "NA")
    dataset = own(columns)
    table = dataset.table()
    train = [i for i in dataset.splits.train if i != 49]
    assert table.x["age"][49] == pytest.approx(np.median([float(columns["age"][i]) for i in train]))
    assert table.missing == {"age": 1, "children": 0, "town": 0}


def test_a_missing_category_is_one_of_its_own(own: Own) -> None:
    columns = people()
    table = own(columns | {"town": [town.replace("York", "") for town in columns["town"]]}).table()
    town = feature(table, "town")
    assert town.levels == ("Hull", "Leeds", MISSING_LEVEL)
    gone = np.array(columns["town"]) == "York"
    assert (table.x["town"][gone] == town.codes[-1]).all()


@pytest.mark.parametrize("value", ["", "Bath"])
def test_a_category_not_seen_in_training_is_the_most_frequent(own: Own, value: str) -> None:
    columns = with_cell("town", 100, value, people(part=PARTS))
    table = own(columns, "dataset.split.column=part").table()
    town = feature(table, "town")
    assert town.levels == ("Hull", "Leeds", "York")
    assert town.levels[int(table.x["town"][99])] == max(TOWNS, key=columns["town"][:60].count)


UNLABELLED = [label if i % 3 else "" for i, label in enumerate(people(200)["repaid"])]


KNOWN = [bool(label) for label in UNLABELLED]


REVEALING = [
    (["granted" if known else "no" for known in KNOWN], "tells who has a label (AUC 1.00)"),
    (["1" if known or i % 9 == 0 else "0" for i, known in enumerate(KNOWN)], "has values with which nobody"),
    ([f"{i}.5" if known else "" for i, known in enumerate(KNOWN)], "tells who has a label (AUC 1.00)"),
    (
        ["paid" if known else ("gone", "left")[i % 2] for i, known in enumerate(KNOWN)],
        "tells who has a label",
    ),
]


@pytest.mark.parametrize(("cells", "told"), REVEALING, ids=range(4))
def test_a_column_that_says_who_has_a_label_is_noted(cells: list[str], told: str, own: Own) -> None:
    columns = people(200, repaid=UNLABELLED, extra=cells)
    (warning,) = [line for line in own(columns).prepare().warnings if "'extra'" in line]
    assert warning.startswith(f"column 'extra' {told}")
    assert not any("'extra'" in line for line in own(columns, "dataset.drop=[extra]").prepare().warnings)


@pytest.mark.parametrize(
    "cells",
    [
        [str(i % 2) for i in range(200)],
        [("a", "b", "")[i // 3 % 3] for i in range(200)],
        ["rare" if i == 0 else "usual" for i in range(200)],
        [f"{i * 0.37:.2f}" for i in range(200)],
    ],
)
def test_other_columns_are_not_noted(cells: list[str], own: Own) -> None:
    warnings = own(people(200, repaid=UNLABELLED, extra=cells)).prepare().warnings
    assert not any("'extra'" in warning for warning in warnings)


def copied(words: tuple[str, str], changed: int = 0) -> list[str]:
    """The labels of 200 people in other words, some of them false."""
    cells = [words[label == "yes"] for label in people(200)["repaid"]]
    return [*(words[cell == words[0]] for cell in cells[:changed]), *cells[changed:]]


@pytest.mark.parametrize("words", [("no", "yes"), ("1", "0"), ("", "paid")])
def test_a_copy_of_the_label_is_refused(words: tuple[str, str], own: Own) -> None:
    columns = people(200, again=copied(words), repaid=UNLABELLED)
    told = complaint(own(columns))
    assert told == "column 'again' is the label in other words: drop=again leaves it out"
    dropped = own(columns, "dataset.drop=[again]").prepare()
    assert not any("again" in line for line in (*dropped.notes, *dropped.warnings))


@pytest.mark.parametrize(
    ("cells", "auc"),
    [
        (copied(("a", "b"), changed=2), "0.99"),
        ([f"{cell}{i % 3}" for i, cell in enumerate(copied(("a", "b")))], "1.00"),
        ([f"{float(cell) + i / 1000:.3f}" for i, cell in enumerate(copied(("5", "7")))], "1.00"),
        ([f"{float(cell) + i / 1000:.3f}" for i, cell in enumerate(copied(("7", "5"), 1))], "0.99"),
    ],
)
def test_a_column_that_tells_the_label_is_a_warning(cells: list[str], auc: str, own: Own) -> None:
    (warning,) = own(people(200, extra=cells)).prepare().warnings
    assert warning.startswith(f"column 'extra' tells the label (AUC {auc})")


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_have_nothing_to_do_with_the_label_are_no_warning(seed: int, own: Own) -> None:
    draw = random.Random(seed)
    # A label so rare that a column hits it now and then, and columns with a value for each few rows.
    label = ["yes" if i in draw.sample(range(100), 3) or i in (0, 50) else "no" for i in range(100)]
    columns = {f"rare{k}": ["01"[draw.random() < 0.03] for _ in range(100)] for k in range(100)}
    columns |= {f"many{k}": [f"level {draw.randrange(40)}" for _ in range(100)] for k in range(20)}
    columns |= {f"number{k}": [f"{draw.random():.6f}" for _ in range(100)] for k in range(20)}
    data = own(people(100, repaid=label, **columns)).prepare()
    assert not any("tells the label" in warning for warning in data.warnings)


def test_a_good_predictor_is_no_warning(own: Own) -> None:
    draw = random.Random(0)
    cells = [f"{(label == 'yes') + draw.gauss(0, 0.5):.3f}" for label in people(400)["repaid"]]
    assert not own(people(400, score=cells)).prepare().warnings


ZIP_CODES = ["04444", "10115", "80331", "01067", "99999"]


def test_numbers_with_leading_zeros_are_codes(own: Own) -> None:
    columns = people(200, zip=[ZIP_CODES[i % 5] for i in range(200)])
    data = own(columns)
    assert feature(data.table(), "zip").kind is Kind.CATEGORICAL
    assert feature(data.table(), "zip").levels == tuple(sorted(ZIP_CODES))
    assert "column 'zip' holds codes; kinds={zip: real} takes them for numbers" in data.prepare().notes
    declared = own(columns, "dataset.kinds={zip: real}")
    assert feature(declared.table(), "zip").kind is Kind.REAL
    assert not any("holds codes" in note for note in declared.prepare().notes)
    (note,) = own(people(100, zip=[f"0{7 * i + 3}" for i in range(100)])).prepare().notes
    assert note.startswith("column 'zip' is left out: nearly every row has another code; ")


@pytest.mark.parametrize("cells", [("0", "10", "200", "3000"), ("0.5", "04", "7"), ("-04", "12", "7")])
def test_other_numbers_are_no_codes(cells: tuple[str, ...], own: Own) -> None:
    table = own(people(200, amount=[cells[i % len(cells)] for i in range(200)])).table()
    assert feature(table, "amount").kind is Kind.REAL


def test_levels_that_are_merged_are_counted(own: Own) -> None:
    towns = [f"town {i % 150 if i < 300 else i % 10}" for i in range(1000)]
    columns = people(1000, place=towns)
    data = own(columns)
    levels = feature(data.table(), "place").levels
    merged = sum(town not in levels for town in towns)
    (note,) = [note for note in data.prepare().notes if "merged" in note]
    assert len(levels) == 50
    assert f"the 101 rarest of its 150 values, in {merged} of 1000 rows" in note
    kept = own(columns, f"dataset.{note.partition('; ')[2].split()[0]}")
    of_training = {towns[row] for row in kept.splits.train}
    assert set(feature(kept.table(), "place").levels) == of_training
    assert not any("merged" in note for note in kept.prepare().notes)


def test_a_decision_with_its_values_swapped_is_asked_about(own: Own) -> None:
    decisions = ["granted" if known else "refused" for known in KNOWN]
    columns = people(200, repaid=UNLABELLED, outcome=decisions)
    told = complaint(own(columns, "dataset.decision=outcome", "dataset.accepted=refused"))
    assert "133 rejected rows" in told
    assert "dataset.accepted=granted" in told


def test_people_without_a_label_are_in_every_part_and_have_none(own: Own) -> None:
    dataset = own(people(200, repaid=UNLABELLED))
    table = dataset.table()
    splits = dataset.splits
    unlabelled = set(range(0, 200, 3))
    assert set(np.flatnonzero(~table.labelled)) == unlabelled
    for part in (splits.train, splits.validation, splits.test, splits.pool):
        assert len(unlabelled & set(part)) == pytest.approx(len(part) / 3, abs=6)
    data = dataset.prepare()
    for role in (data.train, data.validation, data.test, data.pool):
        assert not role.label[~role.labelled].any()


def test_rows_of_a_split_column_keep_their_part(own: Own) -> None:
    labels = people()["repaid"]
    labels[0] = labels[-1] = ""
    dataset = own(people(part=PARTS, repaid=labels), "dataset.split.column=part")
    splits = dataset.splits
    assert list(splits.train) == list(range(60))
    assert list(splits.test) == list(range(80, 100))
    assert set(splits.pool) < set(splits.train)


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
    table = own(columns, "dataset.kinds={ward: categorical}").table()
    assert feature(table, "ward").levels == ("1", "2", "10", MISSING_LEVEL)
    read = pd.read_csv(tmp_path / "people.csv")
    assert [str(read[name].dtype) for name in ("ward", "member")] == ["float64", "bool"]
    np.testing.assert_array_equal(table.schema.encode(read), table.features)
    nullable = read.convert_dtypes()
    assert str(nullable["ward"].dtype) == "Int64"
    np.testing.assert_array_equal(table.schema.encode(nullable), table.features)
    as_categories = read.astype({"town": "category", "ward": "category"})
    np.testing.assert_array_equal(table.schema.encode(as_categories), table.features)


def test_people_to_decide_on_are_cleaned_as_those_learnt_from(own: Own, tmp_path: Path) -> None:
    columns = with_cell("age", 3, "?", with_cell("town", 5, "?", with_cell("town", 7, "  York ")))
    table = own(columns).table()
    np.testing.assert_array_equal(table.schema.encode(pd.read_csv(tmp_path / "people.csv")), table.features)
    dataset = own(with_cell("age", 3, "k.A."), "dataset.missing=[k.A.]")
    table, plain = dataset.table(), json.dumps(to_plain(dataset.prepare().reader))
    stored = schema_of(from_plain(json.loads(plain)))
    read = pd.DataFrame({"age": ["k.A.", "", "NA", " k.A. "], "children": "1", "town": "York"}, dtype=object)
    assert (stored.encode(read)["age"] == table.x["age"][2]).all()


@pytest.mark.parametrize("name", ["s", "label"])
def test_names_that_stand_for_something_else_are_no_features(own: Own, name: str) -> None:
    message = complaint(own(people(**{name: people()["children"]})))
    assert f"column {name!r} cannot be a feature" in message


@pytest.mark.parametrize(
    ("share", "told"),
    [
        ("held_out=0.005", "dataset.split.held_out=0.005: 100 rows cannot be cut"),
        ("pool=0.001", "dataset.split.pool=0.001 selects none of 70 training rows"),
    ],
)
def test_shares_that_leave_nobody(own: Own, share: str, told: str) -> None:
    assert told in complaint(own(people(), f"dataset.split.{share}"))
