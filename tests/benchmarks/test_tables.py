import pytest

from benchmarks.tables import MEASURED, SOURCES, applicants, measured


@pytest.mark.whole
def test_the_command_is_measured_on_each_kind_of_file() -> None:
    table = measured(2000, 40)
    assert table.index.tolist() == list(SOURCES)
    assert (table["cpu_seconds"] > 0).all()
    assert (table[MEASURED[1]] > 0.1).all()  # gigabytes of a process that imports torch
    assert (table["frame_gigabytes"] == applicants(2000, 40).memory_usage().sum() / 1e9).all()
