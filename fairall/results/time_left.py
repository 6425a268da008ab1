"""How long a run still takes, by the units of work that this process has done."""

from __future__ import annotations

import time
from collections.abc import Callable

from fairall.report.durations import in_words

# Time of a unit of a phase, in epochs of Phase I. Measured for FairAll and FairLab on three data sets: 0.4 to
# 6 in the warm-up, 2.6 to 6 in Phase II. Only for phases still to come; the current one is measured.
RELATIVE = {"Phase I": 1.0, "Warm-up": 2.0, "Phase II": 4.0}


class TimeLeft:
    """Time left of a phase, and of the phases of a run together.

    Args:
        phases: by name the units of each, in their order; in any other phase the whole is not estimated.
        clock: seconds.
    """

    def __init__(self, phases: dict[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._later = dict(phases)
        self._clock = clock

    def begin(self, name: str, total: int, done: int) -> None:
        """A phase begins or goes on.

        Args:
            name: of the phase.
            total: its units.
            done: units that an earlier process has done.
        """
        self._known = name in self._later
        names = list(self._later)
        for past in names[: names.index(name) + 1] if self._known else []:
            del self._later[past]
        self._name, self._units_left = name, total - done
        self._began, self._done = self._clock(), 0

    def advance(self, resumed: int | None = None) -> None:
        """One unit has been done, or `resumed` units are known to have been done by an earlier process."""
        if resumed is None:
            self._done += 1
            self._units_left -= 1
        else:
            self._began = self._clock()
            self._units_left -= resumed

    def of_phase(self) -> float | None:
        """Seconds that the phase still takes; None before a unit of it has been done."""
        return None if self._done == 0 else self._seconds_per_unit() * self._units_left

    def of_run(self) -> float | None:
        """Seconds that the phase and those to come still take; None where that is not known."""
        of_phase = self.of_phase()
        if of_phase is None or not self._known:
            return None
        to_come = sum(units * RELATIVE[name] for name, units in self._later.items())
        return of_phase + self._seconds_per_unit() / RELATIVE[self._name] * to_come

    def in_words(self) -> str:
        """Both, for people."""
        of_phase, of_run = self.of_phase(), self.of_run()
        if of_phase is None or (of_phase == 0 and not of_run):
            return ""
        whole = "" if of_run is None or not self._later else f", run about {in_words(of_run)}"
        return f"{in_words(of_phase)}{whole} left"

    def _seconds_per_unit(self) -> float:
        return (self._clock() - self._began) / self._done
