"""`python -m reproduction report` as typed."""

from pathlib import Path

import pytest

from fairall.display import CAUTION
from fairall.report import UNTESTED
from reproduction.__main__ import main
from tests.made_up import lay_down

pytestmark = pytest.mark.whole

PICK = ["dataset=credit", "model=fairlog,unfairlog", "seeds=10"]
PAGE = "# By hand\n\n<!-- begin: effective_harsh_corrected -->\n<!-- end: effective_harsh_corrected -->\n"
MARKS = ("**", "F+", "F−", "R+", "R−", "ignificant")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two whole runs, one broken, one superseded one and one that is not the paper's."""
    folder = tmp_path_factory.mktemp("reported")
    lay_down(folder, "model=fairlog", "dataset=credit", number=1)
    lay_down(folder, "model=fairlog", "dataset=credit", number=2)
    broken = lay_down(folder, "model=unfairlog", "dataset=credit", number=3)
    (broken / "summary.json").write_text("{")
    lay_down(folder, "model=unfairlog", "dataset=credit", "initial_policy=lenient", number=4)
    lay_down(folder, "model=fairlog", "dataset=credit", "cost.value=0.35", number=5)
    (folder / "results.md").write_text(PAGE)
    figures = folder / "outputs" / "report" / "figures"
    figures.mkdir(parents=True)
    (figures / "of_an_earlier_report.png").touch()
    words = [*PICK, f"outputs_dir={folder / 'outputs'}", "--into", str(folder / "results.md")]
    assert main(["report", *words]) == 0
    return folder


def test_every_figure_is_png_and_pdf_and_every_table_three_files(folder: Path) -> None:
    report = folder / "outputs" / "report"
    stems = {path.stem for path in (report / "figures").iterdir()}
    assert {"credit_harsh", "credit_lenient", "plane_harsh", "acceptance_harsh"} <= stems
    assert {path.name for path in (report / "figures").iterdir()} == {
        f"{stem}.{ending}" for stem in stems for ending in ("png", "pdf")
    }
    tables = {path.stem for path in (report / "tables").iterdir()}
    assert {"counts", "effective_harsh_corrected", "effective_lenient_corrected"} <= tables
    # Of these there is no run, or of two methods one.
    assert not {"effective_harsh_published_code", "claims_harsh"} & tables
    assert len(list((report / "tables").iterdir())) == 3 * len(tables)


def test_what_is_missing_broken_or_superseded_is_listed(folder: Path) -> None:
    text = (folder / "outputs" / "report" / "index.html").read_text()
    for command in (
        "python -m fairall model=unfairlog dataset=credit initial_policy=harsh",
        "python -m fairall model=fairlog dataset=credit initial_policy=harsh protocol=published_code",
    ):
        assert command in text
    runs = folder / "outputs" / "runs"
    assert f"{runs / 'unfairlog' / 'credit' / '000000000003'}: summary.json is damaged" in text
    superseded = text.split("Passed over")[-1]
    assert "000000000001" in superseded
    assert "000000000002" not in superseded


def test_the_page_of_the_documentation_has_the_table(folder: Path) -> None:
    table = (folder / "outputs" / "report" / "tables" / "effective_harsh_corrected.md").read_text()
    text = (folder / "results.md").read_text()
    assert table in text
    assert text.startswith(PAGE.split("-->")[0])


def test_a_quick_report_claims_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("fairlog", "unfairlog"), start=1):
        lay_down(tmp_path, f"model={name}", "dataset=credit", "seeds=10", "preset=quick", number=number)
    outputs = tmp_path / "outputs"
    words = [*PICK, f"outputs_dir={outputs}", "preset=quick"]
    assert main(["report", *words]) == 0
    assert UNTESTED in capsys.readouterr().out
    assert not (outputs / "report").exists()
    folder = outputs / "report_quick"
    for table in folder.glob("tables/*.md"):
        text = table.read_text()
        assert CAUTION in text.splitlines()[0], table
        assert not [mark for mark in MARKS if mark in text], table
    assert not [*folder.glob("tables/claims*"), *folder.glob("tables/printed*")]
    page = tmp_path / "results.md"
    assert main(["report", *words, "--into", str(page)]) == 1
    error = capsys.readouterr().err
    assert error == f"reproduction: --into {page}: not possible with {CAUTION}; omit --into\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "dataset=credti"], "dataset=credti: not among these runs, did you mean credit?"),
        (["report", "tables"], "tables: not possible; report takes KEY=VALUE only"),
        (["leaderboard", "model=nonsense"], "model=nonsense: not among these runs"),
        (["runs", "tabels"], "there is no part 'tabels', did you mean tables?; there are"),
        (["report", "modle.alpha=1"], "modle"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, f"outputs_dir={tmp_path}"]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
