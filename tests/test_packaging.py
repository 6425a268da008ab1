"""The wheel: what it carries, and every command from an installation of it, outside the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import distributions, metadata
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import fairall
from fairall.config.choices import configuration_root
from tests.conftest import CHECKOUT

pytestmark = pytest.mark.whole

RUN = ["preset=quick", "seeds=1", "schedule.warm_up_epochs=2", "tracking.enabled=false"]
OLDEST = "3.11.0"  # Python that setup.cfg admits
Typed = Callable[..., subprocess.CompletedProcess[str]]


def test_constraints_can_be_installed_with_the_oldest_python() -> None:
    names = re.findall(r"^([\w.-]+)==", (CHECKOUT / "constraints.txt").read_text(), re.MULTILINE)
    found = {one.metadata["Name"].lower().replace("_", "-"): one.metadata for one in distributions()}
    installed = [found[name] for name in (name.lower().replace("_", "-") for name in names) if name in found]
    assert len(installed) > 100
    bounded = [one for one in (*installed, metadata("fairall")) if "Requires-Python" in one]
    assert [one["Name"] for one in bounded if OLDEST not in SpecifierSet(one["Requires-Python"])] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built from a copy, since setuptools writes beside the sources."""
    folder = tmp_path_factory.mktemp("built")
    ignored = shutil.ignore_patterns(".venv", ".git", "outputs", "build", "dist", "*.egg-info", ".*_cache")
    shutil.copytree(CHECKOUT, folder / "source", ignore=ignored)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    built = subprocess.run([*command, str(folder / "source")], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("fairall-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed, without what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, "--target", str(folder), str(wheel)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def typed(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Typed:
    """Runs a command of the installed package, in a folder that was empty before the first one."""
    folder = tmp_path_factory.mktemp("empty")
    # First on the path: before the checkout that this environment may have installed in place.
    environment = os.environ | {"PYTHONPATH": str(installed)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    return run


def test_wheel_carries_every_configuration_and_data_file(wheel: Path) -> None:
    carried, root = {*zipfile.ZipFile(wheel).namelist()}, configuration_root()
    folders = {"": CHECKOUT / "fairall", "conf/": root / "conf", "sweeps/": root / "sweeps"}
    expected = {
        f"fairall/{inside}{path.relative_to(folder).as_posix()}"
        for inside, folder in folders.items()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert expected <= carried
    assert not {name for name in carried if name.startswith(("tests", "benchmarks", "reproduction", "conf"))}


def test_a_user_s_file_has_the_types_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    """By the strictest rules and without our settings; that pandas has no types is not ours to mend."""
    file = Path(shutil.copy(CHECKOUT / "tests" / "typing" / "user.py", tmp_path))
    (tmp_path / "mypy.ini").write_text("[mypy-torch.*]\nfollow_imports = skip\n")  # half a minute
    options = ["--strict", "--follow-imports=silent", "--disable-error-code=import-untyped"]
    environment = os.environ | {"MYPYPATH": str(installed)}
    command = [sys.executable, "-m", "mypy", *options, file.name]
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


def test_commands_are_those_of_the_wheel(typed: Typed, installed: Path) -> None:
    told = typed(sys.executable, "-c", "import fairall; print(fairall.__file__)").stdout
    assert Path(told.strip()).is_relative_to(installed)


def test_a_run_a_sweep_and_a_comparison(typed: Typed, installed: Path) -> None:
    command, words = str(installed / "bin" / "fairall"), ["dataset=credit", *RUN]
    assert "Results: outputs/runs/fairlog/credit/" in typed(command, *words, "model=fairlog").stdout
    assert "fairlog_credit" in typed(command, "tune", "fairlog", "hydra.sweeper.n_trials=1", *words).stdout
    runs = [run["path"] for run in json.loads(typed(command, "list", "runs", "--json").stdout)["runs"]]
    assert "comparison_quick_" in typed(command, "compare", *runs).stdout


def test_list_and_completion(typed: Typed, installed: Path) -> None:
    command = str(installed / "bin" / "fairall")
    assert "Any command in seconds" in typed(command, "list", "presets").stdout
    for shell in ("bash", "zsh", "fish"):
        assert "fairall" in typed(command, "-sc", f"install={shell}").stdout
    line = ("COMP_LINE=fairall model=fairl", "COMP_POINT=19")
    asked = typed("env", *line, command, "-sc", "query=bash").stdout
    assert asked.split() == ["model=fairlab_I_II", "model=fairlog"]


def test_citation_and_changelog_have_the_version() -> None:
    assert yaml.safe_load((CHECKOUT / "CITATION.cff").read_text())["version"] == fairall.__version__
    released = re.findall(r"^## (\d\S*)", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == fairall.__version__
