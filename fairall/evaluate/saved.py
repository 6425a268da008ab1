"""Saved policies and runs as target policies: the one door from evaluation to torch and configurations."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pandas as pd

from fairall.config.compose import checked_node
from fairall.config.schema import Config
from fairall.data.own_table import OwnTable, OwnTableConfig
from fairall.decide.load import IN_MLFLOW, find_policy, saved_in
from fairall.decide.rules import Rule
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.policy import Policy
from fairall.results.runs import load_result, run_folder
from fairall.tables.cells import spelling, taken, words_of

MOST_ALIKE = 0.01  # share of rows equal to another one; with more, equal rows may be of different people


def saved_policy(
    word: str,
    log: DecisionLog,
    *,
    outputs_dir: str | Path = "outputs",
    tracking_uri: str | None = None,
    modules: Collection[str] = (),
) -> tuple[Policy, str, Path | None]:
    """The policy of a run, a folder or an address that the user named, its name, and the folder of the run.

    There is no such folder for an address, or for a policy outside of the folder of its run.

    Args:
        word: by which the user named it.
        log: whose columns it may have been meant to be, for the message.
        outputs_dir: where runs are looked for.
        tracking_uri: address of MLflow; None for MLFLOW_TRACKING_URI, else the store in `outputs_dir`.
        modules: of methods that may be imported, see `fairall.load_policy`.

    Raises:
        FairAllError: as `fairall.load_policy`.
    """
    if word.startswith(IN_MLFLOW):
        return *find_policy(word, Config.of_places(outputs_dir, tracking_uri), modules), None
    runs = Path(str(outputs_dir)) / "runs"
    try:
        path = run_folder(word, runs)
    except FairAllError as error:
        if "no such run" not in str(error):
            raise FairAllError(f"policy {error}") from error
        close = difflib.get_close_matches(word, list(log.raw), n=1)
        hint = f"; did you mean the column {close[0]}?" if close else ""
        what = "neither a column of the log, nor a folder, nor the id of a run"
        raise FairAllError(f"policy {word}: {what} in {runs}{hint}") from error
    run = path.parent if path.name == "policy" else path
    return *saved_in(path, modules), run if (run / "DONE").exists() else None


def learnt_from(folder: Path, log: DecisionLog) -> np.ndarray:
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
    if run.config.dataset["_target_"] != f"{OwnTable.__module__}.{OwnTable.__qualname__}":
        raise FairAllError(f"its data set, {run.name('dataset')}, is no file of dataset=csv")
    config: OwnTableConfig = checked_node({"dataset": run.config.dataset}, "dataset")
    if run.config.splits > 1:
        raise FairAllError("it was learnt with several splits, so that every row was a training row of some")
    source = OwnTable(config)
    try:
        fingerprint = source.prepare(scaler=run.config.protocol.scaler).fingerprint()
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


def deciding(policy: Policy, log: DecisionLog, draw: int | None) -> tuple[Callable[[], np.ndarray], str]:
    """A function that gives a policy's acceptance probabilities, shape (N,), and its rule in words."""
    rule = Rule(policy.threshold, draw)
    return lambda: rule.acceptance(policy.decision_proba(log.raw)[:, 1]), rule.told()


def _spelt(column: pd.Series) -> np.ndarray:
    """Cells by their `spelling`, as text, shape (N,)."""
    codes, words = words_of(column)
    return taken(np.array([str(spelling(word)) for word in words], dtype=object), codes, "")
