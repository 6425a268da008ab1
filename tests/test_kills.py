"""Commands that are killed before their writes and then repeated leave what they leave undisturbed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fairall.cli.main import main
from fairall.decide.load import load_policy
from tests.conftest import Put, run_folder, succeeded
from tests.kills import killed, survives

RUN = """
    dataset=credit preset=quick seeds=2 schedule.phase1_epochs=3 schedule.warm_up_epochs=3
    schedule.time_steps=8 evaluation.window=[4,8] evaluation.decisions=true checkpoint_seconds=0
""".split()
FILES = ("metrics.csv", "summary.json", "decisions.csv", "config.yaml", "policy/*", "figures/*")
RESULT = tuple(f"runs/*/*/*/{name}" for name in FILES)
UNTRACKED = "tracking.enabled=false"
FOREST = "model.estimator={_target_:sklearn.ensemble.RandomForestClassifier,n_estimators:5}"
PIPELINE = (
    "model.estimator={_target_:sklearn.pipeline.Pipeline,steps:[[scale,"
    "{_target_:sklearn.preprocessing.StandardScaler}],[fit,{_target_:sklearn.naive_bayes.GaussianNB}]]}"
)
LIGHTGBM = "model.estimator={_target_:lightgbm.LGBMClassifier,verbose:-1,n_jobs:1}"
# Words, one of an undisturbed command before, if any, and the distance of writes between kills.
COMMANDS = {
    "FairAll": (["model=fairall_I_II", *RUN, UNTRACKED], None, 40),
    "FairLog": (["model=fairlog", *RUN, UNTRACKED], None, 30),
    "with MLflow": (["model=unfairlog", *RUN], UNTRACKED, 8),
    "a random forest": (["model=parcelling", FOREST, *RUN, UNTRACKED], None, 30),
    "a pipeline": (["model=estimator", PIPELINE, *RUN, UNTRACKED], None, 30),
    "LightGBM": (["model=estimator", LIGHTGBM, *RUN, UNTRACKED], None, 30),
    "once more": (["model=greedy", *RUN, UNTRACKED, "force=true"], UNTRACKED, 15),
}


def work(words: list[str]) -> None:
    assert main(words) == 0


@pytest.mark.whole
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_that_is_killed_gives_the_same_result(name: str, tmp_path: Path, empty_store: Put) -> None:
    words, before, step = COMMANDS[name]
    if name == "LightGBM":
        pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    begin = tmp_path / "begin"
    empty_store(begin / "outputs")
    if before is not None:
        killed(lambda _: work([word for word in words if "force" not in word] + [before]), begin)
    assert survives(lambda _: work(words), begin, tmp_path, step=step, compared=RESULT) > 2
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
    assert survives(lambda _: work(words), begin, tmp_path) > 2
