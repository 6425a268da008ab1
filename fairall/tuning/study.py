"""Studies in a database of Optuna: what was tried, and what is selected of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairall.display.format import CAUTION, interpretable, marked, mean_std
from fairall.errors import FairAllError
from fairall.runtime.credentials import complete, hidden
from fairall.storage.files import locked
from fairall.storage.identity import defines_problem
from fairall.tuning.objectives import DIRECTIONS, selected

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

STORAGE = "hydra.sweeper.storage="
DESCRIPTION = "fairall"
"""Attribute of a study: fields of `Study` that do not depend on trials."""
OUTCOME, AGAIN = "fairall.outcome", "fairall.again"
"""Attributes of a trial: its outcome, and that it repeats a failed one."""


@contextmanager
def usable() -> Iterator[None]:
    """Raise FairAllError in place of what Optuna and SQLAlchemy raise about a database."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError, ImportError, RuntimeError, ValueError) as error:
        raise FairAllError(unusable(error)) from error


@usable()
def storage_of(address: str | None) -> optuna.storages.RDBStorage:
    """The database of studies at `hydra.sweeper.storage`, with tables of Optuna.

    Raises:
        FairAllError: where it cannot be used.
    """
    import optuna

    if address is None or address.count("?") > 1:
        raise FairAllError(
            f"hydra.sweeper.storage={address} is not possible: a study is in a database, and one of sqlite "
            "in no folder with ? in its name; choose another with outputs_dir=FOLDER"
        )
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    whole = complete(address).replace("{", "{{").replace("}", "}}")  # which Optuna takes for a template
    file = file_of(address)
    # Of two processes that make Optuna's tables at once one would fail.
    with locked(file.parent, file.with_suffix(".lock")) if file else nullcontext():
        # Optuna 2 does not commit its tables with SQLAlchemy 2.
        optuna.storages.RDBStorage(whole, engine_kwargs={"isolation_level": "AUTOCOMMIT"})
        return optuna.storages.RDBStorage(whole)


def file_of(address: str) -> Path | None:
    """The file of a database of sqlite."""
    from sqlalchemy.engine import make_url

    return Path(str(make_url(address).database)) if address.startswith("sqlite") else None


@dataclass(frozen=True)
class Study:
    """The points that were tried.

    Attributes:
        name: of the study.
        objectives: minimize or maximize by measure, the most important first.
        settings: values by key that trials have in common, and what is tried by key.
        n_points: how many points there are; None with intervals.
        finished: the last trial of each point, in the order of their values; without failed ones.
        failed: the same of the points of which the last trial failed.
    """

    name: str
    objectives: Mapping[str, str]
    settings: Mapping[str, str]
    n_points: int | None
    finished: Sequence[FrozenTrial]
    failed: Sequence[FrozenTrial]

    @cached_property
    def seeds(self) -> Any:
        """Objectives of the finished trials by seed, grouped by the place of the trial in `finished`."""
        frames = [pd.DataFrame(trial.user_attrs[OUTCOME]["seeds"]) for trial in self.finished]
        return pd.concat(dict(enumerate(frames)))[[*self.objectives]].groupby(level=0)

    @property
    def costs(self) -> pd.DataFrame:
        """Means over seeds, so that less is better: a row per finished trial, a column per objective."""
        return self.seeds.mean() * [DIRECTIONS[direction] for direction in self.objectives.values()]

    @property
    def no_selection(self) -> str:
        """Why no trial is selected; empty where one is."""
        if not interpretable(self.settings.get("preset")):
            return CAUTION
        if not self.finished:
            return "no trial has finished"
        problem = [*filter(of_problem, self.finished[0].params)]
        return f"{problem[0]} defines the problem" if problem else ""

    @property
    def selected(self) -> int | None:
        """Place of the trial of `objectives.selected`; None with `no_selection`."""
        return None if self.no_selection else selected(self.costs, self.seeds.sem().fillna(0.0))

    @property
    def selection(self) -> str:
        """One line about the selected trial, or why there is none."""
        number = self.selected
        why = f"Nothing is selected: {self.no_selection}."
        return why if number is None else f"Selected: {line_of(self.finished[number])}"

    @property
    def standing(self) -> str:
        """Numbers of points, and of finished and failed ones."""
        counts = f"{len(self.finished)} finished, {len(self.failed)} failed"
        return marked(f"{self.n_points or 'any number of'} points, {counts}", self.settings.get("preset"))

    @property
    def pareto_set(self) -> list[int]:
        """Places of finished trials that no other beats in an objective without losing in another."""
        costs = self.costs
        return [
            place
            for place, cost in costs.iterrows()
            if not ((costs <= cost).all(axis=1) & (costs < cost).any(axis=1)).any()
        ]


def unusable(error: BaseException) -> str:
    """One line about an error of Optuna, or of the database below it."""
    reason = hidden(str(error.__cause__ or error).partition("\n")[0])
    return f"hydra.sweeper.storage: the database cannot be used: {reason:.200}"


def spreads(outcome: Mapping[str, Any]) -> dict[str, str]:
    """Mean ± standard deviation over seeds by measure; of one seed the mean alone."""
    seeds = pd.DataFrame(outcome["seeds"])
    return {
        measure: mean_std(column.mean(), column.std(), scale=1, digits=4) for measure, column in seeds.items()
    }


def line_of(trial: FrozenTrial) -> str:
    """One line about a trial with an outcome: its values, and its objectives or why it failed."""
    outcome = trial.user_attrs[OUTCOME]
    results = [outcome["reason"]] if "reason" in outcome else map(" ".join, spreads(outcome).items())
    return "  ".join([*words_of(trial.params), *results])


def words_of(point: Mapping[str, Any]) -> list[str]:
    """Words of the command line that set values by key, as Hydra's Optuna sweeper writes them."""
    return [f"{key}={value}" for key, value in point.items()]


def of_problem(key: str) -> bool:
    """Whether a key that is swept, or the method itself, defines the problem, so that nothing is selected."""
    return key == "model" or defines_problem(key.lstrip("+"))


@usable()
def load_studies(address: str, names: Sequence[str] = ()) -> list[Study]:
    """Studies of FairAll in a database, those named or all of them in the order of their names.

    Args:
        address: as in `storage_of`.
        names: of studies.

    Raises:
        FairAllError: where there is no study of a name, or the database cannot be used.
    """
    import optuna

    known: list[str] = []
    if not (file := file_of(address)) or file.exists():
        storage = storage_of(address)
        summaries = optuna.get_all_study_summaries(storage)
        known = sorted(study.study_name for study in summaries if DESCRIPTION in study.user_attrs)
    studies = []
    for name in names or known:
        if name not in known:
            raise FairAllError(f"{name}: no such study; there are {', '.join(known) or 'none yet'}")
        study = optuna.load_study(study_name=name, storage=storage)
        latest = {
            tuple(
                trial.distributions[key].to_internal_repr(value) for key, value in trial.params.items()
            ): trial
            for trial in study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
        }
        outcomes: dict[str, Any] = {"finished": [], "failed": []}
        for point in sorted(latest):
            failed = "reason" in latest[point].user_attrs[OUTCOME]
            outcomes["failed" if failed else "finished"].append(latest[point])
        studies.append(Study(name, **study.user_attrs[DESCRIPTION], **outcomes))
    return studies


def address_in(outputs: Path) -> str:
    """The address of the database of studies in a folder of outputs, as sweeps/_study.yaml has it."""
    return f"sqlite:///{outputs}/sweeps/studies.db?timeout=60"


@usable()
def record(name: str, address: str, words: Sequence[str], outcome: Mapping[str, Any]) -> str:
    """Keep the outcome of the running trials of a point; there are several where processes meet.

    Args:
        name: of the study.
        address: as in `storage_of`.
        words: of the command line, among them those that set the point.
        outcome: `seeds`, the values of each objective by seed, and `run`, the folder of the run below `runs`,
            if there is one; or `reason`, why the trial failed.

    Returns:
        One line about the trial.

    Raises:
        FairAllError: where the database cannot be used.
    """
    from optuna.trial import TrialState

    storage, line = storage_of(address), ""
    study = storage.get_study_id_from_name(name)
    for trial in storage.get_all_trials(study, states=(TrialState.RUNNING,)):
        if {*words_of(trial.params)} <= {*words}:
            number = storage.get_trial_id_from_study_id_trial_number(study, trial.number)
            with suppress(RuntimeError):  # the process whose trial it is has finished it
                storage.set_trial_user_attr(number, OUTCOME, dict(outcome))
            line = line_of(storage.get_trial(number))
    return line
