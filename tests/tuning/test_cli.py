"""Sweeps as a user types them."""

import contextlib
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from omegaconf import OmegaConf

from fairall.config.schema import SweepConfig
from fairall.errors import FairAllError
from fairall.results.interpretable import CAUTION
from fairall.tuning.__main__ import main
from fairall.tuning.objectives import Trial
from fairall.tuning.space import Space, key_of
from fairall.tuning.storage import storage_url
from fairall.tuning.study import SharedStudy
from fairall.tuning.sweeper import validated
from tests.conftest import typed
from tests.tuning.composed import composed

# A trial in seconds, and four of them.
SMALL = [
    "sweeps=unfairlog", "seeds=2", "model.clf_dropout=0.1", "schedule.time_steps=4",
    "evaluation.window=[1,4]", "tracking.enabled=false",
]  # fmt: skip


FOUR = [*SMALL, "model.learning_rate=0.001"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "fairall", "--multirun", *words]


def trials(folder: Path, name: str = "unfairlog_credit") -> list[Trial]:
    url = storage_url(None, str(folder / "outputs"))
    return SharedStudy.load(url, name).trials() if (folder / "outputs" / "sweeps").exists() else []


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a sweep was killed, and then ended by two processes at once."""
    folder = tmp_path_factory.mktemp("swept")
    with (folder / "killed.txt").open("w") as output:
        killed = subprocess.Popen(command(*FOUR), cwd=folder, stdout=output, stderr=output)
        deadline = time.monotonic() + 120
        while (folder / "killed.txt").read_text().count(" of 4  trial ") < 1:
            assert killed.poll() is None, (folder / "killed.txt").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    both = [
        subprocess.Popen(
            command(*FOUR), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert [err for _, err in ended] == ["", ""]
    (folder / "ended.txt").write_text("".join(out for out, _ in ended))
    return folder


def test_killed_and_shared_every_point_is_done_once(swept: Path) -> None:
    done = trials(swept)
    assert Counter(trial.state for trial in done) == {"complete": 4}
    assert len({key_of(trial.point) for trial in done}) == 4
    finished_before = (swept / "killed.txt").read_text().count(" of 4  trial ")
    killed = done[0].notes["worker"]
    assert Counter(trial.notes["worker"] == killed for trial in done)[True] >= finished_before
    # All that was under way when the process was killed was begun twice, and nothing else.
    assert sum(trial.notes["attempts"] - 1 for trial in done) <= 1
    assert "unfairlog_credit: 4 points, 4 finished, 0 to do\n" in (swept / "ended.txt").read_text()


def test_a_sweep_that_is_done_says_so(swept: Path) -> None:
    again = typed("--multirun", *FOUR, cwd=swept)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("unfairlog_credit: 4 points, 4 finished, 0 to do")
    assert "Selected: trial " in again.stdout


def test_studies_are_shown_exported_and_compared(
    swept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(swept)
    assert main([]) == 0
    assert "unfairlog_credit: 4 points, 4 finished" in capsys.readouterr().out
    assert main(["show", "unfairlog_credit"]) == 0
    shown = capsys.readouterr().out
    for said in ("Pareto set", "selected", "Importance of parameters", "the paper's", "clf_arch"):
        assert said in shown
    drawn = swept / "outputs" / "sweeps" / "unfairlog_credit.png"
    assert drawn.read_bytes().startswith(b"\x89PNG")
    assert main(["compare"]) == 0
    compared = capsys.readouterr().out
    assert "[64,64]" in compared  # the paper's
    assert "Ours is" in compared or "The same point" in compared

    assert main(["export", "unfairlog_credit", "tuned"]) == 0
    assert main(["export", "unfairlog_credit", "tuned"]) == 0, "what it has written, it may write again"
    words = shlex.split(capsys.readouterr().out.splitlines()[-1].removeprefix("Use it: "))
    used = typed(*words[3:], "--cfg", "job", cwd=swept)
    assert used.returncode == 0, used.stderr
    assert "hyperparameters: selected by the sweep unfairlog_credit" in used.stdout
    (swept / "tuned" / "hparams" / "unfairlog_credit.yaml").write_text("mine: 1\n")
    assert main(["export", "unfairlog_credit", "tuned"]) == 1
    assert "was not written by an export" in capsys.readouterr().err
    assert main(["show", "nonsense"]) == 1
    assert "nonsense: no such study in sqlite:" in capsys.readouterr().err


def test_a_quick_study_has_a_name_of_its_own_and_selects_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--multirun", *FOUR, "schedule.warm_up_epochs=2", "hydra.sweeper.n_trials=2"]
    quick = typed(*words, "preset=quick", cwd=tmp_path)
    assert (quick.returncode, quick.stderr) == (0, "")
    assert quick.stdout.count(CAUTION) == 3  # at the beginning, at the end, and for want of a selection
    assert "Selected" not in quick.stdout
    real = typed(*words, cwd=tmp_path)
    assert (real.returncode, real.stderr) == (0, "")
    assert CAUTION not in real.stdout
    sweeps = tmp_path / "outputs" / "sweeps"
    folders = {path.name for path in sweeps.iterdir() if path.is_dir()}
    assert folders == {"unfairlog_credit", "unfairlog_credit_quick"}
    assert {path.parent.name for path in sweeps.glob("*/optimization_results.yaml")} == {"unfairlog_credit"}

    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 0
    known, marked = capsys.readouterr().out.splitlines()
    assert known == "unfairlog_credit: 2 points, 2 finished, 0 to do"
    assert marked == f"unfairlog_credit_quick: 2 points, 2 finished, 0 to do ({CAUTION})"
    assert main(["show", "unfairlog_credit_quick"]) == 0
    shown = capsys.readouterr().out
    assert f"Nothing is selected: {CAUTION}." in shown
    for claim in ("Pareto", "Importance", "selected ", "the paper's", "export"):
        assert claim not in shown
    assert (sweeps / "unfairlog_credit_quick.png").read_bytes().startswith(b"\x89PNG")
    assert main(["compare"]) == 0
    compared = capsys.readouterr().out
    assert f"unfairlog_credit_quick: nothing to compare, {CAUTION}\n" in compared
    assert main(["export", "unfairlog_credit_quick", "tuned"]) == 1
    refused = capsys.readouterr().err
    assert refused == f"fairall: unfairlog_credit_quick has no selected trial to export: {CAUTION}\n"
    assert not (tmp_path / "tuned").exists()


def test_nothing_is_selected_over_what_defines_the_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = [*SMALL, "sweeps=cost", "model=unfairlog", "cost.value=0.2,0.8"]
    swept = typed("--multirun", *costs, cwd=tmp_path)
    assert (swept.returncode, swept.stderr) == (0, "")
    reason = "cost.value defines the problem"
    assert f"Nothing is selected: {reason}." in swept.stdout
    assert "Selected" not in swept.stdout
    assert not [*tmp_path.rglob("optimization_results.yaml")]
    monkeypatch.chdir(tmp_path)
    name = "cost_unfairlog_credit"
    assert main(["show", name]) == 0
    shown = capsys.readouterr().out
    assert f"Nothing is selected: {reason}." in shown
    # Every value has its row, also one that another beats in both objectives.
    assert [line.split()[1:4:2] for line in shown.splitlines() if line.startswith("│")] == [
        ["0", "0.2"], ["1", "0.8"]
    ]  # fmt: skip
    assert (tmp_path / "outputs" / "sweeps" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert main(["compare", name]) == 0
    assert capsys.readouterr().out == f"{name}: nothing to compare, {reason}\n"
    assert main(["export", name, "tuned"]) == 1
    assert capsys.readouterr().err == f"fairall: {name} has no selected trial to export: {reason}\n"
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize(
    "key", ["cost.value=0.2,0.4", "seed=0,9", "world.delay.steps=0,2", "protocol=text,corrected"]
)
def test_hyperparameters_are_selected_for_one_problem(key: str, tmp_path: Path) -> None:
    ended = typed("--multirun", *SMALL, key, cwd=tmp_path)
    name = key.partition("=")[0]
    assert (ended.returncode, ended.stderr) == (
        1,
        f"fairall: {name} defines the problem, and hyperparameters are selected for one problem: start a "
        f"sweep for each, with {name}=VALUE\n",
    )
    assert not [*tmp_path.iterdir()]


def test_failures_have_a_reason_and_end_nothing(tmp_path: Path) -> None:
    words = ["model.learning_rate=-1,1e30,0.01", "model.clf_arch=[32,32]"]
    ended = typed("--multirun", *SMALL, *words, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    negative, huge, good = trials(tmp_path)
    assert negative.notes["reason"] == "model.learning_rate=-1.0 is not possible: it must be positive"
    assert huge.notes["reason"].endswith(" is not a number in 2 of 2 seeds")
    assert [trial.state for trial in (negative, huge, good)] == ["fail", "fail", "complete"]
    assert "3 points, 1 finished, 2 failed, 0 to do" in ended.stdout


def test_a_mistake_in_a_sweep_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    ended = typed("--multirun", "sweeps=unfairlog", "model.alhpa=1,2", cwd=tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert "model.alhpa: no such key" in ended.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("evaluation.split=test", "a sweep looks at validation people only"),
        ("hydra/sweeper/sampler=nsgaii", "use hydra/sweeper/sampler=grid, random or tpe"),
        (
            "hydra.sweeper.max_failure_rate=0",
            "hydra.sweeper.max_failure_rate=0.0 is not possible",
        ),
        ("sweep.trial=half", "it must be run or phase1"),
        ("hydra.sweeper.n_trials=0", "hydra.sweeper.n_trials=0 is not possible: it must be at least 1"),
        ("hydra.sweeper.direction=minimize", "does not match objective=['classification_loss', 'mean_dpu']"),
        ("hydra.sweeper.direction=[minimise,minimize]", "it must be minimize or maximize"),
        ("objective=[classification_loss,fun]", "sweep.trial=run has no fun; there are effective_utility, "),
        ("objective=[]", "does not match objective=[]"),
        ("hydra.sweeper.study_name=../x", "it must be a plain name"),
        ("tracking.register=x", "null: register a run of the best trial instead"),
    ],
)
def test_impossible_sweeps_are_named(override: str, said: str) -> None:
    config = composed("sweeps=unfairlog", override)
    space = Space({"model.alpha": [1]})
    with pytest.raises(FairAllError) as error:
        validated(cast(SweepConfig, OmegaConf.to_object(config.sweep)), config.hydra.sweeper, space, config)
    assert said in str(error.value)


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that return measures without a run."""
    measures = {"classification_loss": [0.5, 0.6], "mean_dpu": [0.1, 0.2]}
    ended = {"measures": measures, "notes": {}, "seconds": 0.1}
    monkeypatch.setattr("fairall.tuning.trial.outcome", lambda composed: ended)


@pytest.mark.usefixtures("no_runs")
def test_a_batch_of_which_another_process_takes_over_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = SharedStudy.kept_alive

    @contextlib.contextmanager
    def frozen(study: SharedStudy, numbers: list[int], grace_seconds: float) -> Iterator[None]:
        with usual(study, numbers, grace_seconds):
            yield
        if 0 in numbers:  # this process was silent for too long
            study.storage.set_trial_user_attr(study.trial_id(0), "worker", "elsewhere:1")

    monkeypatch.setattr(SharedStudy, "kept_alive", frozen)
    ended = typed("--multirun", *FOUR, "hydra.sweeper.n_jobs=3", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "unfairlog_credit: 4 points, 3 finished, 1 running, 0 to do" in ended.stdout
    assert [(trial.state, trial.notes["attempts"]) for trial in trials(tmp_path)] == [
        ("running", 1), ("complete", 1), ("complete", 1), ("complete", 1)
    ]  # fmt: skip


@pytest.mark.usefixtures("no_runs")
def test_a_part_of_a_grid_and_then_the_rest_in_a_database_of_the_users(tmp_path: Path) -> None:
    words = ["--multirun", *FOUR, f"hydra.sweeper.storage=sqlite:///{tmp_path}/my.db"]
    part = typed(*words, "hydra/sweeper/sampler=tpe", "hydra.sweeper.n_trials=2", cwd=tmp_path)
    assert part.stdout.count(" of 2  trial ") == 2
    assert f"More: python -m fairall.tuning show unfairlog_credit {words[-1]}" in part.stdout
    assert "4 points, 4 finished" in typed(*words, cwd=tmp_path).stdout
    again = typed(*words, "hydra.sweeper.n_trials=2", cwd=tmp_path)
    assert "2 points, 4 finished, 0 to do" in again.stdout
    listed = typed("list", words[-1], cwd=tmp_path, module="fairall.tuning")
    assert listed.stdout == "unfairlog_credit: 4 points, 4 finished, 0 to do\n"


@pytest.mark.parametrize("word", ["dataset=credit,compas", "preset=quick,fast", "model=fairlog,unfairlog"])
def test_a_sweep_is_of_one_data_set_preset_and_method(word: str, tmp_path: Path) -> None:
    ended = typed("--multirun", *SMALL, word, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (
        1, "fairall: a sweep is of one data set, one preset and one method: start one for each\n"
    )  # fmt: skip
    assert not [*tmp_path.iterdir()]


def test_the_measure_of_a_user_is_an_objective(tmp_path: Path) -> None:
    (tmp_path / "my_measures.py").write_text(
        "from fairall.metrics import measure\n"
        "@measure(label='rejection rate', unit='share', higher_is_better=None)\n"
        "def rejection(propensity): return 1 - propensity.mean(-1)\n"
    )
    words = ["evaluation.measures=[my_measures.rejection]", "objective=mean_rejection"]
    words += ["hydra.sweeper.direction=minimize", "hydra.sweeper.n_trials=1"]
    ended = typed("--multirun", *SMALL, *words, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    (trial,) = trials(tmp_path)
    assert all(0 < value < 1 for value in trial.per_seed["mean_rejection"])


def test_objectives_are_those_of_hydras_own_sweeper_too(tmp_path: Path) -> None:
    words = ["model=unfairlog", *SMALL[1:], "hydra/sweeper=optuna", "hydra/sweeper/sampler=grid"]
    words += ["objective=[mean_utility,mean_dpu]", "hydra.sweeper.direction=[maximize,minimize]"]
    words += ["model.learning_rate=choice(-1,0.01)", "hydra.sweeper.n_jobs=1", "hydra.sweep.dir=swept"]
    ended = typed("--multirun", *words, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "model.learning_rate=-1.0 is not possible" in ended.stderr
    (best,) = OmegaConf.load(tmp_path / "swept" / "optimization_results.yaml").solutions
    assert best.params == {"model.learning_rate": 0.01}
    assert all(math.isfinite(value) for value in best["values"])


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
    ended = typed("--multirun", *SMALL, *launcher, "hydra.sweeper.n_trials=3", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert [trial.state for trial in trials(tmp_path)] == ["complete"] * 3
