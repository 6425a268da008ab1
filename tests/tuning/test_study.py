"""Studies without runs: who gets which trial, and what is left of a process that dies."""

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

from fairall.errors import FairAllError
from fairall.runtime.process import this_process
from fairall.tuning import study as of_study
from fairall.tuning.objectives import Objective
from fairall.tuning.samplers import SAMPLERS, by_tpe, key_of
from fairall.tuning.space import Space
from fairall.tuning.storage import exclusive, storage_url
from fairall.tuning.study import Rules, SharedStudy

SPACE = Space({"model.alpha": [1, 5, 10], "model.arch": ["[32,32]", "[64,64]"]})
OBJECTIVES = [Objective("loss", "minimize"), Objective("dpu", "minimize")]
NOTES = {"seconds": 1.0}

Begin = Callable[..., SharedStudy]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """The study of a sweep, as each process that works on it has it."""

    def begun(**changes: Any) -> SharedStudy:
        known = {"space": SPACE, "objectives": OBJECTIVES, "settings": {"seeds": "2"}, "target": 6}
        return SharedStudy.begin(storage_url(None, str(tmp_path)), "study", **{**known, **changes})

    return begun


@pytest.fixture(autouse=True)
def _quiet() -> None:
    # What `open_storage` does where there is a storage to open.
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def rules(sampler: str = "grid", target: int = 6, **changes: Any) -> Rules:
    known = {"attempts": 2, "grace_seconds": 60.0, "retry_failed": False}
    return Rules(SAMPLERS[sampler], target, **{**known, **changes})


def finished(study: SharedStudy, loss: float, rules: Rules) -> bool:
    """Claims a trial and finishes it; whether there was one."""
    trial = study.claim(rules)
    if trial is not None:
        study.finish(trial, {"loss": [loss, loss + 1], "dpu": [0.1, 0.3]}, NOTES)
    return trial is not None


def points(study: SharedStudy) -> Counter[Any]:
    return Counter(key_of(trial.point) for trial in study.trials())


@pytest.fixture
def dead_process() -> str:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return f"{this_process().rpartition(':')[0]}:{gone.pid}"


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_several_at_once_try_every_point_once(sampler: str, begin: Begin) -> None:
    def work() -> None:
        study, k = begin(), 0.0
        while finished(study, k := k + 1, rules(sampler)):
            pass

    at_work = [threading.Thread(target=work) for _ in range(3)]
    for thread in at_work:
        thread.start()
    for thread in at_work:
        thread.join()
    assert points(begin()) == Counter(key_of(point) for point in SPACE.points())
    assert {trial.state for trial in begin().trials()} == {"complete"}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_point_to_begin_with_is_tried_first_and_once(sampler: str, begin: Begin) -> None:
    first = list(SPACE.points())[3]
    while finished(begin(), 1.0, rules(sampler, first=first)):
        pass
    assert begin().trials()[0].point == first
    assert points(begin()) == Counter(key_of(point) for point in SPACE.points())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_part_of_a_grid_can_be_gone_on_with(sampler: str, begin: Begin) -> None:
    while finished(begin(), 1.0, rules(sampler, target=4)):
        pass
    assert len(begin().trials()) == 4
    while finished(begin(), 1.0, rules("grid")):
        pass
    assert points(begin()) == Counter(key_of(point) for point in SPACE.points())


def test_tpe_looks_where_trials_were_good() -> None:
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
    proposed = []
    for k in range(10):
        # What else is taken only makes it draw anew.
        others = {frozenset({("other", i)}) for i in range(k)}
        proposed.append(by_tpe(study, space, taken | others, 40))
    assert not taken & {key_of(point) for point in proposed if point}
    assert sum(point["b"] == 7 for point in proposed if point) >= 5  # chance: 1.25


def test_what_a_killed_process_has_left_is_taken_over(
    begin: Begin, dead_process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finished(begin(), 1.0, rules())
    monkeypatch.setattr(of_study, "this_process", lambda: dead_process)
    left = begin().claim(rules())
    monkeypatch.undo()
    assert left is not None
    study = begin()
    again = study.claim(rules())
    assert again is not None
    assert (again.number, again.point) == (left.number, left.point)
    assert again.notes["attempts"] == 2
    # It is ours now, and nobody else's.
    others = begin().claim(rules())
    assert others is not None
    assert others.number == left.number + 1


def test_a_trial_that_kills_its_process_again_and_again_has_failed(
    begin: Begin, dead_process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_study, "this_process", lambda: dead_process)
    first = [begin().claim(rules()) for _ in range(2)]
    monkeypatch.undo()
    assert [trial.number for trial in first if trial] == [0, 0]
    following = begin().claim(rules())
    assert following is not None
    assert following.number == 1
    poison = begin().trials()[0]
    assert poison.state == "fail"
    assert poison.notes["reason"] == "its process ended 2 times before it was done"


def test_a_process_of_another_machine_is_given_time(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_study, "this_process", lambda: f"elsewhere:{os.getpid()}")
    far = begin()
    trial = far.claim(rules(grace_seconds=1.0))
    monkeypatch.undo()
    assert trial is not None
    with far.kept_alive([trial], rules(grace_seconds=1.0)):
        time.sleep(1.5)
        another = begin().claim(rules(grace_seconds=1.0))
    assert another is not None
    assert another.number == 1
    time.sleep(1.1)
    study = begin()
    taken_over = study.claim(rules(grace_seconds=1.0))
    assert taken_over is not None
    assert taken_over.number == 0
    study.finish(taken_over, {"loss": [1.0], "dpu": [1.0]}, NOTES)
    # Too late: the result that is there stays.
    far.finish(trial, {"loss": [9.0], "dpu": [9.0]}, NOTES)
    assert begin().trials()[0].per_seed["loss"] == [1.0]


def test_failures_keep_their_reason_and_are_tried_again_only_when_requested(begin: Begin) -> None:
    study = begin()
    trial = study.claim(rules())
    assert trial is not None
    assert (
        study.finish(trial, None, {"reason": "loss is not a number"}).notes["reason"]
        == "loss is not a number"
    )
    while finished(begin(), 1.0, rules()):
        pass
    assert Counter(trial.state for trial in begin().trials()) == {"fail": 1, "complete": 5}
    study = begin()
    again = study.claim(rules(retry_failed=True))
    assert again is not None
    assert again.point == trial.point
    study.finish(again, None, {"reason": "still"})
    assert study.claim(rules(retry_failed=True)) is None


def test_results_have_their_spread_over_seeds(begin: Begin) -> None:
    assert finished(begin(), 1.0, rules())
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
        ("oracle://host/name", "cannot be shared by sweeps"),
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
