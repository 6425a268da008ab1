"""The benchmark of a ledger."""

import pytest

from benchmarks.live import measured


@pytest.mark.whole
def test_the_commands_are_measured() -> None:
    table = measured(200, 12)
    assert {"decide", "live decide", "live outcomes", "live learn", "live status"} <= {*table.index}
    assert (table > 0).all(axis=None)
