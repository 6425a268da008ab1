"""Studies without runs: which process gets which trial, and what becomes of the trials of a killed one."""

import os
import random
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy
from omegaconf import DictConfig, OmegaConf

from fairall.config.schema import SweepConfig
from fairall.errors import FairAllError
from fairall.runtime.process import this_process
from fairall.tuning import study as of_study
from fairall.tuning.objectives import Objective
from fairall.tuning.samplers import SAMPLERS, next_point
from fairall.tuning.space import Space, key_of
from fairall.tuning.storage import exclusive, open_storage, storage_url
from fairall.tuning.study import SharedStudy, TakenOverError

SPACE = Space({"model.alpha": [1, 5, 10], "model.arch": ["[32,32]", "[64,64]"]})
OBJECTIVES = [Objective("loss", "minimize"), Objective("dpu", "minimize")]
NOTES = {"seconds": 1.0}

Begin = Callable[..., SharedStudy]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """The study of a sweep, as each process that works on it has it."""

    def begun(**changes: Any) -> SharedStudy:
        known = {"space": SPACE, "objectives": OBJECTIVES, "settings": {"seeds": "2"}, "target": 6}
        storage = open_storage(storage_url(None, str(tmp_path)))
        return SharedStudy.begin(storage, "study", **{**known, **changes})

    return begun


@pytest.fixture(autouse=True)
def _quiet() -> None:
    # As `open_storage` does.
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def sampler(target: str) -> DictConfig:
    """`hydra.sweeper.sampler`."""
    return OmegaConf.create({"_target_": target, "seed": None})


def rules(**changes: Any) -> SweepConfig:
    return SweepConfig(**{"attempts": 2, "grace_seconds": 60.0, "retry_failed": False, **changes})


def claim(study: SharedStudy, target: str = SAMPLERS[0], points: int = 6, **changes: Any) -> int | None:
    """Number of a trial that is claimed as the sweeper does; None where nothing remains."""
    with exclusive(study.url):
        study.release_abandoned(rules(**changes))
        if not study.enqueue_up_to(1, points, sampler(target)):
            return None
        trial = study.optuna_study.ask()
        for key, values in study.space.values.items():
            trial.suggest_categorical(key, values)
        study.own(trial.number)
    return trial.number


def finish(
    study: SharedStudy, number: int, per_seed: dict[str, list[float]] | None, notes: Any = NOTES
) -> None:
    """Tell a result as the plugin does."""
    study.finish(number, study.record(number, per_seed, notes))


def finished(study: SharedStudy, loss: float, target: str = SAMPLERS[0], points: int = 6) -> bool:
    """Claim a trial and finish it; whether there was one."""
    number = claim(study, target, points)
    if number is not None:
        finish(study, number, {"loss": [loss, loss + 1], "dpu": [0.1, 0.3]})
    return number is not None


def points(study: SharedStudy) -> Counter[Any]:
    return Counter(key_of(trial.point) for trial in study.trials())


@pytest.fixture
def dead_process() -> str:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return f"{this_process().rpartition(':')[0]}:{gone.pid}"


@pytest.mark.parametrize("target", SAMPLERS)
def test_several_at_once_try_every_point_once(
    target: str, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each thread as a process of its own.
    monkeypatch.setattr(of_study, "this_process", lambda: f"elsewhere:{threading.get_ident()}")

    def work() -> None:
        study, k = begin(), 0.0
        while finished(study, k := k + 1, target):
            pass

    at_work = [threading.Thread(target=work) for _ in range(3)]
    for thread in at_work:
        thread.start()
    for thread in at_work:
        thread.join()
    assert points(begin()) == Counter(key_of(point) for point in SPACE.points())
    assert {trial.state for trial in begin().trials()} == {"complete"}


def test_the_point_to_begin_with_is_tried_first_and_once(begin: Begin) -> None:
    first = list(SPACE.points())[3]
    for _ in range(2):  # each process that joins asks for it
        begin().enqueue_once(first, failed=False)
    while finished(begin(), 1.0, SAMPLERS[1]):
        pass
    assert begin().trials()[0].point == first
    assert points(begin()) == Counter(key_of(point) for point in SPACE.points())


@pytest.mark.parametrize("target", SAMPLERS)
def test_part_of_a_grid_can_be_continued(target: str, begin: Begin) -> None:
    while finished(begin(target=4), 1.0, target, points=4):
        pass
    assert len(begin().trials()) == 4
    while finished(begin(), 1.0):
        pass
    assert begin(target=1).target == 6, "a process that wants fewer does not stop the others"
    assert points(begin()) == Counter(key_of(point) for point in SPACE.points())


def test_a_batch_is_no_larger_than_what_remains(begin: Begin) -> None:
    study = begin()
    assert finished(study, 1.0)
    with exclusive(study.url):
        assert [study.enqueue_up_to(2, 4, sampler(SAMPLERS[0])) for _ in range(2)] == [2, 2]
        assert study.enqueue_up_to(9, 4, sampler(SAMPLERS[0])) == 3
    assert points(study) == Counter(key_of(point) for point in list(SPACE.points())[:4])


def test_tpe_proposes_points_where_trials_were_good() -> None:
    space = Space({"a": list(range(8)), "b": list(range(8))})
    distributions = {
        key: optuna.distributions.CategoricalDistribution(values) for key, values in space.values.items()
    }
    study = optuna.create_study()
    tried = random.Random(0).sample(list(space.points()), 24)
    for point in tried:
        study.add_trial(
            optuna.trial.create_trial(params=point, distributions=distributions, value=float(point["b"] != 7))
        )
    taken = {key_of(point) for point in tried}
    # What else is taken changes only the seed.
    proposed = [
        next_point(study, space, taken | {frozenset({("other", i)}) for i in range(k)}, sampler(SAMPLERS[2]))
        for k in range(10)
    ]
    assert not taken & {key_of(point) for point in proposed}
    assert sum(point["b"] == 7 for point in proposed) >= 5  # chance: 1.25


def test_the_trial_of_a_killed_process_is_taken_over(
    begin: Begin, dead_process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finished(begin(), 1.0)
    monkeypatch.setattr(of_study, "this_process", lambda: dead_process)
    left = claim(begin())
    monkeypatch.setattr(of_study, "this_process", lambda: f"elsewhere:{os.getpid()}")
    point = begin().trials()[1].point
    assert claim(begin()) == left == 1
    assert (begin().trials()[1].point, begin().trials()[1].notes["attempts"]) == (point, 2)
    monkeypatch.undo()
    assert claim(begin()) == 2, "the other is its new process's"


def test_a_process_killed_between_two_parameters_leaves_its_point(
    begin: Begin, dead_process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = begin()
    study.enqueue_up_to(1, 6, sampler(SAMPLERS[0]))
    trial = study.optuna_study.ask()
    trial.suggest_categorical("model.alpha", SPACE.values["model.alpha"])
    while finished(begin(), 1.0):
        pass
    assert points(begin()) == Counter(key_of(point) for point in SPACE.points())


def test_a_trial_that_is_being_added_is_seen_whole_or_not_at_all(begin: Begin) -> None:
    study, other, seen = begin(), begin(), []

    def look(*statement: Any) -> None:
        # Also what a process that is killed here would leave behind.
        seen.append([trial.point for trial in other.trials()])

    sqlalchemy.event.listen(study.storage.engine, "after_cursor_execute", look)
    with exclusive(study.url):
        study.enqueue_up_to(2, 6, sampler(SAMPLERS[0]))
    added = [trial.point for trial in study.trials()]
    assert len(added) == 2
    assert all(points == added[: len(points)] for points in seen)
    assert {len(points) for points in seen} == {0, 1, 2}


def test_studies_of_others_are_left_alone(begin: Begin, tmp_path: Path) -> None:
    storage = open_storage(storage_url(None, str(tmp_path)))
    optuna.create_study(study_name="other", storage=storage).ask()
    begun = optuna.create_study(study_name="study", storage=storage, directions=["minimize", "minimize"])
    assert of_study.study_names(str(storage.url)) == []
    assert finished(begin(), 1.0), "a study whose process was killed as it began it"
    assert begun.study_name in of_study.study_names(str(storage.url))
    with pytest.raises(FairAllError, match=r"the study other in sqlite:.* is not of `sweeps=`"):
        SharedStudy.begin(storage, "other", space=SPACE, objectives=OBJECTIVES[:1], settings={}, target=6)


def test_a_seed_gives_the_same_points_and_another_gives_others(begin: Begin) -> None:
    space = Space({"a": list(range(50))})
    study = begin().optuna_study

    def proposed(seed: int) -> list[Any]:
        config = OmegaConf.create({"_target_": SAMPLERS[1], "seed": seed})
        taken: set[Any] = set()
        for _ in range(5):
            taken.add(key_of(next_point(study, space, taken, config)))
        return sorted(dict(key)["a"] for key in taken)

    assert proposed(1) == proposed(1)
    assert len({*proposed(1)} & {*proposed(2)}) < 3


def test_a_trial_that_kills_its_process_again_and_again_has_failed(
    begin: Begin, dead_process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_study, "this_process", lambda: dead_process)
    assert [claim(begin()) for _ in range(2)] == [0, 0]
    monkeypatch.undo()
    assert claim(begin()) == 1
    poison = begin().trials()[0]
    assert poison.state == "fail"
    assert poison.notes["reason"] == "its process ended 2 times before it was done"


def test_a_process_of_another_machine_is_given_time(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    far = begin()
    monkeypatch.setattr(of_study, "this_process", lambda: f"elsewhere:{os.getpid()}")
    assert claim(far, grace_seconds=1.0) == 0
    monkeypatch.undo()
    with far.kept_alive([0], 1.0):
        time.sleep(1.5)
        assert claim(begin(), grace_seconds=1.0) == 1
    time.sleep(1.1)
    study = begin()
    assert claim(study, grace_seconds=1.0) == 0
    # Too late: the trial is another process's.
    monkeypatch.setattr(of_study, "this_process", lambda: f"elsewhere:{os.getpid()}")
    with pytest.raises(TakenOverError):
        far.record(0, {"loss": [9.0], "dpu": [9.0]}, NOTES)
    monkeypatch.undo()
    finish(study, 0, {"loss": [1.0], "dpu": [1.0]})
    assert begin().trials()[0].per_seed["loss"] == [1.0]


def test_failures_keep_their_reason_and_are_tried_again_only_when_requested(begin: Begin) -> None:
    study = begin()
    assert claim(study) == 0
    finish(study, 0, None, {"reason": "loss is not a number"})
    assert study.trials()[0].notes["reason"] == "loss is not a number"
    while finished(begin(), 1.0):
        pass
    assert Counter(trial.state for trial in begin().trials()) == {"fail": 1, "complete": 5}
    for _ in range(2):
        study.enqueue_once({}, failed=True)
    again = claim(study)
    assert again == 6
    assert study.trial(6).point == study.trial(0).point
    finish(study, 6, None, {"reason": "still"})
    assert claim(study) is None


def test_results_have_their_spread_over_seeds(begin: Begin) -> None:
    assert finished(begin(), 1.0)
    (trial,) = begin().trials()
    assert trial.per_seed == {"loss": [1.0, 2.0], "dpu": [0.1, 0.3]}
    assert trial.notes["std"]["loss"] == pytest.approx(0.5**0.5)
    assert begin().optuna_study.trials[0].values == pytest.approx([1.5, 0.2])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {"seeds": "3"}}, "was begun with seeds=2, not 3; give this sweep another name"),
        ({"space": Space({"model.alpha": [1]})}, "was begun with model.alpha="),
        ({"objectives": OBJECTIVES[:1]}, "was begun with objectives="),
    ],
)
def test_trials_that_cannot_be_compared_are_kept_apart(
    changes: dict[str, Any], said: str, begin: Begin
) -> None:
    begin()
    with pytest.raises(FairAllError) as error:
        begin(**changes)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "not the address of a database"),
        ("sqlite://", "a sweep is kept in a file"),
        ("oracle://host/name", "database cannot be shared"),
        ("postgresql+nothing://user:secret@127.0.0.1:9/name", "cannot use postgresql"),
        ("sqlite:////dev/null/studies.db", "cannot write to /dev/null"),
    ],
)
def test_a_database_out_of_reach_is_one_line(url: str, said: str) -> None:
    with pytest.raises(FairAllError) as error, exclusive(url):
        pass
    assert said in str(error.value)
    assert "secret" not in str(error.value)
    assert "\n" not in str(error.value)
