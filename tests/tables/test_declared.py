"""Words KEY=VALUE of a log: the values that Hydra reads in them, and messages on others."""

import re
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairall.config.words import override, quoted
from fairall.errors import FairAllError
from fairall.tables.declared import keywords
from tests.conftest import examples

KEYS = ("label", "drop", "kinds", "cost", "max_count")
TEXTS = st.text(st.characters(categories=["L", "N", "P", "S", "M"]), max_size=8) | st.text(
    "ab \\\"',[]{}:=", max_size=8
)


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS, TEXTS)
@example("\\\\${a}", "${")
def test_texts_that_are_quoted_for_hydra_are_read_as_they_were(one: str, other: str) -> None:
    words = f"dataset.label={quoted(one)}", override("drop", [one, other])
    assert keywords(words, KEYS) == {"label": one, "drop": [one, other]}


@pytest.mark.parametrize(
    "word",
    [
        "label=repaid", "label=two words", "label='a,b'", "drop=[]", "drop=[a, 'b, c',d e]", "kinds={}",
        "kinds={column 1: real, x: count}", "cost=0.4", "max_count=7", "label=null", "label='null'",
        "label=''", 'label="~yes"',
    ],
)  # fmt: skip
def test_values_are_those_that_hydra_reads(word: str) -> None:
    (value,) = keywords([word], KEYS).values()
    assert value == OverridesParser.create().parse_override(word).value()


@pytest.mark.parametrize(("word", "value"), [("label=~yes", "~yes"), ("label=>50 K", ">50 K")])
def test_other_texts_need_no_quotation_marks(word: str, value: Any) -> None:
    assert keywords([word], KEYS) == {"label": value}
    with pytest.raises(FairAllError, match="lable=x: no such key, did you mean label"):
        keywords([word, "lable=x"], KEYS)


@pytest.mark.parametrize(
    "word",
    [
        "drop=[a,b", "kinds=age", "dataset.kinds=[age]", "label=[a]", 'label="a',
        "cost=half",
    ],
)  # fmt: skip
def test_what_cannot_be_read(word: str) -> None:
    told = f"cannot read {word!r}: give a text, [A,B], "
    with pytest.raises(FairAllError, match=re.escape(told)):
        keywords([word], KEYS)
