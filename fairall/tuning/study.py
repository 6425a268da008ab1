"""Studies: the finished runs of a sweep, and the points that failed.

A folder `outputs/sweeps/NAME` has study.json, and NUMBER.json for each point that was tried: the folder of
its run, the measures of Phase I alone, or why it failed; in a space with intervals also its values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from hydra.errors import HydraException

from fairall.display.format import CAUTION, interpretable, marked, mean_std
from fairall.errors import FairAllError
from fairall.results.runs import load_result
from fairall.runtime.reading import DamagedFileError
from fairall.storage.files import locked, write_text
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import Plain, read_json, strict
from fairall.tuning.objectives import DIRECTIONS, selected
from fairall.tuning.space import Point, Range, Space, Value, words_of

STUDY = "study.json"


@dataclass(frozen=True)
class _StudyFile:
    """Content of study.json."""

    objectives: Mapping[str, Literal["minimize", "maximize"]]
    space: Mapping[str, str | Sequence[Value]]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class _Outcome:
    """Content of NUMBER.json."""

    run: str | None = None
    identity: str | None = None
    measures: Mapping[str, Sequence[float | None]] | None = None
    reason: str | None = None
    point: Mapping[str, Value] | None = None


@dataclass(frozen=True)
class Study:
    """A space, and what is known of its points.

    Attributes:
        outputs: folder with `sweeps` and `runs`.
        name: of its folder.
        objectives: minimize or maximize by measure, the most important first.
        space: the values that are tried.
        settings: values by key that determine the result of a point besides the point.
    """

    outputs: Path
    name: str
    objectives: Mapping[str, str]
    space: Space
    settings: Mapping[str, str]

    def begin(self) -> None:
        """Write study.json, unless it is there.

        Raises:
            FairAllError: where there is a study of that name whose points cannot be compared with these.
        """
        path = self._path(STUDY)
        requested = self._to_plain()
        with locked(path.parent, path.with_name("study.lock")):
            if not path.exists():
                write_text(path, json.dumps(requested, indent=1) + "\n")
        known = self.load(self.name, self.outputs)._to_plain()
        there, here = (
            {"objectives": [*of["objectives"].items()], **of["space"], **of["settings"]}
            for of in (known, requested)
        )
        differs = [key for key in {**there, **here} if there.get(key) != here.get(key)]
        if differs:
            first = "; ".join(f"{key}={there.get(key)}, not {here.get(key)}" for key in differs[:3])
            more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""
            raise FairAllError(
                f"the study in {path.parent} was begun with {first}{more}; "
                "give this sweep another name with hydra.sweeper.study_name=NAME"
            )

    @classmethod
    def load(cls, name: str, outputs: Path) -> Study:
        """The study of that name.

        Raises:
            FairAllError: where there is none, or its description cannot be read.
        """
        names = study_names(outputs)
        if name not in names:
            listed = f"there are {', '.join(names)}" if names else "there are none yet"
            raise FairAllError(f"{name}: no such study in {outputs / 'sweeps'}; {listed}")
        path = outputs / "sweeps" / name / STUDY
        try:
            known = read_json(path, _StudyFile)
            words = {key: of for key, of in known.space.items() if isinstance(of, str)}
            intervals = Space.parse(words, [], intervals=True).values if words else {}
        except (FairAllError, HydraException) as error:
            damaged = isinstance(error, DamagedFileError)
            told = error if damaged else f"{path} is damaged: its intervals cannot be read"
            raise FairAllError(f"{told}; delete it, and start the sweep again") from error
        space = Space({key: intervals[key] if key in words else [*of] for key, of in known.space.items()})
        return cls(outputs, name, known.objectives, space, known.settings)

    def _to_plain(self) -> Plain:
        space = {key: str(of) if isinstance(of, Range) else [*of] for key, of in self.space.values.items()}
        return {"objectives": dict(self.objectives), "space": space, "settings": dict(self.settings)}

    def _path(self, name: str) -> Path:
        return self.outputs / "sweeps" / self.name / name

    def number(self, point: Point) -> int | None:
        """Number of a point; None for one of a space with intervals that was not tried."""
        if self.space.points:
            return self.space.points.index(point)
        return next((number for number in self._numbers() if self.point(number) == point), None)

    def point(self, number: int) -> Point:
        """The values of a point that was tried, or of any point of a grid; empty if its file is damaged."""
        return self.space.points[number] if self.space.points else self._kept(number).get("point", {})

    def outcome(self, number: int | None) -> Plain:
        """What was recorded of a point; empty for nothing, and where it is damaged.

        The point is then tried again, and its run found where it is finished.
        """
        return {key: of for key, of in self._kept(number).items() if key != "point"}

    def _kept(self, number: int | None) -> Plain:
        try:
            known = read_json(self._path(f"{number}.json"), _Outcome)
        except (FileNotFoundError, DamagedFileError):
            return {}
        return {name: value for name, value in vars(known).items() if value is not None}

    def record(self, point: Point, outcome: Mapping[str, Any]) -> int:
        """Keep the outcome of a point: its `run`, or its `measures`; and of a failed one the `reason`.

        Returns:
            Its number, of a new one in a space with intervals the next that is free.
        """
        with locked(self._path(""), self._path("study.lock")):
            number, values = self.number(point), {} if self.space.points else {"point": point}
            if number is None:
                number = max(self._numbers(), default=-1) + 1
            plain = strict({**outcome, **values})
            write_text(self._path(f"{number}.json"), json.dumps(plain, allow_nan=False) + "\n")
        return number

    @property
    def tried(self) -> int:
        """How many points have an outcome."""
        return len(self._numbers())

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._path("").glob("[0-9]*.json"))

    @cached_property
    def outcomes(self) -> dict[int, Plain]:
        """Outcomes by number, without damaged ones and those whose runs have been deleted."""
        known = {number: self.outcome(number) for number in self._numbers()}
        return {
            number: of for number, of in known.items() if of and (not of.get("run") or self._run(of).done)
        }

    def _run(self, outcome: Mapping[str, Any]) -> RunFolder:
        return RunFolder(self.outputs / "runs" / outcome["run"])

    @property
    def failed(self) -> dict[int, str]:
        """Reasons of failures by number."""
        return {number: of["reason"] for number, of in self.outcomes.items() if "reason" in of}

    @property
    def finished(self) -> list[int]:
        """Numbers of the finished points."""
        return [number for number, of in self.outcomes.items() if "reason" not in of]

    def values_of(self, outcome: Mapping[str, Any]) -> pd.DataFrame:
        """Objectives of a point: a row per seed, a column per objective, NaN where there is no value."""
        if "measures" in outcome:
            known = pd.DataFrame(outcome["measures"], dtype=float)
        else:
            known = load_result(self._run(outcome).path).per_seed
        return known.reindex(columns=[*self.objectives])

    @cached_property
    def values(self) -> pd.DataFrame:
        """Objectives of the finished points: a row per point and seed."""
        known = {number: self.values_of(self.outcomes[number]) for number in self.finished}
        return pd.concat(known or {0: pd.DataFrame(columns=[*self.objectives])})

    @cached_property
    def means(self) -> pd.DataFrame:
        """Objectives of the finished points, means over seeds."""
        return self.values.groupby(level=0).mean()

    @cached_property
    def stds(self) -> pd.DataFrame:
        """Standard deviations over seeds, with n − 1; NaN for one seed."""
        return self.values.groupby(level=0).std()

    @cached_property
    def errors(self) -> pd.DataFrame:
        """Standard errors of the means; 0 for one seed."""
        return self.stds.div(np.sqrt(self.values.groupby(level=0).size()), axis=0).fillna(0.0)

    @property
    def costs(self) -> pd.DataFrame:
        """Means, so that less is better."""
        return self.means * [DIRECTIONS[direction] for direction in self.objectives.values()]

    @property
    def no_selection(self) -> str:
        """Why no point is selected, of all finished ones; empty where one is."""
        if not interpretable(self.settings.get("preset")):
            return CAUTION
        keys = self.space.of_problem
        return f"{', '.join(keys)} define{'s' * (len(keys) == 1)} the problem" if keys else ""

    @property
    def selected(self) -> int | None:
        """The point of `objectives.selected`; None without a finished one, and with `no_selection`."""
        return None if self.no_selection or self.means.empty else selected(self.costs, self.errors)

    @property
    def standing(self) -> str:
        """Numbers of finished, failed and remaining points."""
        finished, failed = len(self.finished), len(self.failed)
        counts = [
            f"{number} {what}" for number, what in ((finished, "finished"), (failed, "failed")) if number
        ]
        if self.space.size is not None:
            counts.append(f"{self.space.size - finished - failed} to do")
        points = "points of intervals" if self.space.size is None else f"{self.space.size} points"
        return marked(", ".join([points, *counts]), self.settings.get("preset"))

    @property
    def headings(self) -> dict[str, str]:
        """Names of the objectives in tables and figures, by measure."""
        return {measure: f"{direction} {measure}" for measure, direction in self.objectives.items()}

    def shown(self, number: int, measure: str) -> str:
        """Mean ± standard deviation over seeds of a finished point."""
        return spread(self.means.loc[number, measure], self.stds.loc[number, measure])

    def line(self, number: int, result: str) -> str:
        """One line about a point that was tried: its values and its result, a reason or `summary`."""
        return f"point {number}: {' '.join(words_of(self.point(number)))}  {result}"


def summary(values: pd.DataFrame) -> str:
    """The objectives of a point, a row per seed: mean ± standard deviation of each."""
    return "  ".join(f"{name} {spread(own.mean(), own.std())}" for name, own in values.items())


def spread(mean: float, std: float) -> str:
    """Mean ± standard deviation of an objective; the mean alone for one seed."""
    return mean_std(mean, std, scale=1, digits=4)


def study_names(outputs: Path) -> list[str]:
    """Names of the studies in a folder of outputs."""
    return sorted(path.parent.name for path in (outputs / "sweeps").glob(f"*/{STUDY}"))


def progress_of_studies(outputs: Path) -> dict[str, str]:
    """`Study.standing` of every study in a folder of outputs by name, or why it cannot be read."""
    progress = {}
    for name in study_names(outputs):
        try:
            progress[name] = Study.load(name, outputs).standing
        except FairAllError as error:
            progress[name] = str(error)
    return progress
