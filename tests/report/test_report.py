"""`python -m fairall.report` and `... compare` as typed."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from fairall.report.__main__ import main
from fairall.report.comparable import UNTESTED
from fairall.results.interpretable import CAUTION
from tests.report.conftest import MakeRun, add_references, lay_down, set_preset

# Of the best, and of significant differences.
MARKS = ("**", "F+", "F−", "R+", "R−", "ignificant")
PICK = ["dataset=credit", "model=fairlog,unfairlog", "seeds=10", "tracking.enabled=false"]
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
    assert {"effective_harsh_corrected", "effective_lenient_corrected"} <= tables
    assert {"acceptance", "hyperparameters", "temporal_harsh_corrected_sampled"} <= tables
    assert {"printed_mean_harsh_corrected", "printed_std_lenient_corrected"} <= tables
    # Of these there is no run, or of two methods one.
    assert not {"effective_harsh_published_code", "claims_harsh"} & tables
    assert len(list((report / "tables").iterdir())) == 3 * len(tables)


def test_what_is_missing_broken_or_superseded_is_listed(page: Page, folder: Path) -> None:
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


def test_only_runs_that_are_there_have_rows(page: Page, folder: Path) -> None:
    report = folder / "outputs" / "report"
    html = (report / "index.html").read_text()
    shown, not_run = html.split('<h2 id="not-run">')
    table = shown.split('<h3 id="effective_harsh_corrected">')[1].split("<h3")[0]
    assert re.findall(r'<th scope="row">(.*?)</th>', table) == ["FairLog"]
    assert re.findall(r"<summary>(.*?)</summary>", table) == ["1 of 2 runs missing"]
    assert "UnfairLog on German Credit: <code>python -m fairall model=unfairlog" in table
    assert 'class="missing"' not in html
    # Made-up values are not the printed ones.
    printed = shown.split('<h3 id="printed_mean_harsh_corrected">')[1].split("<h3")[0]
    assert re.findall(r'<th scope="row">(.*?)</th>', printed) == ["FairLog"]
    assert re.search(r'<i class="outside">19\.4, outside ', printed)
    assert "printed_mean_harsh_published_code" not in shown
    title = "Effective utility and DPU, harsh initial policy, protocol published_code"
    assert f"<summary>{title}: 2 of 2 runs missing</summary>" in not_run
    assert "<table" not in not_run
    tables = report / "tables"
    for ending, name in (("md", "| UnfairLog"), ("tex", "& UnfairLog"), ("csv", ",unfairlog,")):
        assert name not in (tables / f"effective_harsh_corrected.{ending}").read_text()
        assert name in (tables / f"effective_lenient_corrected.{ending}").read_text()
    text = (tables / "effective_harsh_corrected.md").read_text()
    assert text.endswith("\n\n1 of 2 runs missing: UnfairLog on German Credit.\n")


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
        (
            ["comapre"],
            "comapre: no such command, did you mean compare?; there are compare, reproduce",
        ),
        (
            ["dataset=credti"],
            "dataset=credti: not among these runs, did you mean credit?; there are compas, credit",
        ),
        (["leaderboard", "model=nonsense"], "model=nonsense: not among these runs"),
        (["reproduce", "nothing"], "there is no part 'nothing'; there are"),
        (["reproduce", "tabels"], "there is no part 'tabels', did you mean tables?; there are"),
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
    printed = capsys.readouterr().out
    first_table, further = printed.split("\nFurther measures\n")
    for column in ("mean acceptance rate │", "mean acceptance rate ┃", "mean predictive-parity gap ↓"):
        assert column not in first_table
    assert "mean acceptance rate" in further
    (better,) = (line for line in first_table.splitlines() if "│ 2 FairLog" in line)
    assert "F+ R+" in better.split("│")[3]
    assert "F− R−" in better.split("│")[4]
    assert re.search(r"│ model\.lambda_ │ +2\.0 │ +8\.0 │", printed)
    comparison = tmp_path / "outputs" / "comparison"
    written = {path.name for path in comparison.rglob("*.*")}
    assert written >= {"index.html", "curves.pdf", "configuration.tex"}
    Page((comparison / "index.html").read_text())
    # A run as often as one likes, but not with itself; and not one that is no run.
    assert main(["compare", str(first), str(first)]) == 1
    (first / "DONE").unlink()
    assert main(words) == 1
    assert "unfinished" in capsys.readouterr().err


def test_only_comparable_runs_are_compared(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["model=fairlog", "seeds=10"]
    chosen = [
        make_run(*words, "dataset=credit", shift=0.1, number=1),
        make_run(*words, "dataset=compas", shift=0.5, number=2),
        add_references(
            make_run(*words, "dataset=credit", "model.lambda_=9", shift=0.3, number=3),
            effective_utility=0.8, mean_utility=0.9, mean_dpu=0.0,
        ),
        make_run(*words, "dataset=credit", "cost.value=0.7", shift=0.6, number=4),
        set_preset(make_run(*words, "dataset=credit", shift=0.7, number=5), "fast"),
        set_preset(make_run(*words, "dataset=credit", shift=0.8, number=6), "quick"),
    ]  # fmt: skip
    outputs = tmp_path / "outputs"
    assert main(["compare", *map(str, chosen), "tracking.enabled=false", f"outputs_dir={outputs}"]) == 0
    printed = capsys.readouterr().out
    differing = "data set (German Credit, COMPAS); cost (0.5, 0.7); preset (none, fast)."
    assert f"\nNot compared across groups, which differ in {differing}" in printed
    assert not re.search(r"\*\*|###|\\[_|]", printed)  # no Markdown on a terminal
    (best,) = (line for line in printed.splitlines() if "FairLog, 000000000003" in line and "F+" in line)
    assert re.search(r"\d \(\d+\.\d\)\* F\+", best)
    table = (outputs / "comparison" / "tables" / "measures.md").read_text()
    lines = [line.split(" | ") for line in table.splitlines() if line.startswith(("| German", "| COMPAS"))]
    credit, compas = (f"| {name}, c = 0.5, harsh initial policy" for name in ("German Credit", "COMPAS"))
    assert [(line[0].removesuffix(", preset none"), line[1]) for line in lines] == [
        (credit, "1 FairLog, 000000000001"),
        (credit, "3 FairLog, 000000000003"),
        (credit, "accept everybody"),
        (compas, "2 FairLog, 000000000002"),
        ("| German Credit, c = 0.7, harsh initial policy", "4 FairLog, 000000000004"),
        (f"{credit}, preset fast", "5 FairLog, 000000000005"),
    ]
    left_out = f"{chosen[5]}: {CAUTION}"
    assert f"\nLeft out: {left_out}\n" in printed
    assert left_out in Page((outputs / "comparison" / "index.html").read_text()).text
    # The third earns the most of its group and is the only one that differs significantly from another.
    assert [("**" in line[3], "F+" in line[3]) for line in lines] == [
        (False, False), (True, True), (False, False), (False, False), (False, False), (False, False),
    ]  # fmt: skip
    assert lines[2][2:4] == ["", "80.0"]
    records = pd.read_csv(outputs / "comparison" / "tables" / "measures.csv", dtype={"run": str})
    utility = records[records["measure"] == "effective_utility"].set_index("run")
    assert set(utility.index[utility["p_against_best_other"].notna()]) == {"000000000001", "000000000003"}
    assert utility.loc["accept_all", "mean"] == 0.8
    assert utility.loc["accept_all", "group"] == utility.loc["000000000001", "group"]


def test_quick_runs_are_not_compared(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        set_preset(make_run(f"model={name}", "dataset=credit", "seeds=10", shift=shift, number=k), "quick")
        for k, (name, shift) in enumerate((("fairlog", 0.1), ("unfairlog", 0.5)), start=1)
    )
    other = make_run("model=fairlog", "dataset=credit", "seeds=10", number=3)
    outputs = tmp_path / "outputs"
    words = ["tracking.enabled=false", f"outputs_dir={outputs}"]
    assert main(["compare", str(first), str(second), *words]) == 0
    printed = capsys.readouterr().out
    assert f"Runs side by side ({CAUTION})" in printed
    assert not [mark for mark in MARKS if mark in printed]
    folder = outputs / "comparison_quick"
    assert not (outputs / "comparison").exists()
    page = (folder / "index.html").read_text()
    assert f"<h1>FairAll: runs side by side ({CAUTION})</h1>" in page
    assert f"<p>{UNTESTED}</p>" in page
    assert "<b>" not in page.split("<figcaption>")[0]
    records = pd.read_csv(folder / "tables" / "measures.csv")
    assert set(records["preset"]) == {"quick"}
    assert not records["best"].any()
    assert "p_against_first" not in records
    # Beside another run a quick one is left out, and one run is nothing to compare.
    assert main(["compare", str(first), str(other), *words]) == 1
    error = capsys.readouterr().err
    assert error == f"fairall: compare needs at least two runs that can be compared; {first}: {CAUTION}\n"


def test_a_quick_report_claims_nothing(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("fairall_I_II", "fairlog", "unfairlog")
    for number, name in enumerate(names, start=1):
        words = [f"model={name}", "dataset=credit", "seeds=10"]
        make_run(*words, "preset=quick", shift=number / 10, number=number)
        make_run(*words, shift=number / 10, number=10 + number)
    outputs = tmp_path / "outputs"
    words = ["dataset=credit", "seeds=10", "tracking.enabled=false", f"outputs_dir={outputs}"]
    assert main([*words, "preset=quick"]) == 0
    printed = capsys.readouterr().out
    assert UNTESTED in printed
    assert "reproduced" not in printed
    assert "printed" not in printed
    assert not (outputs / "report").exists()
    folder = outputs / "report_quick"
    for table in folder.glob("tables/*.md"):
        if table.stem != "other_runs":
            text = table.read_text()
            assert CAUTION in text.splitlines()[0], table
            assert not [mark for mark in MARKS if mark in text], table
    assert not [*folder.glob("tables/claims*"), *folder.glob("tables/printed*")]
    assert [*folder.glob("tables/effective*")]
    assert [*folder.glob("figures/*.png")]
    # The real report is of the other runs, and lists the quick ones with their mark.
    assert main(words) == 0
    assert "reproduced" in capsys.readouterr().out
    effective = (outputs / "report" / "tables" / "effective_harsh_corrected.md").read_text()
    assert "**" in effective
    assert CAUTION not in effective
    others = (outputs / "report" / "tables" / "other_runs.md").read_text()
    assert others.count(CAUTION) == len(names)
    page = tmp_path / "results.md"
    assert main([*words, "preset=quick", "--results", str(page)]) == 1
    assert capsys.readouterr().err == (
        f"fairall: --results {page}: not possible with {CAUTION}; omit --results\n"
    )
    assert not page.exists()


def test_what_a_shell_matches_beside_runs(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        path = make_run("model=fairlog", "dataset=credit", "seeds=2", number=number)
        path.with_suffix(".lock").write_text("process 1 on here")
    folder = path.parent
    words = ["tracking.enabled=false", f"outputs_dir={tmp_path / 'outputs'}"]
    assert len(list(folder.iterdir())) == 4
    assert main(["compare", *sorted(map(str, folder.iterdir())), *words]) == 0
    assert "2 FairLog, 000000000002" in capsys.readouterr().out
    (folder / "notes.txt").touch()
    for other, said in (
        (folder / "notes.txt", "notes.txt: a file, not the folder of a run\n"),
        (folder, "credit: not the folder of a run, which is outputs/runs/METHOD/DATASET/ID\n"),
        (path.with_suffix(".lock"), "compare needs at least two runs: folders, or ids of outputs/runs\n"),
    ):
        assert main(["compare", str(path), str(other), *words]) == 1
        error = capsys.readouterr().err
        assert error.endswith(said)
        assert error.count("\n") == 1


def test_runs_that_are_not_the_papers_are_listed(
    make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "outputs"
    words = [
        "dataset=credit",
        "model=fairlog",
        "seeds=10",
        "tracking.enabled=false",
        f"outputs_dir={outputs}",
    ]
    own = make_run("model=fairlog", "dataset=credit", "cost.value=0.35", "seeds=1", shift=0.3, number=1)
    set_preset(make_run("model=unfairlog", "dataset=credit", "seeds=2", number=2), "quick")
    assert main([*words, "--results", str(tmp_path / "results.md")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("0 of the ")
    assert "python -m fairall.report compare RUN RUN" in printed
    first, second = (
        [text.strip() for text in line.split("│")[1:-1]]
        for line in printed.splitlines()
        if line.startswith(("│ FairLog", "│ UnfairLog"))
    )
    utility = pd.read_csv(own / "metrics.csv")["effective_utility"].iloc[-1]
    assert first[:5] == ["FairLog", "harsh", "0.35", "1", f"{100 * utility:.1f}"]
    assert first[-1] == str(own)
    assert second[:4] == [f"UnfairLog ({CAUTION})", "harsh", "0.5", "2"]
    page = outputs / "report" / "index.html"
    assert Page(page.read_text()).ids[0] == "other-runs"
    assert str(own) in Page(page.read_text()).text
    assert {path.suffix for path in page.parent.glob("tables/other_runs.*")} == {".md", ".tex", ".csv"}
    # What is missing, tables and figures, in the order of the page, here and on the Markdown page.
    not_run = page.read_text().split('<h2 id="not-run">')[1]
    missing = [
        unescape(title) for title in re.findall(r"<summary>(.*): 1 of 1 run missing</summary>", not_run)
    ]
    listed = (tmp_path / "results.md").read_text().split("## Not run\n")[1].split("\n- ")[1:]
    assert missing == [title.strip().replace("\\_", "_") for title in listed]
    policy = "harsh initial policy"
    titles = (
        f"The paper's claims, {policy}, protocol corrected",
        f"Effective utility and DPU, {policy}, protocol corrected",
        f"German Credit, {policy}",
        f"Acceptance by group, {policy}",
    )
    places = [missing.index(title) for title in titles]
    assert places == sorted(places)

    # Beside one of the paper's: at the end of the page, and a line on the terminal.
    make_run("model=fairlog", "dataset=credit", number=3)
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 of the ")
    assert "\n2 other runs, listed at the end of the page; to compare runs: python -m" in printed
    assert "\nGerman" not in printed
    text = page.read_text()
    assert Page(text).ids.index("other-runs") > Page(text).ids.index("hyperparameters")
    assert "<details><summary>2 runs</summary>" in text
