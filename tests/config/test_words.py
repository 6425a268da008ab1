"""Words of the command line that messages propose: a shell and Hydra read them as they are meant."""

import shlex

import numpy as np
import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from fairall.config.words import ALSO_CALLED, nearest_key, override, typed, typed_entry, words_of


@given(st.text())
@example("\\\\${x}")
@example('\\"')
def test_any_text_comes_through_shell_and_hydra(text: str) -> None:
    words = [*shlex.split(typed("a", [text, ""])), override("b", text)]
    several, value = (read.value() for read in OverridesParser.create().parse_overrides(words))
    composed = OmegaConf.create({"several": several, "value": value})
    assert (list(composed.several), composed.value) == ([text, ""], text)


@given(st.text(st.sampled_from("""aZ1_ .,:=[]{}()\\"'$#%é-""")))
def test_an_entry_of_a_mapping_is_typed_or_shown_as_in_a_file(name: str) -> None:
    entry = typed_entry("dataset.kinds", name, "real")
    if entry.startswith("in the YAML file of the data set kinds: "):
        assert f"'{name.replace(chr(39), chr(39) * 2)}': real" in entry
    else:
        (word,) = shlex.split(entry)
        assert OverridesParser.create().parse_override(word).value() == {name: "real"}


def test_names_of_columns_can_be_typed() -> None:
    for name in ("age", "k.A.", "two words", "name (first, last)", "a=b", "back\\"):
        assert typed_entry("dataset.kinds", name, "real").startswith("'dataset.kinds={")


@pytest.mark.parametrize(("key", "names"), ALSO_CALLED.items())
def test_a_key_is_proposed_for_its_names_in_other_packages(key: str, names: str) -> None:
    node, dot, last = key.rpartition(".")
    for name in names.split():
        for typed_key, known in ((f"{node}{dot}{name}", key), (name, key), (name, last)):
            assert nearest_key(typed_key, [known, "outputs_dir"]) == f", did you mean {known}?"
        assert nearest_key(name, ["other_column"]) == ""


def test_numbers_of_python_are_the_words_that_they_equal() -> None:
    numbers = [3, 3.0, np.int64(3), np.float32(3), np.array(3.0), pd.Series([3]).iloc[0]]
    assert {*words_of({"seeds": numbers})} == {"seeds=[3,3,3,3,3,3]"}
    assert [*words_of({"a": np.True_, "b": 0.25, "c": np.nan})] == ["a=true", "b=0.25", "c=nan"]
