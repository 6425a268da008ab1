"""Runs side by side: tables, figure and page."""

from dataclasses import replace
from pathlib import Path

import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from fairall import FairAllError, Result
from fairall.display import page
from fairall.display.table import to_markdown
from fairall.report import chosen_runs, compare, draw_over_time, measures
from fairall.report.comparison import place
from tests.kills import survives
from tests.made_up import lay_down, made_up

CREDIT = ("model=fairlog", "dataset=credit", "seeds=10")


@pytest.fixture(autouse=True)
def _coarse_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "DPI", 20)


def run(*words: str, number: int, preset: str | None = None, **options: object) -> Result:
    config = {} if preset is None else {"preset": preset}
    return made_up(*words, number=number, config=config, path=Path(f"{number:012x}"), **options)  # type: ignore[arg-type]


def named(*runs: Result) -> dict[str, Result]:
    return {f"{i} {run.identity}": run for i, run in enumerate(runs, start=1)}


LEVELS = {"accept_all": {"effective_utility": 0.8, "mean_utility": 0.9, "mean_dpu": 0.0}}
# By what they show: the runs that are compared.
COMPARED = {
    "a better run": (
        run(*CREDIT, shift=0.1, number=1),
        run(*CREDIT, "model.lambda_=8", shift=0.3, number=2),
    ),
    # The third earns the most of its group and is the only one that differs significantly from another.
    "only comparable ones": (
        run(*CREDIT, shift=0.1, number=1),
        run("model=fairlog", "dataset=compas", "seeds=10", shift=0.5, number=2),
        run(*CREDIT, "model.lambda_=9", shift=0.3, number=3, references=LEVELS),
        run(*CREDIT, "cost.value=0.7", shift=0.6, number=4),
        run(*CREDIT, shift=0.7, number=5, preset="fast"),
    ),
    "quick ones": tuple(run(*CREDIT, shift=0.1 * k, number=k, preset="quick") for k in (1, 4)),
}


@pytest.mark.parametrize("what", COMPARED)
def test_tables_of_runs_side_by_side(
    what: str, tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    tables = compare(named(*COMPARED[what]), tmp_path)
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    records = next(table.records for table in tables if table.key == "measures").round(3).to_csv(index=False)
    shown = "\n\n".join([*written, *map(to_markdown, tables), records])
    file_regression.check(shown, extension=".md", encoding="utf-8")


def test_runs_are_chosen_by_folder_or_id(tmp_path: Path) -> None:
    folder = tmp_path / "outputs" / "runs"
    first, second = (lay_down(tmp_path, "seeds=2", *CREDIT[:2], number=k) for k in (1, 0x2A0000000000))
    runs = chosen_runs([str(first), f"{first}.lock", "2a0"], folder)
    assert {name[:9]: run.path for name, run in runs.items()} == {"1 FairLog": first, "2 FairLog": second}
    with pytest.raises(FairAllError, match="at least two runs"):
        chosen_runs([str(first), str(first)], folder)


def test_references_are_lines_and_a_run_without_a_measure_is_left_out() -> None:
    known = {"accept_all": {"mean_utility": 0.18, "mean_dpu": 0.0}, "oracle": {"mean_dpu": 0.3}}
    first = run(*CREDIT[:2], "seeds=2", number=1, references=known)
    other = replace(first, steps=first.steps.drop(columns="dpu"))
    looks = {name: {"label": f"run {name}", "color": "C0", "ls": "-"} for name in "12"}
    figure = draw_over_time({"1": first, "2": other}, measures("utility", "dpu"), looks)
    drawn = [{line.get_label(): {*line.get_ydata()} for line in axes.get_lines()} for axes in figure.axes]
    assert [[*lines] for lines in drawn] == [
        ["run 1", "run 2", "accept everybody"],
        ["run 1", "knows every label"],
    ]
    assert (drawn[0]["accept everybody"], drawn[1]["knows every label"]) == ({18.0}, {30.0})
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {*drawn[0], *drawn[1]}


@pytest.mark.whole
def test_a_comparison_that_is_killed_has_the_same_bytes_afterwards(tmp_path: Path) -> None:
    runs = named(*(run(*CREDIT, shift=0.1 * number, number=number) for number in (1, 4)))
    (tmp_path / "begin").mkdir()
    assert survives(lambda folder: compare(runs, folder), tmp_path / "begin", tmp_path, step=20) > 1


def test_a_page_has_a_folder_of_its_own_and_replaces_none(tmp_path: Path) -> None:
    default, runs = tmp_path / "comparison", named(*(run(*CREDIT, number=number) for number in (1, 2)))
    folder = place(None, default, runs)
    assert folder == place(None, default, runs) != place(None, default, dict(reversed(runs.items())))
    assert folder.parent == place(tmp_path, default, runs) == tmp_path
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(FairAllError, match="it has a page already; give another folder"):
        place(tmp_path, default, runs)
