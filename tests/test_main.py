"""Commands as a user types them."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fairall import __version__
from fairall.display.format import CAUTION
from fairall.measuring.summary import columns
from fairall.metrics import STANDARD, summaries
from fairall.policy import Policy
from fairall.runtime.process import this_process
from fairall.storage.run_folder import RunFolder
from tests.conftest import MEANING, imported, own_process, refused, run_folder, succeeded, typed

HEAVY = ("torch", "numpy", "pandas", "sklearn", "matplotlib", "mlflow", "optuna")
QUICK = [
    "model=fairall_I_II",
    "dataset=credit",
    "preset=quick",
    "tracking.enabled=false",
    "schedule.warm_up_epochs=2",
    "checkpoint_seconds=600",  # else a slow machine leaves two checkpoints
]

TABLE = Path(__file__).parent / "data" / "loans.csv"
LOANS = [
    "dataset=csv",
    f"dataset.path={TABLE}",
    *MEANING,
    *"""
        dataset.drop=[id] dataset.decision=decision dataset.accepted=granted dataset.propensity=propensity
        initial_policy=logged
    """.split(),
]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the quick command has been run once, in a process without a font cache."""
    folder, fonts = tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("matplotlib")
    ended = own_process("-m", "fairall", *QUICK, cwd=folder, env={**os.environ, "MPLCONFIGDIR": str(fonts)})
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "effective_utility" in ended.stdout
    assert [*fonts.glob("fontlist*.json")]
    return folder


def test_a_run_leaves_what_the_readme_says(quick: Path) -> None:
    folder = run_folder(quick / "outputs")
    assert folder.parts[-3:-1] == ("fairall_I_II", "credit")
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert left == set(
        """
        config.yaml metrics.csv summary.json model_card.md checkpoint.pt tracking.json DONE
        figures/learning.png figures/phase1.png policy/SUMS policy/config.yaml
        policy/features.json policy/weights.safetensors
    """.split()
    )
    assert {path.name for path in quick.iterdir()} == {"outputs"}


def test_metrics_have_a_row_per_seed_and_step(quick: Path) -> None:
    table = pd.read_csv(run_folder(quick / "outputs") / "metrics.csv")
    assert list(table.columns) == columns()
    assert [*zip(table["seed"], table["time_step"], strict=True)] == [
        (k, t) for k in (0, 1) for t in range(9)
    ]
    start = table[table["time_step"] == 0]
    assert start[["effective_utility", "effective_dpu", "acceptance_rate"]].isna().all(axis=None)
    assert table[["utility", "dpu", "utility_sampled", "dpu_sampled"]].notna().all(axis=None)
    # Credit has neither counterfactuals nor a ground truth.
    assert table[["cfu", "ground_truth_utility"]].isna().all(axis=None)


def test_summary_follows_from_the_metrics(quick: Path) -> None:
    folder = run_folder(quick / "outputs")
    table, summary = pd.read_csv(folder / "metrics.csv"), json.loads((folder / "summary.json").read_text())
    for k, measures in enumerate(summary["per_seed"]):
        own = table[table["seed"] == k].set_index("time_step")
        assert measures["effective_utility"] == pytest.approx(own["effective_utility"].loc[8], abs=1e-6)
        assert measures["mean_utility"] == pytest.approx(own["utility"].loc[4:8].mean(), abs=1e-6)
        assert measures["tv_dpu"] == pytest.approx(own["dpu"].loc[4:8].std(), abs=1e-6)
        assert measures["mean_cfu"] is None
    for name in (quantity.name for quantity in summaries(STANDARD)):
        values = [measures[name] for measures in summary["per_seed"]]
        if None not in values:
            assert summary["aggregate"][name]["mean"] == pytest.approx(sum(values) / 2)
    assert summary["aggregate"]["mean_cfu"] is None
    assert 0 <= summary["aggregate"]["latent_s_auc"]["mean"] <= 1


def test_the_same_command_returns_at_once_and_force_gives_the_same_numbers(quick: Path) -> None:
    folder = run_folder(quick / "outputs")
    first, written = (folder / "metrics.csv").read_bytes(), (folder / "DONE").stat().st_mtime_ns
    again = typed(*QUICK, cwd=quick)
    assert again.stdout.startswith("Already done")
    assert (folder / "DONE").stat().st_mtime_ns == written
    succeeded(*QUICK, "force=true", cwd=quick)
    assert (folder / "DONE").stat().st_mtime_ns > written
    assert (folder / "metrics.csv").read_bytes() == first


def test_another_cost_or_initial_policy_reuses_phase1(quick: Path, tmp_path: Path) -> None:
    outputs = shutil.copytree(quick / "outputs", tmp_path / "outputs")
    cache = outputs / "cache" / "phase1"
    (trained,) = cache.glob("*.pt")
    before = trained.stat().st_mtime_ns
    for words in (["cost.value=0.3"], ["initial_policy=lenient"]):
        succeeded(*QUICK, *words, cwd=tmp_path)
    assert [*cache.glob("*.pt")] == [trained]
    assert trained.stat().st_mtime_ns == before


def test_saved_policy_decides_on_raw_people(quick: Path) -> None:
    from fairall.data.credit import MALE, raw_applicants
    from fairall.errors import FairAllError

    folder = next((quick / "outputs" / "runs" / "fairall_I_II" / "credit").glob("*/policy"))
    people = raw_applicants().head(20)
    people = people.assign(s=people["personal_status"].isin(MALE) * 2 - 1)
    propensity = Policy.load(folder).propensity(people)
    assert propensity.shape == (2, 20)
    assert ((propensity >= 0) & (propensity <= 1)).all()
    assert (propensity == Policy.load(folder).propensity(people)).all()
    with pytest.raises(FairAllError, match="'age'"):
        Policy.load(folder).propensity(people.drop(columns="age"))
    with pytest.raises(FairAllError, match="−1 or \\+1"):
        Policy.load(folder).propensity(people.assign(s=0))


@pytest.mark.whole
def test_a_sweep_runs_every_grid_point(tmp_path: Path) -> None:
    succeeded(
        "--multirun",
        "sweeps=credit_alpha_beta",
        *QUICK,
        "hydra.sweeper.params={model.alpha: 'choice(7)'}",
        cwd=tmp_path,
    )
    folders = [*(tmp_path / "outputs").glob("runs/*/*/*/DONE")]
    assert len(folders) == 3  # alpha as given here, beta as in the file
    assert len([*(tmp_path / "outputs" / "cache" / "phase1").glob("*.pt")]) == 1


def test_one_bad_job_does_not_end_the_others(tmp_path: Path) -> None:
    ended = typed("--multirun", *QUICK, "cost.value=1.2,0.5", cwd=tmp_path)
    assert ended.returncode == 1
    told, by_hydra = ended.stderr.splitlines()
    assert told.startswith("fairall: cost.value=1.2 is not possible")
    assert "'cost.value=1.2'" in by_hydra
    assert (run_folder(tmp_path / "outputs") / "DONE").exists()


def test_a_seed_that_diverges_is_a_result_and_one_line(tmp_path: Path) -> None:
    assert "objective=mean_utility has no value" in refused(
        *QUICK, "model.learning_rate=1e6", cwd=tmp_path, drawn=True
    )
    folder = run_folder(tmp_path / "outputs")
    assert (folder / "DONE").exists()
    assert json.loads((folder / "summary.json").read_text())["aggregate"]["mean_utility"] is None


def test_list_says_what_there_is_with_ones_own(tmp_path: Path) -> None:
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "mine.yaml").write_text("# People of mine.\nname: mine\n")
    ended = succeeded("list", "-cd", "conf", cwd=tmp_path)
    lines = [line.split(maxsplit=1) for line in ended.stdout.splitlines()]
    assert ["mine", "People of mine."] in lines
    for group in "model= dataset= initial_policy= exploration= world= cost= protocol= preset=".split():
        assert [group] in lines
    # Nothing has been run: the commands that do.
    assert "none in outputs/runs yet; python -m fairall preset=quick" in ended.stdout
    assert "none in outputs yet; python -m fairall " in ended.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"conf"}
    helped = succeeded("-cd", "conf", "dataset=mine", "--help", cwd=tmp_path)
    assert "dataset:\n  name: mine\n" in helped.stdout


def test_list_narrows(tmp_path: Path) -> None:
    for word in ("worlds", "world"):
        said = typed("list", word, cwd=tmp_path).stdout.splitlines()
        assert [
            line.split()[0] for line in said if line
        ] == "world= capacity delay drift feedback noise static".split()
    assert "--multirun sweeps=" in typed("list", "sweeps", cwd=tmp_path).stdout


@pytest.fixture
def outputs(quick: Path, tmp_path: Path) -> Path:
    """A copy of the outputs of the quick command."""
    return shutil.copytree(quick / "outputs", tmp_path / "moved")


def test_list_and_show_a_finished_run(quick: Path, outputs: Path, tmp_path: Path) -> None:
    folder = run_folder(outputs)
    listed = typed("list", "runs", "outputs_dir=moved", cwd=tmp_path)
    (line,) = [line.split() for line in listed.stdout.splitlines() if folder.name in line]
    assert line[:4] == [folder.name, "fairall_I_II", "credit", "quick"]
    assert listed.stdout.endswith(f"\n  {CAUTION}\n\n")
    mean = json.loads((folder / "summary.json").read_text())["aggregate"]["mean_utility"]["mean"]
    assert f"{100 * mean:.2f} ±" in " ".join(line)
    first = typed(*QUICK, cwd=quick).stdout  # already done
    table = first[first.index("┏") : first.index("Results:")]
    shown = succeeded("show", folder.name[:5], "outputs_dir=moved", cwd=tmp_path)
    assert table in shown.stdout
    for note in json.loads((folder / "summary.json").read_text())["notes"]:
        assert f"Note: {note}." in shown.stdout
    for name in ("learning", "phase1"):
        assert f"Figure:  {folder / 'figures' / name}.png" in shown.stdout
    assert f"Policy:  {folder / 'policy'}" in shown.stdout
    assert "MLflow:  not logged, by tracking.enabled=false" in shown.stdout
    (command,) = [line for line in shown.stdout.splitlines() if line.startswith("Command: ")]
    assert command.startswith(f"Command: {shlex.join(['python', '-m', 'fairall', *QUICK])}")
    for same in (folder, folder / "policy"):
        assert typed("show", str(same), cwd=tmp_path).stdout == shown.stdout


def test_list_and_show_a_run_on_its_way(outputs: Path, tmp_path: Path) -> None:
    folder = run_folder(outputs)
    (folder / "DONE").unlink()

    def states() -> tuple[str, str]:
        line = next(
            line
            for line in typed("list", "runs", "outputs_dir=moved", cwd=tmp_path).stdout.splitlines()
            if folder.name in line
        )
        return line.split()[3], typed("show", str(folder), cwd=tmp_path).stdout

    listed, shown = states()
    assert listed == "interrupted"
    assert "\nInterrupted.\nSaved:   2 epochs of the warm-up, 8 of 8 time steps of Phase II\n" in shown
    assert f"Go on:   {shlex.join(['python', '-m', 'fairall', *QUICK])}" in shown
    with RunFolder(folder).locked():
        listed, shown = states()
        assert listed == "running"
        assert f"\nRunning: {this_process()}\n" in shown
    (folder / "checkpoint.pt").unlink()
    assert "Saved:   nothing of the warm-up or Phase II yet\n" in states()[1]


def test_a_damaged_run_is_one_line_of_list(outputs: Path, tmp_path: Path) -> None:
    folder = run_folder(outputs)
    (folder / "summary.json").write_text("{")
    (folder.parent / "no_run").mkdir()
    listed = succeeded("list", "runs", "outputs_dir=moved", cwd=tmp_path)
    (line,) = [line for line in listed.stdout.splitlines() if folder.name in line]
    assert "summary.json is damaged or missing; the same command makes it again" in line
    assert "no_run" not in listed.stdout


def test_version_is_fairalls(tmp_path: Path) -> None:
    ended = typed("--version", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, f"fairall {__version__}\n")


COMMANDS = ["fairall", "fairall data", "fairall list", "fairall tune", "fairall mlflow sync"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_deleted_working_folder_is_one_line(command: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -m {command}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    # The shell may have something to say of its own.
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "fairall: the current folder has been deleted; change to another one with cd FOLDER"
    )


def test_a_terminal_without_the_characters_gets_escapes(quick: Path) -> None:
    run = run_folder(quick / "outputs").name
    for words in (QUICK, ["--help"], ["data"], ["show", run], ["list"], ["tune"]):
        ended = succeeded(*words, cwd=quick, encoding="ascii")
        assert "?" not in ended.stdout
        if words == QUICK:
            boxes = [line for line in ended.stdout.splitlines() if line.startswith(("|", "+"))]
            assert any(r" \xb1 " in line for line in boxes)


def test_a_table_of_ones_own_wherever_it_lies(tmp_path: Path) -> None:
    words = [*LOANS, *QUICK[2:], "model.phase1.updates=4"]
    ended = succeeded(*words, cwd=tmp_path)
    folder = run_folder(tmp_path / "outputs")
    (limited,) = [
        line for line in ended.stdout.splitlines() if "Phase I is limited to 2 epochs of 20" in line
    ]
    notes = json.loads((folder / "summary.json").read_text())["notes"]
    assert limited.removeprefix("Note: ").removesuffix(".") in notes
    table = pd.read_csv(folder / "metrics.csv")
    assert table[["utility", "dpu", "utility_sampled", "dpu_sampled"]].notna().all(axis=None)
    policy = Policy.load(folder / "policy")
    people = pd.read_csv(TABLE)
    people["s"] = people["sex"].map({"male": 1, "female": -1})
    propensity = policy.propensity(people)
    assert propensity.shape == (2, 400)
    assert ((propensity >= 0) & (propensity <= 1)).all()
    # The words of the file are understood: another purpose is another person.
    assert (policy.propensity(people.assign(purpose="car")) != propensity).any()
    shutil.copy(TABLE, tmp_path / "moved.csv")
    assert "Already done" in typed(*words, "dataset.path=moved.csv", cwd=tmp_path).stdout


@pytest.mark.whole
def test_synthetic_people_and_their_counterfactuals(tmp_path: Path) -> None:
    succeeded(*QUICK, "dataset=synthetic", "schedule.phase1_epochs=1", cwd=tmp_path, drawn=True)
    table = pd.read_csv(run_folder(tmp_path / "outputs") / "metrics.csv")
    later = table[table["time_step"] > 0]
    assert (
        later[["cfu", "ground_truth_utility", "effective_cfu", "effective_ground_truth_utility"]]
        .notna()
        .all(axis=None)
    )


def test_a_data_set_chooses_its_initial_policy_unless_told(tmp_path: Path) -> None:
    for words, name in ([], "random"), (["initial_policy=lenient"], "lenient"):
        ended = typed("dataset=csv", *words, "--cfg", "job", "--package", "initial_policy", cwd=tmp_path)
        assert f"name: {name}" in ended.stdout


def test_help_lists_groups_keys_and_no_schemas(tmp_path: Path) -> None:
    ended = typed("--help", cwd=tmp_path)
    assert ended.returncode == 0
    assert "initial_policy: harsh, lenient, logged, random\n" in ended.stdout
    assert "dataset: adult, compas, credit, csv, fico, law, meps, synthetic\n" in ended.stdout
    assert "_schema" not in ended.stdout
    assert "sweeps: cost, credit_alpha_beta, " in ended.stdout
    assert "_study" not in ended.stdout
    assert "fewer" not in ended.stdout.split("Every key")[0]
    assert "time_steps: 200" in ended.stdout
    assert "site-packages" not in ended.stdout


def test_help_imports_nothing_heavy() -> None:
    code = "sys.argv += ['--help']\nfrom fairall.__main__ import main; main()"
    assert imported(code, *HEAVY, "aif360")[1] == []


def test_a_run_begins_without_what_only_its_end_needs() -> None:
    late = ("sklearn", "scipy.stats", "scipy.optimize", "matplotlib", "PIL", "jinja2", "mlflow", "sqlalchemy")
    assert imported("import fairall.experiment", *late, "optuna", "torch._dynamo") == ("", [])


def test_list_of_choices_imports_nothing_heavy() -> None:
    code = "sys.argv += ['list', 'models']\nfrom fairall.__main__ import main; assert main() == 0"
    assert imported(code, *HEAVY, "sqlalchemy")[1] == []


def test_help_is_of_the_configuration_that_the_other_words_choose(tmp_path: Path) -> None:
    assert "fairall.models.fairlog.FairLog" in typed("model=fairlog", "--help", cwd=tmp_path).stdout
    ended = typed("--help", "preset=quik", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("fairall: preset=quik: no such preset, did you mean quick?")
