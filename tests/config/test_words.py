"""Words of the command line that messages propose: a shell and Hydra read them as they are meant."""

import shlex

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from fairall.config.choices import configuration_keys
from fairall.config.compose import compose_config
from fairall.config.words import ALSO_CALLED, nearest_key, override, typed, typed_entry, words_of

ODD = [
    "plain", "two words", "k.A.", "it's", 'say "x"', "back\\", "\\'", '\\"', "#N/A", "-", "--", "$", "${x}",
    "a${b", "\\${x}", "\\\\${x}", "é€", "1.50", "1e5", "-99", "nan", "null", "True", "~", "a,b", "[x]", "{y}",
    "a=b", "*", "`x`", ":", "",
]  # fmt: skip


def test_any_text_comes_through_shell_and_hydra() -> None:
    words = [*shlex.split(typed("dataset.missing", ODD)), override("dataset.drop", ODD)]
    dataset = compose_config("dataset=csv", *words).dataset
    assert list(dataset.missing) == list(dataset.drop) == ODD


@pytest.mark.parametrize("text", ["two words", "it's", "\\${x}", "null", "1.50", "#N/A", "a=b", ""])
def test_any_text_is_the_value_of_a_key(text: str) -> None:
    assert compose_config("dataset=csv", override("dataset.label", text)).dataset.label == text


@pytest.mark.parametrize(
    "name", ["age", "k.A.", "two words", "name (first, last)", "a=b", "50%", "back\\", "[x]"]
)
def test_names_that_can_be_typed_are_keys(name: str) -> None:
    (word,) = shlex.split(typed_entry("dataset.kinds", name, "real"))
    assert dict(compose_config("dataset=csv", word).dataset.kinds) == {name: "real"}


@pytest.mark.parametrize("name", ["größe", "it's", "1.50", "null", "#", "!"])
def test_names_that_cannot_be_typed_are_shown_as_in_a_file(name: str) -> None:
    with_quotes = typed_entry("dataset.kinds", name, "real")
    assert (
        with_quotes
        == f"in the YAML file of the data set kinds: {{'{name.replace(chr(39), chr(39) * 2)}': real}}"
    )


def test_keys_by_their_names_in_other_packages() -> None:
    known = configuration_keys({"dataset": "csv"})
    for key, names in ALSO_CALLED.items():
        assert key in known
        node, dot, last = key.rpartition(".")
        for name in names.split():
            assert nearest_key(f"{node}{dot}{name}", known) == nearest_key(name, known)
            assert nearest_key(name, known) == f", did you mean {key}?"
            assert nearest_key(name, [last, "outputs_dir"]) == f", did you mean {last}?"


@pytest.mark.parametrize(
    ("key", "chosen", "said"),
    [
        ("target", "credit", "dataset.label of dataset=csv"),
        ("dataset.path", "credit", "dataset.path of dataset=csv"),
        ("dataset.file", "compas", "dataset.raw_file"),
        ("data", "credit", "dataset"),
        ("model.phase1.lr", "credit", "model.phase1.learning_rate"),
        ("model.weight", "csv", "protocol.weight_gain"),
        ("dataset.seed", "csv", "seed"),
    ],
)
def test_the_key_that_is_meant_depends_on_what_is_there(key: str, chosen: str, said: str) -> None:
    assert nearest_key(key, configuration_keys({"dataset": chosen})) == f", did you mean {said}?"
    assert nearest_key("target", ["separator"]) == ""


def test_plain_words_are_not_quoted() -> None:
    assert typed("dataset.drop", ["id", "name"]) == "'dataset.drop=[id,name]'"
    assert OverridesParser.create().parse_override(override("a", "b")).value() == "b"


def test_numbers_of_python_are_the_words_that_they_equal() -> None:
    numbers = [3, 3.0, np.int64(3), np.float32(3), np.array(3.0), pd.Series([3]).iloc[0]]
    assert {*words_of({"seeds": numbers})} == {"seeds=[3,3,3,3,3,3]"}
    assert [*words_of({"a": np.True_, "b": 0.25, "c": np.nan})] == ["a=true", "b=0.25", "c=nan"]
