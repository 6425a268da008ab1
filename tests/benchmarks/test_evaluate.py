"""The benchmark of `evaluate`."""

import pytest

from benchmarks.evaluate import measured


@pytest.mark.whole
def test_the_command_is_measured() -> None:
    table = measured(1000, 40)
    assert table.index.tolist() == ["1000 x 40"]
    assert (table > 0).all(axis=None)
