import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from fairall.resources import configuration_root, sweeps_folder


def test_wheel_carries_every_configuration_and_data_file(tmp_path: Path) -> None:
    checkout = Path(__file__).parents[1]
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".venv", ".git", "outputs", "build", "*.egg-info", ".*_cache")
    shutil.copytree(checkout, source, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-w", str(tmp_path), str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("fairall-*.whl")
    carried = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        f"fairall/{inside}/{path.relative_to(folder).as_posix()}"
        for inside, folder in (("conf", configuration_root() / "conf"), ("sweep_files", sweeps_folder()))
        for path in folder.rglob("*.yaml")
    }
    package = checkout / "fairall"
    for path in package.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            expected.add(f"fairall/{path.relative_to(package).as_posix()}")
    assert expected <= carried
    assert not {name for name in carried if name.startswith(("tests", "benchmarks", "conf"))}
