"""Commands that are killed before their writes and then repeated leave what they leave undisturbed."""

import re
import signal
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from fairall.decide.load import load_policy
from tests.conftest import Ended, Put, run_folder, succeeded, typed
from tests.kills import killed, survives

RUN = """
    dataset=credit preset=quick seeds=2 schedule.phase1_epochs=3 schedule.warm_up_epochs=3
    schedule.time_steps=8 evaluation.window=[4,8] evaluation.decisions=true checkpoint_seconds=0
""".split()
FILES = ("metrics.csv", "summary.json", "decisions.csv", "config.yaml", "policy/*", "figures/*")
RESULT = tuple(f"runs/*/*/*/{name}" for name in FILES)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP)
INTERRUPTED = r"fairall: interrupted; the same command (goes on from what was saved|starts anew)\n"
UNTRACKED = "tracking.enabled=false"
FOREST = "model.estimator={_target_:sklearn.ensemble.RandomForestClassifier,n_estimators:5}"
# Words, one of an undisturbed command before, if any, and the distance of writes between kills.
COMMANDS = {
    "FairAll": (["model=fairall_I_II", *RUN, UNTRACKED], None, 40),
    "FairLog": (["model=fairlog", *RUN, UNTRACKED], None, 20),
    "with MLflow": (["model=unfairlog", *RUN], UNTRACKED, 24),
    "a random forest": (["model=parcelling", FOREST, *RUN, UNTRACKED], None, 30),
    "once more": (["model=greedy", *RUN, UNTRACKED, "force=true"], UNTRACKED, 30),
}


def work(words: list[str], folder: Path) -> Ended:
    """Type a command, which says where it was interrupted, and nothing else."""
    ended = typed(*words, cwd=folder)
    assert re.fullmatch(INTERRUPTED if ended.returncode else "", ended.stderr)
    return ended


@pytest.mark.whole
@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_that_is_killed_or_stopped_gives_the_same_result(
    name: str, tmp_path: Path, empty_store: Put
) -> None:
    words, before, step = COMMANDS[name]
    begin = tmp_path / "begin"
    empty_store(begin / "outputs")
    if before is not None:
        killed(lambda folder: work([*words, before, "force=false"], folder), begin)
    assert survives(partial(work, words), begin, tmp_path, step=step, compared=RESULT, by=SIGNALS) > 2
    for database in tmp_path.glob("[0-9]*/outputs/mlflow.db") if "MLflow" in name else ():
        with closing(sqlite3.connect(database)) as connection:
            for table in ("runs", "logged_models"):
                ask = f"select count(*) from {table} where lifecycle_stage = 'active'"
                assert connection.execute(ask).fetchone() == (1,), table
            assert ("FINISHED", "active") in connection.execute("select status, lifecycle_stage from runs")


@pytest.mark.whole
def test_a_kill_leaves_nobodys_data(tmp_path: Path) -> None:
    begin = tmp_path / "begin"
    begin.mkdir()
    succeeded("model=fairlog", *RUN, "tracking.enabled=false", cwd=begin)
    policy = run_folder(begin / "outputs")
    load_policy(policy).reader.example().to_csv(begin / "people.csv", index=False)
    (begin / ".out.csv.swp").write_text("an editor's")
    words = ["decide", str(policy.relative_to(begin)), "people.csv", "-o", "out.csv"]
    assert survives(partial(work, words), begin, tmp_path) > 2
