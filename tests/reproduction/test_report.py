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


def test_a_report_of_whole_broken_superseded_and_further_runs(tmp_path: Path) -> None:
    for number, words in enumerate(
        (
            ["model=fairlog"],
            ["model=fairlog"],
            ["model=unfairlog"],
            ["model=unfairlog", "initial_policy=lenient"],
            ["model=fairlog", "cost.value=0.35"],  # not the paper's
        ),
        start=1,
    ):
        lay_down(tmp_path, *words, "dataset=credit", number=number)
    outputs, page = tmp_path / "outputs", tmp_path / "results.md"
    broken = outputs / "runs" / "unfairlog" / "credit" / "000000000003"
    (broken / "summary.json").write_text("{")
    page.write_text(PAGE)
    report = outputs / "report"
    (report / "figures").mkdir(parents=True)
    (report / "figures" / "of_an_earlier_report.png").touch()
    assert main(["report", *PICK, f"outputs_dir={outputs}", "--into", str(page)]) == 0
    names = {path.name for of in ("figures", "tables") for path in (report / of).iterdir()}
    assert {"credit_harsh.png", "credit_lenient.pdf", "plane_harsh.png", "counts.md"} < names
    assert {f"effective_{policy}_corrected.csv" for policy in ("harsh", "lenient")} < names
    # Of published_code there is no run, of two methods of a claim one, and a figure is of an earlier report.
    assert not {"effective_harsh_published_code.md", "claims_harsh.md", "of_an_earlier_report.png"} & names
    text = (report / "index.html").read_text()
    for command in (
        "python -m fairall model=unfairlog dataset=credit initial_policy=harsh",
        "python -m fairall model=fairlog dataset=credit initial_policy=harsh protocol=published_code",
        f"{broken}: summary.json is damaged",
    ):
        assert command in text
    superseded = text.split("Passed over")[-1]
    assert [f"00000000000{k}" in superseded for k in (1, 2)] == [True, False]
    assert (report / "tables" / "effective_harsh_corrected.md").read_text() in page.read_text()
    assert page.read_text().startswith(PAGE.split("-->")[0])


def test_a_quick_report_claims_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("fairlog", "unfairlog"), start=1):
        lay_down(tmp_path, f"model={name}", "dataset=credit", "seeds=10", "preset=quick", number=number)
    words = ["report", *PICK, f"outputs_dir={tmp_path / 'outputs'}", "preset=quick"]
    assert main(words) == 0
    assert UNTESTED in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "outputs").glob("report*")] == ["report_quick"]
    tables = {path.stem: path.read_text() for path in tmp_path.glob("outputs/report_quick/tables/*.md")}
    assert not [name for name in tables if name.startswith(("claims", "printed"))]
    assert not [mark for mark in MARKS for text in tables.values() if mark in text]
    assert all(CAUTION in text.splitlines()[0] for text in tables.values())
    page = tmp_path / "results.md"
    assert main([*words, "--into", str(page)]) == 1
    error = capsys.readouterr().err
    assert error == f"reproduction: --into {page}: not possible with {CAUTION}; omit --into\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("report dataset=credti", "dataset=credti: not among these runs, did you mean credit?"),
        ("report tables", "tables: not possible with report"),
        ("report modle.alpha=1", "modle"),
    ],
)
def test_mistakes_are_one_line(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), f"outputs_dir={tmp_path}"]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
