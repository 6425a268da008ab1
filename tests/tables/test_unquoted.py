"""What Arrow reads of a CSV file without quotation marks is what the slow way reads."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.tables import files
from fairall.tables.applicants import read
from fairall.tables.cells import is_text, numbers_of, words_of
from fairall.tables.declared import Declared
from fairall.tables.files import read_cells

N = 1500
DECLARED = Declared.of(
    label="repaid",
    positive="yes",
    sensitive="sex",
    decision="granted",
    accepted="1",
    propensity="p",
    missing=["-999", "none"],
    missing_by_default=["NA", "?"],
)


def table() -> pd.DataFrame:
    """Columns of text in every form that matters: numbers, numbers with words, codes, and others."""
    draw = np.random.default_rng(0)
    number, some = draw.normal(50, 20, N), draw.random(N) < 0.1
    grouped = [f"{k // 1000}.{k % 1000:03d}" if k >= 1000 else str(k) for k in range(5, 5 + 10 * N, 10)]
    granted = draw.random(N) < 0.5
    columns = {
        "number": number.round(4),
        "blank": [f"  {one:.3f} " for one in number],
        "with words": np.where(some, draw.choice(["", "NA", "?", "none", "-999", "-999.0"], N), number),
        "exponent": [f"{one:.6e}" for one in number * 1e-9],
        "many digits": [f"{one:.25f}" for one in draw.random(N)],
        "decimals": [f"{one:.3f}" for one in number + 100],
        "whole": draw.permutation(N * 3)[:N] + 10_000,
        "code": [f"{one:05d}" for one in draw.permutation(N)],
        "zip": draw.permutation(90_000)[:N] + 10_000,
        "grouped": grouped,
        "late word": [*number[:-1].round(3), "many"],
        "infinite": [*number[:-1].round(3), "inf"],
        "no number": [*number[:-1].round(3), "nan"],
        "enormous": [*number[:-1].round(3), "1e40"],
        "underscore": [*map(str, range(5000, 5000 + N - 1)), "1_000"],
        "few": draw.integers(0, 4, N),
        "town": draw.choice(["Köln", " York ", "", "NA"], N),
        "sex": draw.choice(["f", "m"], N),
        "p": draw.uniform(0.2, 0.8, N),
        "granted": granted.astype(int),
        "repaid": np.where(granted, draw.choice(["yes", "no"], N), ""),
    }
    return pd.DataFrame(columns).astype(str)


def both(path: Path, monkeypatch: pytest.MonkeyPatch, declared: Declared = DECLARED) -> list[files.Cells]:
    fast = read_cells(path, declared)
    monkeypatch.setattr(files, "is_unquoted", lambda *_: False)
    return [fast, read_cells(path, declared)]


def test_both_ways_give_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = table().to_csv(index=False, sep=";").splitlines()
    rows = [lines[0].replace("few", " few "), *lines[1:3], "", ";" * (lines[0].count(";")), *lines[3:]]
    path = tmp_path / "log.csv"
    path.write_bytes(("\ufeff\r\n" + "\r\n".join(rows)).encode())
    fast, slow = both(path, monkeypatch, replace(DECLARED, separator=";"))
    assert list(fast.frame) == list(slow.frame)
    assert {name for name in fast.frame if not is_text(fast.frame[name])} == {
        *("number", "blank", "with words", "exponent", "many digits", "decimals", "whole")
    }
    for name, column in slow.frame.items():
        np.testing.assert_array_equal(numbers_of(fast.frame[name]), numbers_of(column), err_msg=str(name))
        np.testing.assert_array_equal(fast.frame[name].isna(), column.isna())
        if is_text(fast.frame[name]):
            assert all(map(np.array_equal, words_of(fast.frame[name]), words_of(column)))
    found = [read(one, one.declared) for one in (fast, slow)]
    assert found[0].kinds == found[1].kinds
    assert found[0].left_out == found[1].left_out
    assert found[0].notes == found[1].notes
    assert found[0].faults == found[1].faults


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n3\n",
        b"a,b\n1,2\n3,4,5\n",
        b"a,b\n \n1,2\n",
        b"a,b\r1,2\r",
        b'a,b\n"1,5",2\n',
        b'a,b\n"1,2\n',
        b"a,b\n\xff,2\n",
        b"\xff,b\n1,2\n",
        b"a,b\n1,\x002\n",
        b"a,a\n1,2\n",
        b"a\n1\n",
        b"a,b\n",
        b"a,b\n,\n",
        b"",
        b"\n,\na,b\n1,2",
    ],
)
def test_what_is_irregular_is_as_the_slow_way_says(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, said = tmp_path / "log.csv", []
    path.write_bytes(content)
    for _ in range(2):
        try:
            said.append(read_cells(path, DECLARED).frame.to_dict())
        except FairAllError as error:
            said.append(str(error))
        monkeypatch.setattr(files, "is_unquoted", lambda *_: False)
    assert said[0] == said[1]
