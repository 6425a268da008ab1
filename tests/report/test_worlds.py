"""The page on methods in other worlds, from made-up runs."""

import re
from pathlib import Path

import pytest
from fairall.results.finished import Run, collect

from fairall.errors import FairAllError
from fairall.report import worlds as page
from fairall.report.plan import WORLDS, plan
from fairall.results.interpretable import CAUTION
from tests.report.conftest import MakeRun, add_references

TABLE_ROW = re.compile(r"^\| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)


@pytest.fixture
def everything(make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all runs of the study."""
    made = set()
    for number, one in enumerate(plan(WORLDS)):
        path = make_run(*one.words, number=number)
        add_references(path, "oracle", effective_utility=0.5, regret=0.0)
        made.add(one.key)
    assert len(made) == 39
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_delayed(run: Run) -> bool:
    """Whether a run is of the study of delays, static ones included."""
    return run.name("dataset") == "credit" and set(run.config["world"]) <= {"delay"}


def rows(text: str, title: str) -> dict[tuple[str, str], list[str]]:
    (section,) = [part for part in text.split("### ") if part.startswith(title)]
    return {(group, name): cells.split(" | ") for group, name, cells in TABLE_ROW.findall(section)}


def test_all_runs_are_found_and_shown(everything: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = everything / "docs" / "worlds_results.md"
    monkeypatch.setattr(page, "reproduce", lambda *_, **__: True)  # which would make them
    assert page.worlds([], None, results, 1)
    text = results.read_text()
    places = rows(text, "Few places")
    for value in ("0.1", "0.25", "0.5", "1"):
        group = f"places per applicant: {value}"
        assert {name for g, name in places if g == group} == {
            "FairAll (I+II)", "FairLog", "UnfairLog", "accept everybody", "knows every label",
            "knows every label, with parity",
        }  # fmt: skip
        assert places[group, "knows every label"][0] == "50.0"
    assert len(rows(text, "A shift")) == 7  # with the heading
    assert (everything / "docs" / "figures" / "worlds.png").exists()
    assert (everything / "outputs" / "worlds" / "index.html").exists()


def test_a_quick_page_is_marked_and_has_a_folder_of_its_own(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, one in enumerate(plan(["worlds_delay"], ["preset=quick"])):
        make_run(*one.words, number=number)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(page, "reproduce", lambda *_, **__: True)
    assert page.worlds(["preset=quick"], None, None, 1)
    folder = tmp_path / "outputs" / "worlds_quick"
    assert f"<h1>FairAll: other worlds ({CAUTION})</h1>" in (folder / "index.html").read_text()
    text = (folder / "tables" / "worlds_delay.md").read_text()
    assert text.startswith(f"### Late labels ({CAUTION})\n")
    assert not (tmp_path / "outputs" / "worlds").exists()
    with pytest.raises(FairAllError, match=f"worlds.md: not possible with {CAUTION}; omit --results"):
        page.worlds(["preset=quick"], None, tmp_path / "worlds.md", 1)


def test_utility_lost_to_waiting_is_paired_by_seed(everything: Path) -> None:
    runs = collect(everything / "outputs" / "runs").runs
    (study,) = [one for one in page.STUDIES if one.sweep == "worlds_delay"]
    table = page._table(study, page.with_runs(plan(["worlds_delay"], once=False), runs))
    (lost,) = [
        record
        for record in table.records
        if (record["value"], record["policy"], record["measure"]) == (50.0, "FairLog", page.LOST)
    ]
    fairlog = {study.value(run): run for run in runs if run.name("model") == "fairlog" and is_delayed(run)}
    prompt, late = (fairlog[steps].per_seed("effective_utility") for steps in (0.0, 50.0))
    assert lost["mean"] == pytest.approx((prompt - late).mean())
    assert lost["std"] == pytest.approx((prompt - late).std())
    assert lost["std"] != pytest.approx(late.std())


def test_a_missing_run_is_named_with_its_command(everything: Path) -> None:
    runs = [run for run in collect(everything / "outputs" / "runs").runs if run.name("model") != "fairlog"]
    planned = page.with_runs(plan(["worlds_shift"], once=False), runs)
    (study,) = [one for one in page.STUDIES if one.sweep == "worlds_shift"]
    ((_, command),) = page._table(study, planned).lacking.commands
    assert "model=fairlog" in command
    assert "world=drift" in command
