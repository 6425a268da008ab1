"""Target policies: their acceptance probabilities of the people of a log."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairall.data.cells import listed, numbers_of
from fairall.data.features import spelling
from fairall.decide.load import HERE, IN_MLFLOW, find_policy, saved_in
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.policy import Policy
from fairall.results.finished import run_folder


def target_probabilities(
    policy: Any, log: DecisionLog, *, config: dict[str, Any] = HERE, modules: Collection[str] = ()
) -> tuple[np.ndarray, str]:
    """Acceptance probabilities of a policy that the log's decisions did not follow, and its name.

    A run has a policy for every seed; the mean over seeds is the policy that draws a seed at random for each
    person, and then decides.

    Args:
        policy: one of, in this order of precedence:
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

    Returns:
        Shape (N,), in [0, 1], and a name for tables.

    Raises:
        FairAllError: if there is no such policy, the log lacks columns that it needs, or it gives no
            probabilities.
    """
    if isinstance(policy, str | Path):
        word = str(policy)
        if word in log.raw:
            return _of_column(log.raw[word], log), word
        saved, name = _saved(word, log, config, modules)
        return _accepts(lambda: saved.propensity(log.raw).mean(0), log, name), name
    if isinstance(policy, Policy):
        name = type(policy.learner).__name__
        return _accepts(lambda: policy.propensity(log.raw).mean(0), log, name), name
    if hasattr(policy, "predict_proba"):
        name = type(policy).__name__
        return _accepts(lambda: _predicted(policy, log, name), log, name), name
    if callable(policy):
        name = getattr(policy, "__name__", type(policy).__name__)
        return _accepts(lambda: policy(_with_numbers(log.raw)), log, name), name
    name = str(getattr(policy, "name", None) or "array")
    return _accepts(lambda: policy, log, name), name


def _saved(
    word: str, log: DecisionLog, config: dict[str, Any], modules: Collection[str]
) -> tuple[Policy, str]:
    """The policy of a run, a folder or an address that the user named, and its name."""
    if word.startswith(IN_MLFLOW):
        return find_policy(word, config, modules)
    runs = Path(config["outputs_dir"]) / "runs"
    try:
        path = run_folder(word, runs)
    except FairAllError as error:
        if not Path(word).exists() and "no such run" in str(error):
            close = difflib.get_close_matches(word, list(log.raw), n=1)
            hint = f"; did you mean the column {close[0]}?" if close else ""
            raise FairAllError(
                f"policy {word}: neither a column of the log, nor a folder, nor the id of a run in "
                f"{runs}{hint}"
            ) from error
        raise FairAllError(f"policy {error}") from error
    return saved_in(path, modules)


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
    codes, distinct = pd.factorize(column)
    spelt = [spelling(value) for value in distinct]
    if set(spelt) <= {rejection, acceptance} and (codes >= 0).all():
        return np.array([value == acceptance for value in spelt], dtype=float)[codes]
    numbers = numbers_of(column)
    if np.isnan(numbers).any():
        values = listed([str(value) for value in distinct], "value")
        missing = " and empty cells" if (codes < 0).any() else ""
        raise FairAllError(
            f"policy {column.name}: the column has {values}{missing}; it must hold probabilities from 0 to "
            f"1, or decisions as in {log.decision!r}, {' or '.join(log.decision_values)}"
        )
    return _accepts(lambda: numbers, log, str(column.name))


def _predicted(policy: Any, log: DecisionLog, name: str) -> np.ndarray:
    needed = list(getattr(policy, "feature_names_in_", log.raw.columns))
    lacking = [column for column in needed if column not in log.raw]
    if lacking:
        raise FairAllError(f"it needs {listed(lacking, 'column')} that the log lacks")
    return np.asarray(policy.predict_proba(_with_numbers(log.raw[needed])))[:, -1]


def _with_numbers(raw: pd.DataFrame) -> pd.DataFrame:
    """The columns, those of text as numbers where all their values are; missing ones are NaN."""
    columns = {}
    for name in raw:
        column, numbers = raw[name], None
        if column.dtype == object:
            numbers = numbers_of(column)
        all_numbers = numbers is not None and not (np.isnan(numbers) & column.notna().to_numpy()).any()
        columns[name] = numbers if all_numbers else column
    return pd.DataFrame(columns, index=raw.index)
