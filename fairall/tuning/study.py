"""Studies that several processes share: claimed, finished and remaining points."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairall.errors import FairAllError
from fairall.results.interpretable import CAUTION, interpretable
from fairall.runtime.credentials import hidden
from fairall.runtime.process import is_gone, this_process
from fairall.tuning.objectives import Objective, Trial, selected
from fairall.tuning.samplers import next_point
from fairall.tuning.space import Point, Space, key_of
from fairall.tuning.storage import address, exclusive, open_storage, release

if TYPE_CHECKING:
    from omegaconf import DictConfig
    from optuna import Study
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

    from fairall.config.schema import SweepConfig

TARGET = "target"  # attribute that is stored last when a study is begun

BEATS_PER_GRACE = 5  # heartbeats within `sweep.grace_seconds`


class TakenOverError(Exception):
    """Another process has taken over a trial, since this one had no heartbeat for too long."""


class SharedStudy:
    """A study in a database.

    Args:
        name: of an existing study.
        storage: the database.

    Attributes:
        objectives: the most important first.
        space: its grid.
        url: of the database.
    """

    def __init__(self, name: str, storage: RDBStorage) -> None:
        self.name = name
        self.storage = storage
        self.url = str(storage.url)
        known = self.optuna_study.user_attrs
        self.objectives = [Objective.parse(words) for words in known["objectives"]]
        self.space = Space(known["space"])

    @classmethod
    def begin(
        cls,
        storage: RDBStorage,
        name: str,
        *,
        space: Space,
        objectives: Sequence[Objective],
        settings: Mapping[str, str],
        target: int,
    ) -> SharedStudy:
        """Load the study of that name, or begin it.

        Args:
            storage: the database.
            name: of the study.
            space: its grid.
            objectives: of its trials.
            settings: values common to all trials, by key.
            target: number of points that this process wants tried; the study keeps the largest.

        Raises:
            FairAllError: where there is a study of that name whose trials cannot be compared with these.
        """
        import optuna

        described: dict[str, Any] = {
            "objectives": [str(objective) for objective in objectives],
            "space": {key: list(values) for key, values in space.values.items()},
            "settings": dict(settings),
        }
        url = str(storage.url)
        with exclusive(url):
            try:
                study = optuna.load_study(study_name=name, storage=storage)
            except KeyError:
                directions = [objective.direction for objective in objectives]
                study = optuna.create_study(study_name=name, storage=storage, directions=directions)
            if TARGET not in study.user_attrs and not study.get_trials(deepcopy=False):
                for key, value in {**described, TARGET: target}.items():
                    study.set_user_attr(key, value)
            elif TARGET not in study.user_attrs:
                raise FairAllError(
                    f"the study {name} in {hidden(url)} is not of `sweeps=`; "
                    "give this sweep another name with hydra.sweeper.study_name=NAME"
                )
            known, requested = (
                {"objectives": one["objectives"], **one["space"], **one["settings"]}
                for one in (study.user_attrs, described)
            )
            differs = [key for key in {**known, **requested} if known.get(key) != requested.get(key)]
            if differs:
                first = "; ".join(f"{key}={known.get(key)}, not {requested.get(key)}" for key in differs[:3])
                more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""
                raise FairAllError(
                    f"the study {name} in {hidden(url)} was begun with {first}{more}; "
                    "give this sweep another name with hydra.sweeper.study_name=NAME"
                )
            study.set_user_attr(TARGET, max(target, study.user_attrs[TARGET]))
        return cls(name, storage)

    @classmethod
    def load(cls, url: str, name: str) -> SharedStudy:
        """The study of that name; raises FairAllError where there is none."""
        names = study_names(url)
        if name not in names:
            listed = f"there are {', '.join(names)}" if names else "there are none yet"
            raise FairAllError(f"{name}: no such study in {hidden(url)}; {listed}")
        return cls(name, open_storage(url))

    @property
    def optuna_study(self) -> Study:
        """The study loaded anew, since Optuna caches trials that other processes finish."""
        import optuna

        # The points are in the queue; Optuna's default sampler would add attributes to every trial.
        sampler = optuna.samplers.RandomSampler()
        return optuna.load_study(study_name=self.name, storage=self.storage, sampler=sampler)

    @property
    def settings(self) -> dict[str, str]:
        """Values common to all trials, by key."""
        return self.optuna_study.user_attrs["settings"]

    @property
    def target(self) -> int:
        """Number of points to try, the largest that a process has asked for."""
        return self.optuna_study.user_attrs[TARGET]

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

    def trial(self, number: int) -> Trial:
        """A trial by its number."""
        return _seen(self.storage.get_trial(self.trial_id(number)), self.space)

    def complete(self) -> list[Trial]:
        """The finished trials."""
        return [trial for trial in self.trials() if trial.state == "complete"]

    @property
    def no_selection(self) -> str:
        """Why no trial is selected, of all finished ones; empty where one is."""
        if not interpretable(self.settings):
            return CAUTION
        keys = self.space.of_problem
        return f"{', '.join(keys)} define{'s' if len(keys) == 1 else ''} the problem" if keys else ""

    def selected(self) -> Trial | None:
        """The trial of `objectives.selected`; None without a finished one, and with `no_selection`."""
        return None if self.no_selection else selected(self.complete(), self.objectives)

    def enqueue_once(self, point: Point, *, failed: bool) -> None:
        """Have a point tried before others, unless it is taken; an empty one is ignored.

        Args:
            point: of the grid.
            failed: whether points that have failed are tried once more, too.
        """
        with exclusive(self.url):
            trials = self.trials()
            points = {key_of(trial.point): trial.point for trial in trials}
            first = [point] if point and key_of(point) not in points else []
            others = {key_of(trial.point) for trial in trials if trial.state != "fail"}
            again = [points[key] for key in points if failed and key not in others]
            for one in first + again:
                self.optuna_study.enqueue_trial(one)

    def release_abandoned(self, rules: SweepConfig) -> None:
        """Make the trials of processes that have ended wait again; the caller holds the lock of the study.

        Args:
            rules: `attempts` after which a trial counts as failed, and `grace_seconds` without a heartbeat
                after which a process of another machine counts as ended.
        """
        for trial in self.trials():
            if trial.state == "running" and _is_abandoned(trial, rules.grace_seconds):
                ended = trial.notes.get("attempts", 0) >= rules.attempts
                if ended:
                    reason = f"its process ended {rules.attempts} times before it was done"
                    self._note_of(trial.number, reason=reason)
                release(self.storage, self.trial_id(trial.number), failed=ended)

    def enqueue_up_to(self, number: int, target: int, sampler: DictConfig) -> int:
        """Have up to `number` trials wait; the caller holds the lock of the study.

        Args:
            number: of trials.
            target: number of points to try, with those that are taken.
            sampler: `hydra.sweeper.sampler`, which proposes the points.

        Returns:
            How many wait, at most `number`; 0 where nothing remains.
        """
        study, trials = self.optuna_study, self.trials()
        waiting = sum(trial.state == "waiting" for trial in trials)
        taken = {key_of(trial.point) for trial in trials}
        while waiting < number and len(taken) < target:
            point = next_point(study, self.space, taken, sampler)
            study.enqueue_trial(point)
            taken.add(key_of(point))
            waiting += 1
        return min(waiting, number)

    def own(self, number: int) -> None:
        """Note that this process runs a trial."""
        attempts = self.trial(number).notes.get("attempts", 0) + 1
        self._note_of(number, attempts=attempts, heartbeat=time.time(), worker=this_process())

    def record(
        self, number: int, per_seed: Mapping[str, Sequence[float]] | None, notes: Mapping[str, Any]
    ) -> float | list[float] | None:
        """Record the result of a trial of this process, but for its state.

        Args:
            number: of the trial.
            per_seed: by objective one finite value per seed; None where the trial has failed.
            notes: stored with it, such as the `reason` of a failure.

        Returns:
            The value for the only objective, or one for each; None where the trial has failed.

        Raises:
            TakenOverError: if the trial belongs to another process now.
        """
        with exclusive(self.url):
            trial = self.trial(number)
            if (trial.state, trial.notes["worker"]) != ("running", this_process()):
                raise TakenOverError
            self._note_of(number, **notes)
            if per_seed is None:
                return None
            ended = replace(trial, per_seed=per_seed)
            std = {objective.measure: ended.std(objective) for objective in self.objectives}
            self._note_of(number, per_seed=dict(per_seed), std=std)
        values = [ended.mean(objective) for objective in self.objectives]
        return values if len(values) > 1 else values[0]

    def finish(self, number: int, value: float | list[float] | None) -> None:
        """End a trial with what `record` has returned: complete, or failed for None."""
        from optuna.trial import TrialState

        self.optuna_study.tell(number, value, TrialState.FAIL if value is None else TrialState.COMPLETE)

    @contextmanager
    def kept_alive(self, numbers: Sequence[int], grace_seconds: float) -> Iterator[None]:
        """Update the heartbeat of trials while the block runs."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(grace_seconds / BEATS_PER_GRACE):
                # The database may be away for a moment; there are several beats within the time of grace.
                with suppress(Exception), exclusive(self.url):
                    for number in numbers:
                        self._note_of(number, heartbeat=time.time())

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            ended.set()
            beating.join()

    def _note_of(self, number: int, **notes: Any) -> None:
        for key, value in notes.items():
            self.storage.set_trial_user_attr(self.trial_id(number), key, value)

    def trial_id(self, number: int) -> int:
        """The number of a trial among those of all studies of the database."""
        study_id = self.storage.get_study_id_from_name(self.name)
        return self.storage.get_trial_id_from_study_id_trial_number(study_id, number)


def study_names(url: str) -> list[str]:
    """Names of the studies of sweeps at `url`; none where the sqlite file does not exist yet."""
    location = address(url)
    if location.get_backend_name() == "sqlite" and not Path(str(location.database)).exists():
        return []
    import optuna  # slow

    every = optuna.get_all_study_summaries(open_storage(url))
    return sorted(study.study_name for study in every if TARGET in study.user_attrs)


def _seen(trial: FrozenTrial, space: Space) -> Trial:
    # A killed process may have stored a part of the parameters only.
    given = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    notes = dict(trial.user_attrs)
    per_seed = notes.pop("per_seed", {})
    point = {key: given[key] for key in space.values if key in given}
    return Trial(trial.number, trial.state.name.lower(), point, per_seed, notes)


def _is_abandoned(trial: Trial, grace_seconds: float) -> bool:
    worker = trial.notes.get("worker")
    if worker is None or time.time() - trial.notes["heartbeat"] > grace_seconds:
        return True
    # Between two batches this process runs none: its own name is that of an earlier process.
    return worker == this_process() or is_gone(worker)
