"""The tutorials by reader, typed and executed, and the words of other fields in the glossary."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, own_process, records, typed_line
from tests.test_docs import DOCS, anchors, code

PAGES = ("credit_analyst", "hr_analyst", "researcher", "student")
FILE = re.compile(r"`([\w./]+\.(?:py|yaml))`[^`\n]*:\n\n```\w+\n(.*?)```", re.DOTALL)
COMMANDS = ("python ", "head ")
PROGRESS = re.compile(r"\d+ of \d+: ")  # of `reproduction runs`
DIGITS = re.compile(r"│ (?:DPU|acceptance ratio|(?:wo)?man,) .*")


def typed_lines(page: str) -> list[str]:
    """Commands of the indented blocks, continued lines joined."""
    blocks = re.findall(r"^    .*", (DOCS / f"{page}.md").read_text(), re.MULTILINE)
    text = "\n".join(line[4:] for line in blocks).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith(COMMANDS)]


def run(command: str, folder: Path) -> str:
    """What a command says on stdout; it ends well, without a warning on stderr."""
    if command.startswith("python -m "):
        ended = typed_line(command, folder)
    elif command.startswith("python "):
        ended = own_process(*command.split()[1:], cwd=folder)
    else:
        ended = subprocess.run(
            ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
        )
    said = [line for line in ended.stderr.splitlines() if not PROGRESS.match(line)]
    assert (command, ended.returncode, said) == (command, 0, [])
    return str(ended.stdout)


@pytest.mark.whole
@pytest.mark.parametrize("page", PAGES)
def test_tutorial_by_reader(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    text = (DOCS / f"{page}.md").read_text()
    for name, content in FILE.findall(text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    said = "".join(run(command, tmp_path) for command in typed_lines(page))
    for command in re.findall(r"`(python -m reproduction runs [^`]+)`", text):  # hours
        assert re.match(r"\d+ runs: ", run(f"{command} --dry-run", tmp_path))
    # Those that depend on the data alone, not on the processor.
    assert [row for row in DIGITS.findall(text) if row not in said] == []
    if page == "hr_analyst":
        assert len(re.findall(r"│ (?:wo)?man, ", text)) == 4


@pytest.mark.whole
def test_the_scorecard_is_validated_as_typed(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    text = (DOCS / "scorecard.md").read_text()
    made, report = (run(command, tmp_path) for command in typed_lines("scorecard"))
    truth = dict(re.findall(r"(everybody|granted alone): Gini ([\d.]+)", made))
    assert f"is {truth['everybody']}" in text
    rows = records(json.loads(report), "score", group="everybody", measure="gini")
    gini = {row["view"]: row for row in rows}
    assert gini["dr"]["low"] < float(truth["everybody"]) / 100 < gini["dr"]["high"]
    assert round(100 * gini["accepted"]["estimate"], 1) == float(truth["granted alone"])
    page = (tmp_path / "validation" / "index.html").read_text()
    headings = re.findall(r'<h2 id="([\w-]+)">', page)
    assert headings[:5] == ["data-and-selection", "discrimination", "calibration", "stability", "fairness"]
    assert headings[5:] == ["value", "thresholds-and-costs", "limits"]
    assert page.count("<summary>Definitions</summary>") == 7
    # Rows that depend on the data alone.
    table = (tmp_path / "validation" / "tables" / "impact.md").read_text().replace("\\", "")
    for row in re.findall(r"│ (?:female|male) .*", text):
        cells = [cell.strip() for cell in row.strip("│ ").split("│")]
        assert all(cell.lstrip("< ") in table for cell in cells), row


def test_every_block_of_a_tutorial_by_reader_is_executed() -> None:
    for page in PAGES:
        path = DOCS / f"{page}.md"
        written = [content for _, content in FILE.findall(path.read_text())]
        assert written == code(path, r"\w+")
        assert len(typed_lines(page)) >= 3
        lines = re.findall(r"^    (.*)", path.read_text(), re.MULTILINE)
        assert {line.split()[0] for line in lines if " -m " in line} == {"python"}
        assert path.read_text().count("\n") <= 85


# What other fields say, and what is said here; the site's search finds a page by the words in it.
WORDS = {
    "PD": "label_probability",
    "probability of default": "p(label = 1)",
    "default": "label = 0",
    "bad rate": "share of label 0",
    "adverse impact ratio": "acceptance ratio",
    "four-fifths rule": "acceptance ratio",
    "demographic-parity difference": "DPU",
    "reject inference": "selective labels",
    "risk grade": "score",
    "scorecard": "score",
    "approval rate": "acceptance rate",
    "selection rate": "acceptance rate",
    "target": "proxy label",
    "behaviour probability": "propensity",
    "through-the-door population": "applicants",
    "protected class": "sensitive attribute",
    "off-policy evaluation": "evaluation of a policy from a log",
    "positivity": "overlap",
    "adverse action reasons": "reasons",
    "number of interviews": "capacity",
}


def rows_of_words() -> list[str]:
    section = (DOCS / "glossary.md").read_text().split("## Words of other fields")[1]
    return re.findall(r"^\| (?!here|---).*", section, re.MULTILINE)


@pytest.mark.parametrize(("other", "here"), WORDS.items())
def test_glossary_gives_the_words_of_both_fields(other: str, here: str) -> None:
    assert [row for row in rows_of_words() if re.search(rf"\b{other}\b", row) and here in row]


def test_every_word_of_another_field_has_a_sentence_and_a_link() -> None:
    assert "words-of-other-fields" in anchors(DOCS / "glossary.md")
    for row in rows_of_words():
        _, here, elsewhere, meaning, where, _ = row.split("|")
        assert here.strip()
        assert elsewhere.strip()
        assert meaning.strip().endswith(".")
        assert re.search(r"\]\([\w/]+\.md(#[^)]+)?\)", where), row
