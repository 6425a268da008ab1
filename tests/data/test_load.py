"""Public functions of the package, given names that do not exist and values that are not possible."""

from collections.abc import Callable
from typing import Any

import pytest

import fairall
from fairall.errors import FairAllError
from tests.conftest import MEANING

LONG = "x" * 300  # more than the name of a file can have


def told(function: Callable[..., Any], *words: Any) -> str:
    """The one line with which a function refuses these words."""
    with pytest.raises(FairAllError, match=r"^[^\n]+$") as raised:
        function(*words)
    return str(raised.value)


@pytest.mark.parametrize(
    ("function", "words", "said"),
    [
        (fairall.load_policy, [LONG], f"{LONG}: no such run"),
        (fairall.load_result, [LONG], f"{LONG}: no such run"),
        (fairall.compose_config, [LONG], f"cannot read '{LONG}': it is not KEY=VALUE"),
        (fairall.compose_config, [f"model={LONG}"], f"model={LONG}: no such model"),
        (
            fairall.load_dataset,
            ["csv", "dataset.path=x", *MEANING, "dataset.missing=[[a]]"],
            "a list of words",
        ),
        (fairall.Ledger, [LONG], f"{LONG}: cannot be read (File name too long)"),
        (fairall.Ledger, [5], "5: give the path of an SQLite file, or the URL of a database"),
        (fairall.Ledger.start, ["a.db", 5], "5: no such run"),
    ],
)
def test_a_wrong_name_is_one_line(function: Callable[..., Any], words: list[Any], said: str) -> None:
    assert said in told(function, *words)


RACES = "{race: {advantaged: [White], disadvantaged: [Asian]}}"
SHARE, DIFFERENT = "structural_model.ground_truth_share", "a list of two or more different words"


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [
        ("nope", "", "dataset=nope: no such dataset; there are adult, "),
        (LONG, "", f"dataset={LONG}: no such dataset; there are adult, "),
        ("csv", "", "dataset.path has no value"),
        ("fico", "disadvantaged=white", "dataset.disadvantaged=white is not possible"),
        # Before a file is read.
        ("law", "two_groups.race.disadvantaged=[White]", DIFFERENT),
        ("law", "two_groups.race.disadvantagd=[Asian]", "a list `advantaged` and a list `disadv"),
        ("law", f"groups={RACES}", DIFFERENT),
        ("meps", "groups=[White]", DIFFERENT),
        ("synthetic", "observed=[FYA]", "observed=FYA is not possible: it must be K or LSAT or GPA"),
        ("synthetic", "observed=[]", "at least one variable"),
        ("synthetic", "structural_model.label=GRADE", "it must be LSAT or GPA or FYA"),
        ("synthetic", "structural_model.variables.FYA.ks=nan", "it must be a finite number"),
        ("synthetic", f"{SHARE}=1", "_share=1 is not possible: it must be between 0 and 1"),
        ("synthetic", f"{SHARE}=half", "=half is not possible: it must be between 0 and 1"),
        ("synthetic", f"{SHARE}={{-1: 0.3, 1: 1.7}}", "_share.1=1.7 is not possible"),
        ("synthetic", f"{SHARE}=null", "=None is not possible: it must be between 0 and 1"),
        ("synthetic", f"{SHARE}={{-1: null, 1: 0.5}}", "possible: it must be between 0 and 1"),
        ("synthetic", f"{SHARE}={{1: 0.7}}", "such a share of each group, {-1: 0.3, 1: 0.7}"),
        ("synthetic", f"{SHARE}={{0: 0.3, 1: 0.7}}", "or such a share of each group, {-1: 0.3, 1: 0.7}"),
    ],
)
def test_an_impossible_data_set_is_one_line(name: str, word: str, said: str) -> None:
    words = [f"dataset.{word}"] if word else []
    assert said in told(fairall.load_dataset, name, *words)
