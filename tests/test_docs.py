"""Commands and code of the documentation compose, parse and run; its links are test_site.py's."""

import ast
import contextlib
import importlib
import json
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from PIL import Image

from fairall.config.choices import configuration_root
from fairall.config.compose import compose_all
from fairall.evaluate.estimated import nuisance
from tests.conftest import CHECKOUT, own_process, records, typed_line

DOCS = CHECKOUT / "docs"
MARKDOWN = sorted({*CHECKOUT.glob("*.md"), *DOCS.rglob("*.md"), CHECKOUT / "outputs" / "README.md"})
EVERY_PAGE = pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(CHECKOUT)))
COMMAND = re.compile(r"(?:python -m )?fairall(?: |\.|$)")
FILE = re.compile(
    r"`([\w./]+\.(?:py|yaml))`[^`\n]*:\n\n((?:```(?:python|yaml|diff)\n.*?```\n\n?)+)", re.DOTALL
)
READERS = ("credit_analyst", "hr_analyst", "researcher", "student")  # whose pages have no other code
PROGRESS = re.compile(r"\d+ of \d+: ")  # of `reproduction runs`
# Of the readers' pages, which depend on the data alone, not on the processor.
DIGITS = re.compile(r"│ (?:DPU|acceptance ratio|(?:wo)?man,) .*")


def code(text: str, language: str = r"\w+") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def lines(text: str) -> list[str]:
    """What is typed in indented and fenced blocks, continued lines joined."""
    indented = re.findall(r"^    .*", text, re.MULTILINE)
    joined = "\n".join([*indented, *code(text, "(?:bash|sh|console)")]).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines()]


def commands(page: Path) -> list[str]:
    return [*filter(COMMAND.match, lines(page.read_text()))]


def files(text: str) -> list[tuple[str, str]]:
    """Each file that a text names, with a block of code after it."""
    return [(name, one) for name, blocks in FILE.findall(text) for one in code(blocks)]


def written(text: str, folder: Path) -> Path:
    """The folder, with the files of a text in it."""
    for name, content in files(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.mark.whole
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
    for text in code(page.read_text(), "yaml"):
        yaml.safe_load(text)
    for tree in map(ast.parse, code(page.read_text(), "python")):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairall":
                module = importlib.import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []


@pytest.mark.whole
@pytest.mark.parametrize(
    ("page", "needed"),
    [
        ("gymnasium", "gymnasium"),
        ("api/index", "matplotlib"),
        ("reject_inference", "matplotlib"),
        ("sklearn", "fairlearn.metrics"),
    ],
)
def test_python_of_pages_runs_as_it_is_typed(
    page: str, needed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(needed, reason=f"the page uses {needed}, which is not installed")
    (tmp_path / "tests").symlink_to(CHECKOUT / "tests")
    blocks = code((DOCS / f"{page}.md").read_text(), "python")
    (tmp_path / "typed.py").write_text("\n".join(["import matplotlib; matplotlib.use('agg')", *blocks]))
    with contextlib.chdir(tmp_path):
        runpy.run_path("typed.py")
    if page == "gymnasium":
        earned, of_run = re.findall(r"\[([\d., ]+)\]", capsys.readouterr().out)[-2:]
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
        named = set(re.findall(r"\b\w+\.csv\b", line))
        new = set(re.findall(r"(?:loans\.py|>|-o) (\w+\.csv)", line))
        assert named - new <= made, line
        made |= new
    assert {"loans.csv", "people.csv"} <= made


def run(command: str, folder: Path) -> str:
    """What a command of a page says on stdout; it ends well, without a warning on stderr."""
    if command.startswith("python -m "):
        ended = typed_line(command, folder)
    elif command.startswith("python "):
        ended = own_process(*command.split()[1:], cwd=folder)
    else:
        ended = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    said = [line for line in ended.stderr.splitlines() if not PROGRESS.match(line)]
    # The first look at a table of one's own finds what is to be said of it.
    first_look = "describe" in command and ".csv" in command and "label=" not in command
    assert (command, ended.returncode, said) == (command, int(first_look), [])
    return str(ended.stdout)


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits with a tenth of their trees, which take half of their time."""
    whole = nuisance.HistGradientBoostingClassifier
    monkeypatch.setattr(
        nuisance, "HistGradientBoostingClassifier", lambda **given: whole(**given | {"max_iter": 8})
    )


def typed_page(page: str, folder: Path) -> tuple[str, list[str]]:
    """The text of a page, and what its commands say, one after the other."""
    text = (DOCS / f"{page}.md").read_text()
    for name in ("examples", "tests"):
        (folder / name).symlink_to(CHECKOUT / name)
    written(text, folder)
    said = []
    for line in lines(text):
        if line.startswith(("python ", "head ")) and not re.search("CHECKOUT|loanapp", line):
            few = line.replace("tables dataset", "tables model=fairlog dataset")  # one of twenty runs
            said.append(run(line if "--dry-run" in line else few, folder))
    return text, said


@pytest.mark.whole
@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("page", [*READERS, "your_own_data", "evaluate", "first_run", "amounts"])
def test_commands_of_pages_end_well(page: str, tmp_path: Path) -> None:
    text, said = typed_page(page, tmp_path)
    if page in READERS:
        assert [content for _, content in files(text)] == code(text)
        assert len(said) >= 3
        assert [row for row in DIGITS.findall(text) if row not in "".join(said)] == []
    for command in re.findall(r"`(python -m reproduction runs [^`]+)`", text):  # hours
        assert run(f"{command} --dry-run", tmp_path).startswith("Runs: ")


@pytest.mark.whole
@pytest.mark.usefixtures("few_trees")
def test_the_scorecard_is_validated_as_typed(tmp_path: Path) -> None:
    text, (made, report) = typed_page("scorecard", tmp_path)
    truth = dict(re.findall(r"(everybody|granted alone): Gini ([\d.]+)", made))
    assert f"is {truth['everybody']}" in text
    rows = records(json.loads(report), "score", group="everybody", measure="gini")
    gini = {row["view"]: row for row in rows}
    assert gini["dr"]["low"] < float(truth["everybody"]) / 100 < gini["dr"]["high"]
    assert round(100 * gini["accepted"]["estimate"], 1) == float(truth["granted alone"])
    # Rows that depend on the data alone.
    table = (tmp_path / "validation" / "tables" / "impact.md").read_text().replace("\\", "")
    for row in re.findall(r"│ (?:female|male) .*", text):
        cells = [cell.strip() for cell in row.strip("│ ").split("│")]
        assert all(cell.lstrip("< ") in table for cell in cells), row


def test_the_glossary_has_words_of_other_fields_with_a_sentence_and_a_link() -> None:
    section = (DOCS / "glossary.md").read_text().split("## Words of other fields")[1]
    rows = re.findall(r"^\| (?!here|---).*", section, re.MULTILINE)
    for row in rows:
        _, here, elsewhere, meaning, where, _ = row.split("|")
        assert here.strip()
        assert elsewhere.strip()
        assert meaning.strip().endswith(".")
        assert re.search(r"\]\([\w/]+\.md(#[^)]+)?\)", where), row
    for other, own in yaml.safe_load((CHECKOUT / "tests" / "data" / "glossary.yaml").read_text()).items():
        assert [row for row in rows if re.search(rf"\b{other}\b", row) and own in row], other
