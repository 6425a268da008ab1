"""Time left of a run, estimated from the units of work done by this process."""

from __future__ import annotations

import time
from collections.abc import Callable

# Time of a unit of a phase, in epochs of Phase I. Measured for FairAll and FairLab on three data sets: 0.4 to
# 6 in the warm-up, 2.6 to 6 in Phase II. Only for phases still to come; the current one is measured.
RELATIVE = {"Phase I": 1.0, "Warm-up": 2.0, "Phase II": 4.0}


def in_words(seconds: float) -> str:
    """A duration as text, rounded.

    Examples:
        >>> in_words(75.4), in_words(4000)
        ('75 s', '67 min')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class TimeLeft:
    """Time left of a phase, and of the phases of a run together.

    Args:
        phases: units by name of phase, in their order; during any other phase the whole is not estimated.
        clock: seconds.
    """

    def __init__(self, phases: dict[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._later = dict(phases)
        self._clock = clock

    def begin(self, name: str, total: int, done: int) -> None:
        """Begin or resume a phase.

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
        """Count one unit, or `resumed` units that an earlier process has done."""
        if resumed is None:
            self._done += 1
            self._units_left -= 1
        else:
            self._began = self._clock()
            self._units_left -= resumed

    def of_phase(self) -> float | None:
        """Seconds left of the phase; None before its first unit is done."""
        return None if self._done == 0 else self._seconds_per_unit() * self._units_left

    def of_run(self) -> float | None:
        """Seconds left of this phase and the later ones; None where that is unknown."""
        of_phase = self.of_phase()
        if of_phase is None or not self._known:
            return None
        to_come = sum(units * RELATIVE[name] for name, units in self._later.items())
        return of_phase + self._seconds_per_unit() / RELATIVE[self._name] * to_come

    def in_words(self) -> str:
        """Both estimates as text; empty before the first unit is done."""
        of_phase, of_run = self.of_phase(), self.of_run()
        if of_phase is None or (of_phase == 0 and not of_run):
            return ""
        whole = "" if of_run is None or not self._later else f", run about {in_words(of_run)}"
        return f"{in_words(of_phase)}{whole} left"

    def _seconds_per_unit(self) -> float:
        return (self._clock() - self._began) / self._done
