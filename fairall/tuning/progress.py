"""Terminal output of a study: progress at the start, a line per trial, and the command that shows it."""

from __future__ import annotations

from collections import Counter

from fairall.results.interpretable import marked
from fairall.runtime.console import AnyConsole
from fairall.runtime.credentials import hidden
from fairall.tuning.objectives import Objective, Trial
from fairall.tuning.space import Key, key_of, words_of
from fairall.tuning.study import SharedStudy

NOTHING = "Nothing is selected: {}."


class Progress:
    """Lines on standard output about a study.

    Args:
        study: the study.
        target: number of points to try.
        place: words that tell `python -m fairall.tuning` where the study is.
    """

    def __init__(self, study: SharedStudy, target: int, place: str) -> None:
        self._study, self._target, self._place = study, target, place
        self._console = AnyConsole()

    def begin(self) -> None:
        """Print the number of points and the state of the study."""
        self._say(self._heading())
        self._say(f"Study: {hidden(self._study.url)}")

    def log(self, trial: Trial) -> None:
        """Print a finished or failed trial."""
        self._say(f"{self._ended()} of {self._target}  {line(trial, self._study.objectives)}")

    def end(self) -> None:
        """Print the selected trial, or why none is."""
        self._say(self._heading())
        chosen = self._study.selected()
        if reason := self._study.no_selection:
            self._say(NOTHING.format(reason))
        elif chosen is not None:
            self._say(f"Selected: {line(chosen, self._study.objectives)}")
        self._say(f"More: python -m fairall.tuning show {self._study.name}{self._place}")

    def _heading(self) -> str:
        return f"{self._study.name}: {standing(self._study, self._target)}"

    def _ended(self) -> int:
        states = states_by_point(self._study.trials()).values()
        return sum(state in ("complete", "fail") for state in states)

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)


def states_by_point(trials: list[Trial]) -> dict[Key, str]:
    """State of each point, that of its last trial."""
    return {key_of(trial.point): trial.state for trial in trials}


def standing(study: SharedStudy, target: int) -> str:
    """Numbers of finished, failed, running and remaining points, of `target` in all."""
    states = Counter(states_by_point(study.trials()).values())
    left = target - states["complete"] - states["fail"] - states["running"]
    parts = [(states["complete"], "finished"), (states["fail"], "failed"), (states["running"], "running")]
    counts = [f"{number} {what}" for number, what in parts if number] + [f"{max(0, left)} to do"]
    return marked(f"{target} points, {', '.join(counts)}", study.settings)


def line(trial: Trial, objectives: list[Objective]) -> str:
    """One line about a trial: its point and its result."""
    result = trial.notes.get("reason", "")
    if trial.state == "complete":
        result = "  ".join(
            f"{objective.measure} {mean_and_std(trial, objective)}" for objective in objectives
        )
        result += f"  ({trial.notes['seconds']:g} s)"
    return f"trial {trial.number}: {' '.join(words_of(trial.point))}  {result}"


def mean_and_std(trial: Trial, objective: Objective) -> str:
    """Mean ± standard deviation over seeds; the mean alone for one seed."""
    std = trial.std(objective)
    return f"{trial.mean(objective):.4f}" + ("" if std is None else f" ± {std:.4f}")
