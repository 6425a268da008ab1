"""Studies in MLflow: one parent run for the study and a nested run for each trial."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from omegaconf import DictConfig, OmegaConf

from fairall.config.compose import plain_tracking
from fairall.results.interpretable import marked
from fairall.runtime.process import is_gone, this_process
from fairall.tracking.page import PRESET_TAG
from fairall.tracking.store import (
    KIND_TAG,
    PROCESS_TAG,
    Store,
    UnreachableError,
    allowed,
    reaching,
    source_tags,
)
from fairall.tuning.objectives import Trial
from fairall.tuning.study import SharedStudy


class SweepTracker:
    """MLflow runs of one study, shared by all processes that work on it.

    A sweep continues while MLflow is unreachable; trials that were not logged are logged when the sweep is
    started again, with the values of their objectives only.

    Args:
        config: of a trial, as plain containers; `tracking` has the store and whether to log.
        study: the study.
    """

    def __init__(self, config: dict[str, Any], study: SharedStudy) -> None:
        self._config = config
        self._study = study
        self._store: Store | None = None
        self._enabled = bool(config["tracking"]["enabled"])
        self._preset = {PRESET_TAG: config["preset"]} if config["preset"] else {}
        self._log(self._begin)

    @classmethod
    @contextmanager
    def following(cls, config: DictConfig, study: SharedStudy) -> Iterator[SweepTracker]:
        """Log a study while this process works on it.

        Args:
            config: of a trial.
            study: the study.

        Raises:
            FairAllError: where `tracking.uri` is not a possible MLflow store.
        """
        plain = cast(dict[str, Any], OmegaConf.to_container(config, enum_to_str=True))
        tracker = cls(plain | {"tracking": plain_tracking(config)}, study)
        try:
            yield tracker
        except BaseException as error:
            tracker._end("FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        if not any(trial.state == "running" for trial in study.trials()):
            tracker._end("FINISHED")

    def log_trial(self, trial: Trial, measures: dict[str, list[float | None]]) -> None:
        """Log a finished trial: its point and its measures over seeds, or the reason of its failure."""
        self._log(lambda store: self._log_trial(store, trial, measures))

    def log_selected(self, chosen: Trial | None) -> None:
        """Log which trial is selected, if one is."""
        if chosen is not None:
            self._log(lambda store: self._log_selected(store, chosen))

    def _log(self, write: Callable[[Store], None]) -> None:
        """Log to MLflow, and stop trying after the first failure."""
        if not self._enabled:
            return

        def connected() -> None:
            self._store = self._store or Store(self._config)
            write(self._store)

        try:
            reaching(self._config, connected)
        except UnreachableError as error:
            self._enabled = False
            print(
                f"Warning: {error}. The sweep continues; start it again to log the missing trials to MLflow."
            )

    def _begin(self, store: Store) -> None:
        study = self._study
        key = f"mlflow_run {store.experiment}"
        self._parent = study.note(key, lambda: self._create_parent(store))
        if store.run(self._parent) is None:  # the database was lost, or is another
            self._parent = study.note(key, lambda: self._create_parent(store), anew=True)
        store.client.set_tag(self._parent, PROCESS_TAG, this_process())
        store.client.update_run(self._parent, status="RUNNING")
        nested = store.nested(self._parent)
        for unfinished in [run for run in nested if run.info.status in ("RUNNING", "KILLED")]:
            if is_gone(unfinished.data.tags.get(PROCESS_TAG, "")):
                store.delete(unfinished)
                nested.remove(unfinished)
        logged = {run.data.tags.get("mlflow.runName") for run in nested}
        for trial in study.trials():
            # Living processes log their trials themselves.
            done = trial.state in ("complete", "fail") and is_gone(trial.notes.get("worker", ""))
            if done and _name(trial) not in logged:
                self._log_trial(store, trial, dict(trial.per_seed))

    def _log_trial(self, store: Store, trial: Trial, measures: Mapping[str, Sequence[float | None]]) -> None:
        from mlflow.entities import Metric, Param

        client, now = store.client, int(time.time() * 1000)
        tags = {
            "mlflow.parentRunId": self._parent,
            "mlflow.runName": _name(trial),
            PROCESS_TAG: this_process(),
        } | {f"fairall.{key}": str(trial.notes[key]) for key in ("reason", "run") if key in trial.notes}
        tags |= self._preset
        nested = client.create_run(store.experiment, tags=tags).info.run_id
        known = {name: np.array(values, float) for name, values in measures.items()}
        known = {name: values for name, values in known.items() if np.isfinite(values).all()}
        means = {name: values.mean() for name, values in known.items()}
        spread = {f"{name}.std": values.std(ddof=1) for name, values in known.items() if len(values) > 1}
        metrics = [Metric(allowed(name), float(value), now, 0) for name, value in (means | spread).items()]
        metrics += [
            Metric(allowed(f"{objective.measure}.by_seed"), float(value), now, k)
            for objective in self._study.objectives
            for k, value in enumerate(trial.per_seed.get(objective.measure, ()))
        ]
        params = [Param(allowed(key), str(value)) for key, value in trial.point.items()]
        client.log_batch(nested, metrics=metrics, params=params)
        client.set_terminated(nested, "FINISHED" if trial.state == "complete" else "FAILED")

    def _log_selected(self, store: Store, chosen: Trial) -> None:
        store.client.set_tag(self._parent, "fairall.selected_trial", str(chosen.number))
        for objective in self._study.objectives:
            name = f"selected.{allowed(objective.measure)}"
            store.client.log_metric(self._parent, name, chosen.mean(objective))

    def _create_parent(self, store: Store) -> str:
        from mlflow.entities import Param

        study = self._study
        tags = source_tags() | {
            "mlflow.runName": marked(f"sweep {study.name}", self._config),
            KIND_TAG: "sweep",
            "fairall.study": study.name,
        }
        tags |= self._preset
        tags["fairall.objectives"] = ", ".join(map(str, study.objectives))
        parent = store.client.create_run(store.experiment, tags=tags).info.run_id
        settings = study.settings | {key: str(list(values)) for key, values in study.space.values.items()}
        params = [Param(allowed(key), value[:500]) for key, value in settings.items()]
        store.client.log_batch(parent, params=params)
        return parent

    def _end(self, status: str) -> None:
        self._log(lambda store: store.client.set_terminated(self._parent, status))


def _name(trial: Trial) -> str:
    return f"trial {trial.number}"
