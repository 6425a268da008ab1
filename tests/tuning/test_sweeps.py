"""Sweeps as a user types them."""

import shlex
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import optuna
import pytest
from omegaconf import OmegaConf

from fairall.cli.main import main
from fairall.display.format import CAUTION
from fairall.errors import FairAllError
from fairall.tuning.report import report
from fairall.tuning.study import Study, address_in, load_studies
from fairall.tuning.sweep import begin, described, search_space
from tests.conftest import refused, succeeded, typed
from tests.tuning.composed import composed

pytestmark = pytest.mark.usefixtures("in_empty_folder")
# A run in seconds, and two of them.
SMALL = """
    sweeps=unfairlog seeds=2 model.clf_dropout=0.1 schedule.time_steps=4 evaluation.window=[1,4]
    tracking.enabled=false
""".split()
TWO = [*SMALL, "model.learning_rate=0.001", "model.clf_arch=[32,32],[64,64]"]
THREE = [*SMALL, "model.learning_rate=0.1,0.2,0.3", "model.clf_arch=[32,32]"]
NAME = "unfairlog_credit"
HERE = Path()
UNUSABLE = "hydra.sweeper.storage: the database cannot be used: "


def swept(*words: str) -> str:
    return str(succeeded("--multirun", *words, cwd=HERE).stdout)


def study(name: str = NAME) -> Study:
    (loaded,) = load_studies(address_in(HERE / "outputs"), [name])
    return loaded


def runs() -> dict[Path, int]:
    """When each finished run was finished, by its file DONE."""
    return {path: path.stat().st_mtime_ns for path in HERE.rglob("DONE")}


@pytest.fixture
def reported(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `report` prints of studies."""

    def reported(*names: str, export: Path | None = None) -> str:
        capsys.readouterr()
        report(names, export, [])
        return capsys.readouterr().out

    return reported


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[float]:
    """Trials that have values without a run, and fail for these learning rates."""
    rates: set[float] = set()

    def outcome(config: Any, command: str) -> dict[str, Any]:
        rate = config.model.learning_rate
        values = {"classification_loss": [rate, rate + 0.1], "mean_dpu": [rate**2, 0.1]}
        return {"reason": "broken"} if rate in rates else {"seeds": values}

    monkeypatch.setattr("fairall.tuning.trial.outcome_of", outcome)
    return rates


@pytest.mark.whole
def test_a_sweep_makes_the_rest_selects_and_is_exported(reported: Callable[..., str]) -> None:
    assert "2 points, 1 finished, 0 failed\n" in swept(*TWO, "hydra.sweeper.n_trials=1")
    assert "1 trials to do" in swept(*TWO)
    made = runs()
    assert {OmegaConf.load(path.with_name("config.yaml")).sweep.name for path in made} == {NAME}
    swept(*TWO, "hydra.sweeper.study_name=mine")
    assert (runs(), len(made)) == (made, 2), "a study of the same runs finds them made"
    changed = refused("--multirun", *TWO, "cost.value=0.3", cwd=HERE)
    assert "was begun with cost.value=0.5, not 0.3; give this sweep another name" in changed
    assert not [*HERE.rglob("optimization_results.yaml")]

    assert f"{NAME}: 2 points, 2 finished, 0 failed\n" in reported()
    shown = reported(NAME, "mine")
    assert (shown.count("│ selected"), shown.count("the paper's selection")) == (2, 2)
    for _ in range(2):  # what it has written, it may write again
        exported = reported(NAME, export=Path("tuned"))
    words = shlex.split(exported.splitlines()[-1].removeprefix("Use it: "))
    used = succeeded(*words[3:], "--cfg", "job", cwd=HERE)
    assert f"hyperparameters: selected by the sweep {NAME}" in used.stdout
    Path("tuned", "hparams", f"{NAME}.yaml").write_text("mine: 1\n")
    with pytest.raises(FairAllError, match="was not written by an export"):
        reported(NAME, export=Path("tuned"))
    with pytest.raises(FairAllError, match=f"nonsense: no such study; there are mine, {NAME}"):
        reported("nonsense")


@pytest.mark.whole
@pytest.mark.usefixtures("broken")
def test_a_seeded_sampler_tries_the_same_points_after_a_kill() -> None:
    words = [*SMALL, "model.clf_arch=[32,32]", "model.learning_rate=tag(log,interval(1e-3,1e-1))"]
    words += ["schedule.warm_up_epochs=int(interval(2,9))", "hydra/sweeper/sampler=tpe"]
    words += ["hydra.sweeper.sampler.seed=0", "hydra.sweeper.sampler.n_startup_trials=2"]
    tried = {}
    for name, numbers in {"whole": [3], "parts": [2, 3]}.items():
        for n_trials in numbers:
            swept(*words, f"hydra.sweeper.study_name={name}", f"hydra.sweeper.n_trials={n_trials}")
            # A kill leaves a trial that is running.
            optuna.load_study(study_name=name, storage=address_in(HERE / "outputs")).ask()
        tried[name] = [trial.params for trial in study(name).finished]
    assert tried["parts"] == tried["whole"]
    assert [type(point["schedule.warm_up_epochs"]) for point in tried["whole"]] == [int] * 3


@pytest.mark.whole
def test_a_failed_point_has_a_reason_and_is_tried_again(
    broken: set[float], reported: Callable[..., str]
) -> None:
    broken.add(0.1)
    assert "3 points, 2 finished, 1 failed" in swept(*THREE)
    broken.clear()
    config = composed(*SMALL, THREE[-1])
    space, _ = search_space(config.hydra.sweeper, THREE)
    for _ in range(2):  # by processes that are killed then
        assert begin(NAME, described(config, space), config.hydra.sweeper)["n_trials"] == 1
    assert "1 trials to do" in swept(*THREE)
    assert "0 trials to do" in swept(*THREE)
    assert [trial.params["model.learning_rate"] for trial in study().finished] == [0.1, 0.2, 0.3]
    broken |= {0.1, 0.2, 0.3}
    bad = refused("--multirun", *THREE, "hydra.sweeper.study_name=bad", cwd=HERE)
    assert "no trial of bad succeeded" in bad
    assert reported("bad").count("  broken\n") == 3


COST = """
    sweeps=cost model=unfairlog cost.value=0.2,0.8,0.9 hydra.sweeper.direction=[minimize,minimize]
    objective=[classification_loss,mean_dpu]
""".split()


@pytest.mark.whole
@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        ([*THREE, "preset=quick"], f"{NAME}_quick", CAUTION),
        ([*COST, *SMALL[1:]], "cost_unfairlog_credit", "cost.value defines the problem"),
    ],
)
def test_what_selects_nothing(words: list[str], name: str, reason: str, reported: Callable[..., str]) -> None:
    assert f"Nothing is selected: {reason}.\n" in swept(*words)
    shown = reported(name)
    assert (shown.count("\n│"), shown.count("the paper's")) == (3, 0), "a row for every point"
    with pytest.raises(FairAllError, match="cannot be exported"):
        reported(name, export=Path("tuned"))


@pytest.mark.whole
@pytest.mark.usefixtures("broken")
def test_a_study_is_in_a_database_of_optuna() -> None:
    storage = f"sqlite:///{Path.cwd()}/mine.db"
    swept(*THREE, f"hydra.sweeper.storage={storage}")
    assert len(optuna.load_study(study_name=NAME, storage=storage).trials) == 3
    report([NAME], None, [f"hydra.sweeper.storage={storage}"])
    nowhere = refused("--multirun", *THREE, "hydra.sweeper.storage=nonsense://host/x", cwd=HERE)
    assert UNUSABLE in nowhere


@pytest.mark.whole
@pytest.mark.usefixtures("broken")
def test_of_a_sweep_that_is_started_several_times_every_point_is_tried_once() -> None:
    with ProcessPoolExecutor(3, get_context("fork")) as processes:
        assert [*processes.map(main, [["--multirun", *THREE]] * 3)] == [0, 0, 0]
    assert sorted(trial.params["model.learning_rate"] for trial in study().finished) == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("step", ["outcome_of", "worst"], ids=["in a trial", "after it"])
def test_a_database_that_fails_in_a_sweep_is_one_line(
    step: str, broken: set[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def damage(*_: Any) -> dict[str, str]:
        Path("outputs", "sweeps", "studies.db").write_text("damaged" * 10000)
        return {"reason": "broken"}

    broken |= {0.1, 0.2, 0.3}
    monkeypatch.setattr(f"fairall.tuning.trial.{step}", damage)
    for _ in range(2):
        said = refused("--multirun", *THREE, cwd=HERE)
        assert said.startswith(f"fairall: {UNUSABLE}")


@pytest.mark.whole
def test_the_measure_of_a_user_is_an_objective() -> None:
    Path("my_measures.py").write_text(
        "from fairall.metrics import measure\n"
        "@measure(label='rejection rate', unit='share', higher_is_better=None)\n"
        "def rejection(propensity): return 1 - propensity.mean(-1)\n"
    )
    words = ["evaluation.measures=[my_measures.rejection]", "objective=mean_rejection"]
    swept(*SMALL, *words, "hydra.sweeper.direction=minimize", "hydra.sweeper.n_trials=1")
    assert study().costs["mean_rejection"].between(0, 1, inclusive="neither").all()


@pytest.mark.whole
@pytest.mark.parametrize(("rates", "code"), [("-1,0.01", 0), ("-1,-2", 1)])
def test_hydras_own_sweeper_has_objectives_and_an_exit_code(rates: str, code: int) -> None:
    words = """
        model=unfairlog hydra/sweeper=optuna hydra/sweeper/sampler=grid evaluation.split=validation
        hydra.sweep.dir=swept objective=[mean_utility,mean_dpu] hydra.sweeper.direction=[maximize,minimize]
    """.split()
    ended = typed("--multirun", *words, *SMALL[1:], f"model.learning_rate={rates}", cwd=HERE)
    assert ended.returncode == code, ended.stderr
    assert "model.learning_rate=-1.0 is not possible" in ended.stderr
    best = OmegaConf.load(HERE / "swept" / "optimization_results.yaml").solutions[0]
    assert (max(map(abs, best["values"])) <= 1) == (code == 0)


@pytest.mark.whole
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local", "ray"])
def test_launchers_of_many_processes(launcher: str) -> None:
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.removesuffix('_local')}_launcher")
    words = [f"hydra/launcher={launcher}", "hydra.sweeper.n_jobs=2", "hydra.sweeper.n_trials=3"]
    swept(*SMALL, *words)
    assert len(study().finished) == 3
