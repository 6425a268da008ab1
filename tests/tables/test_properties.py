"""Whatever the file: people that a run can use, or one line for the user."""

import json
import random
import tempfile
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from benchmarks.inputs import damaged
from fairall.config.compose import typed_config
from fairall.data.features import DISCRETE, Kind
from fairall.data.own_table import OwnSplitConfig, OwnTable, OwnTableConfig
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.policy import schema_of
from fairall.storage.stored import of_plain
from fairall.tables.declared import Declared
from fairall.tables.files import File, read_cells
from fairall.tables.people import PeopleReader
from tests.conftest import examples

thorough = settings(
    derandomize=True, deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow]
)


ROLES = "yspdc"
SEEDS = st.integers(0, 2**32)
ONE_IN_FIVE = st.sampled_from([False, False, False, False, True])
MISSING = ("", "NA", "nan", "?")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
EXTREMES = "5e-324 1e-310 2e-310 1e-30 1e30 -1e31 1e400 inf -Infinity 0x1F 1_000".split()
NUMBERS = st.one_of(
    st.integers(-5, 60).map(str),
    st.integers().map(str),
    st.floats(-1e6, 1e6).map(str),
    st.floats().map(repr),
    st.sampled_from(EXTREMES),
)
CALM_NUMBERS = st.floats(-1e6, 1e6).map(str) | st.integers(0, 70).map(str)
DATES = st.dates().map(str) | st.datetimes().map(str) | st.just("31/1/99")
CATEGORIES = st.sampled_from(
    ["red", "Rot", "rouge, vif", 'the "red"', "a\nb", "(other)", "(missing)", "ü", "\u2028", "True", "1"]
)
CELLS = (NUMBERS, CALM_NUMBERS, DATES, CATEGORIES, TEXT, st.one_of(NUMBERS, CATEGORIES, TEXT))


def named(header: str) -> str:
    return " ".join(header.split())


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[str]]:
    """1 to 150 rows; mostly with a label `y`, a group `s`, a part `p`, decisions `d`, and chances `c`.

    Other columns have cells of a few values, of which some are missing, or a range of numbers or of names.
    """
    n = draw(st.sampled_from([1, 3, 60, 90, 120, 150]))
    order = random.Random(draw(SEEDS))
    labels = draw(st.sampled_from(["01", ("no", "yes", ""), ("0.0", "1.0", "NA", "nan"), ("x\ny", "z")]))
    groups = draw(st.sampled_from(["fm", "ffffffm", ("f", "m ", " m")]))
    values = [labels, groups, ["train", "train", "validation", "test"], "01", ["1", "0.3", "1e-300"]]
    names = st.sampled_from("abefg") | TEXT.filter(lambda name: named(name) not in ROLES)
    others = draw(st.lists(names, min_size=1, max_size=4, unique_by=named))
    for _ in others:
        values.append(draw(st.lists(draw(st.sampled_from(CELLS)), min_size=1, max_size=12)))
        values[-1] += draw(st.sampled_from([(), (), MISSING]))
        if draw(ONE_IN_FIVE):
            first, mark = draw(st.integers(-1, 2)), draw(st.sampled_from(["{}", "n{}", "{}.5"]))
            values[-1] = [mark.format(first + row) for row in range(n)]
    return {
        name: list(some) if len(some) == n else order.choices(some, k=n)
        for name, some in zip([*ROLES, *others], values, strict=True)
    }


@cache
def default() -> Any:
    words = "path=x label=y positive='1' sensitive=s advantaged=m"
    return typed_config("dataset=csv", *(f"dataset.{word}" for word in words.split())).dataset


@st.composite
def configs(draw: st.DrawFn, table: dict[str, list[str]]) -> OwnTableConfig:
    """What the columns of a table mean; now and then one has a role it was not made for."""
    names = [named(name) or f"column {i}" for i, name in enumerate(table, start=1)]
    features = st.sampled_from(names[len(ROLES) :])
    decision, propensity = draw(st.sampled_from([(None, None), ("d", None), ("d", "c")]))
    roles = {"decision": decision, "propensity": propensity}
    if draw(ONE_IN_FIVE):
        roles[draw(st.sampled_from(["label", "sensitive", *roles]))] = draw(st.sampled_from(names))
    return replace(
        default(),
        **roles,
        positive=next((label for label in ("yes", "1.0", "z") if label in table["y"]), "1"),
        drop=[draw(features)] if draw(ONE_IN_FIVE) else [],
        kinds={draw(features): str(draw(st.sampled_from(Kind)))} if draw(ONE_IN_FIVE) else {},
        max_categories=draw(st.sampled_from([2, 3, 50])),
        max_count=draw(st.sampled_from([0, 50, 10**9])),
        split=OwnSplitConfig(0.3, 0.7, 1234, draw(st.sampled_from([None, "p"]))),
    )


def check(content: bytes, config: OwnTableConfig) -> None:
    """The people of a file can be used, and their stored schema encodes alike, or lines say why not."""
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        path.write_bytes(content)
        dataset, told = OwnTable(replace(config, path=file.name)), list[object]()
        try:
            told += [*dataset.applicants.faults.told, *dataset.applicants.left_out.values()]
            data = dataset.prepare()
        except FairAllError as error:
            told += str(error).splitlines()
        else:
            told += data.notes
            check_people(data)
            reader = of_plain(PeopleReader, json.loads(json.dumps(asdict(data.reader))))
            assert reader == data.reader
            encoded = schema_of(reader).encode(File(path, config.declared).frame).to_numpy()
            np.testing.assert_array_equal(encoded, dataset.table().features)
    assert all(len(str(message).splitlines()) == 1 for message in told)


def check_people(data: PreparedData) -> None:
    for people in (data.train, data.validation, data.test, data.pool):
        assert torch.isfinite(people.x).all()
        assert set(people.s.tolist()) <= {-1.0, 1.0}
        assert set(people.label.tolist()) <= {0.0, 1.0}
        for values, feature in zip(people.x.T, data.schema, strict=True):
            if feature.kind in DISCRETE:
                assert set(values.tolist()) <= set(feature.codes)
            if feature.kind is Kind.COUNT:
                assert torch.equal(values, values.floor().abs())


def written(table: Any, separator: str = ",") -> bytes:
    return pd.DataFrame(table).to_csv(index=False, sep=separator, lineterminator="\r\n").encode()


@thorough
@given(st.data())
def test_any_table_can_be_used_or_is_told_and_its_stored_schema_encodes_alike(data: st.DataObject) -> None:
    table = data.draw(tables())
    check(written(table), data.draw(configs(table)))


ROWS = {
    "y": ["0", "0", "1", "1"] * 25,
    "s": ["f", "m"] * 50,
    "a": [f"{i * i % 97}.5" for i in range(100)],
    "b": ["r", "g", "b", "r"] * 25,
}
DAMAGED = SEEDS.map(lambda seed: damaged(random.Random(seed), written(ROWS)))
ENCODINGS = ["latin-1", "utf-16", "cp1252", "utf-7", "idna", "base64", ""]
BYTES = st.binary(max_size=300) | st.text(',;"\r\n\tyas01.\0é ', max_size=300).map(str.encode)


@thorough
@given(
    ONE_IN_FIVE.flatmap(lambda any_bytes: BYTES if any_bytes else DAMAGED),
    ONE_IN_FIVE.flatmap(lambda other: st.sampled_from(ENCODINGS if other else ["utf-8"])),
    ONE_IN_FIVE.flatmap(lambda other: st.sampled_from(';"\n \ts' if other else ",")),
)
def test_any_bytes_can_be_used_or_are_told(content: bytes, encoding: str, separator: str) -> None:
    check(content, replace(default(), text_encoding=encoding, separator=separator))


@thorough
@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=20), st.sampled_from(",;\t|"))
def test_cells_come_back_as_they_were_written(rows: list[tuple[str, ...]], separator: str) -> None:
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    stripped = table.map(str.strip)
    expected = stripped.mask(stripped.isin(MISSING), "(none)")[(stripped != "").any(axis=1)]
    assume(len(expected))
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(written(table, separator))
        declared = Declared.of(separator=separator, missing_by_default=MISSING)
        frame = read_cells(Path(file.name), declared).frame.astype(object).fillna("(none)")
    assert frame.to_numpy().tolist() == expected.to_numpy().tolist()
