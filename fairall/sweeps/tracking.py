"""A sweep in MLflow: one parent run for the study, whoever works on it, and a nested run for each trial."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from omegaconf import DictConfig, OmegaConf

from fairall.processes import this_process
from fairall.sweeps.objectives import Judged
from fairall.sweeps.study import SharedStudy, Trial
from fairall.tracking.store import PROCESS_TAG, Store, allowed, reaching


class SweepTracker:
    """The records of one study; begun by the first process that works on it, gone on with by the others.

    Args:
        store: None where tracking is off: then nothing is recorded.
        study: the study.
    """

    def __init__(self, store: Store | None, study: SharedStudy) -> None:
        self._store = store
        self._study = study
        if store is not None:
            self._parent = study.note(f"mlflow_run {store.experiment}", lambda: self._create_parent(store))
            store.client.set_tag(self._parent, PROCESS_TAG, this_process())
            store.client.update_run(self._parent, status="RUNNING")

    @classmethod
    @contextmanager
    def following(cls, config: DictConfig, study: SharedStudy) -> Iterator[SweepTracker]:
        """The records of a study while this process works on it.

        Args:
            config: of a trial.
            study: the study.

        Raises:
            FairAllError: where MLflow cannot be reached.
        """
        if not config.tracking.enabled:
            yield cls(None, study)
            return
        plain = cast(dict[str, Any], OmegaConf.to_container(config))
        tracker = reaching(plain, lambda: cls(Store(plain), study))
        try:
            yield tracker
        except BaseException as error:
            tracker._end("FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        if not any(trial.state == "running" for trial in study.trials()):
            tracker._end("FINISHED")

    def log_trial(self, trial: Trial, figures: dict[str, list[float | None]]) -> None:
        """A finished trial: its point, its figures with their spread over seeds, or why there are none."""
        if self._store is None:
            return
        from mlflow.entities import Metric, Param

        client, now = self._store.client, int(time.time() * 1000)
        tags = {
            "mlflow.parentRunId": self._parent,
            "mlflow.runName": f"trial {trial.number}",
            PROCESS_TAG: this_process(),
        } | {f"fairall.{key}": str(trial.notes[key]) for key in ("reason", "run") if key in trial.notes}
        nested = client.create_run(self._store.experiment, tags=tags).info.run_id
        known = {name: np.array(values, float) for name, values in figures.items()}
        known = {name: values for name, values in known.items() if np.isfinite(values).all()}
        means = {name: values.mean() for name, values in known.items()}
        spread = {f"{name}.std": values.std(ddof=1) for name, values in known.items() if len(values) > 1}
        metrics = [Metric(allowed(name), float(value), now, 0) for name, value in (means | spread).items()]
        metrics += [
            Metric(allowed(f"{objective.figure}.by_seed"), float(value), now, k)
            for objective in self._study.objectives
            for k, value in enumerate(trial.per_seed.get(objective.figure, ()))
        ]
        params = [Param(allowed(key), str(value)) for key, value in trial.point.items()]
        client.log_batch(nested, metrics=metrics, params=params)
        client.set_terminated(nested, "FINISHED" if trial.state == "complete" else "FAILED")

    def log_selected(self, chosen: Judged | None) -> None:
        """Which trial the rule chooses of all that are finished."""
        if self._store is None or chosen is None:
            return
        client = self._store.client
        client.set_tag(self._parent, "fairall.selected_trial", str(chosen.number))
        for objective in self._study.objectives:
            client.log_metric(self._parent, f"selected.{allowed(objective.figure)}", chosen.mean(objective))

    def _create_parent(self, store: Store) -> str:
        from mlflow.entities import Param

        study = self._study
        tags = {"mlflow.runName": f"sweep {study.name}", "fairall.study": study.name}
        tags["fairall.objectives"] = ", ".join(map(str, study.objectives))
        parent = store.client.create_run(store.experiment, tags=tags).info.run_id
        settings = study.settings | {key: str(list(values)) for key, values in study.space.values.items()}
        params = [Param(allowed(key), value[:500]) for key, value in settings.items()]
        store.client.log_batch(parent, params=params)
        return parent

    def _end(self, status: str) -> None:
        assert self._store is not None
        self._store.client.set_terminated(self._parent, status)
