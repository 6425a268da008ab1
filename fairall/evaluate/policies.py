"""Target policies: their acceptance probabilities of the people of a log, and whom they were learnt from."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf.errors import OmegaConfBaseException

from fairall.config.schema import ScalerRows
from fairall.config.validation import checked_dataset
from fairall.data.own_table import OwnTable, OwnTableConfig
from fairall.decide.load import HERE, IN_MLFLOW, find_policy, saved_in
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.policy import Policy
from fairall.results.runs import load_result, run_folder
from fairall.tables.cells import listed, numbers_of, spelling, taken, words_of

LOGGED = "the logged decisions"
LEAST_HELD_OUT = 100  # rows that a policy is judged on where it was learnt from others of the log
MOST_ALIKE = 0.01  # share of rows equal to another one; with more, equal rows may be of different people


@dataclass(frozen=True)
class Target:
    """A policy to judge on a log of N people.

    Attributes:
        probability: of acceptance, shape (N,), in [0, 1].
        name: for tables.
        held_out: rows that the policy was not learnt from, shape (N,), bool; None where all rows count.
        notes: on the people that the policy was learnt from, a sentence each.
        logged: whether its decisions are the logged ones.
    """

    probability: np.ndarray
    name: str
    held_out: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    logged: bool = False

    def rows(self, chosen: np.ndarray) -> Target:
        """The same for some of the rows, shape (N,), bool."""
        return replace(self, probability=self.probability[chosen])


def target_policy(
    policy: Any, log: DecisionLog, *, config: dict[str, Any] = HERE, modules: Collection[str] = ()
) -> Target:
    """A policy with its acceptance probabilities and the rows of the log that it can be judged on.

    A policy looks better than it is on people whom it was learnt from. Those of a finished run with
    `dataset=csv` are found in its data file, see `_learnt_from`; of other policies a note says that they
    cannot be told.

    A run has a policy for every seed; the mean over seeds is the policy that draws a seed at random for each
    person, and then decides.

    Args:
        policy: one of, in this order of precedence:
            - None: the policy that took the logged decisions;
            - array of probabilities, shape (N,);
            - `fairall.policy.Policy`;
            - object with `predict_proba`, which gets the columns in its `feature_names_in_`, all if it has
              none, as numbers where all values are, and whose last class is acceptance;
            - function of such a DataFrame of all columns, which returns probabilities, shape (N,);
            - name of a column of the log, with probabilities or with the two values of its decisions;
            - address of a saved policy in MLflow, as of `fairall.load_policy`;
            - folder of a finished run, or of a saved policy;
            - beginning of the id of a run.
        log: the people.
        config: see `decide.load.find_policy`.
        modules: see `fairall.load_policy`.

    Raises:
        FairAllError: if there is no such policy, the log lacks columns that it needs, it gives no
            probabilities, or too few rows are left that it was not learnt from.
    """
    if policy is None:
        return Target(log.accepted.astype(float), LOGGED, logged=True)
    probability, name, run = _given(policy, log, config, modules)
    if (probability == log.accepted).all():
        return Target(probability, name, logged=True)
    learnt, reason = None, ""
    try:
        learnt = None if run is None else _learnt_from(run, log)
    except (FairAllError, OmegaConfBaseException) as error:
        reason = " ({})".format(str(error).split("\n")[0])
    if learnt is None:
        note = f"whether {name} was learnt from people of this log cannot be told{reason}"
        return Target(probability, name, notes=(f"{note}; if it was, its estimates are too good",))
    if not learnt.any():
        return Target(probability, name)
    held_out = ~learnt
    n = held_out.sum()
    known = f"policy {name} was learnt from {learnt.sum()} of the log's {len(log)} rows"
    lacking = f"are too few: at least {LEAST_HELD_OUT} are needed" if n < LEAST_HELD_OUT else None
    if log.revealed.any() and not log.revealed[held_out].any():
        lacking = "have no label"
    if lacking is not None:
        raise FairAllError(
            f"{known}, on which it looks better than it is, and the other {n} {lacking}; give a log of other "
            "people"
        )
    note = f"{known}, as training or validation rows, and is judged on the other {n} only"
    return Target(probability, name, held_out, (note,))


def _given(
    policy: Any, log: DecisionLog, config: dict[str, Any], modules: Collection[str]
) -> tuple[np.ndarray, str, Path | None]:
    """Probabilities (N,), name, and folder of its run if it was given by that; see `target_policy`."""
    name, run = "", None
    if isinstance(policy, str | Path):
        if str(policy) in log.raw:
            return _of_column(log.raw[str(policy)], log), str(policy), None
        policy, name, run = _saved(str(policy), log, config, modules)
    give: Callable[[], Any]
    if isinstance(policy, Policy):
        name, give = name or type(policy.learner).__name__, lambda: policy.propensity(log.raw).mean(0)
    elif hasattr(policy, "predict_proba"):
        name, give = type(policy).__name__, lambda: _predicted(policy, log)
    elif callable(policy):
        name = getattr(policy, "__name__", type(policy).__name__)
        give = partial(policy, _with_numbers(log.raw))
    else:
        name, give = str(getattr(policy, "name", None) or "array"), lambda: policy
    return _accepts(give, log, name), name, run


def _saved(
    word: str, log: DecisionLog, config: dict[str, Any], modules: Collection[str]
) -> tuple[Policy, str, Path | None]:
    """The policy of a run, a folder or an address that the user named, its name, and the folder of the run.

    There is no such folder for an address, or for a policy outside of the folder of its run.
    """
    if word.startswith(IN_MLFLOW):
        return *find_policy(word, config, modules), None
    runs = Path(config["outputs_dir"]) / "runs"
    try:
        path = run_folder(word, runs)
    except FairAllError as error:
        if Path(word).exists() or "no such run" not in str(error):
            raise FairAllError(f"policy {error}") from error
        close = difflib.get_close_matches(word, list(log.raw), n=1)
        hint = f"; did you mean the column {close[0]}?" if close else ""
        what = "neither a column of the log, nor a folder, nor the id of a run"
        raise FairAllError(f"policy {word}: {what} in {runs}{hint}") from error
    run = path.parent if path.name == "policy" else path
    return *saved_in(path, modules), run if (run / "DONE").exists() else None


def _learnt_from(folder: Path, log: DecisionLog) -> np.ndarray:
    """The rows of the log that a finished run learnt from, shape (N,), bool.

    These are training and validation rows, on which hyperparameters may have been chosen. All seeds have the
    same. Rows are those of the run's file at the same positions if the tables are equal, else the rows equal
    to one of the file, in all columns of both but those of the outcome, which may have been completed since.

    The path of the file is in the folder of the run, which may be a stranger's. The file is read from this
    machine, as a table of `dataset=csv`, and nothing of it is shown but how many rows are equal. For policies
    that come without the folder of a run nothing is read.

    Raises:
        FairAllError: with a reason, where that cannot be told.
    """
    run = load_result(folder)
    if run.config["dataset"].get("_target_") != f"{OwnTable.__module__}.{OwnTable.__qualname__}":
        raise FairAllError(f"its data set, {run.name('dataset')}, is no file of dataset=csv")
    config = checked_dataset(run.config)
    assert isinstance(config, OwnTableConfig)
    if run.config.get("splits", 1) > 1:
        raise FairAllError("it was learnt with several splits, so that every row was a training row of some")
    source = OwnTable(config)
    try:
        fingerprint = source.prepare(scaler=ScalerRows[run.config["protocol"]["scaler"]]).fingerprint()
    except FairAllError as error:
        raise FairAllError(f"its data, {config.path}, cannot be read any more") from error
    if run.fingerprint != fingerprint:
        raise FairAllError(f"its data, {config.path}, are no longer those that it was learnt from")
    of_run = source.applicants.cells
    learnt = np.ones(len(of_run), dtype=bool)
    learnt[source.splits.test] = False

    outcome = (config.label, config.decision, config.propensity, config.split.column)
    rows = np.zeros(len(log) + len(of_run), dtype=np.uint64)
    for name in of_run:
        if name in log.cells and name not in outcome:
            cells = np.concatenate([_spelt(log.cells[name]), _spelt(of_run[name])])
            rows = rows * np.uint64(1_000_003) + pd.util.hash_array(cells)
    in_log, in_run = np.split(rows, [len(log)])
    if np.array_equal(in_log, in_run):
        return learnt
    if pd.Series(in_run).duplicated(keep=False).mean() > MOST_ALIKE:
        raise FairAllError(
            f"its data, {config.path}, have many equal rows, so that people cannot be told apart"
        )
    return np.isin(in_log, in_run[learnt])


def _accepts(probabilities: Callable[[], Any], log: DecisionLog, name: str) -> np.ndarray:
    """What a policy gives, checked, shape (N,)."""
    try:
        values = np.asarray(probabilities(), dtype=float)
    except FairAllError as error:
        raise FairAllError(f"policy {name}: {error}") from error
    except (TypeError, ValueError, KeyError) as error:  # of a user's object
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise FairAllError(f"policy {name} gives no probabilities of this log ({reason})") from error
    if values.shape != (len(log),):
        raise FairAllError(
            f"policy {name} gives an array of shape {values.shape}; it must be ({len(log)},), a probability "
            "for each row of the log"
        )
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise FairAllError(
            f"policy {name}, row {int(wrong.argmax()) + 1}: {values[wrong.argmax()]:g} is no probability, a "
            "number from 0 to 1"
        )
    return values


def _of_column(column: pd.Series, log: DecisionLog) -> np.ndarray:
    """Probabilities or decisions in a column of the log, shape (N,)."""
    rejection, acceptance = map(spelling, log.decision_values)
    codes, words = words_of(column)
    spelt = [spelling(word) for word in words]
    if set(spelt) <= {rejection, acceptance} and (codes >= 0).all():
        return np.array([value == acceptance for value in spelt], dtype=float)[codes]
    numbers = column.to_numpy(dtype=float) if column.dtype == bool else numbers_of(column)
    if np.isnan(numbers).any():
        values = listed(list(words), "value")
        missing = " and empty cells" if (codes < 0).any() else ""
        raise FairAllError(
            f"policy {column.name}: the column has {values}{missing}; it must hold probabilities from 0 to "
            f"1, or decisions as in {log.decision!r}, {' or '.join(log.decision_values)}"
        )
    return _accepts(lambda: numbers, log, str(column.name))


def _predicted(policy: Any, log: DecisionLog) -> np.ndarray:
    needed = list(getattr(policy, "feature_names_in_", log.raw.columns))
    lacking = [column for column in needed if column not in log.raw]
    if lacking:
        raise FairAllError(f"it needs {listed(lacking, 'column')} that the log lacks")
    return np.asarray(policy.predict_proba(_with_numbers(log.raw[needed])))[:, -1]


def _with_numbers(raw: pd.DataFrame) -> pd.DataFrame:
    """The columns, those of text as numbers where all their values are; missing ones are NaN."""
    columns = {}
    for name, column in raw.items():
        columns[name] = column
        if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype):
            numbers = numbers_of(column) + 0.0  # turns −0 into 0
            words = (np.isnan(numbers) & column.notna().to_numpy()).any()
            columns[name] = column.astype(object) if words else numbers
    return pd.DataFrame(columns, index=raw.index)


def _spelt(column: pd.Series) -> np.ndarray:
    """Cells by their `spelling`, as text, shape (N,)."""
    codes, words = words_of(column)
    spelt = [one + 0.0 if isinstance(one := spelling(word), float) else one for word in words]  # −0 is 0
    return taken(np.array(list(map(str, spelt)), dtype=object), codes, "")
