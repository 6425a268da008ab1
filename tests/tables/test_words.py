"""Words KEY=VALUE of a log: the values that Hydra reads in them, and messages on others."""

from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st

from fairall.config.words import override, quoted
from fairall.errors import FairAllError
from fairall.tables.words import keywords
from tests.conftest import examples

KEYS = ("label", "drop", "kinds", "cost", "max_count")
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs"]), max_size=8) | st.text(
    "ab \\\"',[]{}:=$", max_size=8
)


def read(*words: str) -> dict[str, Any]:
    return keywords(words, KEYS, {"score": "--score"})


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS, TEXTS)
def test_texts_that_are_quoted_for_hydra_are_read_as_they_were(one: str, other: str) -> None:
    assert read(f"label={quoted(one)}") == {"label": one}
    assert read(override("drop", [one, other])) == {"drop": (one, other)}


@pytest.mark.parametrize(
    "word",
    [
        "label=repaid", "label=two words", "label='a,b'", "drop=[]", "drop=[a, 'b, c',d e]", "label=a\\,b",
        "kinds={age: real,\"x\": count}", "kinds={a\\:b: real}", "kinds={}", "cost=0.4", "max_count=7",
        "label=null", "label='null'", "label=''",
    ],
)  # fmt: skip
def test_values_are_those_that_hydra_reads(word: str) -> None:
    if '"x"' in word:  # Hydra has no quotation marks around keys
        assert read(word) == {"kinds": {"age": "real", "x": "count"}}
        return
    ours, theirs = read(word), OverridesParser.create().parse_override(word).value()
    (value,) = ours.values()
    assert value == (tuple(map(str, theirs)) if isinstance(theirs, list) else _unquoted(theirs))


def _unquoted(value: Any) -> Any:
    return getattr(value, "text", value)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("lable=x", "lable=x: no such key, did you mean label?"),
        ("label", "label: no such key"),
        ("score=risk", "score=risk: no such key: give --score risk"),
        ("drop=[a,b", "cannot read 'drop=[a,b': drop takes [A,B,...]"),
        ("drop=[a,[b]]", "cannot read 'drop=[a,[b]]': drop takes [A,B,...]"),
        ("dataset.kinds=age", "cannot read 'dataset.kinds=age': dataset.kinds takes {COLUMN: KIND, ...}"),
        ("kinds={age}", "cannot read 'kinds={age}': kinds takes {COLUMN: KIND, ...}"),
        ("label=[a]", "cannot read 'label=[a]': label takes one text"),
        ('label="a', "cannot read 'label=\"a': label takes a text in a pair of quotation marks"),
        ("cost=half", "cannot read 'cost=half': cost takes a number"),
        ("max_count=1.5", "cannot read 'max_count=1.5': max_count takes a whole number"),
    ],
)
def test_what_cannot_be_read(word: str, told: str) -> None:
    with pytest.raises(FairAllError) as caught:
        read(word)
    assert str(caught.value).startswith(told)


def test_prefixes_are_left_out() -> None:
    assert read("dataset.label=x", "cost=0.3") == {"label": "x", "cost": 0.3}
