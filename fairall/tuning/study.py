"""Studies that several processes share: claimed, finished and remaining points."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairall.errors import FairAllError
from fairall.runtime.process import is_gone, this_process
from fairall.tuning.objectives import Judged, Objective
from fairall.tuning.samplers import Sampler, key_of
from fairall.tuning.space import Point, Space
from fairall.tuning.storage import exclusive, open_storage, shown

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial
    from optuna.trial import Trial as Handle

BEATS_PER_GRACE = 5  # heartbeats within `grace_seconds`


@dataclass(frozen=True)
class Rules:
    """Rules by which trials are claimed.

    Attributes:
        sampler: proposes the next point.
        target: number of points to try.
        attempts: number of starts after which a trial counts as failed.
        grace_seconds: without a heartbeat after which a trial of another machine is taken over.
        retry_failed: whether points that failed before this process started are tried again.
        first: the point to begin with; empty for none.
    """

    sampler: Sampler
    target: int
    attempts: int
    grace_seconds: float
    retry_failed: bool
    first: Point = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """State of a trial.

    Attributes:
        number: within the study, from 0.
        state: waiting, running, complete or fail.
        point: values by key.
        per_seed: by objective one value per seed, of a complete one.
        notes: `reason` of a failure, `run` folder, `seconds`, `worker`, `attempts`.
    """

    number: int
    state: str
    point: Point
    per_seed: Mapping[str, Sequence[float]]
    notes: Mapping[str, Any]


class SharedStudy:
    """A study in a database.

    Args:
        name: of an existing study.
        url: of the database.

    Attributes:
        objectives: the most important first.
        space: its grid.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self._storage = open_storage(url)
        known = self.optuna_study.user_attrs
        self.objectives = [Objective.parse(words) for words in known["objectives"]]
        self.space = Space(known["space"])
        self._mine: set[int] = set()
        self._failed_before = {trial.number for trial in self.trials() if trial.state == "fail"}

    @classmethod
    def begin(
        cls,
        url: str,
        name: str,
        *,
        space: Space,
        objectives: Sequence[Objective],
        settings: Mapping[str, str],
        target: int,
    ) -> SharedStudy:
        """Load the study of that name, or begin it.

        Args:
            url: of the database.
            name: of the study.
            space: its grid.
            objectives: of its trials.
            settings: values common to all trials, by key.
            target: number of points to try.

        Raises:
            FairAllError: where there is a study of that name whose trials cannot be compared with these.
        """
        import optuna

        storage = open_storage(url)
        described = {
            "objectives": [str(objective) for objective in objectives],
            "space": {key: list(values) for key, values in space.values.items()},
            "settings": dict(settings),
        }
        with exclusive(url):
            try:
                study = optuna.load_study(study_name=name, storage=storage)
            except KeyError:
                directions = [objective.direction for objective in objectives]
                study = optuna.create_study(study_name=name, storage=storage, directions=directions)
                for key, value in described.items():
                    study.set_user_attr(key, value)
            known = {key: study.user_attrs.get(key) for key in described}
            differs = _difference(_flat(known), _flat(described))
            if differs:
                raise FairAllError(
                    f"the study {name} in {shown(url)} was begun with {differs}; "
                    "give this sweep another name with sweep.study=NAME"
                )
            study.set_user_attr("target", target)
        return cls(name, url)

    @classmethod
    def load(cls, url: str, name: str) -> SharedStudy:
        """The study of that name; raises FairAllError where there is none."""
        names = study_names(url)
        if name not in names:
            listed = f"there are {', '.join(names)}" if names else "there are none yet"
            raise FairAllError(f"{name}: no such study in {shown(url)}; {listed}")
        return cls(name, url)

    @property
    def optuna_study(self) -> Study:
        """The study loaded anew, since Optuna 2 caches trials that other processes finish."""
        import optuna

        # Points come from `Rules.sampler`; Optuna's default sampler would add attributes to every trial.
        sampler = optuna.samplers.RandomSampler()
        return optuna.load_study(study_name=self.name, storage=self._storage, sampler=sampler)

    @property
    def settings(self) -> dict[str, str]:
        """Values common to all trials, by key."""
        return self.optuna_study.user_attrs["settings"]

    @property
    def target(self) -> int:
        """Number of points to try."""
        return self.optuna_study.user_attrs["target"]

    def note(self, key: str, made: Any, *, anew: bool = False) -> Any:
        """Value stored under `key`; where there is none, or with `anew`, store `made()`."""
        with exclusive(self.url):
            study = self.optuna_study
            if anew or key not in study.user_attrs:
                study.set_user_attr(key, made())
            return study.user_attrs[key]

    def trials(self) -> list[Trial]:
        """All trials in order."""
        return [_seen(trial, self.space) for trial in self.optuna_study.get_trials(deepcopy=False)]

    def judged(self) -> list[Judged]:
        """The finished trials."""
        return [Judged(trial.number, trial.per_seed) for trial in self.trials() if trial.state == "complete"]

    def claim(self, rules: Rules) -> Trial | None:
        """Claim a trial for this process; None where nothing remains.

        Trials of killed processes come first, then the next point.
        """
        with exclusive(self.url):
            abandoned = self._abandoned(rules)
            if abandoned is not None:
                return self._own(abandoned)
            trials = self.trials()
            waiting = any(trial.state == "waiting" for trial in trials)  # its process died while claiming it
            taken = {key_of(trial.point) for trial in trials if not self._tried_again(trial, rules)}
            if not waiting:
                if len(taken) >= rules.target:
                    return None
                point: Point | None = rules.first
                if not point or key_of(point) in taken:
                    point = rules.sampler(self.optuna_study, self.space, taken, rules.target)
                if point is None:
                    return None
                self.optuna_study.enqueue_trial(point)
            return self._own(self.optuna_study.ask().number)

    def finish(
        self, trial: Trial, per_seed: Mapping[str, Sequence[float]] | None, notes: Mapping[str, Any]
    ) -> Trial:
        """Record the result of a trial and return its new state.

        Args:
            trial: a claimed trial.
            per_seed: by objective one finite value per seed; None where the trial has failed.
            notes: stored with it, such as the `reason` of a failure.
        """
        with exclusive(self.url):
            # A trial without heartbeats may have been taken over and finished by another process.
            if self._trial(trial.number).state == "running":
                self._record(trial.number, per_seed, notes)
        return self._trial(trial.number)

    @contextmanager
    def kept_alive(self, trials: Sequence[Trial], rules: Rules) -> Iterator[None]:
        """Update the heartbeat of trials while the block runs."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(rules.grace_seconds / BEATS_PER_GRACE):
                with exclusive(self.url):
                    for trial in trials:
                        self._handle(trial.number).set_user_attr("heartbeat", time.time())

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            ended.set()
            beating.join()

    def _abandoned(self, rules: Rules) -> int | None:
        """Number of a running trial whose process has ended, unless it was started too often."""
        for trial in self.trials():
            if trial.state != "running" or trial.number in self._mine:
                continue
            if not _is_abandoned(trial, rules.grace_seconds):
                continue
            if trial.notes.get("attempts", 0) < rules.attempts:
                return trial.number
            reason = f"its process ended {rules.attempts} times before it was done"
            self._record(trial.number, None, {"reason": reason})
        return None

    def _record(
        self, number: int, per_seed: Mapping[str, Sequence[float]] | None, notes: Mapping[str, Any]
    ) -> None:
        from optuna.trial import TrialState

        kept, values, state = dict(notes), None, TrialState.FAIL
        if per_seed is not None:
            judged, state = Judged(number, per_seed), TrialState.COMPLETE
            kept["per_seed"] = dict(per_seed)
            kept["std"] = {objective.measure: judged.std(objective) for objective in self.objectives}
            values = [judged.mean(objective) for objective in self.objectives]
        handle = self._handle(number)
        for key, value in kept.items():
            handle.set_user_attr(key, value)
        self.optuna_study.tell(number, values, state)

    def _own(self, number: int) -> Trial:
        handle = self._handle(number)
        # For a trial that is taken over, Optuna returns the values that it has.
        for key, values in self.space.values.items():
            handle.suggest_categorical(key, values)
        attempts = handle.user_attrs.get("attempts", 0) + 1
        for key, value in (("attempts", attempts), ("heartbeat", time.time()), ("worker", this_process())):
            handle.set_user_attr(key, value)
        self._mine.add(number)
        return self._trial(number)

    def _tried_again(self, trial: Trial, rules: Rules) -> bool:
        return rules.retry_failed and trial.number in self._failed_before

    def _trial(self, number: int) -> Trial:
        return _seen(self._storage.get_trial(self._id(number)), self.space)

    def _handle(self, number: int) -> Handle:
        from optuna.trial import Trial as OptunaTrial

        return OptunaTrial(self.optuna_study, self._id(number))

    def _id(self, number: int) -> int:
        study_id = self._storage.get_study_id_from_name(self.name)
        return self._storage.get_trial_id_from_study_id_trial_number(study_id, number)


def study_names(url: str) -> list[str]:
    """Names of the studies at `url`; none where the sqlite file does not exist yet."""
    import optuna
    from sqlalchemy.engine import make_url

    address = make_url(url)
    if address.get_backend_name() == "sqlite" and not Path(str(address.database)).exists():
        return []
    return sorted(summary.study_name for summary in optuna.get_all_study_summaries(open_storage(url)))


def _seen(trial: FrozenTrial, space: Space) -> Trial:
    given = trial.params or trial.system_attrs.get("fixed_params", {})
    notes = dict(trial.user_attrs)
    per_seed = notes.pop("per_seed", {})
    point = {key: given[key] for key in space.values if key in given}
    return Trial(trial.number, trial.state.name.lower(), point, per_seed, notes)


def _is_abandoned(trial: Trial, grace_seconds: float) -> bool:
    worker = trial.notes.get("worker")
    if worker is None or time.time() - trial.notes["heartbeat"] > grace_seconds:
        return True
    # A trial of this process id that this process has not claimed is of an earlier process.
    return worker == this_process() or is_gone(worker)


def _difference(stored: dict[str, str], requested: dict[str, str]) -> str:
    """The first differences, as `seeds=5, not 3`."""
    keys = [key for key in {**stored, **requested} if stored.get(key) != requested.get(key)]
    first = [f"{key}={stored.get(key)}, not {requested.get(key)}" for key in keys[:3]]
    return "; ".join(first) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")


def _flat(described: Mapping[str, Any]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in described.items():
        parts = value if isinstance(value, Mapping) else {key: value}
        flat |= {str(name): str(part) for name, part in parts.items()}
    return flat
