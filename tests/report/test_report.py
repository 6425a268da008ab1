"""`python -m fairall.report` and `... compare` as typed."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fairall.report.__main__ import main
from tests.report.conftest import MakeRun, lay_down

PICK = ["dataset=credit", "model=fairlog,unfairlog", "tracking.enabled=false"]
VOID = {"meta", "link", "img", "source", "br"}


class Page(HTMLParser):
    """Links, text and pictures of a page whose elements are all closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "srcset"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two whole runs, one broken and one superseded one."""
    folder = tmp_path_factory.mktemp("reported")
    lay_down(folder, "model=fairlog", "dataset=credit", number=1)
    lay_down(folder, "model=fairlog", "dataset=credit", number=2)
    broken = lay_down(folder, "model=unfairlog", "dataset=credit", number=3)
    (broken / "summary.json").write_text("{")
    lay_down(folder, "model=unfairlog", "dataset=credit", "initial_policy=lenient", number=4)
    figures = folder / "outputs" / "report" / "figures"
    figures.mkdir(parents=True)
    (figures / "of_an_earlier_report.png").touch()
    assert main([*PICK, f"outputs_dir={folder / 'outputs'}", "--results", str(folder / "results.md")]) == 0
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "outputs" / "report" / "index.html").read_text())


def test_the_page_needs_nothing_but_itself(page: Page, folder: Path) -> None:
    report = folder / "outputs" / "report"
    assert not any(link.startswith(("http:", "https:", "//")) for link in page.links)
    assert "<script" not in (report / "index.html").read_text()
    pictures = [link for link in page.links if link.startswith("data:image/png;base64,")]
    assert len(pictures) == 2 * len(list((report / "figures").glob("*.png"))) > 0
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        elif not link.startswith("data:"):
            assert (report / link).is_file(), link
    assert len(set(page.ids)) == len(page.ids)


def test_every_figure_is_png_and_pdf_and_every_table_three_files(folder: Path) -> None:
    report = folder / "outputs" / "report"
    stems = {path.stem for path in (report / "figures").iterdir()}
    assert {"credit_harsh", "credit_lenient", "plane_harsh", "acceptance_harsh"} <= stems
    assert {path.name for path in (report / "figures").iterdir()} == {
        f"{stem}.{ending}" for stem in stems for ending in ("png", "pdf")
    }
    tables = {path.stem for path in (report / "tables").iterdir()}
    assert {
        f"effective_{p}_{q}" for p in ("harsh", "lenient") for q in ("corrected", "published_code")
    } <= tables
    assert {"acceptance", "hyperparameters", "claims_harsh", "temporal_harsh_corrected_sampled"} <= tables
    assert len(list((report / "tables").iterdir())) == 3 * len(tables)


def test_what_is_missing_broken_or_superseded_is_told(page: Page, folder: Path) -> None:
    runs = folder / "outputs" / "runs"
    for command in (
        "python -m fairall model=unfairlog dataset=credit initial_policy=harsh",
        "python -m fairall model=fairlog dataset=credit initial_policy=lenient",
        "python -m fairall model=fairlog dataset=credit initial_policy=harsh protocol=published_code",
    ):
        assert command in page.text
    assert f"{runs / 'unfairlog' / 'credit' / '000000000003'}: summary.json is damaged" in page.text
    superseded = page.text.split("Passed over")[1]
    assert "000000000001" in superseded
    assert "000000000002" not in superseded
    assert "2 of the" in page.text


def test_the_results_page_has_the_words_and_the_tables(folder: Path, page: Page) -> None:
    text = (folder / "results.md").read_text()
    first = text.split("\n")[2]
    assert first in page.text
    table = (folder / "outputs" / "report" / "tables" / "effective_harsh_corrected.md").read_text()
    assert table in text
    for picture in re.findall(r"\]\((figures/.*?)\)", text):
        assert (folder / picture).is_file()
    assert "### Effective utility and DPU, harsh initial policy, protocol published_code" not in text


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["comapre"], "comapre: no such command; there are compare and reproduce"),
        (["dataset=nothing"], "none of the paper's runs is left by dataset=nothing"),
        (["reproduce", "nothing"], "there is no part 'nothing'"),
        (["modle.alpha=1"], "modle"),
        (["compare", "one"], "at least two"),
        (["compare", "one", "two"], "one: no such run"),
    ):
        assert main([*words, f"outputs_dir={tmp_path}"]) == 1
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_runs_side_by_side(make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_run("model=fairlog", "dataset=credit", shift=0.1, number=10)
    make_run("model=fairlog", "dataset=credit", "model.lambda_=8", shift=0.3, number=0x2A0000000000)
    words = ["compare", str(first), "2a0", "tracking.enabled=false", f"outputs_dir={tmp_path / 'outputs'}"]
    assert main(words) == 0
    told = capsys.readouterr().out
    (better,) = (line for line in told.splitlines() if line.startswith("|  | 2 FairLog"))
    assert "F+ R+" in better.split("|")[4]
    assert "F− R−" in better.split("|")[5]
    assert r"|  | model.lambda\_ | 2.0 | 8.0 |" in told
    comparison = tmp_path / "outputs" / "comparison"
    assert {path.name for path in comparison.rglob("*.*")} >= {
        "index.html",
        "curves.pdf",
        "configuration.tex",
    }
    Page((comparison / "index.html").read_text())
    # A run as often as one likes, but not with itself; and not one that is no run.
    assert main(["compare", str(first), str(first)]) == 1
    (first / "DONE").unlink()
    assert main(words) == 1
    assert "unfinished" in capsys.readouterr().err
