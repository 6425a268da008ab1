"""Made-up measurements, for what does not need a real one."""

from collections.abc import Callable

import pytest

from benchmarks.parts import EXIT, PHASE_2, START_UP, TOTAL
from benchmarks.usage import Usage

Measured = dict[str, Usage]


@pytest.fixture
def measured() -> Callable[[float], Measured]:
    """A measurement whose Phase II took so many seconds, in a process of three more."""

    def of(seconds: float) -> Measured:
        return {
            START_UP: Usage(2.0, 2.5, 300.0),
            PHASE_2: Usage(seconds, seconds + 0.5, 400.0),
            EXIT: Usage(1.0, 1.0, float("nan")),
            TOTAL: Usage(seconds + 3, seconds + 4, 400.0),
        }

    return of
