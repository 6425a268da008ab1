"""Terminal output of a study: progress at the start, a line per trial, and the command that shows it."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from fairall.runtime.credentials import hidden
from fairall.tuning.objectives import Objective, Trial, selected
from fairall.tuning.space import Key, key_of, words_of
from fairall.tuning.study import SharedStudy


class Progress:
    """Lines on standard output about a study.

    Args:
        study: the study.
        target: number of points to try.
        place: words that tell `python -m fairall.tuning` where the study is.
    """

    def __init__(self, study: SharedStudy, target: int, place: str) -> None:
        self._study, self._target, self._place = study, target, place
        self._console = Console(highlight=False, soft_wrap=True)

    def begin(self) -> None:
        """Print the number of points and the state of the study."""
        self._say(f"{self._study.name}: {standing(self._study.trials(), self._target)}")
        self._say(f"Study: {hidden(self._study.url)}")

    def log(self, trial: Trial) -> None:
        """Print a finished or failed trial."""
        self._say(f"{self._ended()} of {self._target}  {line(trial, self._study.objectives)}")

    def end(self) -> None:
        """Print the selected trial."""
        trials = self._study.trials()
        self._say(f"{self._study.name}: {standing(trials, self._target)}")
        chosen = selected(self._study.complete(), self._study.objectives)
        if chosen is not None:
            self._say(f"Selected: {line(chosen, self._study.objectives)}")
        self._say(f"More: python -m fairall.tuning show {self._study.name}{self._place}")

    def _ended(self) -> int:
        states = states_by_point(self._study.trials()).values()
        return sum(state in ("complete", "fail") for state in states)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)


def states_by_point(trials: list[Trial]) -> dict[Key, str]:
    """State of each point, that of its last trial."""
    return {key_of(trial.point): trial.state for trial in trials}


def standing(trials: list[Trial], target: int) -> str:
    """Numbers of finished, failed, running and remaining points."""
    states = Counter(states_by_point(trials).values())
    left = target - states["complete"] - states["fail"] - states["running"]
    parts = [(states["complete"], "finished"), (states["fail"], "failed"), (states["running"], "running")]
    counts = [f"{number} {what}" for number, what in parts if number] + [f"{max(0, left)} to do"]
    return f"{target} points, {', '.join(counts)}"


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
