"""Public functions of the package, given names that do not exist."""

from collections.abc import Callable
from typing import Any

import pytest

import fairall
from fairall.errors import FairAllError

LONG = "x" * 300  # more than the name of a file can have


@pytest.mark.parametrize(
    ("function", "words", "said"),
    [
        (fairall.load_dataset, ["credti"], "dataset=credti: no such dataset, did you mean credit?"),
        (fairall.load_dataset, ["nope"], "dataset=nope: no such dataset; there are adult, "),
        (fairall.load_dataset, [""], "dataset=: no such dataset; there are adult, "),
        (fairall.load_dataset, ["credit", "dataset.splt=1"], "did you mean dataset.split?"),
        (fairall.load_dataset, ["credit", "x"], "cannot read 'x': it is not KEY=VALUE"),
        (fairall.load_dataset, ["csv"], "dataset.path has no value"),
        (fairall.compose_config, ["model=fairlgo"], "model=fairlgo: no such model, did you mean fairlog?"),
        (fairall.compose_config, ["sede=1"], "sede: no such key, did you mean seed?"),
        (fairall.load_policy, ["nope"], "nope: no such run"),
        (fairall.load_policy, [LONG], f"{LONG}: no such run"),
        (fairall.load_result, [LONG], f"{LONG}: no such run"),
        (fairall.load_dataset, [LONG], f"dataset={LONG}: no such dataset; there are adult, "),
        (fairall.compose_config, [LONG], f"cannot read '{LONG}': it is not KEY=VALUE"),
        (fairall.compose_config, [f"model={LONG}"], f"model={LONG}: no such model"),
        (fairall.compose_config, ["cost=[0.6]"], "cannot read this command: "),
        (fairall.Ledger, [LONG], f"{LONG}: cannot be read (File name too long)"),
        (fairall.Ledger, [5], "5: give the path of an SQLite file, or the URL of a database"),
        (fairall.Ledger.start, ["a.db", 5], "5: no such run"),
    ],
)
def test_a_wrong_name_is_one_line(function: Callable[..., Any], words: list[Any], said: str) -> None:
    with pytest.raises(FairAllError, match=r"^[^\n]+$") as raised:
        function(*words)
    assert said in str(raised.value)
