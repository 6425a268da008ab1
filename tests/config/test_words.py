"""Python values as words of the command line: Hydra reads them as they are meant."""

import numpy as np
import pandas as pd
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from fairall.config.words import override, words_of


@given(st.text())
@example("\\\\${x}")
@example('\\"')
def test_any_text_comes_through_hydra(text: str) -> None:
    read = OverridesParser.create().parse_override(override("key", [text, ""]))
    assert list(OmegaConf.create({"key": read.value()}).key) == [text, ""]


def test_numbers_of_python_are_the_words_that_they_equal() -> None:
    numbers = [3, 3.0, np.int64(3), np.float32(3), np.array(3.0), pd.Series([3]).iloc[0]]
    assert {*words_of({"seeds": numbers})} == {"seeds=[3,3,3,3,3,3]"}
    assert [*words_of({"a": np.True_, "b": 0.25, "c": np.nan})] == ["a=true", "b=0.25", "c=NaN"]
