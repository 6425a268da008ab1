"""Sweeps as a user types them."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from omegaconf import OmegaConf

from fairall.cli.main import main as fairall
from fairall.display.format import CAUTION
from fairall.errors import FairAllError
from fairall.storage.run_folder import RunFolder
from fairall.tuning.space import Space
from fairall.tuning.study import Study
from fairall.tuning.sweep import validated
from tests.conftest import refused, succeeded, typed
from tests.tuning.composed import composed

# A run in seconds, and four of them.
SMALL = """
    sweeps=unfairlog seeds=2 model.clf_dropout=0.1 schedule.time_steps=4 evaluation.window=[1,4]
    tracking.enabled=false
""".split()
FOUR = [*SMALL, "model.learning_rate=0.001"]
NAME = "unfairlog_credit"


def study(folder: Path, name: str = NAME) -> Study:
    return Study.load(name, folder / "outputs")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Identities of the runs that this process has made."""
    finish, identities = RunFolder.finish, []

    def finished(self: RunFolder) -> None:
        finish(self)
        identities.append(self.path.name)

    monkeypatch.setattr(RunFolder, "finish", finished)
    return identities


@pytest.mark.whole
def test_a_sweep_started_again_makes_the_rest_and_selects(
    tmp_path: Path,
    made: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part = succeeded("--multirun", *FOUR, "hydra.sweeper.n_trials=2", cwd=tmp_path)
    assert f"{NAME}: 4 points, 2 finished, 2 to do\n" in part.stdout
    whole = succeeded("--multirun", *FOUR, cwd=tmp_path)
    assert len(made) == len(set(made)) == 4
    assert "Selected: point " in whole.stdout
    assert whole.stdout.count(" of 4  point ") == 2
    again = typed("--multirun", *FOUR, cwd=tmp_path)
    assert (again.stdout.count(" of 4  point "), len(made)) == (0, 4)
    configs = [OmegaConf.load(path) for path in (tmp_path / "outputs").glob("runs/*/*/*/config.yaml")]
    assert {config.sweep.name for config in configs} == {NAME}
    assert not [*tmp_path.rglob("optimization_results.yaml")]

    # A study of the same runs finds them made.
    other = typed("--multirun", *FOUR, "hydra.sweeper.study_name=mine", cwd=tmp_path)
    assert (other.returncode, other.stderr, len(made)) == (0, "", 4)
    assert study(tmp_path, "mine").means.equals(study(tmp_path).means)
    assert "was begun with cost.value=0.5, not 0.3; give this sweep another name" in refused(
        "--multirun", *FOUR, "cost.value=0.3", cwd=tmp_path
    )

    monkeypatch.chdir(tmp_path)
    assert fairall(["tune", "report"]) == 0
    assert f"{NAME}: 4 points, 4 finished" in capsys.readouterr().out
    assert fairall(["tune", "report", NAME]) == 0
    shown = capsys.readouterr().out
    for said in ("Pareto set", "selected", "Importance of parameters", "the paper's", "clf_arch"):
        assert said in shown
    assert (tmp_path / "outputs" / "sweeps" / f"{NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert fairall(["tune", "report", NAME, NAME]) == 0
    assert "[64,64]" in capsys.readouterr().out  # the paper's
    assert fairall(["tune", "report", NAME, "--export", "tuned"]) == 0
    assert fairall(["tune", "report", NAME, "--export", "tuned"]) == 0, (
        "what it has written, it may write again"
    )
    words = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("Use it: "))
    used = succeeded(*words[3:], "--cfg", "job", cwd=tmp_path)
    assert f"hyperparameters: selected by the sweep {NAME}" in used.stdout
    (tmp_path / "tuned" / "hparams" / f"{NAME}.yaml").write_text("mine: 1\n")
    assert fairall(["tune", "report", NAME, "--export", "tuned"]) == 1
    assert "was not written by an export" in capsys.readouterr().err
    theirs = tmp_path / "outputs" / "sweeps" / NAME / "study.json"
    theirs.write_text(theirs.read_text().replace('"model.clf_arch"', '"tracking.uri"'))
    assert fairall(["tune", "report", NAME, "--export", "theirs"]) == 1
    assert "tracking.uri=" in (line := capsys.readouterr().err)
    assert "no file may" in line
    assert fairall(["tune", "report", "nonsense"]) == 1
    assert "nonsense: no such study in " in capsys.readouterr().err


@pytest.mark.slow
def test_killed_and_then_started_twice_every_run_is_made_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairall", "--multirun", *FOUR]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        while " of 4  point " not in killed.stdout.readline():
            assert killed.poll() is None
        os.kill(killed.pid, signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("DONE")}
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert [err for _, err in ended] == ["", ""]
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("DONE")}
    assert len(after) == 4
    assert before.items() <= after.items()
    assert len(study(tmp_path).finished) == 4


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points that have measures without a run."""

    def outcome(config: Any, known: Mapping[str, Any], command: str) -> dict[str, Any]:
        loss = config.model.learning_rate
        return {"measures": {"classification_loss": [loss, loss + 0.1], "mean_dpu": [loss**2, 0.1]}}

    monkeypatch.setattr("fairall.tuning.trial.outcome_of", outcome)


@pytest.mark.usefixtures("no_runs")
def test_a_quick_study_has_a_name_of_its_own_and_selects_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--multirun", *FOUR, "schedule.warm_up_epochs=2", "hydra.sweeper.n_trials=2"]
    quick = succeeded(*words, "preset=quick", cwd=tmp_path)
    assert quick.stdout.count(CAUTION) == 3  # at the beginning, at the end, and for want of a selection
    assert "Selected" not in quick.stdout
    real = typed(*words, cwd=tmp_path)
    assert CAUTION not in real.stdout

    monkeypatch.chdir(tmp_path)
    assert fairall(["tune", "report"]) == 0
    known, marked = capsys.readouterr().out.splitlines()
    assert known == f"{NAME}: 4 points, 2 finished, 2 to do"
    assert marked == f"{NAME}_quick: 4 points, 2 finished, 2 to do ({CAUTION})"
    _selects_nothing(f"{NAME}_quick", CAUTION, tmp_path, capsys)


@pytest.mark.usefixtures("no_runs")
def test_nothing_is_selected_over_what_defines_the_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = [*SMALL, "sweeps=cost", "model=unfairlog", "cost.value=0.2,0.8"]
    costs += ["objective=[classification_loss,mean_dpu]", "hydra.sweeper.direction=[minimize,minimize]"]
    swept = succeeded("--multirun", *costs, cwd=tmp_path)
    assert "Selected" not in swept.stdout
    monkeypatch.chdir(tmp_path)
    _selects_nothing("cost_unfairlog_credit", "cost.value defines the problem", tmp_path, capsys)


def _selects_nothing(name: str, reason: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fairall(["tune", "report", name]) == 0
    shown = capsys.readouterr().out
    assert f"Nothing is selected: {reason}." in shown
    for claim in ("Pareto", "Importance", "selected ", "the paper's", "export"):
        assert claim not in shown
    assert len([line for line in shown.splitlines() if line.startswith("│")]) == 2  # a row for every point
    assert (folder / "outputs" / "sweeps" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert fairall(["tune", "report", name, name]) == 0
    assert capsys.readouterr().out == 2 * f"{name}: nothing to compare, {reason}\n"
    assert fairall(["tune", "report", name, "--export", "tuned"]) == 1
    assert capsys.readouterr().err == f"fairall: {name} has no selected point to export: {reason}\n"
    assert not (folder / "tuned").exists()


@pytest.mark.whole
def test_failures_have_a_reason_and_end_nothing(tmp_path: Path) -> None:
    words = ["model.learning_rate=-1,1e30,0.01", "model.clf_arch=[32,32]"]
    ended = succeeded("--multirun", *SMALL, *words, cwd=tmp_path)
    assert "3 points, 1 finished, 2 failed, 0 to do" in ended.stdout
    known = study(tmp_path)
    assert known.failed[0] == "model.learning_rate=-1.0 is not possible: it must be positive"
    assert known.failed[1].endswith(" is not a number in 2 of 2 seeds")
    assert known.finished == [known.selected] == [2]
    assert f"no point of bad succeeded; the first: {known.failed[0]}" in refused(
        "--multirun",
        *SMALL,
        words[1],
        "model.learning_rate=-1,-2",
        "hydra.sweeper.study_name=bad",
        cwd=tmp_path,
    )


@pytest.mark.whole
@pytest.mark.usefixtures("no_runs")
def test_other_samplers_try_points_of_the_grid(tmp_path: Path) -> None:
    words = ["hydra/sweeper/sampler=tpe", "hydra.sweeper.n_trials=14", "model.learning_rate=-1,1,2,3"]
    succeeded("--multirun", *SMALL, *words, "hydra.sweeper.sampler.multivariate=true", cwd=tmp_path)
    assert set(study(tmp_path).finished) <= set(range(16))
    words = [*FOUR, f"hydra.sweeper.storage=sqlite:///{tmp_path}/mine.db", "hydra.sweeper.study_name=mine"]
    succeeded("--multirun", *words, cwd=tmp_path)
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/mine.db")
    assert len(optuna.load_study("mine", storage).trials) == 4
    words = [*FOUR, "hydra.sweeper.storage=nonsense://host/x", "hydra.sweeper.study_name=wrong"]
    assert "hydra.sweeper.storage: cannot use nonsense://host/x (" in refused(
        "--multirun", *words, cwd=tmp_path
    )
    assert not (tmp_path / "outputs" / "sweeps" / "wrong").exists()


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("evaluation.split=test", "a sweep looks at validation people only"),
        ("sweep.trial=half", "it must be run or phase1"),
        ("hydra.sweeper.n_trials=0", "hydra.sweeper.n_trials=0 is not possible: it must be at least 1"),
        ("hydra.sweeper.direction=minimize", "does not match objective=['classification_loss', 'mean_dpu']"),
        ("hydra.sweeper.direction=[minimise,minimize]", "it must be minimize or maximize"),
        ("objective=[classification_loss,fun]", "sweep.trial=run has no fun; there are effective_utility, "),
        ("objective=[]", "does not match objective=[]"),
        ("tracking.register=x", "null: register a run of the best point instead"),
    ],
)
def test_impossible_sweeps_are_named(override: str, said: str) -> None:
    config = composed("sweeps=unfairlog", override)
    with pytest.raises(FairAllError) as error:
        validated(config, config.hydra.sweeper, Space({"model.alpha": [1]}))
    assert said in str(error.value)


def test_the_measure_of_a_user_is_an_objective(tmp_path: Path) -> None:
    (tmp_path / "my_measures.py").write_text(
        "from fairall.metrics import measure\n"
        "@measure(label='rejection rate', unit='share', higher_is_better=None)\n"
        "def rejection(propensity): return 1 - propensity.mean(-1)\n"
    )
    words = ["evaluation.measures=[my_measures.rejection]", "objective=mean_rejection"]
    words += ["hydra.sweeper.direction=minimize", "hydra.sweeper.n_trials=1"]
    succeeded("--multirun", *SMALL, *words, cwd=tmp_path)
    assert study(tmp_path).values["mean_rejection"].between(0, 1, inclusive="neither").all()


def test_objectives_are_those_of_hydras_own_sweeper_too(tmp_path: Path) -> None:
    words = ["model=unfairlog", *SMALL[1:], "hydra/sweeper=optuna", "hydra/sweeper/sampler=grid"]
    words += ["objective=[mean_utility,mean_dpu]", "hydra.sweeper.direction=[maximize,minimize]"]
    words += ["model.learning_rate=choice(-1,0.01)", "hydra.sweeper.n_jobs=1", "hydra.sweep.dir=swept"]
    words += ["evaluation.split=validation"]
    ended = typed("--multirun", *words, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "model.learning_rate=-1.0 is not possible" in ended.stderr
    (best,) = OmegaConf.load(tmp_path / "swept" / "optimization_results.yaml").solutions
    assert best.params == {"model.learning_rate": 0.01}
    assert all(abs(value) <= 1 for value in best["values"])


def test_a_swept_key_cannot_change_the_people_of_an_optimiser(tmp_path: Path) -> None:
    (tmp_path / "mine" / "sweeps").mkdir(parents=True)
    (tmp_path / "mine" / "sweeps" / "peek.yaml").write_text(
        "# @package _global_\n"
        "defaults: [_study, override /model: unfairlog, _self_]\n"
        "objective: mean_utility\n"
        'hydra: {sweeper: {params: {evaluation.split: "choice(test,validation)"}}}\n'
    )
    ended = typed("--multirun", "-cd", "mine", "sweeps=peek", *SMALL[1:], cwd=tmp_path)
    assert ended.returncode == 1
    assert "evaluation.split=test: a sweep looks at validation people only" in ended.stderr
    made = [OmegaConf.load(path.with_name("config.yaml")) for path in tmp_path.rglob("DONE")]
    assert {config.evaluation.split for config in made} <= {"validation"}


@pytest.mark.whole
def test_a_list_of_runs_is_no_optimiser(tmp_path: Path) -> None:
    words = ["model=reject_all,accept_all", "dataset=synthetic", "preset=quick", "tracking.enabled=false"]
    assert typed("--multirun", *words, cwd=tmp_path).returncode == 0


def test_an_optimiser_of_which_every_run_is_refused_has_failed(tmp_path: Path) -> None:
    words = ["model=fairlog", *SMALL[1:], "hydra/sweeper=optuna", "hydra/sweeper/sampler=grid"]
    words += ["evaluation.split=validation", "hydra.sweep.dir=swept", "model.learning_rate=-1,-2"]
    assert typed("--multirun", *words, cwd=tmp_path).returncode == 1


INTERVALS = ["model.learning_rate=tag(log,interval(1e-3,1e-1))", "schedule.warm_up_epochs=int(interval(2,9))"]


@pytest.mark.whole
@pytest.mark.usefixtures("no_runs")
def test_a_study_tries_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*SMALL, "hydra.sweeper.study_name=wide", *INTERVALS]
    assert "an interval takes hydra/sweeper/sampler=tpe or random" in refused(
        "--multirun", *words, cwd=tmp_path
    )
    sampler = ["hydra/sweeper/sampler=tpe", "hydra.sweeper.sampler.seed=0"]
    assert "hydra.sweeper.n_trials=N" in refused("--multirun", *words, *sampler, cwd=tmp_path)
    assert not [*tmp_path.iterdir()]

    tried = succeeded("--multirun", *words, *sampler, "hydra.sweeper.n_trials=6", cwd=tmp_path)
    folder = tmp_path / "outputs" / "sweeps" / "wide"
    kept = {path.stem: json.loads(path.read_text()) for path in folder.glob("[0-9]*.json")}
    assert sorted(kept) == list("012345")
    rates = {number: one["point"]["model.learning_rate"] for number, one in kept.items()}
    assert all(1e-3 <= rate <= 1e-1 for rate in rates.values())
    assert len({*rates.values()}) == 6
    assert {type(one["point"]["schedule.warm_up_epochs"]) for one in kept.values()} == {int}
    # The stand-in for runs has two seeds: losses lr and lr + 0.1 with standard error 0.05, DPU lr² and 0.1.
    near = [number for number, rate in rates.items() if rate <= min(rates.values()) + 0.05]
    best = min(near, key=lambda number: rates[number])
    (selected,) = (line for line in tried.stdout.splitlines() if line.startswith("Selected: "))
    assert selected.startswith(f"Selected: point {best}: ")
    assert f" model.learning_rate={rates[best]} " in selected

    again = typed("--multirun", *words, *sampler, "hydra.sweeper.n_trials=7", cwd=tmp_path)
    assert again.stdout.count(" tried  point ") == 1  # the same seed proposes the same points first
    monkeypatch.chdir(tmp_path)
    assert fairall(["tune", "report", "wide"]) == 0
    captured = capsys.readouterr()
    assert "Pareto set" in captured.out
    assert captured.err == ""
    assert fairall(["tune", "report", "wide", "--export", "tuned"]) == 0
    exported = OmegaConf.load(tmp_path / "tuned" / "hparams" / "wide.yaml")
    assert exported.model.learning_rate == rates[best]
    other = typed("--multirun", *words[:-2], "model.learning_rate=interval(0,1)", *sampler, cwd=tmp_path)
    assert other.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "launcher"),
    [
        ("joblib", ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.sweeper.n_jobs=2"]),
        ("submitit", ["hydra/launcher=submitit_local", "hydra.sweeper.n_jobs=2"]),
        ("ray", ["hydra/launcher=ray", "hydra.sweeper.n_jobs=2"]),
    ],
)
def test_launchers_of_many_processes(package: str, launcher: list[str], tmp_path: Path) -> None:
    pytest.importorskip(f"hydra_plugins.hydra_{package}_launcher")
    succeeded("--multirun", *SMALL, *launcher, "hydra.sweeper.n_trials=3", cwd=tmp_path)
    assert len(study(tmp_path).finished) == 3
