"""Saved policies and runs as target policies: the one door from evaluation to torch and configurations."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from fairall.config.compose import checked_node
from fairall.config.schema import Config
from fairall.config.words import nearest
from fairall.data.own_table import OwnTable
from fairall.decide.load import IN_MLFLOW, find_policy, saved_in
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.policy import Policy
from fairall.results.runs import load_result, run_folder
from fairall.tables.cells import spelling

OWN_TABLE = "fairall.data.own_table.OwnTable"  # the data set dataset=csv


def saved_policy(
    word: str,
    log: DecisionLog,
    *,
    outputs_dir: str | Path = "outputs",
    tracking_uri: str | None = None,
    modules: Collection[str] = (),
) -> tuple[Policy, str, np.ndarray | None, str]:
    """The policy of a run, a folder or an address that the user named.

    Args:
        word: by which the user named it.
        log: whose rows it may have learnt from, and whose columns it may have been meant to be.
        outputs_dir: where runs are looked for.
        tracking_uri: address of MLflow; None for MLFLOW_TRACKING_URI, else the store in `outputs_dir`.
        modules: of methods that may be imported, see `fairall.load_policy`.

    Returns:
        The policy, its name, the rows that it did not learn from (`not_learnt_from`), None where that cannot
        be told, and why.

    Raises:
        FairAllError: as `fairall.load_policy`.
    """
    if word.startswith(IN_MLFLOW):
        return *find_policy(word, Config.of_places(outputs_dir, tracking_uri), modules), None, ""
    try:
        path = run_folder(word, Path(outputs_dir) / "runs")
    except FairAllError as error:
        hint = nearest(word, list(log.raw))
        raise FairAllError(f"policy {error}; the log has no such column{hint}") from error
    policy, name = saved_in(path, modules)
    try:
        return policy, name, not_learnt_from(path.parent if path.name == "policy" else path, log), ""
    except FairAllError as error:
        return policy, name, None, f" ({error})"


def not_learnt_from(folder: Path, log: DecisionLog) -> np.ndarray:
    """The rows of the log that a finished run did not learn from, shape (N,), bool.

    It learnt from training and validation rows, on which hyperparameters may have been chosen. All seeds have
    the same. They are known where the log has the rows of the run's file in the same order, equal in all
    columns of both but those of the outcome, which may have been completed since.

    The path of the file is in the folder of the run, which may be a stranger's. The file is read from this
    machine, as a table of `dataset=csv`, and nothing of it is shown but whether its rows are equal. For
    policies that come without the folder of a run nothing is read.

    Raises:
        FairAllError: with a reason, where that cannot be told.
    """
    run = load_result(folder)
    if run.config.dataset["_target_"] != OWN_TABLE or run.config.splits > 1:
        raise FairAllError("it was not learnt from one split of a file, dataset=csv")
    config = checked_node({"dataset": run.config.dataset}, "dataset")
    source, fingerprint = OwnTable(config), None
    with suppress(FairAllError):
        fingerprint = source.prepare(scaler=run.config.protocol.scaler).fingerprint()
    if run.fingerprint != fingerprint:
        raise FairAllError(f"its data, {config.path}, are no longer those that it was learnt from")
    cells, outcome = source.applicants.cells, (config.label, config.decision, config.propensity)
    shared = log.cells.columns.intersection(cells.columns).difference([*outcome, config.split.column])
    if shared.empty or not _spelt(cells[shared]).equals(_spelt(log.cells[shared])):
        raise FairAllError(f"the rows of the log are not those of its data, {config.path}, in their order")
    return np.isin(np.arange(len(log)), source.splits.test)


def _spelt(cells: pd.DataFrame) -> pd.DataFrame:
    return cells.astype(str).map(spelling)
