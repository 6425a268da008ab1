"""Commands as a user types them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.cli.verbs import LISTS
from fairall.metrics import STANDARD, curves
from fairall.policy import Policy
from fairall.runtime.process import this_process
from fairall.storage.run_folder import RunFolder
from tests.conftest import LOANS as TABLE
from tests.conftest import MEANING, imported, own_process, refused, run_folder, succeeded, typed

QUICK = [
    "model=fairall_I_II",
    "dataset=credit",
    "preset=quick",
    "tracking.enabled=false",
    "schedule.warm_up_epochs=2",
    "checkpoint_seconds=600",  # else a slow machine leaves two checkpoints
]
COMMAND = shlex.join(["python", "-m", "fairall", *QUICK])

LOANS = """
    dataset=csv dataset.drop=[id] dataset.decision=decision dataset.accepted=granted
    dataset.propensity=propensity initial_policy=logged
""".split()
LOANS += [*MEANING, f"dataset.path={TABLE}"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the quick command has been run once, in a process without a font cache."""
    folder, fonts = tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("matplotlib")
    ended = own_process(
        "-m", "fairall", *QUICK, cwd=folder, env={**os.environ, "COLUMNS": "200", "MPLCONFIGDIR": str(fonts)}
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [*fonts.glob("fontlist*.json")]
    return folder


def test_a_run_leaves_what_the_readme_says(quick: Path) -> None:
    folder = run_folder(quick / "outputs")
    assert folder.parts[-3:-1] == ("fairall_I_II", "credit")
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert left == set(
        """
        config.yaml metrics.csv summary.json model_card.md checkpoint.pt tracking.json DONE
        figures/learning.png figures/phase1.png figures/latent.png policy/SUMS policy/config.yaml
        policy/features.json policy/weights.safetensors
    """.split()
    )
    assert {path.name for path in quick.iterdir()} == {"outputs"}


def test_metrics_have_a_row_per_seed_and_step_from_which_the_summary_follows(quick: Path) -> None:
    folder = run_folder(quick / "outputs")
    table, summary = pd.read_csv(folder / "metrics.csv"), json.loads((folder / "summary.json").read_text())
    assert [*table] == ["seed", "time_step", *(quantity.name for quantity in curves(STANDARD))]
    rows = table.set_index(["seed", "time_step"])
    assert rows.index.equals(pd.MultiIndex.from_product([(0, 1), range(9)]))
    known = rows.notna()
    assert known[["utility", "dpu", "utility_sampled", "dpu_sampled"]].all(axis=None)
    later = known[["effective_utility", "effective_dpu", "acceptance_rate"]].all(axis=1)
    assert later.tolist() == 2 * [False, *8 * [True]]
    # Credit has neither counterfactuals nor a ground truth.
    assert not known[["cfu", "ground_truth_utility"]].any(axis=None)
    late = table[table["time_step"].between(4, 8)].groupby("seed")
    found = pd.DataFrame(summary["per_seed"])[["mean_utility", "tv_dpu"]]
    assert found.to_numpy() == pytest.approx(np.c_[late["utility"].mean(), late["dpu"].std()], abs=1e-6)
    means = pd.DataFrame(summary["aggregate"]).loc["mean"]
    assert [*means[[*found]]] == pytest.approx([*found.mean()], abs=1e-6)
    assert 0 <= means["latent_s_auc"] <= 1


def test_another_cost_or_initial_policy_reuses_phase1(quick: Path, tmp_path: Path) -> None:
    outputs = shutil.copytree(quick / "outputs", tmp_path / "outputs")
    cache = outputs / "cache" / "phase1"
    (trained,) = cache.glob("*.pt")
    before = trained.stat().st_mtime_ns
    for words in (["cost.value=0.3"], ["initial_policy=lenient"]):
        succeeded(*QUICK, *words, cwd=tmp_path)
    assert [*cache.glob("*.pt")] == [trained]
    assert trained.stat().st_mtime_ns == before


@pytest.mark.whole
def test_a_sweep_runs_every_grid_point(tmp_path: Path) -> None:
    params = "hydra.sweeper.params={model.alpha: 'choice(7)'}"
    succeeded("--multirun", "sweeps=credit_alpha_beta", *QUICK, params, cwd=tmp_path)
    assert len([*tmp_path.glob("outputs/runs/*/*/*/DONE")]) == 3  # alpha as given here, beta as in the file
    assert len([*tmp_path.glob("outputs/cache/phase1/*.pt")]) == 1


def test_one_bad_job_does_not_end_the_others(tmp_path: Path) -> None:
    ended = typed("--multirun", *QUICK, "cost.value=1.2,0.5", cwd=tmp_path)
    assert ended.returncode == 1
    told, by_hydra = ended.stderr.splitlines()
    assert told.startswith("fairall: cost.value=1.2 is not possible")
    assert "'cost.value=1.2'" in by_hydra
    assert (run_folder(tmp_path / "outputs") / "DONE").exists()


def test_a_seed_that_diverges_is_a_result_and_one_line(tmp_path: Path) -> None:
    said = refused(*QUICK, "model.learning_rate=1e6", cwd=tmp_path, drawn=True)
    assert "objective=mean_utility has no value" in said
    folder = run_folder(tmp_path / "outputs")
    assert (folder / "DONE").exists()
    assert json.loads((folder / "summary.json").read_text())["aggregate"]["mean_utility"] is None


def test_list_has_what_is_shipped_and_ones_own(tmp_path: Path) -> None:
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "mine.yaml").write_text("# People of mine.\nname: mine\n")
    lines = succeeded("list", "-cd", "conf", cwd=tmp_path).stdout.splitlines()
    assert ["mine", "People of mine."] in [line.split(maxsplit=1) for line in lines]
    assert {f"{group}=" for group in LISTS.values()} <= {*lines}
    assert lines[-1].startswith("no runs in outputs/runs yet; ")
    composed = succeeded("-cd", "conf", "dataset=mine", "--cfg", "job", cwd=tmp_path)
    assert "dataset:\n  name: mine\n" in composed.stdout
    narrowed = succeeded("list", "worlds", cwd=tmp_path).stdout
    first = re.findall(r"^\s*(\S+)", narrowed, re.MULTILINE)
    assert first == "world= capacity delay drift feedback noise static".split()


@pytest.fixture
def outputs(quick: Path, tmp_path: Path) -> Path:
    """A copy of the outputs of the quick command."""
    return shutil.copytree(quick / "outputs", tmp_path / "moved")


def document(*words: str, cwd: Path) -> Any:
    return json.loads(succeeded(*words, "--json", cwd=cwd).stdout)


def test_list_and_show_a_finished_run(quick: Path, outputs: Path, tmp_path: Path) -> None:
    folder = run_folder(outputs)
    first = typed(*QUICK, cwd=quick).stdout  # already done
    shown = succeeded("show", folder.name[:5], "outputs_dir=moved", cwd=tmp_path).stdout
    assert first[first.index("┏") : first.index("Results:")] in shown
    assert f"\npath: {folder}\ncommand: {COMMAND}" in shown
    summary = json.loads((folder / "summary.json").read_text())
    plain = document("show", folder.name, "outputs_dir=moved", cwd=tmp_path)
    assert plain.items() >= {**summary, "state": "finished"}.items()
    (run,) = document("list", "outputs_dir=moved", cwd=tmp_path)["runs"]
    assert (run["id"], run["state"], run["command"]) == (folder.name, "quick", plain["command"])
    assert run["measures"]["mean_utility"][0] == summary["aggregate"]["mean_utility"]["mean"]
    (folder.parent / "no_run").mkdir()
    for part in (" fairall_I_II │ credit  │ quick", " summary.json is damaged or missing"):
        said = succeeded("list", "runs", "outputs_dir=moved", cwd=tmp_path).stdout
        assert len(re.findall(f"{folder.name}.*{part}", said)) == 1
        assert "no_run" not in said
        (folder / "summary.json").write_text("{")


def test_list_and_show_a_run_on_its_way(outputs: Path, tmp_path: Path) -> None:
    folder = run_folder(outputs)
    (folder / "DONE").unlink()

    def shown() -> list[Any]:
        (listed,) = document("list", "runs", "outputs_dir=moved", cwd=tmp_path)["runs"]
        run = document("show", str(folder), cwd=tmp_path)
        assert run["command"].startswith(COMMAND)
        return [listed["state"], *(run[key] for key in ("state", "process", "warm_up_epochs", "time_steps"))]

    assert shown() == ["interrupted", "interrupted", None, 2, 8]
    with RunFolder(folder).locked():
        assert shown() == ["running", "running", this_process(), 2, 8]
    (folder / "checkpoint.pt").unlink()
    assert shown() == ["interrupted", "interrupted", None, 0, 0]


@pytest.mark.parametrize("command", ["fairall", "fairall list", "fairall tune report"])
def test_a_deleted_working_folder_is_one_line(command: str, tmp_path: Path) -> None:
    script = f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -m {command}"
    ended = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    # The shell may have something to say of its own.
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        1,
        "fairall: the current folder has been deleted; change to another one with cd FOLDER",
    )


def test_a_terminal_without_the_characters_gets_escapes(quick: Path) -> None:
    said = [succeeded(*words, cwd=quick, encoding="ascii").stdout for words in (QUICK, ["--help"], ["list"])]
    assert "?" not in "".join(said)
    assert re.search(r"^[|+].* \\xb1 ", said[0], re.MULTILINE)


def test_a_table_of_ones_own_wherever_it_lies(tmp_path: Path) -> None:
    words = [*LOANS, *QUICK[2:], "model.phase1.updates=4"]
    said = succeeded(*words, cwd=tmp_path).stdout
    folder = run_folder(tmp_path / "outputs")
    (limited,) = re.findall(r"^Note: (.*Phase I is limited to 2 epochs of 20.*)\.$", said, re.MULTILINE)
    assert limited in json.loads((folder / "summary.json").read_text())["notes"]
    policy, people = Policy.load(folder / "policy"), pd.read_csv(TABLE)
    # The words of the file are understood: another purpose is another person.
    assert (policy.propensity(people.assign(purpose="car")) != policy.propensity(people)).any()
    shutil.copy(TABLE, tmp_path / "moved.csv")
    assert "Already done" in typed(*words, "dataset.path=moved.csv", cwd=tmp_path).stdout


def test_a_run_begins_without_what_only_its_end_needs() -> None:
    late = ("sklearn", "scipy.stats", "scipy.optimize", "matplotlib", "PIL", "jinja2", "mlflow", "sqlalchemy")
    assert imported("import fairall.experiment", *late, "optuna", "torch._dynamo") == ("", [])
