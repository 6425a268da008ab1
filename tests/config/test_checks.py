"""Ranges that fields declare; test_config.py and tests/commands.yaml have values that are refused."""

from typing import Any

import pytest

from fairall.config import checks


@pytest.mark.parametrize(
    ("declared", "ends"),
    [
        (checks.at_least(2), [2]),
        (checks.between(0, 1), [0, 1]),
        (checks.positive_share(), [1e-9, 1]),
        (checks.below_one(), [0, 0.9]),
        (checks.even(), [2, 64]),
        (checks.hidden_sizes(least=0), [[], [64]]),
        (checks.numpy_seed(), [0, 2**32 - 1]),
        (checks.plain_name(), ["a b", "run-1.2"]),
    ],
)
def test_ends_of_ranges_are_possible(declared: Any, ends: list[Any]) -> None:
    for value in ends:
        checks.check_values(value, "key", declared)
