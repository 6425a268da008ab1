"""Words of the command line that messages propose: a shell and Hydra read them as they are meant."""

import shlex

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from fairall.config.compose import compose_config
from fairall.config.words import override, typed, typed_entry

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


def test_plain_words_are_not_quoted() -> None:
    assert typed("dataset.drop", ["id", "name"]) == "'dataset.drop=[id,name]'"
    assert OverridesParser.create().parse_override(override("a", "b")).value() == "b"
