"""Public functions of the package, given names that do not exist; see tests/mistakes.yaml too."""

from collections.abc import Callable
from typing import Any

import pytest

import fairall
from fairall.errors import FairAllError
from tests.conftest import MEANING

LONG = "x" * 300  # more than the name of a file can have


@pytest.mark.parametrize(
    ("function", "words", "said"),
    [
        (fairall.load_result, [LONG], f"{LONG}: no such run"),
        (fairall.compose_config, [f"model={LONG}"], f"model={LONG}: no such model"),
        (fairall.load_dataset, [LONG], f"dataset={LONG}: no such dataset; there are adult, "),
        (
            fairall.load_dataset,
            ["csv", "dataset.path=x", *MEANING, "dataset.missing=[[a]]"],
            "a list of words",
        ),
        (fairall.Ledger, [LONG], f"{LONG}: cannot be read (File name too long)"),
        (fairall.Ledger, [5], "5: give the path of an SQLite file, or the URL of a database"),
    ],
)
def test_a_wrong_name_is_one_line(function: Callable[..., Any], words: list[Any], said: str) -> None:
    with pytest.raises(FairAllError, match=r"^[^\n]+$") as raised:
        function(*words)
    assert said in str(raised.value)
