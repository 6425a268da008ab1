"""Links, commands and code of the documentation: they lead somewhere, compose, parse and run."""

import ast
import importlib
import itertools
import re
import shlex
from pathlib import Path

import pytest
import yaml
from PIL import Image

from fairall.config.choices import configuration_root
from fairall.config.compose import compose_all
from tests.conftest import CHECKOUT, own_process, typed_line

DOCS = CHECKOUT / "docs"
MARKDOWN = sorted({*CHECKOUT.glob("*.md"), *DOCS.rglob("*.md"), CHECKOUT / "outputs" / "README.md"})
EVERY_PAGE = pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(CHECKOUT)))
COMMAND = re.compile(r"^ *(?:python -m )?fairall(?= |\.|$).*", re.MULTILINE)


def code(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """Commands in indented and fenced blocks, continued lines joined."""
    indented = re.findall(r"^    .*", page.read_text(), re.MULTILINE)
    text = "\n".join([*indented, *code(page, "(?:bash|sh|console)")]).replace("\\\n", " ")
    return [line.strip() for line in COMMAND.findall(text)]


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


@EVERY_PAGE
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


def test_commands_that_run_compose() -> None:
    composed = []
    for command in (command for page in MARKDOWN for command in commands(page)):
        words = shlex.split(command.partition("fairall")[2], comments=True)
        words = words[1:] if words[:1] == ["run"] else words
        overrides = [word for word in words if "=" in word and not word.startswith("-")]
        for name in (word.removeprefix("sweeps=") for word in words if word.startswith("sweeps=")):
            assert name.isupper() or (configuration_root() / "sweeps" / f"{name}.yaml").is_file(), command
        own = "VALUE|[.][.][.]|NAME|dataset=(?:csv|students|loans)|my_|mine|_target_|strike|fairlog_people"
        if words and len(words) == len(overrides) and not re.search(own, command):
            composed.append(overrides)
    assert len(compose_all(composed)) > 5


@EVERY_PAGE
def test_code_parses_and_imports_what_there_is(page: Path) -> None:
    for text in code(page, "yaml"):
        yaml.safe_load(text)
    for tree in map(ast.parse, code(page, "python")):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairall":
                module = importlib.import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []


@pytest.mark.parametrize("page", ["gymnasium.md", "api/index.md", "reject_inference.md"])
def test_python_of_pages_runs_as_it_is_typed(page: str, tmp_path: Path) -> None:
    if page == "gymnasium.md":
        pytest.importorskip("gymnasium", reason="needs gymnasium: pip install -e '.[gym]'")
    typed = "import matplotlib; matplotlib.use('agg')\n" + "\n".join(code(DOCS / page, "python"))
    (tmp_path / "typed.py").write_text(typed)
    said = own_process("-W", "error::UserWarning", "typed.py", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    if page == "gymnasium.md":
        earned, of_run = re.findall(r"\[([\d., ]+)\]", said.stdout)[-2:]
        numbers = [[float(one) for one in re.findall(r"[\d.]+", text)] for text in (earned, of_run)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-6)


def test_pictures_have_a_palette_and_are_small() -> None:
    """`fairall.display.style.save_figure` writes them so."""
    pictures = sorted((DOCS / "figures").glob("*.png"))
    for path in pictures:
        with Image.open(path) as picture:
            assert picture.mode == "P", path.name
    assert sum(path.stat().st_size for path in pictures) <= 3.0e6


def test_readme_has_what_its_commands_need() -> None:
    text = (CHECKOUT / "README.md").read_text()
    assert text.index(". .venv/bin/activate") < text.index("    python -m fairall")
    made: set[str] = set()
    for line in text.splitlines():
        files = set(re.findall(r"\b\w+\.csv\b", line))
        new = set(re.findall(r"(?:loans\.py|>|-o) (\w+\.csv)", line))
        assert files - new <= made, line
        made |= new
    assert {"loans.csv", "people.csv"} <= made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands of pages are typed: with the log of examples/loans.py, and the table of tests."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "tests").symlink_to(CHECKOUT / "tests")
    script = str(CHECKOUT / "examples" / "loans.py")
    for words in (["loans.csv"], ["area_loans.csv", "--areas"]):
        said = own_process(script, *words, cwd=folder)
        assert (said.returncode, said.stderr) == (0, "")
    return folder


TYPED = {
    page: [
        command
        for command in (commands(DOCS / page) if (DOCS / page).exists() else [])
        if "CHECKOUT" not in command and ("loans.csv" in command or page != "evaluate.md")
    ]
    for page in ("your_own_data.md", "evaluate.md", "first_run.md", "amounts.md")
}


@pytest.mark.whole
@pytest.mark.parametrize("page", TYPED)
def test_commands_of_pages_end_well(page: str, folder: Path) -> None:
    for command in TYPED[page]:  # in one test, since they need what those before them have made
        said = typed_line(command, folder)
        # The first look at a table of one's own finds what is to be said of it.
        first_look = "describe" in command and ".csv" in command and "label=" not in command
        assert (command, said.returncode, said.stderr) == (command, int(first_look), "")
