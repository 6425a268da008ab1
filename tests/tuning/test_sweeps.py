"""Sweeps as a user types them."""

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

from fairall.display.format import CAUTION
from fairall.errors import FairAllError
from fairall.tuning.report import report
from fairall.tuning.study import Study, address_in, load_studies
from fairall.tuning.sweep import described, search_space
from tests.conftest import refused, succeeded, typed
from tests.tuning.composed import composed

# A run in seconds, and four of them.
SMALL = """
    sweeps=unfairlog seeds=2 model.clf_dropout=0.1 schedule.time_steps=4 evaluation.window=[1,4]
    tracking.enabled=false
""".split()
FOUR = [*SMALL, "model.learning_rate=0.001"]
NAME = "unfairlog_credit"
UNUSABLE = "hydra.sweeper.storage: the database cannot be used: "


def swept(folder: Path, *words: str) -> str:
    return str(succeeded("--multirun", *words, cwd=folder).stdout)


def study(folder: Path, name: str = NAME) -> Study:
    (known,) = load_studies(address_in(folder / "outputs"), [name])
    return known


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

    def outcome(config: Any, command: str) -> dict[str, Any]:
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
    changed = refused("--multirun", *FOUR, "cost.value=0.3", cwd=tmp_path)
    assert "was begun with cost.value=0.5, not 0.3; give this sweep another name" in changed

    capsys.readouterr()
    report([], None, [])
    assert f"{NAME}: 4 points, 4 finished, 0 failed\n" in capsys.readouterr().out
    report([NAME], None, [])
    shown = capsys.readouterr().out
    for said in ("selected", "the paper's selection", "clf_arch"):
        assert said in shown
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
    assert reasons[1].endswith(" is not finite in some seeds")
    assert [trial.params["model.learning_rate"] for trial in known.finished] == [0.01]


COST = """
    sweeps=cost model=unfairlog cost.value=0.2,0.8 hydra.sweeper.direction=[minimize,minimize]
    objective=[classification_loss,mean_dpu]
""".split()


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        ([*FOUR, "preset=quick", "hydra.sweeper.n_trials=2"], f"{NAME}_quick", CAUTION),
        ([*COST, *SMALL[1:]], "cost_unfairlog_credit", "cost.value defines the problem"),
    ],
)
def test_what_selects_nothing(
    words: list[str], name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"Nothing is selected: {reason}.\n" in swept(tmp_path, *words)
    capsys.readouterr()
    where = [f"outputs_dir={tmp_path / 'outputs'}"]
    report([name], None, where)
    shown = capsys.readouterr().out
    assert shown.count("\n│") == 2, "a row for every point"
    assert "the paper's" not in shown
    with pytest.raises(FairAllError, match="cannot be exported"):
        report([name], tmp_path, where)


def test_a_study_is_in_a_database_of_optuna(tmp_path: Path, broken: set[float]) -> None:
    storage = f"hydra.sweeper.storage=sqlite:///{tmp_path}/mine.db"
    swept(tmp_path, *FOUR, storage)
    known = optuna.load_study(study_name=NAME, storage=storage.partition("=")[2])
    assert len(known.trials) == 4
    report([NAME], None, [storage, f"outputs_dir={tmp_path}"])
    for words in ([storage.replace("mine", "x/mine")], ["hydra.sweeper.storage=nonsense://host/x"]):
        assert UNUSABLE in refused("--multirun", *FOUR, *words, cwd=tmp_path)


@pytest.mark.parametrize("step", ["outcome_of", "worst"], ids=["in a trial", "after it"])
def test_a_database_that_fails_in_a_sweep_is_one_line(
    step: str, tmp_path: Path, broken: set[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def damage(*_: Any) -> Any:
        (tmp_path / "outputs" / "sweeps" / "studies.db").write_text("damaged" * 10000)
        return {"reason": "broken"}

    broken.add(0.001)
    monkeypatch.setattr(f"fairall.tuning.trial.{step}", damage)
    for _ in range(2):
        said = refused("--multirun", *FOUR, cwd=tmp_path)
        assert said.startswith(f"fairall: {UNUSABLE}")
        assert said.endswith("file is not a database\n")


ONE_BY_ONE = "give its values one by one, numbers or texts, each once"


@pytest.mark.parametrize(
    ("words", "swept_word", "said"),
    [
        (["sweep.trial=half"], "", "it must be run or phase1"),
        (["hydra.sweeper.n_trials=0"], "", "n_trials=0 is not possible: it must be at least 1"),
        (["hydra.sweeper.study_name=../x"], "", "hydra.sweeper.study_name=../x is not possible"),
        (["hydra.sweeper.direction=minimize"], "", "does not match objective=['classification_loss', "),
        (["hydra.sweeper.direction=[minimise,minimize]"], "", "it must be minimize or maximize"),
        (["objective=[classification_loss,fun]"], "", "objective=fun is not possible: it must be eff"),
        (["tracking.register=x"], "", "null: register a run of the best point instead"),
        (["hydra.sweeper.params=null"], "a=1", "nothing to sweep"),
        ([], "a=interval(0,1)", ONE_BY_ONE),
        ([], "a=null,1", ONE_BY_ONE),
        ([], "a=b,1", ONE_BY_ONE),
        ([], "a=1,2,2", ONE_BY_ONE),
        (["hydra/sweeper/sampler=tpe"], "a=interval(2,1)", "not possible: The `low` value"),
        ([], "evaluation.split=test,validation", "a sweep looks at validation people only"),
        ([], "cost.value=0.1,0.2", "cost.value defines the problem: start a sweep for each"),
    ],
)
def test_impossible_sweeps_are_named(words: list[str], swept_word: str, said: str) -> None:
    config = composed("sweeps=unfairlog", *words)
    with pytest.raises(FairAllError) as error:
        described(config, search_space(config.hydra.sweeper, [swept_word] * bool(swept_word))[0])
    assert said in str(error.value)


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


PLUGIN = "model=unfairlog hydra/sweeper=optuna hydra/sweeper/sampler=grid evaluation.split=validation".split()
WITHOUT_STUDY = [*PLUGIN, *SMALL[1:], "hydra.sweep.dir=swept"]


def test_objectives_are_those_of_hydras_own_sweeper_too(tmp_path: Path) -> None:
    words = ["objective=[mean_utility,mean_dpu]", "hydra.sweeper.direction=[maximize,minimize]"]
    ended = typed("--multirun", *WITHOUT_STUDY, *words, "model.learning_rate=choice(-1,0.01)", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "model.learning_rate=-1.0 is not possible" in ended.stderr
    (best,) = OmegaConf.load(tmp_path / "swept" / "optimization_results.yaml").solutions
    assert best.params == {"model.learning_rate": 0.01}
    assert all(abs(value) <= 1 for value in best["values"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("model=reject_all,accept_all dataset=synthetic preset=quick tracking.enabled=false".split(), 0),
        ([*WITHOUT_STUDY, "model.learning_rate=-1,-2"], 1),
    ],
    ids=["list", "all failed"],
)
def test_exit_codes_without_a_study(words: list[str], code: int, tmp_path: Path) -> None:
    assert typed("--multirun", *words, cwd=tmp_path).returncode == code


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
