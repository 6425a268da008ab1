"""Examples in docstrings."""

import doctest
import importlib

import pytest

MODULES = (
    "fairall.models.elbo",
    "fairall.models.objectives",
    "fairall.nn.likelihoods",
    "fairall.nn.stacked",
    "fairall.randomness",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name), verbose=False)
    assert tried > 0
    assert failed == 0
