"""Commands, code and links of the documentation."""

import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairall.config.words import override
from fairall.data.load import load_dataset
from tests.conftest import typed_line

CHECKOUT = Path(__file__).parents[1]
PAGE = CHECKOUT / "docs" / "your_own_data.md"
EVALUATION_PAGE = CHECKOUT / "docs" / "evaluate.md"
SWEEPS_PAGE = CHECKOUT / "docs" / "sweeps.md"
LOANS = CHECKOUT / "tests" / "data" / "loans.csv"
MARKDOWN = sorted(
    path
    for folder in (".", "docs", "docs/api", "docs/methods", "outputs")
    for path in (CHECKOUT / folder).glob("*.md")
)


def commands(page: Path = PAGE) -> list[str]:
    indented = "\n".join(line for line in page.read_text().splitlines() if line.startswith("    "))
    return re.findall(r"python -m fairall.*", indented.replace("\\\n", " "))


@pytest.mark.parametrize("command", commands(), ids=lambda command: " ".join(command.split())[:60])
def test_commands_of_the_page_on_own_data(command: str, tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(CHECKOUT / "tests")
    short = "" if "fairall data" in command else " schedule.warm_up_epochs=2"
    said = typed_line(command + short, tmp_path)
    assert said.stderr == ""
    # The first look finds what the page says it finds.
    assert said.returncode == ("dataset.label" not in command)


@pytest.fixture(scope="module")
def loans_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the log of examples/loans.py."""
    folder = tmp_path_factory.mktemp("loans")
    script = str(CHECKOUT / "examples" / "loans.py")
    said = subprocess.run([sys.executable, script, "loans.csv"], cwd=folder, capture_output=True, text=True)
    assert said.stderr == ""
    assert "proposal: true utility 7.8, DPU 7.5, equal-opportunity gap 6.1" in said.stdout
    return folder


def rows_of(text: str) -> dict[str, list[float]]:
    """Numbers of the rows of tables in frames, by the row's name."""
    rows = re.findall(r"^ *│ ([A-Za-z][A-Za-z -]+?) +│(.*)│$", text, re.MULTILINE)
    return {
        name: [float(number.replace("−", "-")) for number in re.findall(r"−?\d+\.\d", values)]
        for name, values in rows
    }


@pytest.mark.parametrize(
    "command",
    [line for line in commands(EVALUATION_PAGE) if "loans.csv" in line],
    ids=lambda line: line[18:60],
)
def test_commands_of_the_page_on_evaluation(command: str, loans_folder: Path) -> None:
    said = typed_line(command, loans_folder)
    assert (said.returncode, said.stderr) == (0, "")
    for section in EVALUATION_PAGE.read_text().split("\n## "):
        if command in section.replace("\\\n", " ") and command.count("--policy") < 2:
            shown, printed = rows_of(section), rows_of(said.stdout)
            assert len(shown) >= 4
            # To the last digit, which may differ between processors.
            assert {name: printed[name] for name in shown} == {
                name: pytest.approx(values, abs=0.11) for name, values in shown.items()
            }


def test_python_of_the_page_on_evaluation(loans_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(loans_folder)
    *_, code = re.findall(r"```python\n(.*?)```", EVALUATION_PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["found"].to_plain()["value"]["dr"]["estimate"] == pytest.approx(0.075, abs=0.002)


def test_python_of_the_page_on_own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert len(names["table"]) == 400  # type: ignore[arg-type]


def test_there_are_commands_to_type() -> None:
    assert len(commands()) == 3


def test_a_data_set_of_ones_own_is_a_file_in_a_folder(tmp_path: Path) -> None:
    page = PAGE.read_text()
    (block,) = re.findall(r"    (defaults: \[csv, _self_\]\n(?:    .*\n)+)", page)
    text = block.replace("\n    ", "\n").replace("/data/loans.csv", str(LOANS))
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    (tmp_path / "conf" / "dataset" / "loans.yaml").write_text(text)
    run, describe, listing = (
        typed_line(f"{command}{' tracking.enabled=false' if 'preset' in command else ''}", tmp_path)
        for command in re.findall(r"`(python -m fairall[^`]* -cd [^`]*)`", page)
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


def prose(page: Path) -> str:
    """Markdown without blocks of code."""
    return re.sub(r"^```.*?^```|^    .*?$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Anchors that GitHub gives to the headings of a page; a repeated one ends in -1, -2, ..."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?)\s*$", prose(page), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(
            next(name for k in itertools.count() if (name := f"{anchor}-{k}" if k else anchor) not in found)
        )
    return found


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(page))):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
            dead.append(link)
    assert not dead


def test_anchors_of_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n```\n# code\n```\n## Twice\n## Twice\n")
    assert anchors(page) == {"a-b-c", "twice", "twice-1"}
