"""A sweep in MLflow."""

import subprocess
import sys
from pathlib import Path

import mlflow
import pytest

from fairall.config.compose import compose_config
from fairall.results.interpretable import CAUTION
from fairall.runtime.process import this_process
from fairall.tuning.objectives import Objective, selected
from fairall.tuning.space import Space
from fairall.tuning.storage import open_storage, storage_url
from fairall.tuning.study import SharedStudy
from fairall.tuning.tracking import SweepTracker
from tests.tuning.test_study import claim, finish

OBJECTIVES = [Objective("loss", "minimize"), Objective("dpu", "minimize")]


def test_trials_of_all_processes_are_nested_in_one_run(tmp_path: Path) -> None:
    config = compose_config(f"outputs_dir={tmp_path}")
    for ended in ({"loss": [1.0, 3.0], "dpu": [0.1, 0.1]}, None):
        # As another process would come to it.
        study = SharedStudy.begin(
            open_storage(storage_url(None, str(tmp_path))), "study",
            space=Space({"model.alpha": [1, 5]}), objectives=OBJECTIVES, settings={"seeds": "2"}, target=2,
        )  # fmt: skip
        with SweepTracker.following(config, study) as tracker:
            number = claim(study)
            assert number is not None
            notes = {"reason": "it diverged"} if ended is None else {"run": "runs/x", "seconds": 1.0}
            measures = {} if ended is None else {**ended, "mean_cfu": [None, None]}
            finish(study, number, ended, notes)
            tracker.log_trial(study.trial(number), measures)  # type: ignore[arg-type]
            tracker.log_selected(selected(study.complete(), OBJECTIVES))

    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    found = client.search_runs([client.get_experiment_by_name("fairall").experiment_id])
    (parent,) = (run for run in found if "mlflow.parentRunId" not in run.data.tags)
    nested = {
        run.data.tags["mlflow.runName"]: run
        for run in found
        if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id
    }
    assert (parent.info.status, parent.data.tags["mlflow.runName"]) == ("FINISHED", "sweep study")
    assert parent.data.tags["fairall.selected_trial"] == "0"
    assert parent.data.metrics == {"selected.loss": 2.0, "selected.dpu": pytest.approx(0.1)}
    assert set(nested) == {"trial 0", "trial 1"}
    good, bad = nested["trial 0"], nested["trial 1"]
    assert (good.info.status, bad.info.status) == ("FINISHED", "FAILED")
    assert good.data.params == {"model.alpha": "1"}
    assert (good.data.metrics["loss"], good.data.metrics["loss.std"]) == (2.0, pytest.approx(2**0.5))
    assert [m.value for m in client.get_metric_history(good.info.run_id, "loss.by_seed")] == [1.0, 3.0]
    assert "mean_cfu" not in good.data.metrics
    assert bad.data.tags["fairall.reason"] == "it diverged"


def test_a_quick_study_is_marked_in_mlflow_and_selects_nothing(tmp_path: Path) -> None:
    config = compose_config(f"outputs_dir={tmp_path}", "preset=quick")
    study = SharedStudy.begin(
        open_storage(storage_url(None, str(tmp_path))), "study_quick",
        space=Space({"model.alpha": [1]}), objectives=OBJECTIVES, settings={"preset": "quick"}, target=1,
    )  # fmt: skip
    with SweepTracker.following(config, study) as tracker:
        number = claim(study)
        assert number == 0
        measures: dict[str, list[float]] = {"loss": [1.0, 3.0], "dpu": [0.1, 0.1]}
        finish(study, number, measures, {})
        tracker.log_trial(study.trial(number), measures)  # type: ignore[arg-type]
        tracker.log_selected(study.selected())
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    trial, parent = client.search_runs([client.get_experiment_by_name("fairall").experiment_id])
    assert parent.data.tags["mlflow.runName"] == f"sweep study_quick ({CAUTION})"
    assert {run.data.tags["fairall.preset"] for run in (trial, parent)} == {"quick"}
    assert parent.data.metrics == {}
    assert "fairall.selected_trial" not in parent.data.tags


def test_without_tracking_nothing_is_recorded(tmp_path: Path) -> None:
    study = SharedStudy.begin(
        open_storage(storage_url(None, str(tmp_path))), "study",
        space=Space({"a": [1]}), objectives=OBJECTIVES, settings={}, target=1,
    )  # fmt: skip
    config = compose_config(f"outputs_dir={tmp_path}", "tracking.enabled=false")
    with SweepTracker.following(config, study) as tracker:
        tracker.log_selected(None)
    assert not (tmp_path / "mlflow.db").exists()


def test_what_mlflow_missed_while_it_was_away_is_told_when_the_sweep_is_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:

    def begun() -> SharedStudy:
        return SharedStudy.begin(
            open_storage(storage_url(None, str(tmp_path))), "study",
            space=Space({"model.alpha": [1, 5]}), objectives=OBJECTIVES, settings={}, target=2,
        )  # fmt: skip

    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    worker = f"{this_process().rpartition(':')[0]}:{gone.pid}"
    monkeypatch.setattr("fairall.tuning.study.this_process", lambda: worker)
    away = compose_config(f"outputs_dir={tmp_path}", "tracking.uri=sqlite:////dev/null/x.db")
    study = begun()
    known: dict[str, list[float]] = {"loss": [1.0, 3.0], "dpu": [0.1, 0.1]}
    with SweepTracker.following(away, study) as tracker:
        assert claim(study) == 0
        finish(study, 0, known, {})
        tracker.log_trial(study.trial(0), {name: [*values] for name, values in known.items()})
    assert capsys.readouterr().out.count("Warning: tracking.uri: cannot use") == 1

    there = compose_config(f"outputs_dir={tmp_path}")
    for _ in range(2):  # logged once
        with SweepTracker.following(there, begun()):
            pass
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    found = client.search_runs([client.get_experiment_by_name("fairall").experiment_id])
    nested = [run for run in found if "mlflow.parentRunId" in run.data.tags]
    logged = [(run.data.tags["mlflow.runName"], run.data.metrics["loss"]) for run in nested]
    assert (logged, len(found)) == ([("trial 0", 2.0)], 2)
