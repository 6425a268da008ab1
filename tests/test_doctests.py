"""Examples in docstrings."""

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fairall"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name), verbose=False)
    assert tried > 0
    assert failed == 0


def test_every_standard_measure_has_an_example() -> None:
    from fairall import metrics

    shown = {example.name for example in doctest.DocTestFinder().find(metrics) if example.examples}
    functions = {one.function.__qualname__.partition(".")[0] for one in metrics.STANDARD}
    assert {f"fairall.metrics.{name}" for name in functions} <= shown
