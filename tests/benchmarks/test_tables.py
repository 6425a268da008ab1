import pytest

from benchmarks.tables import MEASURED, SOURCES, applicants, measured


@pytest.mark.whole
def test_both_sources_are_measured_in_processes_of_their_own() -> None:
    table = measured(2000, 40)
    assert table.index.tolist() == list(SOURCES)
    assert (table["cpu_seconds"] > 0).all()
    assert (table[MEASURED[1]] >= 0).all()
    assert (table["frame_gigabytes"] == applicants(2000, 40).memory_usage().sum() / 1e9).all()
