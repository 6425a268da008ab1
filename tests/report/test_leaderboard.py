"""The leaderboard, from made-up runs."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from fairall.results.finished import Run
from matplotlib.backends.backend_agg import FigureCanvasAgg
from omegaconf import DictConfig

from fairall.report import labels
from fairall.report import leaderboard as command
from fairall.report.__main__ import main
from fairall.report.board import (
    BASELINE,
    DPU,
    OPPORTUNITY,
    RIVAL,
    TEST_UTILITY,
    UTILITY,
    Board,
    board,
    cpu_seconds,
)
from fairall.report.comparable import UNTESTED
from fairall.report.durations import Durations
from fairall.report.figures import look_of
from fairall.report.leaderboard_figures import board_figures
from fairall.report.leaderboard_tables import (
    care_table,
    in_words,
    standings_table,
    task_table,
    versus_in_words,
    versus_table,
)
from fairall.report.plan import LEADERBOARD, Planned, _grid, plan
from fairall.results import page
from fairall.results.interpretable import CAUTION
from fairall.results.table import Table
from tests.report.conftest import MakeRun, add_references

SEEDS = 10
TASKS = [("credit", "harsh"), ("credit", "lenient"), ("fico", "harsh")]
METHODS = [name for sweep in LEADERBOARD for name in _grid(sweep).model.split(",")]
MEASURED = (UTILITY.name, TEST_UTILITY.name, DPU.name, OPPORTUNITY.name)
ORACLE = 0.4  # utility, effective and on test people
TABLE_ROW = re.compile(r"^\| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)


def point(
    method: str, task: tuple[str, str], values: Mapping[str, Sequence[float]] | None, **more: Any
) -> Planned:
    """A planned run, finished where `values` has measures by seed."""
    dataset, policy = task
    config = {
        "model": {"name": method}, "dataset": {"name": dataset}, "initial_policy": {"name": policy},
        "protocol": {"name": "corrected"}, "evaluation": {}, "seeds": SEEDS,
    }  # fmt: skip
    words = (f"model={method}", f"dataset={dataset}", f"initial_policy={policy}")
    run = None
    if values is not None:
        per_seed = [
            {"seed": seed} | dict(zip(values, of, strict=True))
            for seed, of in enumerate(zip(*values.values(), strict=True))
        ]
        of_oracle = dict(zip(MEASURED, (ORACLE, ORACLE, 0.3, 0.1), strict=True))
        references = {"oracle": {name: {"mean": mean, "std": 0.0} for name, mean in of_oracle.items()}}
        summary = {"per_seed": per_seed, "references": references} | more
        run = Run(Path(), config, summary, pd.DataFrame(), 0.0)
    return Planned("leaderboard_paper", words, DictConfig({}), config, run)


def measured(utility: float, dpu: float, number: int) -> dict[str, Sequence[float]]:
    """Values near some means; each number has other ones."""
    rng = np.random.default_rng(number)
    return {
        name: (mean + rng.normal(0, 0.002, SEEDS)).tolist()
        for name, mean in zip(MEASURED, (utility, utility / 2, dpu, dpu), strict=True)
    }


def several(methods: Sequence[str], levels: Mapping[str, tuple[float, float]]) -> list[Planned]:
    """Runs of some methods on `TASKS`, with utility and DPU by method, 0.2 and 0.1 by default."""
    return [
        point(name, task, measured(*levels.get(name, (0.2, 0.1)), 100 * k + i))
        for k, task in enumerate(TASKS)
        for i, name in enumerate(methods)
    ]


def cells(table: Table, name: str, group: str = "") -> dict[str, str]:
    """Texts of a row by column."""
    (row,) = [row for row in table.rows if row.name == labels.method(name) and group in row.group]
    return dict(zip(table.columns, (cell.ours for cell in row.cells), strict=True))


def made(levels: Mapping[str, tuple[float, float]], **more: Any) -> Board:
    return board(several(list(levels), levels), more.get("reasons", {}), more.get("cpu", {}))


def test_every_method_of_the_sweeps_has_a_name_a_colour_and_a_mark() -> None:
    assert len(set(METHODS)) == 14
    assert {labels.method(name) for name in METHODS}.isdisjoint(METHODS)
    looks = [look_of(name) for name in METHODS]
    assert len({look["color"] for look in looks}) == len({look["marker"] for look in looks}) == 14
    datasets = _grid(LEADERBOARD[0]).dataset
    assert datasets == _grid(LEADERBOARD[1]).dataset
    assert {labels.dataset(name) for name in datasets.split(",")}.isdisjoint(datasets.split(","))


def test_standings_of_methods_that_differ() -> None:
    own = made({BASELINE: (0.2, 0.1), "greedy": (0.3, 0.3), "plot": (0.2, 0.1), "fairlog": (0.1, 0.2)})
    table = standings_table(own)
    order = [row.name for row in table.rows]
    assert order[0] == "Greedy"
    assert order[3:] == ["FairLog", "accept everybody", "knows every label", "knows every label, with parity"]
    greedy, plot, fairlog = (cells(table, name) for name in ("greedy", "plot", "fairlog"))
    # By utility 1, 2, 2, 4; by DPU 4, 1, 1, 3.
    assert [row["rank by utility"] for row in (greedy, plot, fairlog)] == ["1", "2", "4"]
    assert [row["rank by DPU"] for row in (greedy, plot, fairlog)] == ["4", "1", "3"]
    share = [float(end) for end in re.findall(r"[\d.]+", greedy["share of the oracle's utility ↑"])]
    assert share[1] < share[0] < share[2]
    assert share == pytest.approx([75] * 3, abs=0.5)  # 0.3 of the oracle's 0.4
    assert float(greedy["share by test utility ↑"].split()[0]) == pytest.approx(37.5, abs=0.5)
    assert greedy["P(earns more than FairAll (I+II))"] == "100.0 [100.0, 100.0]"
    assert greedy["P(fairer than FairAll (I+II))"] == "0.0 [0.0, 0.0]"
    assert cells(table, BASELINE)["P(earns more than FairAll (I+II))"] == ""
    assert fairlog["on the front"] == "0"
    assert greedy["on the front"] == greedy["tasks"][0] == "3"
    oracle = cells(table, "oracle")
    assert [oracle[f"share {of} ↑"] for of in ("of the oracle's utility", "by test utility")] == ["100.0"] * 2
    assert [oracle[of] for of in ("DPU ↓", "equal-opportunity gap ↓")] == ["30.0", "10.0"]


def test_a_missing_run_has_a_row_with_the_reason() -> None:
    runs = several([BASELINE, "greedy", "plot", "adopt"], {})
    long = "model.updates must be at least 1, and is 0, " + 3 * "which makes no update "
    runs[1], runs[2] = (point(name, TASKS[0], None) for name in ("greedy", "plot"))
    runs[3] = point("adopt", TASKS[0], {UTILITY.name: [np.nan] * SEEDS, DPU.name: [np.nan] * SEEDS})
    own = board(runs, {runs[2].key: long}, {})
    rows = {(row.group, row.name): row.cells[1] for row in task_table(own, "credit").rows}
    harsh = "harsh initial policy"
    reasons = {name: rows[harsh, labels.method(name)].beside for name in ("greedy", "plot", "adopt")}
    assert reasons == {
        "greedy": "not made",
        "plot": "model.updates must be at least 1, and is 0, …",
        "adopt": "no seed has a value",
    }
    assert rows[harsh, "Greedy"].ours == "missing"
    assert all(rows["lenient initial policy", labels.method(name)].ours != "missing" for name in reasons)
    standings = standings_table(own)
    assert [cells(standings, name)["tasks"] for name in (BASELINE, *reasons)] == ["3 of 3", *["2 of 3"] * 3]
    assert "Finished runs: 10 of 12." in in_words(own, [])[0]


def test_every_method_on_every_data_set_has_a_row() -> None:
    runs = [point(name, task, None) for task in TASKS for name in METHODS]
    runs[0] = several([BASELINE], {})[0]
    own = board(runs, {}, {})
    for dataset, policies in (("credit", ("harsh", "lenient")), ("fico", ("harsh",))):
        rows = [(row.group, row.name) for row in task_table(own, dataset).rows]
        wanted = {(f"{one} initial policy", labels.method(name)) for one in policies for name in METHODS}
        assert wanted <= set(rows)
        assert len(rows) == len(set(rows))
    assert standings_table(own).rows[0].name == "FairAll (I+II)"
    assert [item.key for item in board_figures(own) if item.shown] == [
        "leaderboard_aggregates", "leaderboard_plane",
    ]  # fmt: skip
    nothing = board([point(name, TASKS[0], None) for name in METHODS], {}, {})
    assert not standings_table(nothing).shown
    assert not any(item.shown for item in board_figures(nothing))


def test_regret_is_what_the_oracle_earns_more() -> None:
    table = task_table(made({"greedy": (0.3, 0.1), BASELINE: (0.1, 0.1)}), "fico")
    assert cells(table, "greedy")["regret ↓"].startswith("10.")
    assert cells(table, BASELINE)["regret ↓"].startswith("30.")
    assert cells(table, "greedy")["test utility ↑"].startswith("15.")
    oracle = cells(table, "oracle")
    assert [oracle[column] for column in table.columns] == [
        "", "40.0", "0.0", "40.0", "", "30.0", "10.0", "", "",
    ]  # fmt: skip
    of = {(one["measure"], one["seed"]): one["value"] for one in table.records if one["method"] == "greedy"}
    assert of["regret", 3] == pytest.approx(ORACLE - of[UTILITY.name, 3])


def test_a_task_without_an_oracle_has_no_share() -> None:
    runs = several([BASELINE, "greedy"], {})
    for one in runs[:2]:
        assert one.run is not None
        one.run.summary["references"] = {}
    own = board(runs, {}, {})
    assert [bool(task.shares()) for task in own.tasks] == [False, True, True]
    table = task_table(own, "credit")
    assert cells(table, "greedy", "harsh")["regret ↓"] == ""
    assert cells(table, "greedy", "lenient")["regret ↓"] != ""


def test_two_methods_side_by_side() -> None:
    runs = several([BASELINE, RIVAL], {BASELINE: (0.3, 0.1)})
    # On the last task the rival earns more, and nobody can tell whose DPU is less.
    runs[-1] = point(RIVAL, TASKS[-1], measured(0.5, 0.1, 77))
    table = versus_table(board(runs, {}, {}), BASELINE, RIVAL)
    assert versus_in_words(table) == [
        "FairAll (I+II) earns more on 2 of 3 tasks, AdOpt on 1.",
        "FairAll (I+II) is fairer (DPU) on 0 of 3 tasks, AdOpt on 0; on 3 no significant difference.",
    ]
    bold = [[cell.best for cell in row.cells[:3]] for row in table.rows]
    assert bold == [[True, False, False], [True, False, False], [False, True, False]]
    # Ten of ten seeds: 2/1024, times three tasks.
    assert table.rows[0].cells[2].ours == "0.0059"
    alone = versus_table(made({BASELINE: (0.2, 0.1)}), BASELINE, RIVAL)
    assert versus_in_words(alone) == []
    assert not alone.shown


def test_a_warning_is_said_once_with_its_methods() -> None:
    runs = several([BASELINE, "greedy", "plot"], {})
    collapsed = "2 seeds (0, 4) collapsed to accepting nobody"
    for one, warnings in zip(runs, (["few people"], ["few people", collapsed], ["few people"]), strict=False):
        assert one.run is not None
        one.run.summary["warnings"] = warnings
    for k in (3, 4, 5, 6, 7):
        runs[k] = point(runs[k].model, TASKS[k // 3], None)
    reasons = {one.key: "law.csv: not found" for one in runs[3:6]}
    found = [(row.group, row.name, row.cells[0].ours) for row in care_table(board(runs, reasons, {})).rows]
    assert found == [
        ("German Credit, harsh", "every method", "few people"),
        ("German Credit, harsh", "Greedy", collapsed),
        ("German Credit, lenient", "every method", "missing: law.csv: not found"),
        ("FICO scores, harsh", "FairAll (I+II), Greedy", "missing: not made"),
    ]


def test_processor_time_is_of_the_last_run_of_a_command(tmp_path: Path) -> None:
    runs = several([BASELINE, "greedy"], {})
    path = tmp_path / "reproduction.csv"
    measurements = Durations(path, [])
    for one, cpu in ((runs[0], 50.0), (runs[0], 60.0), (runs[2], 40.0)):
        measurements.add(one, 99.0, cpu)
    # As typed with another folder, which changes nothing.
    path.write_text(
        path.read_text().replace("policy=lenient", "policy=lenient outputs_dir=/x tracking.enabled=false")
    )
    own = board(runs, {}, cpu_seconds(path))
    table = task_table(own, "credit")
    assert cells(table, BASELINE, "harsh")["CPU seconds"] == "60"
    assert cells(table, BASELINE, "lenient")["CPU seconds"] == "40"
    assert cells(table, "greedy", "harsh")["CPU seconds"] == ""
    assert cells(standings_table(own), BASELINE)["CPU seconds a run"] == "50"


def test_figures_of_all_methods() -> None:
    rng = np.random.default_rng(0)
    own = made({name: (rng.uniform(0, 0.4), rng.uniform(0.02, 0.3)) for name in METHODS})
    names = {*map(labels.method, METHODS)}
    with mpl.rc_context(page.BASE):
        aggregates, planes, pairs = (item.draw() for item in board_figures(own) if item.draw is not None)
        for figure in (aggregates, planes, pairs):
            FigureCanvasAgg(figure).draw()
    assert {label.get_text() for label in aggregates.axes[0].get_yticklabels()} == names
    (legend,) = planes.legends
    assert {text.get_text() for text in legend.get_texts()} == {*names, "knows every label", "Pareto front"}
    # One panel stays empty: FICO scores with the lenient initial policy.
    assert [len(axes.containers) for axes in planes.axes] == [14, 14, 14, 0]
    assert [len(axes.texts) for axes in pairs.axes] == [14 * 13, 14 * 13]
    # The method of the greatest rank is in the first row of the matrix and on top of the aggregates.
    best = labels.method(own.standings[0].method)
    assert pairs.axes[0].get_yticklabels()[0].get_text() == best
    assert aggregates.axes[0].get_yticklabels()[-1].get_text() == best


@pytest.mark.parametrize(("earned", "shown"), [(-0.3, False), (0.0, True)])
def test_a_reference_that_loses_is_not_in_the_plane(earned: float, shown: bool) -> None:
    level = {UTILITY.name: {"mean": earned, "std": 0.0}, DPU.name: {"mean": 0.0, "std": 0.0}}
    own = board([point("greedy", TASKS[0], measured(0.2, 0.1, 0), references={"accept_all": level})], {}, {})
    with mpl.rc_context(page.BASE):
        planes = next(item.draw() for item in board_figures(own) if item.key.endswith("plane") and item.draw)
    (legend,) = planes.legends
    assert ("accept everybody" in {text.get_text() for text in legend.get_texts()}) is shown


@pytest.mark.parametrize("whole", [True, False])
def test_conclusions_are_on_the_page_of_the_whole_plan_only(whole: bool) -> None:
    own = board(several([BASELINE, RIVAL], {}), {}, {})
    versus = versus_table(own, BASELINE, RIVAL)
    values = {
        "opening": in_words(own, []), "main": standings_table(own), "figures": [], "versus": versus,
        "counts": versus_in_words(versus), "whole": whole, "tables": [], "care": care_table(own),
        "made": "made",
    }  # fmt: skip
    assert ("November 2026" in page.rendered("leaderboard.md.jinja", values, "fairall.report")) is whole


@pytest.fixture
def results(make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of four of six runs of two data sets, one of which cannot be made."""
    words = ["model=fairall_I_II,greedy,fairlog", "dataset=credit,fico", "initial_policy=harsh"]
    every = plan(LEADERBOARD, ["seeds=10", *words])
    assert len(every) == 6
    for number, one in enumerate(every):
        if one.model != "fairlog":
            path = make_run(*one.words, number=number, shift=0.1 + 0.02 * number)
            add_references(path, "oracle", effective_utility=0.2, effective_dpu_pooled=0.1)
    monkeypatch.chdir(tmp_path)
    impossible = next(one for one in every if (one.model, one.dataset) == ("fairlog", "fico"))
    monkeypatch.setattr(command, "plan", lambda *_: every)
    monkeypatch.setattr(
        command, "make", lambda *_, **__: [(impossible, "model.lambda_ must not be negative")]
    )
    written = tmp_path / "docs" / "leaderboard.md"
    assert not command.leaderboard([*words, "preset=none"], None, written, 1)
    return written


def test_the_page(results: Path) -> None:
    text = results.read_text()
    assert "3 methods on 2 tasks" in text
    assert "Finished runs: 4 of 6." in text
    assert "Every command has preset=none added." in text
    pictures = re.findall(r"\]\((figures/.*?)\)", text)
    assert [Path(one).stem for one in pictures] == [
        "leaderboard_aggregates", "leaderboard_plane", "leaderboard_pairs",
    ]  # fmt: skip
    for picture in pictures:
        assert (results.parent / picture).read_bytes().startswith(b"\x89PNG")
    section = {part.split("\n")[0]: part for part in text.split("### ")}
    credit, fico = (
        {name: of for _, name, of in TABLE_ROW.findall(section[name])}
        for name in ("German Credit", "FICO scores")
    )
    for rows in (credit, fico):
        assert {"FairAll (I+II)", "Greedy", "FairLog", "knows every label"} <= set(rows)
    assert "missing *not made*" in credit["FairLog"]
    assert "missing *model.lambda_ must not be negative*" in fico["FairLog"].replace(r"\_", "_")
    assert "1 of 3 runs missing: FairLog on FICO scores." in text
    assert "FairAll and AdOpt" not in text
    care = TABLE_ROW.findall(section["Warnings"])
    assert ("German Credit, harsh", "FairLog", "missing: not made") in care
    html = (results.parents[1] / "outputs" / "leaderboard" / "index.html").read_text()
    assert "model.lambda_ must not be negative" in html


def test_a_quick_leaderboard_ranks_nobody(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["model=fairall_I_II,greedy,adopt", "dataset=credit", "initial_policy=harsh", "preset=quick"]
    every = plan(LEADERBOARD, ["seeds=10", *words])
    for number, one in enumerate(every):
        path = make_run(*one.words, number=number, shift=0.1 + 0.2 * number)
        add_references(path, "oracle", effective_utility=0.2, effective_dpu_pooled=0.1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "make", lambda *_, **__: [])
    assert command.leaderboard([*words, "seeds=10"], None, None, 1)
    folder = tmp_path / "outputs" / "leaderboard_quick"
    assert not (tmp_path / "outputs" / "leaderboard").exists()
    made = sorted(path.stem for path in folder.glob("tables/*.md"))
    assert made == ["leaderboard_credit"]
    text = (folder / "tables" / "leaderboard_credit.md").read_text()
    assert f"German Credit ({CAUTION})" in text
    assert "**" not in text
    ranked = [name for name, _, cells in TABLE_ROW.findall(text)[1:] if cells.split(" | ")[0].strip()]
    assert ranked == []
    html = (folder / "index.html").read_text()
    assert f"<h1>FairAll: the leaderboard ({CAUTION})</h1>" in html
    assert f"<li>{UNTESTED} Standings and ranks are left out.</li>" in html
    for claim in ("is fairer", "earns more", "Standings</h3>", "front</b>", "significant"):
        assert claim not in html
    assert main(["leaderboard", *words, "--results", "docs/leaderboard.md"]) == 1
    said = capsys.readouterr().err
    assert said == f"fairall: --results docs/leaderboard.md: not possible with {CAUTION}; omit --results\n"
    assert not (tmp_path / "docs").exists()


def test_the_command_takes_words_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "greedy", f"outputs_dir={tmp_path}"]) == 1
    assert "greedy: not possible; leaderboard takes KEY=VALUE only" in capsys.readouterr().err
