"""Sweeps as a user types them."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
from omegaconf import OmegaConf

from fairall.display.format import CAUTION
from fairall.errors import FairAllError
from fairall.tuning.report import importances, report
from fairall.tuning.study import Study, address_in
from fairall.tuning.sweep import search_space, validated
from tests.conftest import refused, succeeded, typed
from tests.tuning.composed import composed

# A run in seconds, and four of them.
SMALL = """
    sweeps=unfairlog seeds=2 model.clf_dropout=0.1 schedule.time_steps=4 evaluation.window=[1,4]
    tracking.enabled=false
""".split()
FOUR = [*SMALL, "model.learning_rate=0.001"]
NAME = "unfairlog_credit"


def swept(folder: Path, *words: str) -> str:
    return str(succeeded("--multirun", *words, cwd=folder).stdout)


def study(folder: Path, name: str = NAME) -> Study:
    return Study.load(name, address_in(folder / "outputs"))


def points(folder: Path, name: str) -> list[Mapping[str, Any]]:
    """The values of every finished trial in the order in which they were tried."""
    known = optuna.load_study(study_name=name, storage=address_in(folder / "outputs"))
    return [trial.params for trial in known.trials if trial.state == optuna.trial.TrialState.COMPLETE]


def runs(folder: Path) -> dict[Path, int]:
    """When each finished run was finished, by its file DONE."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("DONE")}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[float]:
    """Trials that have values without a run, and fail for these learning rates."""
    rates: set[float] = set()

    def outcome(config: Any, objectives: Sequence[str], command: str) -> dict[str, Any]:
        rate = config.model.learning_rate
        if rate in rates:
            return {"reason": "broken"}
        return {"seeds": {"classification_loss": [rate, rate + 0.1], "mean_dpu": [rate**2, 0.1]}}

    monkeypatch.setattr("fairall.tuning.trial.outcome_of", outcome)
    return rates


@pytest.mark.whole
def test_a_sweep_makes_the_rest_selects_and_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "4 points, 2 finished, 0 failed\n" in swept(tmp_path, *FOUR, "hydra.sweeper.n_trials=2")
    assert "2 trials to do" in swept(tmp_path, *FOUR)
    assert "0 trials to do" in swept(tmp_path, *FOUR)
    made = runs(tmp_path)
    assert {OmegaConf.load(path.with_name("config.yaml")).sweep.name for path in made} == {NAME}
    assert not [*tmp_path.rglob("optimization_results.yaml")]
    swept(tmp_path, *FOUR, "hydra.sweeper.study_name=mine")
    assert (runs(tmp_path), len(made)) == (made, 4), "a study of the same runs finds them made"
    assert study(tmp_path, "mine").costs.equals(study(tmp_path).costs)
    assert importances(study(tmp_path, "mine")).equals(importances(study(tmp_path)))
    changed = refused("--multirun", *FOUR, "cost.value=0.3", cwd=tmp_path)
    assert "was begun with cost.value=0.5, not 0.3; give this sweep another name" in changed

    capsys.readouterr()
    report([], None, [])
    assert f"{NAME}: 4 points, 4 finished, 0 failed\n" in capsys.readouterr().out
    report([NAME], None, [])
    shown = capsys.readouterr().out
    for said in ("selected", "Importance of parameters", "the paper's selection", "clf_arch"):
        assert said in shown
    assert Path("outputs", "sweeps", f"{NAME}.png").read_bytes().startswith(b"\x89PNG")
    report([NAME, "mine"], None, [])
    assert capsys.readouterr().out.count("the paper's selection") == 2
    for _ in range(2):  # what it has written, it may write again
        report([NAME], Path("tuned"), [])
    words = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("Use it: "))
    used = succeeded(*words[3:], "--cfg", "job", cwd=tmp_path)
    assert f"hyperparameters: selected by the sweep {NAME}" in used.stdout
    Path("tuned", "hparams", f"{NAME}.yaml").write_text("mine: 1\n")
    with pytest.raises(FairAllError, match="was not written by an export"):
        report([NAME], Path("tuned"), [])
    with pytest.raises(FairAllError, match=f"nonsense: no such study; there are mine, {NAME}"):
        report(["nonsense"], None, [])


@pytest.mark.slow
def test_killed_and_then_started_twice_every_run_is_made_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairall", "--multirun", *FOUR]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        while "classification_loss" not in killed.stdout.readline():
            assert killed.poll() is None
        os.kill(killed.pid, signal.SIGKILL)
    before = runs(tmp_path)
    both = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ended = [(process.communicate(timeout=600)[1], process.returncode) for process in both]
    assert ended == [("", 0)] * 2
    assert before.items() <= runs(tmp_path).items()
    assert len(runs(tmp_path)) == 4
    assert len(study(tmp_path).finished) == 4


INTERVALS = ["model.learning_rate=tag(log,interval(1e-3,1e-1))", "schedule.warm_up_epochs=int(interval(2,9))"]
TPE = [
    "hydra/sweeper/sampler=tpe",
    "hydra.sweeper.sampler.seed=0",
    "hydra.sweeper.sampler.n_startup_trials=2",
]


@pytest.mark.usefixtures("broken")
def test_a_seeded_sampler_tries_the_same_points_after_a_kill(tmp_path: Path) -> None:
    words = [*SMALL, *INTERVALS, *TPE, "model.clf_arch=[32,32]"]
    swept(tmp_path, *words, "hydra.sweeper.study_name=whole", "hydra.sweeper.n_trials=5")
    swept(tmp_path, *words, "hydra.sweeper.study_name=parts", "hydra.sweeper.n_trials=3")
    optuna.load_study(
        study_name="parts", storage=address_in(tmp_path / "outputs")
    ).ask()  # a kill leaves that
    swept(tmp_path, *words, "hydra.sweeper.study_name=parts", "hydra.sweeper.n_trials=5")
    assert points(tmp_path, "parts") == (tried := points(tmp_path, "whole"))
    assert len({point["model.learning_rate"] for point in tried}) == 5
    assert {type(point["schedule.warm_up_epochs"]) for point in tried} == {int}


def test_a_failed_point_has_a_reason_and_is_tried_again(
    tmp_path: Path, broken: set[float], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*SMALL, "model.learning_rate=0.1,0.2,0.3", "model.clf_arch=[32,32]"]
    broken.add(0.1)
    assert "3 points, 2 finished, 1 failed" in swept(tmp_path, *words)
    broken.clear()
    assert "1 trials to do" in swept(tmp_path, *words)
    assert [trial.params["model.learning_rate"] for trial in study(tmp_path).finished] == [0.1, 0.2, 0.3]
    broken |= {0.1, 0.2, 0.3}
    bad = refused("--multirun", *words, "hydra.sweeper.study_name=bad", cwd=tmp_path)
    assert "no trial of bad succeeded" in bad
    report(["bad"], None, [f"outputs_dir={tmp_path / 'outputs'}"])
    assert capsys.readouterr().out.count("  broken\n") == 3


@pytest.mark.whole
def test_a_run_that_fails_or_diverges_is_a_failed_point(tmp_path: Path) -> None:
    swept(tmp_path, *SMALL, "model.learning_rate=-1,1e30,0.01", "model.clf_arch=[32,32]")
    known = study(tmp_path)
    reasons = [trial.user_attrs["fairall.outcome"]["reason"] for trial in known.failed]
    assert reasons[0] == "model.learning_rate=-1.0 is not possible: it must be positive"
    assert reasons[1].endswith(" is not a number in 2 of 2 seeds")
    assert [trial.params["model.learning_rate"] for trial in known.finished] == [0.01]


COST = ["sweeps=cost", "model=unfairlog", "cost.value=0.2,0.8", "hydra.sweeper.direction=[minimize,minimize]"]
NOT_SELECTED = {
    CAUTION: (["preset=quick"], f"{NAME}_quick"),
    "cost.value defines the problem": (
        [*COST, "objective=[classification_loss,mean_dpu]"],
        "cost_unfairlog_credit",
    ),
}


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("reason", NOT_SELECTED)
def test_what_selects_nothing(
    reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    further, name = NOT_SELECTED[reason]
    monkeypatch.chdir(tmp_path)
    words = [word for word in FOUR if "learning_rate" not in word or "cost" not in name]
    assert f"Nothing is selected: {reason}.\n" in swept(
        tmp_path, *words, *further, "hydra.sweeper.n_trials=2"
    )
    capsys.readouterr()
    report([name], None, [])
    shown = capsys.readouterr().out
    for claim in ("Importance", "selected ", "the paper's"):
        assert claim not in shown
    assert len([line for line in shown.splitlines() if line.startswith("│")]) == 2  # a row for every point
    assert Path("outputs", "sweeps", f"{name}.png").is_file()
    with pytest.raises(FairAllError, match="cannot be exported"):
        report([name], Path("tuned"), [])


@pytest.mark.usefixtures("broken")
def test_a_study_is_in_a_database_of_optuna(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/mine.db"
    swept(tmp_path, *FOUR, f"hydra.sweeper.storage={storage}")
    assert len(optuna.load_study(study_name=NAME, storage=storage).trials) == 4
    report([NAME], None, [f"hydra.sweeper.storage={storage}", f"outputs_dir={tmp_path}"])
    (tmp_path / "outputs" / "sweeps" / "studies.db").write_text("damaged" * 1000)
    for words in ([], ["hydra.sweeper.storage=nonsense://host/x"]):
        said = refused("--multirun", *FOUR, *words, cwd=tmp_path)
        assert "hydra.sweeper.storage: the database cannot be used: " in said


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sweep.trial=half", "it must be run or phase1"),
        ("hydra.sweeper.n_trials=0", "hydra.sweeper.n_trials=0 is not possible: it must be at least 1"),
        ("hydra.sweeper.direction=minimize", "does not match objective=['classification_loss', 'mean_dpu']"),
        ("hydra.sweeper.direction=[minimise,minimize]", "it must be minimize or maximize"),
        (
            "objective=[classification_loss,fun]",
            "objective=fun is not possible: it must be effective_utility",
        ),
        ("objective=[]", "does not match objective=[]"),
        ("tracking.register=x", "null: register a run of the best point instead"),
    ],
)
def test_impossible_sweeps_are_named(override: str, said: str) -> None:
    config = composed("sweeps=unfairlog", override)
    with pytest.raises(FairAllError) as error:
        validated(config, config.hydra.sweeper, {"model.alpha": None})
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a=interval(0,1)"], "give its values one by one"),
        (["a=1"], "nothing to sweep"),
        (["a=null,1"], "numbers or texts"),
        (["a=b,1"], "numbers or texts"),
        (["a=1,2,2"], "each once"),
        (["a=interval(2,1)", *TPE[:1]], "not possible: The `low` value"),
    ],
)
def test_values_that_cannot_be_tried_are_named(words: list[str], said: str) -> None:
    sweeper = composed("sweeps=_study", *words[1:]).hydra.sweeper
    with pytest.raises(FairAllError, match=said):
        search_space(sweeper, words[:1])


def test_the_command_line_wins_over_the_file() -> None:
    sweeper = composed("sweeps=fairlog").hydra.sweeper
    space, params = search_space(sweeper, ["model.lambda_=2", "model.clf_arch=[8],[9]", "model.beta=0.1,0.2"])
    choices = {key: distribution.choices for key, distribution in space.items()}
    assert choices == {"model.clf_arch": ("[8]", "[9]"), "model.beta": (0.1, 0.2)} | {
        "model.learning_rate": (0.001, 0.01),
        "model.clf_dropout": (0.0, 0.1),
    }
    assert [*params] == ["model.learning_rate", "model.clf_dropout"]


def test_the_measure_of_a_user_is_an_objective(tmp_path: Path) -> None:
    (tmp_path / "my_measures.py").write_text(
        "from fairall.metrics import measure\n"
        "@measure(label='rejection rate', unit='share', higher_is_better=None)\n"
        "def rejection(propensity): return 1 - propensity.mean(-1)\n"
    )
    words = ["evaluation.measures=[my_measures.rejection]", "objective=mean_rejection"]
    swept(tmp_path, *SMALL, *words, "hydra.sweeper.direction=minimize", "hydra.sweeper.n_trials=1")
    assert study(tmp_path).costs["mean_rejection"].between(0, 1, inclusive="neither").all()


PLUGIN = ["hydra/sweeper=optuna", "hydra/sweeper/sampler=grid", "evaluation.split=validation"]


def test_objectives_are_those_of_hydras_own_sweeper_too(tmp_path: Path) -> None:
    words = ["model=unfairlog", *SMALL[1:], *PLUGIN, "hydra.sweep.dir=swept", "hydra.sweeper.n_jobs=1"]
    words += ["objective=[mean_utility,mean_dpu]", "hydra.sweeper.direction=[maximize,minimize]"]
    ended = typed("--multirun", *words, "model.learning_rate=choice(-1,0.01)", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "model.learning_rate=-1.0 is not possible" in ended.stderr
    (best,) = OmegaConf.load(tmp_path / "swept" / "optimization_results.yaml").solutions
    assert best.params == {"model.learning_rate": 0.01}
    assert all(abs(value) <= 1 for value in best["values"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("model=reject_all,accept_all dataset=synthetic preset=quick tracking.enabled=false".split(), 0),
        (["model=fairlog", *SMALL[1:], *PLUGIN, "hydra.sweep.dir=swept", "model.learning_rate=-1,-2"], 1),
    ],
    ids=["list", "all failed"],
)
def test_exit_codes_without_a_study(words: list[str], code: int, tmp_path: Path) -> None:
    assert typed("--multirun", *words, cwd=tmp_path).returncode == code


def test_a_swept_key_cannot_change_the_people_of_an_optimiser(tmp_path: Path) -> None:
    (tmp_path / "mine" / "sweeps").mkdir(parents=True)
    (tmp_path / "mine" / "sweeps" / "peek.yaml").write_text(
        "# @package _global_\n"
        "defaults: [_study, override /model: unfairlog, _self_]\n"
        "objective: mean_utility\n"
        'hydra: {sweeper: {params: {evaluation.split: "choice(test,validation)"}}}\n'
    )
    said = refused("--multirun", "-cd", "mine", "sweeps=peek", *SMALL[1:], cwd=tmp_path)
    assert "evaluation.split: a sweep looks at validation people only" in said
    assert not runs(tmp_path)


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
    swept(tmp_path, *SMALL, *launcher, "hydra.sweeper.n_trials=3")
    assert len(study(tmp_path).finished) == 3
