"""What the documentation tells users to type, typed."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
PAGE = CHECKOUT / "docs" / "your_own_data.md"


def commands() -> list[str]:
    indented = "\n".join(line for line in PAGE.read_text().splitlines() if line.startswith("    "))
    return re.findall(r"python -m fairall.*", indented.replace("\\\n", " "))


@pytest.mark.parametrize("command", commands(), ids=lambda command: " ".join(command.split())[:60])
def test_commands_of_the_page_on_own_data(command: str, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(CHECKOUT / "tests")
    words = shlex.split(command.replace("python", sys.executable, 1))
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.stderr == ""
    # The first look finds what the page says it finds.
    assert ended.returncode == ("dataset.label" not in command)


def test_python_of_the_page_on_own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert len(names["table"]) == 400  # type: ignore[arg-type]


def test_there_are_commands_to_type() -> None:
    assert len(commands()) == 3


def test_a_data_set_of_ones_own_is_a_file_in_conf(tmp_path: Path) -> None:
    page = PAGE.read_text()
    (block,) = re.findall(r"    (defaults: \[csv, _self_\]\n(?:    .*\n)+)", page)
    text = block.replace("\n    ", "\n").replace("/data/loans.csv", str(CHECKOUT / "tests/data/loans.csv"))
    for folder in ("conf", "sweeps", "fairall"):
        subprocess.run(["cp", "-r", str(CHECKOUT / folder), str(tmp_path)], check=True)
    (tmp_path / "conf" / "dataset" / "loans.yaml").write_text(text)
    command = [sys.executable, "-m", "fairall.data", "describe", "loans"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.stderr == ""
    assert ended.stdout.startswith("loans: 400 rows, 163 of them without a label, 6 features")
    listed = subprocess.run(command[:-2], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "loans" in listed.stdout
