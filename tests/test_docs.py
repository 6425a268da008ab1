"""What the documentation tells users to type, typed."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fairall.config.words import override
from fairall.data.load import load_dataset

CHECKOUT = Path(__file__).parents[1]
PAGE = CHECKOUT / "docs" / "your_own_data.md"
SWEEPS_PAGE = CHECKOUT / "docs" / "sweeps.md"
LOANS = CHECKOUT / "tests" / "data" / "loans.csv"
METHOD_PAGE = CHECKOUT / "docs" / "your_own_method.md"


def commands(page: Path = PAGE) -> list[str]:
    indented = "\n".join(line for line in page.read_text().splitlines() if line.startswith("    "))
    return re.findall(r"python -m fairall.*", indented.replace("\\\n", " "))


@pytest.mark.parametrize("command", commands(), ids=lambda command: " ".join(command.split())[:60])
def test_commands_of_the_page_on_own_data(command: str, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(CHECKOUT / "tests")
    said = ended(command, tmp_path)
    assert said.stderr == ""
    # The first look finds what the page says it finds.
    assert said.returncode == ("dataset.label" not in command)


def test_python_of_the_page_on_own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert len(names["table"]) == 400  # type: ignore[arg-type]


def test_there_are_commands_to_type() -> None:
    assert len(commands()) == 3
    assert len(commands(METHOD_PAGE)) == 2


@pytest.fixture(scope="module")
def own_method(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the class and the file of the page on own methods, and nothing of this checkout."""
    folder = tmp_path_factory.mktemp("own")
    (code,) = re.findall(r"```python\n(.*?)```", METHOD_PAGE.read_text(), re.DOTALL)
    (values,) = re.findall(r"```yaml\n(.*?)```", METHOD_PAGE.read_text(), re.DOTALL)
    assert code.count("\n") + values.count("\n") < 60
    (folder / "logistic_ips.py").write_text(code)
    (folder / "conf" / "model").mkdir(parents=True)
    (folder / "conf" / "model" / "logistic_ips.yaml").write_text(values)
    return folder


def ended(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command.replace("python", sys.executable, 1))
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return ended(f"{command} tracking.enabled=false", folder)


@pytest.mark.parametrize("command", commands(METHOD_PAGE))
def test_commands_of_the_page_on_own_methods(command: str, own_method: Path) -> None:
    said = typed(command, own_method)
    assert (said.stderr, said.returncode) == ("", 0)
    assert "logistic_ips on credit" in said.stdout


def test_an_own_method_learns_saves_its_policy_and_refuses_what_it_does_not_know(own_method: Path) -> None:
    said = typed("python -m fairall -cd conf model=logistic_ips dataset=credit seeds=3", own_method)
    assert said.returncode == 0, said.stderr
    folder = Path(said.stdout.split("Results: ")[1].split("\n")[0])
    folder = own_method / folder
    summary = json.loads((folder / "summary.json").read_text())
    # Deciding by coin gives 0.09.
    assert summary["aggregate"]["mean_utility"]["mean"] > 0.14
    path = str(folder / "policy")
    code = f"from pathlib import Path; from fairall.policy import Policy; Policy.load(Path({path!r}))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=own_method, capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    for word, told in (
        ("model.learning_rat=1", "did you mean model.learning_rate?"),
        ("+model.rate=1", "model.rate: no such key"),
        ("model.learning_rate=fast", "model.learning_rate: Value 'fast'"),
        ("model._target_=logistic_ips.Missing", "there is no such class"),
        ("model._target_=logistic_ips.LogisticIPSConfig", "not a fairall.models.learner.Learner"),
    ):
        refused = typed(f"python -m fairall -cd conf model=logistic_ips preset=quick {word}", own_method)
        assert refused.returncode == 1
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_a_data_set_of_ones_own_is_a_file_in_a_folder(tmp_path: Path) -> None:
    page = PAGE.read_text()
    (block,) = re.findall(r"    (defaults: \[csv, _self_\]\n(?:    .*\n)+)", page)
    text = block.replace("\n    ", "\n").replace("/data/loans.csv", str(LOANS))
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "loans.yaml").write_text(text)
    run, describe, listing = (
        ended(f"{command}{' tracking.enabled=false' if 'preset' in command else ''}", tmp_path)
        for command in re.findall(r"`(python -m fairall\S* -cd [^`]*)`", page)
    )
    assert (run.returncode, describe.returncode, listing.returncode) == (0, 0, 0), (
        run.stderr + describe.stderr
    )
    assert "on loans," in run.stdout
    assert describe.stdout.startswith("loans: 400 rows, 163 of them without a label, 6 features")
    assert "│ loans" in listing.stdout


def test_the_sweep_of_ones_own_keeps_past_decisions_from_the_nets() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", SWEEPS_PAGE.read_text(), re.DOTALL)
    values = yaml.safe_load(text)["dataset"] | {"path": str(LOANS)}
    table = load_dataset("csv", *(override(f"dataset.{key}", value) for key, value in values.items())).table()
    assert table.schema.names == ["age", "income", "dependants", "purpose", "home_owner", "job"]
    assert table.logged is not None


def test_editing_an_own_method_makes_a_new_run(own_method: Path) -> None:
    command = "python -m fairall -cd conf model=logistic_ips preset=quick seeds=1"
    source = own_method / "logistic_ips.py"
    first, again = typed(command, own_method), typed(command, own_method)
    assert again.stdout.startswith("Note: there is no conf/hparams/logistic_ips/credit.yaml")
    assert "Already done" in again.stdout
    written = source.read_text()
    source.write_text(written + "\n# Another idea.\n")
    edited = typed(command, own_method)
    source.write_text(written)
    assert "Already done" not in edited.stdout
    assert edited.stdout.split("Results: ")[1] != first.stdout.split("Results: ")[1]
