"""Mutation testing finds what tests do not notice."""

from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.mutants import mutants, share

SOURCE = '''"""A - b."""
from __future__ import annotations


def total(a: int | None, b: int) -> int | None:
    """A + b."""
    return a + b


def double(a: int) -> int:
    return a * 2
'''
TEST = """
from fairall_example import double, total
from hypothesis import given, strategies


@given(strategies.integers())
def test_double(a: int) -> None:
    double(a)


def test_total() -> None:
    assert total(3, 1) == 4
"""


def test_annotations_and_docstrings_have_no_mutants() -> None:
    assert {line for line, _, _ in mutants(SOURCE)} == {7, 11}


@pytest.mark.whole
def test_what_is_asserted_is_noticed_and_what_is_only_run_is_not(tmp_path: Path) -> None:
    (tmp_path / "fairall_example.py").write_text(SOURCE)
    (tmp_path / "test_example.py").write_text(TEST)
    made = share("fairall_example.py", ["test_example.py"], 5, 0, tmp_path)
    noticed = made.groupby("line")["noticed"]
    assert noticed.all()[7]
    assert not noticed.any()[11]
    assert (tmp_path / "fairall_example.py").read_text() == SOURCE
    (tmp_path / "test_example.py").write_text(TEST.replace("== 4", "== 5"))
    with pytest.raises(BenchmarkError, match="tests fail"):
        share("fairall_example.py", ["test_example.py"], 1, 0, tmp_path)
