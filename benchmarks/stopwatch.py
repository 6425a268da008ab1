"""Attribution of CPU time, wall time and memory of this process to named parts."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.usage import Usage


class Stopwatch:
    """Exactly one part is running at any time, so that the parts add up to the whole.

    A part begun inside another interrupts it: what the inner one uses does not count for the outer one.

    Args:
        part: the first to run.

    Attributes:
        used: by part; up to the last switch.
        running: the part that is running.
    """

    def __init__(self, part: str) -> None:
        self.used: dict[str, Usage] = {}
        self.running = part
        self._since = (time.process_time(), time.perf_counter())
        _peak_from_now_on()

    def switch(self, part: str) -> str:
        """Stops the running part and starts `part`; returns what was running."""
        before, since = self.running, self._since
        self._since = (time.process_time(), time.perf_counter())
        used = Usage(self._since[0] - since[0], self._since[1] - since[1], _peak_mib())
        self.used[before] = self.used.get(before, Usage(0.0, 0.0, 0.0)) + used
        self.running = part
        _peak_from_now_on()
        return before

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Runs a part and then goes on with what it interrupted."""
        before = self.switch(name)
        try:
            yield
        finally:
            self.switch(before)


def _peak_from_now_on() -> None:
    """Reset the peak memory of the process on Linux; elsewhere a part's peak includes all parts before it."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def _peak_mib() -> float:
    status = Path("/proc/self/status")
    if not status.exists():  # macOS, which counts in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
