"""A policy learnt offline from a log of decisions in a DataFrame, ready for time steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch

from fairall.config.checks import require
from fairall.config.compose import compose_config
from fairall.config.schema import Config
from fairall.config.words import words_of
from fairall.data.dataset import Dataset
from fairall.data.own_table import WholeLog
from fairall.data.prepared import PreparedData
from fairall.display.progress import Display
from fairall.errors import FairAllError, one_line
from fairall.experiment import job, prepare
from fairall.live.state import packed, unpacked
from fairall.live.versions import Version, after_warm_up
from fairall.policy import Policy
from fairall.storage.files import damaged, write_sums
from fairall.tables.cells import spelling

POLICY, STATE, ABOUT = "policy", "state.safetensors", "estimator.json"
WEIGH_LABELS = "parity_stacked, stacked, ensemble, parity_ensemble, greedy, fairlog, unfairlog or estimator"


def learn(
    log: pd.DataFrame,
    columns: Mapping[str, str],
    words: Sequence[str],
    *,
    group: str | None = None,
    kinds: Mapping[str, str] | None = None,
    weight: np.ndarray | None = None,
    estimator: Mapping[str, Any] | None = None,
) -> tuple[Version, PreparedData]:
    """Phase I on everybody (section 4.1), then the warm-up on the whole log with its propensities.

    Args:
        log: a row for each person; its columns without a role are features.
        columns: names of the columns `label`, of 1 and 0, and perhaps `decision` and `propensity`.
        words: of a run, without the data set.
        group: column of the sensitive attribute; None: everybody is of one group.
        kinds: as of `dataset=csv`.
        weight: factor of the loss of each label, shape (N,); None: 1.
        estimator: value of `model.estimator`; None: that of the words.

    Raises:
        FairAllError: where a word is not possible, the log has faults, or the method takes no weights.
    """
    keys: dict[str, Any] = {"path": "X", "positive": "1", "sensitive": group or "", **columns}
    if group is not None:
        words_of_groups = {str(spelling(value)): str(value) for value in log[group].dropna().unique()}
        keys["groups"] = [word for _, word in sorted(words_of_groups.items())]
        if len(keys["groups"]) < 2:
            raise FairAllError(
                f"column {group!r}: everybody is of one group; leave the sensitive attribute out"
            )

    def whole(source: Dataset, config: Config) -> PreparedData:
        source.config.kinds = dict(kinds or {})
        data = prepare(WholeLog(source.config, log, weighted=weight is not None), config)
        if weight is None:
            return data
        model = config.model
        require(model.target.weighs_labels, "model", model.name, f"{WEIGH_LABELS}, to take sample_weight")
        weights = torch.tensor(weight[data.pool_table.x.index], dtype=torch.float32)
        return replace(data, sample_weight=weights.expand(config.seeds, -1))

    with TemporaryDirectory() as folder:
        given = {"schedule.warm_up_applicants": max(len(log), 64), "outputs_dir": folder, "dataset": keys}
        fixed = ("dataset=csv", "initial_policy=logged", "tracking.enabled=false")
        composed = compose_config(*fixed, *words_of(given), *words)
        if estimator is not None:  # a word would turn 1.0 into 1
            composed.model.estimator = estimator
        task = job(composed, whole)
        return after_warm_up(task, Display(progress_only=True, silent=True)), task.data


def step(
    version: Version, people: pd.DataFrame, label: np.ndarray, accepted: np.ndarray, p: np.ndarray | None
) -> Version:
    """The version after a time step of the method; `version` is no longer to be used.

    Args:
        version: that has learnt before.
        people: all who were decided on, a row for each of N.
        label: 1 or 0, NaN where it is unknown, shape (N,).
        accepted: who was, shape (N,), bool; without a label they count as rejected.
        p: with which probability, shape (N,); None: 1 for the accepted.

    Raises:
        FairAllError: where a column is missing or holds an invalid value.
    """
    taken = accepted & ~np.isnan(label)
    columns = np.nan_to_num(taken if p is None else p), taken, np.where(taken, label, 0)
    return version.learnt([version.decided(*version.policy.encoded(people), *columns)])


def save(version: Version, folder: Path, about: str) -> None:
    """Write policy, state of training and a text about them into a folder, and the sums of the last two.

    The text is part of the state, and beside it for whoever looks into the folder.
    """
    (folder / POLICY).mkdir(parents=True, exist_ok=True)
    version.policy.save(folder / POLICY, version.config)
    (folder / ABOUT).write_bytes(about.encode())
    (folder / STATE).write_bytes(packed({"training": version.training, "about": about}))
    write_sums(folder / "SUMS", [STATE, ABOUT])


def load(folder: Path, *, modules: Collection[str] = ()) -> tuple[Version, str]:
    """What `save` wrote: the version, and the text about it in the state; no code of it is run.

    Raises:
        FairAllError: where a file is missing, damaged or edited, or the method's module may not be imported.
    """
    if damaged(folder / "SUMS", among=(STATE, ABOUT)):
        raise FairAllError(f"{folder} holds no estimator, or a damaged one: save it anew")
    version = Version.of(Policy.load(folder / POLICY, modules=modules))
    with one_line(f"{folder}: its state cannot be read: save it anew"):
        state = unpacked((folder / STATE).read_bytes())
        return version.restore(state["training"]), state["about"]
